"""Every case of the table against NumPy: value, dtype and shape in a cell and in a function, derivatives, and compiled code."""

# tests named elsewhere

import re
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture import library
from tests.capture.harness import assert_equal, captured, computed, form, kind_of
from tests.namespace.cases import Case, all_cases, differences, leaves, weighted

CASES = all_cases()


def parametrise(cases: list[Case]) -> Any:
    return pytest.mark.parametrize("case", cases, ids=[f"{c.function}: {c.id}" for c in cases])


pytestmark = pytest.mark.usefixtures("by_numpy", "exact")


def oracle(case: Case) -> Any:
    with np.errstate(all="ignore"):
        return case()(*case.values())


def assert_near(ours: Any, numpys: Any, close: float) -> None:
    """As ``assert_equal``, with a distance that is relative to the largest element of each array."""
    if isinstance(numpys, tuple | list):
        assert isinstance(ours, tuple | list)
        assert len(ours) == len(numpys)
        for a, b in zip(ours, numpys, strict=True):
            assert_near(a, b, close)
    elif not close or not isinstance(numpys, np.ndarray | np.generic | float | complex):
        assert_equal(ours, numpys, "result")
    else:
        assert form(ours) == form(numpys), f"{ours!r} for {numpys!r}"
        sizes = np.abs(np.atleast_1d(numpys))
        scale = max(1.0, float(np.max(sizes[np.isfinite(sizes)], initial=0)))
        assert np.allclose(ours, numpys, rtol=0, atol=close * scale, equal_nan=True), f"{ours} for {numpys}"


@parametrise([c for c in CASES if not c.refused])
def test_value_in_a_cell(case: Case):
    imports = "".join(f"import {m.__name__} as {n}\n" for n, m in case.modules.items())
    found = captured(imports + case.source, dict(case.inputs))
    if found.error is not None:
        raise found.error
    assert_near(found.result, oracle(case), case.close)


@pytest.mark.share(3)
@parametrise([c for c in CASES if not c.refused])
def test_value_in_a_function(case: Case):
    with np.errstate(all="ignore"):
        result = computed(tm.tensor(case())(*case.values()))
    for a, b in zip(leaves(result), leaves(oracle(case)), strict=True):
        assert np.shape(a) == np.shape(b)
        assert np.asarray(a).dtype == np.asarray(b).dtype
        assert_near(np.asarray(a), np.asarray(b), case.close)


@pytest.mark.share(6)
@pytest.mark.filterwarnings("ignore::tensormagic.ir.errors.ConstantGradientWarning")  # of some arguments none depends
@parametrise([c for c in CASES if c.differentiable])
def test_derivative(case: Case):
    function, values, moving = case(), case.values(), case.varied()
    captured_function = tm.tensor(function)

    def objective(*given: Any) -> Any:
        return weighted(captured_function(*given))

    gradients = tm.grad(objective, moving)(*values)
    rng = np.random.default_rng(3)
    directions = [rng.normal(size=np.shape(values[k])) for k in moving]
    slope = 0.0
    for gradient, position, direction in zip(gradients, moving, directions, strict=True):
        expected = differences(lambda *given: weighted(function(*given)), values, position)
        scale = max(1.0, float(np.max(np.abs(expected), initial=0)))
        np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-6 * scale)
        slope += np.sum(np.real(np.asarray(gradient) * direction))

    def along(*moved: Any) -> Any:
        given = dict(zip(moving, moved, strict=True))
        return objective(*(given.get(k, v) for k, v in enumerate(values)))

    change = tm.jvp(along, tuple(values[k] for k in moving), tuple(directions))[1]
    np.testing.assert_allclose(change, slope, rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore::tensormagic.ir.errors.ConstantGradientWarning")  # which is what is tried
@parametrise([c for c in CASES if not c.refused and c.constant and c.varied()])
def test_gradient_is_zero_or_refused_where_there_is_none(case: Case):
    """A result without a derivative is never given a wrong one."""
    function, values, moving = case(), case.values(), case.varied()
    captured_function = tm.tensor(function)
    if not any(np.asarray(leaf).dtype.kind in "fc" for leaf in leaves(oracle(case))):
        return

    def objective(*given: Any) -> Any:
        return weighted(captured_function(*given))

    try:
        gradients = tm.grad(objective, moving)(*values)
    except tm.TensorError:
        return
    for gradient, position in zip(gradients, moving, strict=True):
        expected = differences(lambda *given: weighted(function(*given)), values, position)
        np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-6)


@pytest.mark.share(18)
@parametrise([c for c in CASES if not c.refused and not c.numpy_only])
def test_compiled(case: Case, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tm.config, "tier", "numba")
    with np.errstate(all="ignore"):
        result = computed(tm.tensor(case())(*case.values()))
    for a, b in zip(leaves(result), leaves(oracle(case)), strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        assert_near(np.asarray(a), np.asarray(b), max(case.close, 1e-13))


@pytest.mark.share(4)
@parametrise([c for c in CASES if not c.refused])
@pytest.mark.parametrize("change", ["shorter", "longer"])
def test_other_sizes_after_the_first(case: Case, change: str):
    """A function that was captured for arrays of some sizes is right for others, or raises where NumPy does."""
    function = tm.tensor(case())
    computed(function(*case.values()))
    values = [
        v if not np.ndim(v) else np.concatenate([v, v[:2]]) if change == "longer" else v[: max(2, len(v) - 2)]
        for v in case.values()
    ]
    error = None
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):  # NumPy's own, of what is too short
        try:
            expected = case()(*values)
        except Exception as found:  # noqa: BLE001 (errors are what is compared)
            error = found
    if error is not None:
        with pytest.raises(kind_of(error)):
            computed(function(*values))
        return
    for a, b in zip(leaves(computed(function(*values))), leaves(expected), strict=True):
        assert_near(np.asarray(a), np.asarray(b), max(case.close, 1e-12))


@pytest.mark.share(3)
@parametrise(
    [c for c in CASES if not c.refused and c.varied() and c.function.startswith("np.") and "linalg" not in c.function]
)
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_other_dtypes(case: Case, dtype: Any):
    """Single precision stays single, and integers are what NumPy makes of them."""
    values = [
        np.rint(3 * v).astype(dtype) if getattr(v, "dtype", None) == np.float64 and np.isfinite(v).all() else v
        for v in case.values()
    ]
    error = None
    with (
        np.errstate(all="ignore"),
        warnings.catch_warnings(action="ignore"),
    ):  # NumPy's own, of what is badly conditioned
        try:
            expected = case()(*copied(values))
        except Exception as found:  # noqa: BLE001 (errors are what is compared)
            error = found
        if error is not None:
            with pytest.raises(kind_of(error)):
                computed(tm.tensor(case())(*values))
            return
        result = computed(tm.tensor(case())(*values))
    for a, b in zip(leaves(result), leaves(expected), strict=True):
        assert_near(np.asarray(a), np.asarray(b), 2e-6 if np.asarray(b).dtype.char in "fF" else 1e-12)


def copied(values: list[Any]) -> list[Any]:
    return [v.copy() if isinstance(v, np.ndarray) else v for v in values]


@parametrise([c for c in CASES if c.refused])
def test_refused_by_name(case: Case):
    """In a function; a cell runs some of them on values, as NumPy would."""
    with pytest.raises(tm.TensorError, match=re.escape(case.refused)):
        tm.tensor(case()).graph(*case.values())


def test_every_function_is_covered_by_a_case_that_is_not_refused():
    assert not {c.function for c in CASES} - {c.function for c in CASES if not c.refused}


def test_names_are_different():
    ids = [c.id for c in CASES]
    assert len(set(ids)) == len(ids)


def test_every_file_of_the_library_is_found():
    folder = Path(library.__file__ or "").parent
    assert {f"{library.__name__}.{file.stem}" for file in folder.glob("[a-z]*.py")} <= sys.modules.keys()
