"""What NumPy and Python refuse, and what their arrays have, in functions: values, and texts of errors."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm

pytestmark = pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")


def gives(function: Callable[..., Any], *args: Any) -> str:
    """What a call gives, or the class of Python's and the text of its error."""
    try:
        return repr(function(*copy.deepcopy(args)))
    except Exception as error:  # noqa: BLE001 (as Python's)
        kind = next(k for k in type(error).__mro__ if k.__module__ == "builtins")
        return f"{kind.__name__}: {str(error).partition(chr(10))[0]}"


@pytest.mark.parametrize(
    "index", [0, -1, slice(1, 3), slice(0, 1), slice(None), ..., (0, ...), (slice(None), 0), [0, 1], ([1], 0)]
)
def test_lists_in_lists_that_are_stored(index):
    items = [
        [1],
        [1, 2],
        (3, 4),
        [[1, 2]],
        [[5]],
        [[1], [2]],
        [[[1, 2], [3, 4]]],
        [np.array([1, 2])],
        [[]],
        np.array([[1, 2]]),
    ]
    for shape, value in itertools.product([(2,), (2, 2), (3, 1)], items):

        def stored(x: Any, value: Any = value) -> Any:
            x[index] = value
            return x

        x = np.arange(float(np.prod(shape))).reshape(shape)
        assert gives(tm.tensor(stored), x) == gives(stored, x), (shape, index, value)


def test_sequences_of_several_lengths_that_are_gone_over_beside_one_another():
    def products(*rows: Any) -> Any:
        return [np.prod(v) for v in zip(*rows, strict=True)]

    for lengths in itertools.product(range(3), repeat=3):
        rows = [np.ones(n) for n in lengths]
        assert gives(tm.tensor(products), *rows[:2]) == gives(products, *rows[:2])
        assert gives(tm.tensor(products), *rows) == gives(products, *rows)


@pytest.mark.parametrize("shape", [(0,), (1,), (2,), (0, 3), (1, 1), (2, 0)])
def test_the_truth_of_an_array(shape):
    def chosen(x: Any) -> int:
        return 1 if x else 2

    assert gives(tm.tensor(chosen), np.ones(shape)) == gives(chosen, np.ones(shape))


HAS = """
x.byteswap()|x.tobytes()|x.base is None|x.flags.writeable|x.setflags(write=True)|x.argpartition(1)|x.data.nbytes|x.partition(1)
x.getfield(x.dtype, 0)|(x.partition(2), x[2])|(x[1:].partition(0), x[1])|np.partition(x, 1)[1]
"""


@pytest.mark.parametrize("text", HAS.replace("\n", "|").strip("|").split("|"))
@pytest.mark.parametrize("dtype", [float, np.int8, np.float32])
def test_what_arrays_have(text, dtype):
    function = eval(f"lambda x: {text}")
    x = np.array([3, 1, 2, 5]).astype(dtype)
    assert gives(tm.tensor(function), x) == gives(function, x)


OF_LISTS = """
v, x.sum()|[a - 5 for a in v]|[a * 100 for a in v]|[a * 0.1 for a in v]|sum(v)|max(v) - 9|v[1] - 5|-v[1]|v[1] ** 2|v[1] // 2 - 3|sorted(v)
[a - b for a, b in zip(v, v[::-1])]|[a << 9 for a in v]|v[0] - v[1]|np.mean(v)|tuple(v), v[2]|dict(enumerate(v))|abs(v[1] - 3)
v[-1] * v[-2] * 100|int(x[1]) - 5|float(x[1]) - 5|divmod(v[1], -2)|round(v[1]) - 4|min(v) - 1, v
"""


@pytest.mark.parametrize("text", OF_LISTS.replace("\n", "|").strip("|").split("|"))
def test_pythons_numbers_of_arrays_of_few_bits(text):
    function = eval(f"lambda x: (lambda v: ({text}))(x.tolist())")
    for dtype in ["uint8", "uint16", "uint64", "int8", "float32", "float16", "bool"]:
        x = np.arange(4).astype(dtype)
        assert gives(tm.tensor(function), x) == gives(function, x), dtype
