"""Leaves of graphs: inputs, parameters, constants, sizes and index ramps."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from tensormagic.ir.errors import DTypeError
from tensormagic.ir.node import Bits, Node, as_size, make
from tensormagic.ir.size import Dim, Size, bare_atom, symbol
from tensormagic.ir.type import Type, array, python
from tensormagic.ops.op import Leaf, Value, as_form, has_negative_size
from tensormagic.ops.rows import Axes, Mixed, rows_in

Within = tuple[Size | None, Size | None] | None
_serial = itertools.count()


@dataclass(eq=False)
class Source:
    """The origin of an input: its name for messages, and the value that was read (None in an abstract trace)."""

    name: str
    value: Value = field(default=None, repr=False)
    serial: int = field(default_factory=lambda: next(_serial))

    def __str__(self) -> str:
        return self.name


def _constant_value(node: Node, size: Callable[[Size], int]) -> Value:
    del size
    return as_form(node["bits"].array(), node.type.form)


def _size_value(node: Node, size: Callable[[Size], int]) -> Value:
    return size(node["size"])


def _iota_value(node: Node, size: Callable[[Size], int]) -> Value:
    shape = tuple(size(s) for s in node["shape"])
    axis = node["axis"]
    ramp = np.arange(shape[axis], dtype=np.int64).reshape([-1 if k == axis else 1 for k in range(len(shape))])
    return np.broadcast_to(ramp, shape)


INPUT = Leaf(name="input", doc="An array of the notebook, as it was when the cell ran.")
PARAMETER = Leaf(name="parameter", doc="A numbered parameter of a closed graph.")
CONSTANT = Leaf(name="constant", value=_constant_value, doc="A value that is known at capture.")
SIZE = Leaf(name="size", not_negative=True, value=_size_value, doc="A symbolic size, as an integer.")
IOTA = Leaf(
    name="iota",
    raises=has_negative_size,
    value=_iota_value,
    split_rows=lambda *of: _iota_rows(*of),
    doc="The index along one axis of a shape.",
)


def _iota_rows(node: Node, _axes: Axes, rows: Size) -> int:
    """Return the axis of rows: along it the chunk's index counts on from the rows before it."""
    axis = rows_in(node["shape"], rows)
    if axis is None:
        raise Mixed("has a shape that follows from the number of rows")
    return axis


def constant(value: Any, form: str | None = None) -> Node:
    """Return the node of a constant: a Python number (weak), a NumPy scalar, or an array."""
    if type(value) is int and not -(2**63) <= value < 2**63:
        raise DTypeError(f"the integer {value} does not fit 64 bits", "Write it as a float, or as np.uint64.")
    if form is None and (type(value) in _WHOLE or (type(value) is float and value and value == value)):  # noqa: PLR0124 (no nan)
        return _number(value)
    bits = Bits.of(value)
    return make(CONSTANT, type=Type(np.dtype(bits.dtype), bits.shape, form or _form_of(value)), bits=bits)  # type: ignore[arg-type]


def _form_of(value: Any) -> str:
    if type(value) in {bool, int, float, complex}:
        return "python"
    return "scalar" if np.isscalar(value) else "array"


_WHOLE = {int, bool}


@lru_cache(2048, typed=True)
def _number(value: float) -> Node:
    """Return the constant of a number that differs in bits from no number equal to it."""
    bits = Bits.of(value)
    return make(CONSTANT, type=python(type(value)), bits=bits)


def size_node(size: Size) -> Node:
    """Return a size as the node of a Python integer."""
    if isinstance(size, int):
        return constant(size)
    only = bare_atom(size)
    return only if isinstance(only, Node) and only.type.form == "python" else make(SIZE, type=python(int), size=size)


def size_of(node: Node) -> Size | None:
    """Return a rank-0 integer as a size, itself an atom if nothing else is known of it, or None for any other node."""
    return as_size(node)


def iota(shape: tuple[Size, ...], axis: int) -> Node:
    """Return the int64 array of ``shape`` that holds the index along ``axis``."""
    return make(IOTA, type=array(np.int64, *shape), shape=shape, axis=axis)


def input_node(source: Source, t: Type, within: Within = None) -> Node:
    """Return the node of an input; for an integer, ``within`` may give bounds ``low <= value < high``."""
    return make(INPUT, type=t, source=source, **_known(within))


def index_node(name: str, low: Size, high: Size) -> Node:
    """Return a Python integer that stands for a loop index: ``low <= index < high``."""
    return input_node(Source(name), python(int), (low, high))


def open_type(source: Source, dtype: Any, shape: tuple[int, ...], form: str = "array") -> Type:
    """Return the type of an input with open sizes: each axis is a symbol, except those of extent 0 or 1."""
    sizes: tuple[int | Dim, ...] = tuple(
        n if n in {0, 1} else symbol(f"{source.name}.{axis}#{source.serial}", n) for axis, n in enumerate(shape)
    )
    return Type(np.dtype(dtype), sizes, form)  # type: ignore[arg-type]


def parameter(index: int, t: Type, within: Within = None) -> Node:
    """Return parameter number ``index`` of a closed graph; for an integer, ``within`` may give bounds ``low <= value < high``."""
    return make(PARAMETER, type=t, index=index, **_known(within))


def _known(within: Within) -> dict[str, Any]:
    return {"within": within} if within else {}


def constant_value(node: Node) -> np.ndarray[Any, Any] | None:
    """Return the value of a constant, also below broadcasts and ``named``, or None for any other node."""
    while node.op.name in {"broadcast", "named"}:
        node = node.args[0]
    return node["bits"].array() if node.op is CONSTANT else None


def is_constant_zero(node: Node) -> bool:
    """Return whether a node is a constant that is zero everywhere."""
    value = constant_value(node)
    return value is not None and not value.any()
