"""What depends on whether an array has one element, or an operand is a number; also where its length is data-dependent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError
from tests.capture.harness import captured, check
from tests.programs.growing import compiled

LINES = (
    "np.linspace(0, 1, len(v))",
    "np.linspace(2, s, len(v))",
    "np.linspace(s, y, len(v))",
    "np.linspace(0, 1, len(v), endpoint=False)",
    "np.linspace(0, 1, len(v), retstep=True)",
    "np.linspace(1, 1, len(v), retstep=True)",
    "np.linspace(1, 9, len(v), dtype=int)",
    "np.logspace(0, 1, len(v))",
    "np.geomspace(1, 4, len(v))",
)
NUMBERS = (
    "np.pad(s, 1)",
    "np.pad(x.sum(), 1)",
    "np.take(s, [0, 0], axis=0)",
    "np.take(s, k, axis=0, mode='clip')",
    "np.take(x.sum(), 0, axis=-1)",
    "np.take(x[:0, :0], k, axis=0, mode='clip')",
    "np.take(x[:0], k, axis=1, mode='wrap')",
)


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_as_many_points_as_data_say(line: str, tier: str):
    space: dict[str, Any] = {"np": np}
    exec(compiled(f"def f(v, y, s):\n    v = v[v > 0]\n    return {line}\n", f"line {line}"), space)
    plain, ours = space["f"], tm.tensor(space["f"])
    for count in (3, 1, 0, 2):
        v, y = np.array([1.0] * count + [-1.0] * (3 - count)), np.array([3.0, -1.0])
        with np.errstate(all="ignore"):
            found, expected = ours(v, y, 2.5), plain(v, y, 2.5)
        pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
        for a, b in pairs:
            np.testing.assert_allclose(a, b, rtol=1e-15, strict=True)


@pytest.mark.parametrize("line", NUMBERS)
def test_numbers_and_empty_axes(line: str):
    check(f"r = {line}", x=np.ones((2, 3)), k=np.array([0, 2]), s=1.5)


def test_a_reflection_of_one_element():
    for count in (1, 2, 3):
        y = np.array([1.0] * count + [-1.0] * (3 - count))
        check("r = np.pad(y[y > 0], 2, mode='reflect')", y=y)
        check("r = np.pad(y[y > 0], 2, mode='symmetric')", y=y)


def test_windows_of_too_few_elements():
    for count in (2, 3):
        y = np.array([1.0] * count + [-1.0] * (3 - count))
        check("r = np.lib.stride_tricks.sliding_window_view(y[y > 0], 2)", y=y)
    error = captured("r = np.lib.stride_tricks.sliding_window_view(y[y > 2], 2)", {"np": np, "y": y}).error
    assert isinstance(error, ValueError)
    assert "window shape" in str(error)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("v = x.sum()\nv.shape = -1", AttributeError),
        ("v = s * 2\nv.shape = -1", AttributeError),
        ("v = s * 2\nw = v[::-1]", TypeError),
        ("v = s * 2\nw = v[0]", TypeError),
        ("v = s * 2\nv[0] = 1", TypeError),
        ("v = x.sum()\nnp.copyto(v, v)", TypeError),
    ],
)
def test_what_numbers_have_not(code: str, kind: type[Exception]):
    names = {"np": np, "x": np.ones((2, 3)), "s": 1.5}
    with pytest.raises(kind):
        exec(code, dict(names))
    error = captured(code, names).error
    assert isinstance(error, kind)
    assert not isinstance(error, CaptureError)


@pytest.mark.parametrize("fold", ["all", "any", "sum", "max(initial=-1)", "min(initial=9)", "max", "min"])
def test_folds_of_equal_elements_which_may_be_none(fold: str, tier: str):
    call = fold if "(" in fold else f"{fold}()"
    space: dict[str, Any] = {"np": np}
    exec(compiled(f"def f(v, s):\n    return (np.zeros(len(v[v > 0])) + s).{call}\n", f"fold {fold}"), space)
    ours = tm.tensor(space["f"])
    for count in (2, 0, 1):
        v = np.array([1.0] * count + [-1.0] * (3 - count))
        if count == 0 and fold in {"max", "min"}:
            with pytest.raises(ValueError, match="zero-size"):
                ours(v, 2.5)
        else:
            assert ours(v, 2.5) == space["f"](v, 2.5)


@pytest.mark.parametrize(
    "made", ["np.stack([5.5, 1.5])", "np.sqrt([4.0, 9.0])", "np.array([1.0, 2.0])", "np.flip([1.0, 2.0])"]
)
@pytest.mark.parametrize(
    "same", ["np.asarray(v)", "np.ascontiguousarray(v)", "np.asanyarray(v, dtype=float)", "np.array(v, copy=False)"]
)
def test_an_array_that_numpy_has_computed_is_itself(made: str, same: str):
    check(f"v = {made}\nw = {same}\nw += 1")
