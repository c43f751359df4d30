"""What the NumPy that is installed says is deprecated, captured code says: the same warnings at the same lines, and none of its own."""

import contextlib
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.errors.deprecated import with_deprecations
from tensormagic.ir.errors import CaptureError
from tests.capture.harness import captured, plain, refused

X = np.arange(6.0).reshape(2, 3)
NAMES = {"x": X, "s": 2.0}
SOURCES = """
y = x + 1; y.shape = (3, 2)
y = x + 1; y[0].shape = (1, 3); y.shape = -1
y = np.fix(x)
y = np.rot90(x, 1.0), np.rot90(x, 2)
y = np.cross(x[:, :2], x[:, 1:])
y = np.linalg.qr(x, "full"), np.linalg.qr(x)
y = np.maximum(x, 1, x + 1)
y = np.tri(3, 3, 1.0) + x[0]
y = np.tril(x, 1.0), np.triu(x, -1.0), np.triu(x, 1)
y = x[np.triu_indices(2, 1.0)]
y = getattr(np, "row_stack", np.vstack)((x, x))
y = getattr(np, "trapz", np.trapezoid)(x)
y = getattr(np, "in1d", np.isin)(x, x)
y = (x + 0).flat[True], (x + 0).flat[1], (x + 0).flat[[1.0]]
y = [np.fix(x + k) for k in range(3)]
y = ~(s < 3), ~(x > 1)
""".strip().splitlines()


def heard(call: Callable[[], Any]) -> list[tuple[type[Warning], str, int]]:
    """What a call warns of: kind, text and line."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        with contextlib.suppress(ValueError):  # what was deprecated and is gone
            call()
    return [(w.category, str(w.message), w.lineno) for w in found]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("made", ["cell", "function"])
def test_warnings_are_numpys(source: str, made: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    text = "\n" + source.replace("; ", "\n")
    if made == "cell":
        assert heard(lambda: captured(text, NAMES)) == heard(lambda: plain(text, NAMES))
        return
    space = {"np": np}
    exec(f"def f(x, s):{text.replace(chr(10), chr(10) + '    ')}\n    return y", space)
    assert heard(lambda: tm.tensor(space["f"])(X, 2.0)) == heard(lambda: space["f"](X, 2.0))


def test_each_line_warns_once_where_filters_say_so():
    """The NumPy that is asked leaves the filters, and the registry of what was told, as they are."""
    source = "for k in range(4):\n    y = x.reshape(-1)\n    z = np.linalg.qr(x, 'full')"
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        captured(source, {"x": X})
    assert len(found) == 1


def test_a_warning_that_is_an_error_is_raised_before_anything_is_done():
    with warnings.catch_warnings(action="error"):
        assert isinstance(captured("y = np.linalg.qr(x, 'full')", {"x": X}).error, DeprecationWarning)


@pytest.mark.parametrize("call", ["np.add(x, 1, x + 1, out=x)", "np.add(x, 1, x + 1, x, x)"])
def test_too_many_places_for_a_result_are_numpys_error(call: str):
    expected, found = (run(f"y = {call}", NAMES).error for run in (plain, captured))
    assert isinstance(expected, TypeError)
    assert isinstance(found, TypeError)


def test_other_attributes_are_not_assigned():
    refused("y = x + 1\ny.dtype = np.int64", "another dtype of the same elements", x=X)
    refused("y = x + 1\ny.strides = (8, 16)", "another strides of the same elements", x=X)
    with warnings.catch_warnings(action="ignore"), pytest.raises(CaptureError, match=r"a triangle from diagonal 0\.5"):
        tm.tensor(lambda x: np.tril(x, 0.5)).graph(X)


class Given:
    """Something of the user's that a call is given: it has a hash, as objects have."""


@pytest.mark.parametrize("make", [Given, lambda: [Given()][0], lambda: lambda: 0, lambda: range(3).__iter__()])
def test_what_a_call_is_given_is_not_kept(make):
    def numpys(value: Any, key: Any = None) -> Any:
        warnings.warn("old", DeprecationWarning, stacklevel=2)
        return value, key

    call = with_deprecations(lambda value, key=None: None, numpys)
    for where in ("value", "key"):
        given = make()
        count = sys.getrefcount(given)
        call(**{"value": 1, where: given})
        call(value=[given], key=(given,))
        assert sys.getrefcount(given) == count
