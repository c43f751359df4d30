"""Print scalar expressions of kernels: pointwise functions and steps of reductions, cast wherever Numba would widen them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensormagic.backend.planning.kinds import exponent, is_inline_move, is_map
from tensormagic.backend.planning.value_ranges import is_of_unit
from tensormagic.backend.printing.complex_text import is_complex, source_of
from tensormagic.backend.printing.kernel_text import KernelText
from tensormagic.ir.node import Node
from tensormagic.ir.operation import Operation
from tensormagic.ops.contract import CONTRACT
from tensormagic.ops.fold import ALL, ANY, CUMMAX, CUMMIN, CUMPROD, CUMSUM, MAX, MIN, SUM
from tensormagic.ops.op import registry
from tensormagic.ops.pointwise import ASTYPE
from tensormagic.ops.scalars.comparison import (
    equal,
    greater,
    greater_equal,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    logical_not,
    maximum,
    minimum,
    not_equal,
    where,
)
from tensormagic.ops.scalars.scalar import (
    add,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    cbrt,
    cos,
    cosh,
    exp,
    exp2,
    expm1,
    hypot,
    log,
    log1p,
    log2,
    log10,
    multiply,
    negative,
    power,
    sigmoid,
    sin,
    sinh,
    sqrt,
    subtract,
    tan,
    tanh,
)
from tensormagic.ops.scalars.special import erf, erfc

_STORED = {
    "float16": ("widened", "narrowed"),
    "bfloat16": ("widened_bfloat16", "narrowed_bfloat16"),
    "complex64": ("widened_parts", "narrowed_parts"),
}
_RENAMED = {
    "np.floor(": "floor(",
    "np.ceil(": "ceil(",
    "np.trunc(": "trunc(",
    "np.rint(": "rint(",
    "math.sqrt(": "sqrt(",
}
_POWERS = {
    -1.0: "1 / {0}",
    0.5: "sqrt({0})",
    2.0: "{0} * {0}",
    3.0: "{0} * {0} * {0}",
    4.0: "({0} * {0}) * ({0} * {0})",
}
_TRUTHS = frozenset(
    [
        less,
        less_equal,
        greater,
        greater_equal,
        equal,
        not_equal,
        isnan,
        isinf,
        isfinite,
        logical_not,
        where,
    ]
)
_IN_FLOAT32 = frozenset(
    [
        arccos,
        arccosh,
        arcsin,
        arcsinh,
        arctan,
        arctan2,
        arctanh,
        cbrt,
        cos,
        cosh,
        erf,
        erfc,
        exp,
        exp2,
        expm1,
        hypot,
        log,
        log10,
        log1p,
        log2,
        sigmoid,
        sin,
        sinh,
        tan,
        tanh,
        maximum,
        minimum,
        sqrt,
        where,
        add,
        subtract,
        multiply,
        negative,
    ]
)


def scalar_text(node: Node, values: Sequence[str]) -> str:
    """Return a pointwise node's expression, cast to its dtype wherever Numba's rules would widen it."""
    if node.op is ASTYPE:  # of what memory alone holds: in kernels for a GPU
        before, after = node.args[0].type.dtype.name, node.type.dtype.name
        if before in _STORED:
            return f"{_STORED[before][0]}({values[0]})"
        if after in _STORED:
            return f"{_STORED[after][1]}({values[0]})"
    if is_complex(node):
        return (source_of(node) or "").format(*values)
    number = exponent(node) if node.op is power else None
    source = _POWERS.get(number) or node.op.scalar_source(node)  # type: ignore[attr-defined,arg-type]
    if node.op is log1p and is_of_unit(node.args[0]):
        source = "log1p_unit({0})"
    for old, new in _RENAMED.items():
        source = source.replace(old, new)
    return _cast(node, source.format(*values))


def _cast(node: Node, expression: str) -> str:
    dtype = node.type.dtype
    if dtype.kind == "b":
        return expression if node.op in _TRUTHS else f"bool({expression})"
    if node.op is not ASTYPE:
        same = dtype.itemsize == 8 and dtype.kind in "fi"
        if same or (dtype == np.dtype("f4") and node.op in _IN_FLOAT32):
            return expression
    return f"np.{dtype.name}({expression})"


def start_text(root: Node, text: KernelText) -> str:
    """Return the first value of a fold's accumulator."""
    dtype = root.type.dtype
    if root.op is CONTRACT:
        return text.number(dtype.type(0))
    start = root.op.start  # type: ignore[attr-defined]
    if start is not None:
        return text.number(np.asarray(start(dtype)).astype(dtype)[()])
    largest = root.op is MIN
    if dtype.kind == "b":
        return str(largest)
    if dtype.kind == "f":
        return text.number(dtype.type(np.inf if largest else -np.inf))
    bounds = np.iinfo(dtype)
    return text.number(dtype.type(bounds.max if largest else bounds.min))


def step_text(root: Node, total: str, value: str, *, free: bool, whole: bool = False) -> str:
    """Return one step of a fold; ``free`` lets a float sum be reordered, ``whole`` combines two totals."""
    dtype = root.type.dtype
    if root.op in {SUM, CONTRACT}:
        return f"add_reassoc({total}, {value})" if free and dtype.kind == "f" else f"{total} + {value}"
    step: str = root.op.step  # type: ignore[attr-defined]
    if dtype.kind == "b" and root.op in {ANY, ALL}:  # without branches: these loops become vector code
        truth = value if whole else f"({value} != 0)"
        return f"bool({total} {'|' if root.op is ANY else '&'} {truth})"
    if whole:  # a step takes an element, of which it may be any function; totals are of one kind
        return _joined(root.op.joins, dtype, total, value)
    if step in registry:
        step = registry[step].source[dtype.kind]  # type: ignore[attr-defined]
    expression = step.format(total, value)
    if dtype.kind == "b":
        return f"bool({expression})"
    return expression if dtype.itemsize == 8 or dtype == np.dtype("f4") else f"np.{dtype.name}({expression})"


def is_extremum(root: Node) -> bool:
    """Return whether a fold is the maximum or minimum of floats."""
    return root.op in {MAX, MIN} and root.type.dtype.kind == "f"


def extremum_texts(root: Node, total: str, nan: str, signs: str, value: str) -> tuple[list[str], list[str], str]:
    """Return an extremum of floats in a loop, in three parts: initial statements, steps, and the final expression."""
    largest = root.op is MAX
    step, sign, first = ("larger", "common_sign", -1) if largest else ("smaller", "any_sign", 0)
    begin = [f"{nan} = False", f"{signs} = np.int{root.type.dtype.itemsize * 8}({first})"]
    steps = [f"{total} = {step}({total}, {value})", f"{nan} = nan_seen({nan}, {value})"]
    return begin, [*steps, f"{signs} = {sign}({signs}, {value})"], f"{total} = extremum({total}, {nan}, {signs})"


_RUNNING: dict[Operation, str] = {CUMSUM: "add", CUMPROD: "multiply", CUMMAX: "maximum", CUMMIN: "minimum"}


def _joined(name: str, dtype: np.dtype[Any], left: str, right: str) -> str:
    """Combine two values of a dtype into one of the same dtype by a function of two numbers."""
    text = registry[name].source[dtype.kind].format(left, right)  # type: ignore[attr-defined]
    if dtype.kind == "b":
        return f"bool({text})"
    return f"({text})" if dtype.itemsize == 8 or dtype.kind in "fc" else f"np.{dtype.name}({text})"


def combine_text(root: Node, old: str, value: str) -> str:
    """Return the text of the element that a store leaves in place of ``old``."""
    name: str = root.op.joins
    if not name:
        dtype = root.type.dtype
        if dtype.name in _STORED:
            return value
        return f"bool({value})" if dtype.kind == "b" else f"np.{dtype.name}({value})"
    return _joined(name, root.type.dtype, old, value)


def accumulate_text(root: Node, total: str, value: str) -> str:
    """Return one step of a running fold, which keeps every step."""
    return _joined(_RUNNING[root.op], root.type.dtype, total, value)


def as_text(root: Node, value: str) -> str:
    """Return a value in the dtype of the array it is stored in."""
    plain = is_map(root) or root.type.dtype == np.dtype("f8") or is_inline_move(root)
    return value if plain else f"np.{root.type.dtype.name}({value})"
