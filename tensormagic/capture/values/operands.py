"""Operands of lazy values as nodes: arrays, numbers, lists and objects of libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import values_are_there
from tensormagic.capture.inputs import door, snapshots
from tensormagic.capture.numbers import classes as number_classes
from tensormagic.capture.numbers import undecided_dtypes
from tensormagic.capture.numbers.known_values import arithmetic
from tensormagic.capture.numbers.operands import is_huge, representable
from tensormagic.capture.python import usercode
from tensormagic.capture.stores.place import Buffer, Place
from tensormagic.capture.values import list_elements
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.errors import DTypeError, ForeignError, ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.stored import is_narrow
from tensormagic.ops.leaf import CONSTANT
from tensormagic.ops.move import concatenate, expand_dims
from tensormagic.ops.move_kind import same, show
from tensormagic.ops.pointwise import Pointwise, astype

_MOST_PARTS = 100  # items of a container that is searched for an array without a name


class NoOperandError(ForeignError, told_as=DTypeError):
    """Raised for an object used as an array or a number; NumPy decides what to do with it."""

    pythons = True


def input_tensor(value: Any, name: str) -> Tensor | None:
    """Return the lazy array of a notebook's array or number; None if it is no input."""
    if not isinstance(value, np.ndarray | float | complex | np.number) and not is_narrow(type(value)):
        return None
    node = snapshots.lift(door.variable(value, name), name)
    if node is None or node.op is CONSTANT:
        return None
    array = value if isinstance(value, np.ndarray) else None
    writeable = array is None or bool(array.flags.writeable)
    return Tensor(Place(Buffer(node, array, name, writeable=writeable)))


def node_of(value: Any) -> Node:
    """Return the node of an operand: lazy array, array, number, or nested lists of these."""
    if isinstance(value, Tensor):
        return value.node
    if isinstance(value, Node):
        return value
    node = snapshots.lift(value, name_of(value))
    if node is not None:
        return node
    if isinstance(value, list | tuple | range):
        return _stacked(value)
    if is_ours(value) and hasattr(value, "lazy"):
        return value.lazy.node
    if door.kind_of(value) in {door.Kind.READ, door.Kind.USERS} and isinstance(
        given := door.lazy_array_of(value), Tensor
    ):
        return given.node
    if values_are_there() and door.is_sequence(value):
        return (
            snapshots.of_content(np.asarray(value), _label_of(value))
            if door.has_buffer(value)
            else _stacked(list(value))
        )
    node = snapshots.of_object(value, _label_of(value))
    if node is None:
        raise NoOperandError(
            f"{type(value).__name__} cannot be an operand: only arrays and numbers can",
            "Make an array of it outside the function, and pass that."
            if door.has_buffer(value)
            else "If it holds numbers, convert it with np.asarray.",
        )
    return node


def is_ours(value: Any) -> bool:
    """Return whether an object is of one of our classes: user objects may have attributes of any name."""
    return door.package_of(type(value)) == "tensormagic"


def as_converted(value: Any, dtype: Any = None) -> Any:
    """Return the lazy array of an object that ``np.asarray`` converts, with or without operators; any other value unchanged."""
    if door.is_converted(value) and isinstance(given := door.lazy_array_of(value), Tensor):
        return given if dtype is None else given.astype(dtype)
    if isinstance(value, np.ndarray) and values_are_there():
        door.variable(value)  # NumPy's own array stays what it is, and so does any that shares its memory
    found = door.converted(value, dtype)
    return value if found is value else wrap(snapshots.of_content(found, _label_of(value)))


def _label_of(value: Any) -> str:
    """Return the user's name of an object, or the column's name of a Series, or its class."""
    column = getattr(value, "name", None) if door.is_table(value) else None
    return _named(value) or (f"column {column!r}" if column is not None else type(value).__name__)


def array_of_rows(values: Any) -> Node | None:
    """Return NumPy's array of a list that mostly holds elements appended in loops; None for other lists.

    ``states = [start]`` to which a loop appends becomes the start and one slice of an array, however many elements it
    has.
    """
    whole, capture = list_elements.stacked(values), context.current()
    whole = list_elements.array_of_lists(values) if whole is None else whole
    if whole is None and (columns := _columns_of(values)) is not None:
        dtype = np.result_type(*(n.type.dtype for n in columns))
        return undecided_dtypes.joined(concatenate([expand_dims(astype(n, dtype), (1,)) for n in columns], 1), columns)
    is_undecided = capture is not None and capture.classes.undecided
    if whole is not None or is_undecided or not isinstance(values, list | tuple):
        return whole
    runs = list_elements.runs_of(values)
    if len(runs) > len(values) // 2 or any(
        number_classes.noted(node_of(v)) for rows, own in runs if rows is None for v in own
    ):
        return None
    return _joined([part for rows, own in runs for part in ([rows] if rows is not None else map(_as_row, own))])


def _columns_of(values: Any) -> list[Node] | None:
    """Return the columns, each a slice of an array, of a list of rows of loop elements if they are fewer than the rows; else None."""
    several = isinstance(values, list | tuple) and len(values) > 1 and all(isinstance(v, list | tuple) for v in values)
    last: Sequence[Any] = [*values][-1] if several else ()
    if not 0 < len(last) < len(values) or len({*map(len, values)}) > 1:
        return None
    if not all(isinstance(v, list_elements.Element) for v in last):
        return None
    found = [array_of_rows(column) for column in zip(*values, strict=True)]
    columns = [c for c in found if c is not None]
    alike = len({c.type.shape[1:] for c in columns}) == 1 and not any(map(number_classes.noted, columns))
    return columns if len(columns) == len(found) and alike else None


def _as_row(value: Any) -> Node:
    return expand_dims(node_of(value), (0,))


def _joined(rows: Sequence[Node]) -> Node:
    dtype = np.result_type(*(n.type.dtype for n in rows))
    first = rows[0].type.shape[1:]
    if any(len(n.type.shape) - 1 != len(first) or not all(map(same, n.type.shape[1:], first)) for n in rows):
        raise ShapeError(
            "setting an array element with a sequence. The elements have different shapes: "
            + ", ".join(show(n.type.shape[1:]) for n in rows)
        )
    return concatenate([astype(n, dtype) for n in rows], 0)


def _stacked(values: Sequence[Any]) -> Node:
    """Return nested lists as one node, as ``np.array`` reads them."""
    if isinstance(whole := getattr(values, "tensor", None), Tensor):
        return whole.node
    if has_lazy(values):
        if (rows := array_of_rows(values)) is not None:
            return rows
        nodes = [node_of(v) for v in values]
        array = _joined([expand_dims(n, (0,)) for n in nodes])
        if any(map(number_classes.noted, nodes)):
            several = [number_classes.noted(n) or number_classes.one_class(n.type) for n in nodes]
            return number_classes.of_array(array, several)
        return undecided_dtypes.joined(array, nodes)
    array = np.array(values)
    door.check_dtype(array.dtype, "the list")
    return snapshots.of_list(values, array)


def has_lazy(value: Any) -> bool:
    """Return whether a value is lazy, or a list or tuple that holds a lazy value."""
    several = isinstance(value, list | tuple)
    return (
        any(map(has_lazy, value))
        if several
        else isinstance(value, Tensor) or (is_ours(value) and hasattr(value, "stacks"))
    )


def name_of(value: Any) -> str:
    """Return the user's name of an array that code reached without the cell's namespace."""
    return _named(value) if isinstance(value, np.ndarray) else ""


def _named(value: Any) -> str:
    names = {n: held for n, held in usercode.user_names(usercode.user_frame()).items() if not n.startswith("_")}
    exact = next((name for name, held in names.items() if held is value), "")
    if exact:
        return exact
    parts = ((name, _part(held, value)) for name, held in reversed(names.items()))  # the names of a function come last
    return next((name + part for name, part in parts if part), "")


def _part(held: Any, value: Any) -> str:
    """Return how an array is reached in a user's container or object: ``["W1"]``, ``[0]``, ``.w``; empty if it is not in it."""
    kind, items = type(held), list[tuple[str, Any]]()
    if kind is dict and len(held) <= _MOST_PARTS:
        items = [(f"[{door.key_text(k)}]", v) for k, v in held.items() if type(k) in {str, int}]
    elif kind in {list, tuple} and len(held) <= _MOST_PARTS:
        items = [(f"[{k}]", v) for k, v in enumerate(held)]
    elif kind.__module__ == "__main__" and kind.__getattribute__ is object.__getattribute__:
        items = [(f".{k}", v) for k, v in getattr(held, "__dict__", {}).items()]
    return next((path for path, part in items if part is value), "")


def build(op: Pointwise, *operands: Any) -> Tensor:
    """Return the result of a pointwise op on operands."""
    if any(map(is_huge, operands)):
        others = [node_of(x).type.dtype for x in operands if not is_huge(x)]
        operands = tuple(representable(x, others, op) if is_huge(x) else x for x in operands)
    nodes = [node_of(x) for x in operands]
    return wrap(context.record(arithmetic(op, nodes)))
