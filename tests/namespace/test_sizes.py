"""The cases of the table over arrays of data-dependent length: what a mask selects along one axis of each."""

# tests named elsewhere

from __future__ import annotations

import linecache
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import signal, stats

import tensormagic as tm
from tensormagic.ir.errors import CaptureError
from tests.capture.harness import computed
from tests.namespace.cases import Case, all_cases, leaves


def masked(case: Case, names: list[str]) -> Any:
    """The case as a function of its inputs, and of a mask of the first axis for each of ``names``."""
    *body, last = case.source.strip().splitlines()
    lines = [*(f"{n} = {n}[mask_{n}]" for n in names), *body, f"return {last}"]
    text = f"def case({', '.join([*case.inputs, *(f'mask_{n}' for n in names)])}):\n    " + "\n    ".join(lines) + "\n"
    file = f"<case {case.id} by masks>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {"np": np, **case.modules}
    exec(compile(text, file, "exec"), space)
    return space["case"]


def alike(case: Case, names: list[str], keep: slice) -> None:
    function = masked(case, names)
    masks = [np.zeros(len(case.inputs[n]), bool) for n in names]
    for mask in masks:
        mask[keep] = True

    def outcome(called: Any) -> Any:
        try:
            with (
                np.errstate(all="ignore"),
                warnings.catch_warnings(action="ignore", category=tm.PlainRunWarning),
            ):  # what Python runs is NumPy's, too
                return list(leaves(computed(called(*case.values(), *masks))))
        except CaptureError:
            return None
        except Exception as error:  # noqa: BLE001 (errors are compared)
            return error

    found, expected = outcome(tm.tensor(function)), outcome(function)
    if found is None or isinstance(expected, Exception):
        assert found is None or isinstance(found, Exception), f"{expected!r} in NumPy"
        return
    assert not isinstance(found, Exception), repr(found)
    for a, b in zip(found, expected, strict=True):
        assert np.shape(a) == np.shape(b)
        assert np.asarray(a).dtype == np.asarray(b).dtype
        single = np.asarray(b).dtype in {np.dtype("f4"), np.dtype("c8")}
        sizes = np.abs(np.atleast_1d(b)) if np.asarray(b).dtype.kind in "fc" else np.zeros(1)
        scale = max(1.0, float(np.max(sizes[np.isfinite(sizes)], initial=0)))
        room = max(case.close, 1e-4 if single else 1e-9) * scale
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=0, atol=room, equal_nan=True)


def arrays_of(case: Case) -> list[str]:
    return [n for n, v in case.inputs.items() if isinstance(v, np.ndarray) and v.ndim]


MASKABLE = [c for c in all_cases() if not c.refused and arrays_of(c)]


def parametrise(cases: list[Case]) -> Any:
    return pytest.mark.parametrize("case", cases, ids=[f"{c.function}: {c.id}" for c in cases])


@pytest.mark.share(5)
@parametrise(MASKABLE)
def test_as_numpy_or_refused(case: Case, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tm.config, "math", "exact")
    monkeypatch.setattr(tm.config, "tier", "numpy")
    names = arrays_of(case)
    for chosen in [names, *([[n] for n in names] if len(names) > 1 else [])]:
        alike(case, chosen, slice(None))
        alike(case, chosen, slice(-1))


@pytest.mark.share(30)
@parametrise([c for c in MASKABLE if not c.numpy_only])
def test_compiled(case: Case, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tm.config, "math", "exact")
    monkeypatch.setattr(tm.config, "tier", "numba")
    alike(case, arrays_of(case)[:1], slice(-1))


A = np.arange(5.0) + 1
LENGTHS = {
    "interp": lambda a, b: np.interp(0.5, a, b),
    "interp of a period": lambda a, b: np.interp(0.5, a, b, period=2.0),
    "interp of a part": lambda a, b: np.interp(0.3, a[a > 2], b),
    "lexsort": lambda a, b: np.lexsort((a, b)),
    "lexsort of a part": lambda a, b: np.lexsort((a[a > 2], b)),
    "place": lambda a, b: (np.place(a, b > 0, [1.0]), a)[1],
    "putmask": lambda a, b: (np.putmask(a, b > 0, [1.0]), a)[1],
}


@pytest.mark.parametrize("name", LENGTHS)
@pytest.mark.parametrize("first", [(5, 5), (5, 6), (5, 3)])
def test_lengths_that_have_to_be_the_same(name: str, first: tuple[int, int], monkeypatch: pytest.MonkeyPatch):
    """Whatever the function was called with before."""
    monkeypatch.setattr(tm.config, "tier", "numpy")
    function = LENGTHS[name]
    captured = tm.tensor(function)
    raised = 0
    for lengths in (first, (5, 5), (5, 6), (6, 5), (7, 7), (5, 3)):
        a, b = (np.arange(float(n)) + 1 for n in lengths)
        try:
            expected = function(a.copy(), b.copy())
        except ValueError:
            raised += 1
            with pytest.raises(ValueError, match=r"same|length|fit"):
                captured(a.copy(), b.copy())
        else:
            np.testing.assert_allclose(captured(a.copy(), b.copy()), expected, rtol=1e-12)
    assert raised >= 2


def test_arrays_of_two_lengths_are_not_equal():
    def equal(a: Any, b: Any) -> Any:
        return np.array_equal(a[a > 2], b), np.array_equal(a[a > 2], a[2:]), np.array_equal(a[a > 2], a[:3])

    captured = tm.tensor(equal)
    for b in (A[2:], A[3:], A, A[2:] + 1):
        assert captured(A, b) == equal(A, b)


NONE = {
    "min of an initial": lambda x, m: np.min(x[m], initial=0.1),
    "max of two axes": lambda x, m: np.max(x[m][:, None] * np.ones((1, 2)), initial=0.1),
    "max along the first": lambda x, m: np.max(x[m][:, None] * np.ones((1, 2)), axis=0, initial=0.1),
    "bincount": lambda x, m: np.bincount(x[m].astype(int)),
    "bincount of a least length": lambda x, m: np.bincount(x[m].astype(int), minlength=2),
    "gradient": lambda x, m: np.gradient(x[m]),
    "logpdf": lambda x, m: stats.multivariate_normal.logpdf(x[m][:, None] * np.ones(2), np.zeros(2), np.eye(2)),
    "fftconvolve": lambda x, m: signal.fftconvolve(np.ones((3, 2)), x[m][:, None] * np.ones(2)),
}


@pytest.mark.parametrize("name", NONE)
def test_of_no_elements_and_of_one(name: str, tier: str):
    """The value, or an error where NumPy and SciPy have one or drop an axis."""
    function, x = NONE[name], np.arange(3.0) + 1
    captured, given = tm.tensor(function), 0
    for mask in ([True] * 3, [False] * 3, [True, False, False], [True, True, False]):
        chosen = np.array(mask)
        try:
            found = captured(x, chosen)
        except CaptureError:
            continue
        except ValueError:
            with pytest.raises(ValueError):  # noqa: PT011 (NumPy's and SciPy's, whatever they say)
                function(x, chosen)
            continue
        expected, given = function(x, chosen), given + 1
        assert np.shape(found) == np.shape(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert given >= 2
