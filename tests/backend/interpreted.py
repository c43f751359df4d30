"""Kernels run by Python, as they are printed: what the planner has arranged is tried without a compiler, and every access is looked at.

An index out of bounds is an error here, and memory that nothing was stored into holds values that are told from others. Numbers are
NumPy's, of the dtypes that the kernel's text says; so the last digits may differ from those of machine code.
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import math
import struct
import types
from collections.abc import Callable, Generator
from typing import Any
from unittest import mock

import numpy as np
import scipy

from tensormagic.backend.compiling import native
from tensormagic.backend.cpu.rows import share_rows, tile_rows
from tensormagic.backend.planning.plan import Plan
from tensormagic.backend.printing.driver import Driver

_realloc = ctypes.CDLL(None).realloc
_realloc.restype, _realloc.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t]


class Elements:
    """The elements of a kernel's array, in the order of memory; what was never stored may not be read where it is a float."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def _place(self, place: Any) -> int:
        if not 0 <= place < self.array.size:
            raise IndexError(f"a kernel asks for element {place} of {self.array.size}")
        return int(place)

    def __getitem__(self, place: Any) -> Any:
        return self.array[self._place(place)]

    def __setitem__(self, place: Any, value: Any) -> None:
        self.array[self._place(place)] = value


class Table:
    """What a kernel is given: the numbers, and the addresses of arrays."""

    def __init__(self, packed: bytes) -> None:
        self.entries = struct.unpack(f"{len(packed) // 8}q", packed)

    def __getitem__(self, place: int) -> int:
        return self.entries[place]

    def object(self, place: int) -> Any:
        """The object whose address is there."""
        return ctypes.cast(self.entries[place], ctypes.py_object).value


def _array(table: Table, place: int, dtype: str, _number: int) -> Elements:
    found = table.object(place)
    if type(found) is not np.ndarray or not found.flags.c_contiguous or found.dtype != np.dtype(dtype):
        raise TypeError(f"a kernel takes elements of {dtype} in C order; given is {found!r}")
    return Elements(found.reshape(-1))


def _growing(table: Table, place: int, dtype: str, _number: int) -> Elements:
    address, size = table.object(place)
    memory = (ctypes.c_char * int(size)).from_address(int(address)) if size else b""
    return Elements(np.frombuffer(memory, dtype, int(size) // np.dtype(dtype).itemsize))


def _grow(table: Table, place: int, wanted: int) -> bool:
    memory, size = table.object(place), (int(wanted) + 32) * 2
    memory[:] = _realloc(int(memory[0]), size), size
    return True


def _signs(total: Any, x: Any, combine: Callable[[Any, Any], Any]) -> Any:
    bits = np.int64 if x.dtype == np.float64 else np.int32
    return combine(bits(total), x.view(bits))


def _extremum(total: Any, seen: Any, signs: Any) -> Any:
    if seen:
        return total * np.nan
    return np.copysign(total, -1.0 if signs < 0 else 1.0) if total == 0 else total


_OF_NUMPY = """
floor ceil trunc rint sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan tanh sinh cosh arcsin arccos arctan arctan2 arcsinh arccosh
arctanh cbrt hypot power logaddexp fmod remainder floor_divide
"""
NAMES: dict[str, Any] = {
    **{
        n: getattr(np, n)
        for n in [
            "floor",
            "ceil",
            "trunc",
            "rint",
            "sqrt",
            "exp",
            "exp2",
            "expm1",
            "log",
            "log2",
            "log10",
            "log1p",
            "sin",
            "cos",
            "tan",
            "tanh",
        ]
    },
    **{
        n: getattr(np, n)
        for n in [
            "sinh",
            "cosh",
            "arcsin",
            "arccos",
            "arctan",
            "arctan2",
            "arcsinh",
            "arccosh",
            "arctanh",
            "cbrt",
            "hypot",
        ]
    },
    **{name: getattr(np, name) for name in _OF_NUMPY.split()},
    "erf": scipy.special.erf,
    "erfc": scipy.special.erfc,
    "sigmoid": scipy.special.expit,
    "softplus": lambda x: np.logaddexp(x.dtype.type(0), x),
    "complex_multiply": lambda a, b: a * b,
    "complex_divide": lambda a, b: a / b,
    "complex_reciprocal": lambda a: 1 / a,
    "complex_exp": np.exp,
    "complex_log": np.log,
    "complex_sqrt": np.sqrt,
    "complex_power": np.power,
    "array": _array,
    "growing": _growing,
    "room": lambda table, place: int(table.object(place)[1]),
    "grow": _grow,
    "scratch": lambda extent, dtype, _number: Elements(unwritten((extent,), dtype)),
    "part_of": lambda array, parts, number, count: (
        Elements(parts.array[(number - 1) * count : number * count]) if number else array
    ),
    "few": range,
    "woven": range,
    "tile_rows": tile_rows,
    "share_rows": share_rows,
    "own": lambda tile, _count: tile,
    "parallel": lambda rows, share, _threads, _work: range(0, rows, share),
    "bits": lambda number: int(np.float64(number).view(np.int64)),
    "real": lambda table, place: np.int64(table[place]).view(np.float64),
    "stopped": lambda _table: False,
    "asked": lambda _table: False,
    "multiply_add": lambda a, b, c: a * b + c,
    "add_reassoc": lambda a, b: a + b,
    "max_propagate": np.maximum,
    "min_propagate": np.minimum,
    "larger": np.fmax,
    "smaller": np.fmin,
    "nan_seen": lambda seen, x: bool(seen) or bool(x != x),  # noqa: PLR0124 (that is a nan)
    "common_sign": lambda signs, x: _signs(signs, x, lambda a, b: a & b),
    "any_sign": lambda signs, x: _signs(signs, x, lambda a, b: a | b),
    "extremum": _extremum,
}
UNWRITTEN = {"f": -7.777e33, "c": -7.777e33 + 7.777e33j, "i": 113, "u": 113, "b": True}


def unwritten(shape: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """Memory that nothing was stored into."""
    return np.full(shape, UNWRITTEN[np.dtype(dtype).kind], dtype)


class _Floats(ast.NodeTransformer):
    """Floats of the text as NumPy's, which divide by zero."""

    def visit_Constant(self, node: ast.Constant) -> Any:
        if type(node.value) is not float:
            return node
        made = ast.parse(f"np.float64({node.value!r})", mode="eval").body
        return ast.copy_location(made, node)


def kernel_of(source: str) -> Callable[..., None] | None:
    """A kernel as the driver calls it; None where its text has what only machine code has."""
    tree = ast.fix_missing_locations(_Floats().visit(ast.parse(source)))
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    if used & {"gemm", "log1p_unit"}:
        return None
    space: dict[str, Any] = {**NAMES, "np": np, "math": math}
    exec(compile(tree, "<kernel in Python>", "exec"), space)
    kernel: types.FunctionType = space["kernel"]

    def called(_result: Any, _exception: Any, packed: bytes) -> None:
        with np.errstate(all="ignore"):
            kernel(Table(packed))

    return called


def _start(planned: Any, on_ready: Any = None) -> native.Handle:
    plan: Plan = planned() if callable(planned) else planned
    handle = native.Handle(plan, on_ready)
    if plan.sources:
        for source in plan.sources:
            handle.take(source, kernel_of(source), "not for Python")
    else:
        handle.run = plan.compile([])
        handle.finish("")
    return handle


def _compile(driver: Driver, *given: Any) -> Any:
    driver.names.update(empty=unwritten, take=unwritten)
    return _compiled(driver, *given)


_compiled = Driver.compile


@contextlib.contextmanager
def interpreted() -> Generator[None]:
    """While this holds, what is compiled is run by Python."""
    with mock.patch.object(native, "start", _start), mock.patch.object(Driver, "compile", _compile):
        yield
