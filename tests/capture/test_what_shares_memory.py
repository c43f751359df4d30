"""Which of NumPy's functions give new memory, against NumPy; and what a function that Python runs has kept aside for it."""

import ast
import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tensormagic.capture.staging.analysis import numpy_functions
from tensormagic.capture.staging.analysis.overwritten import overwritten

ARRAYS = (
    np.arange(4.0) + 1, np.arange(4) + 1, np.eye(3) + 0.1, (np.eye(4) + 1) * (1 + 0j), np.array([True, False]), np.arange(6).reshape(2, 3),
    np.array(2.0), np.arange(8.0).reshape(2, 2, 2), np.arange(4, dtype=np.float32),
)  # fmt: skip


def calls(name: str, x: Any) -> Iterator[tuple[Callable[..., Any], tuple[Any, ...]]]:
    more = [(), (0,), (1,), (-1,), ((0,),), ((2, 2),), (x,), (None, None), (x, x), ([0],), (0, 1)]
    first = [([x, x],), ([x],), (0, x), ("ij", x), ("ij->ji", x), (x > 0, x, x), ((3,), x)]
    for module in (np, np.linalg, np.fft):
        if callable(function := getattr(module, name, None)):
            most = numpy_functions.most_read(function)
            yield from ((function, given) for given in [*((x, *m) for m in more), *first] if len(given) <= most)
    if hasattr(x, name):
        yield from ((getattr(x, name), given) for given in more[:6])


def shares(name: str) -> bool:
    """Whether a call by a name gives memory that it was given."""
    for array in ARRAYS:
        x = array.copy()
        for function, given in calls(name, x):
            try:
                found = function(*given)
            except Exception:  # noqa: BLE001 (what it does not take)
                continue
            parts = found if isinstance(found, tuple | list) else (found,)
            if any(isinstance(p, np.ndarray) and np.shares_memory(p, x) for p in parts):
                return True
    return False


def test_functions_that_give_new_memory_share_none():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        assert {name for name in numpy_functions.NEW if shares(name)} == set()
        known = {"reshape", "transpose", "einsum", "matrix_power", "squeeze", "histogram", "fftn"}
        assert {name for name in known if shares(name)} == known


def into_a_sum(a, b):
    c = np.add(a, 1.0, b)
    c[0] = 2.0
    return c


def with_a_sum(a, b):
    c = np.add(a, b)
    c[0] = 2.0
    return c


def into_a_mean_of_columns(a, b):
    c = np.average(a, axis=0) + b
    c += 1.0
    return c


def through_a_turn(a, b):
    c = np.transpose(a)
    c[0] = b
    return c


@pytest.mark.parametrize(
    ("function", "kept"),
    [(into_a_sum, "b"), (with_a_sum, ""), (into_a_mean_of_columns, ""), (through_a_turn, "a")],
)
def test_what_is_kept_aside(function: Callable[..., Any], kept: str):
    (node,) = ast.parse(inspect.getsource(function)).body
    assert isinstance(node, ast.FunctionDef)
    assert overwritten(node) == frozenset(kept)


def test_a_result_that_was_stored_into_is_that_argument():
    (node,) = ast.parse(inspect.getsource(into_a_sum)).body
    assert isinstance(node, ast.FunctionDef)
    assert overwritten(node, ["c"]) == {"b"}
