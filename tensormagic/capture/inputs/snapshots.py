"""Inputs: values of the notebook as they were when read, one node each, kept safe from later changes."""

from __future__ import annotations

import hashlib
import weakref
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.inputs.door import RefusedError, check_dtype, operand, stays_numpys
from tensormagic.ir.alive import Alive
from tensormagic.ir.errors import GuardError
from tensormagic.ir.node import Node
from tensormagic.ir.stored import is_narrow
from tensormagic.ir.type import Type
from tensormagic.ops.leaf import Source, constant, input_node, open_type

COPY_LIMIT = 64 * 2**20  # bytes that are copied at once; larger arrays get a checksum until they can be copied


@dataclass(eq=False)
class Snapshot(Source):
    """Represents the source of an input: the value that was read, and how to detect changes."""

    original: Any = None  # a weak reference to the array of the notebook
    fingerprint: int | None = None
    history: Any = None  # the known origin of its numbers, if they have no history in the graph

    def read(self) -> Any:
        """Return the original value; raise if it was lost."""
        if self.fingerprint is not None and fingerprint(self.value) != self.fingerprint:
            raise GuardError(
                f"{self.name} has changed since the cell that captured it, and was too large to be copied",
                f"Run the cell that captured {self.name} again.",
            )
        return self.value

    def is_of(self, given: Any, array: np.ndarray[Any, Any] | None = None) -> bool:
        """Return whether it was read from this very object (or read as ``array``), which has not changed since."""
        return (
            self.original is not None
            and self.original() is given
            and same_bits(self.value, given if array is None else array)
        )

    def secure(self) -> None:
        """Copy a value that is only referenced, before other code can change it."""
        if self.fingerprint is not None and self.value.flags.writeable:
            self.read()
            self.value = _frozen(self.value)
            self.fingerprint = None


_nodes: weakref.WeakValueDictionary[int, Node] = weakref.WeakValueDictionary()
_floats: weakref.WeakValueDictionary[tuple[str, bytes], Node] = weakref.WeakValueDictionary()
_live: Alive[Snapshot] = Alive()
_histories: list[Callable[[np.ndarray[Any, Any]], Any]] = []


def histories_by(found: Callable[[np.ndarray[Any, Any]], Any]) -> None:
    """Set the function that returns the origin of an array's numbers, which is recorded when the array is read."""
    _histories[:] = [found]


def fingerprint(array: np.ndarray[Any, Any]) -> int:
    """Return a checksum of all bytes of ``array``."""
    return zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data)


def secure_all() -> None:
    """Copy every large input that pending values still need, before other code runs."""
    for snapshot in _live:
        try:
            snapshot.secure()
        except GuardError:  # lost: the error is raised when its value is needed
            _live.discard(snapshot)


def _frozen(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    copy = np.array(array, order="K", copy=True)
    copy.flags.writeable = False
    return copy


def of_array(array: np.ndarray[Any, Any], name: str) -> Node:
    """Return the input node of an array: the same one as before, where the array has not changed since."""
    given, array = array, operand(array, name)
    if type(given) is not np.ndarray and stays_numpys(given) and context.in_cell():
        raise RefusedError(given, name)
    check_dtype(array.dtype, name)
    known = _nodes.get(id(given))
    if known is not None and known["source"].is_of(given, array):
        return known
    small = array.nbytes <= COPY_LIMIT
    kept = _frozen(array) if small and (array.flags.writeable or array.base is not None) else array
    writeable = array.flags.writeable or array.base is not None
    mark = None if kept is not array or not writeable else fingerprint(array)
    history = _histories[0](given) if _histories else None
    source = Snapshot(name, kept, original=weakref.ref(given), fingerprint=mark, history=history)
    node = input_node(source, open_type(source, array.dtype, array.shape))
    _nodes[id(given)] = node
    _live.add(source)
    return node


def unread(array: np.ndarray[Any, Any]) -> Node:
    """Return a fresh input node of an array; other readings of the array give other nodes."""
    check_dtype(array.dtype, "the array")
    source = Snapshot("the array", _frozen(array), original=weakref.ref(array))
    return input_node(source, open_type(source, array.dtype, array.shape))


def same_bits(kept: np.ndarray[Any, Any], array: np.ndarray[Any, Any]) -> bool:
    """Return whether two arrays are of one dtype and shape, and hold the same bytes."""
    if kept is array:
        return True
    if kept.shape != array.shape or kept.dtype != array.dtype:
        return False
    left, right = (np.ascontiguousarray(v).reshape(-1).view(np.uint8) for v in (kept, array))
    return bool(np.array_equal(left, right))


def own(value: Any, name: str = "") -> Node | None:
    """Return a distinct node for a value that the user makes lazy, unequal to any other; None if it is no input.

    An integer or boolean is a constant, as in :func:`lift`: sizes are made of them, and nothing is differentiated by
    them.
    """
    if isinstance(value, np.generic):
        check_dtype(value.dtype, name or "the data")
    if type(value) in {bool, int} or isinstance(value, np.bool_ | np.integer):
        return constant(value)
    if isinstance(value, float | complex | np.number) or is_narrow(type(value)):
        return _input(Snapshot(name or "value", value), value)
    if not isinstance(value, np.ndarray):
        return None
    name = name or _unnamed(value)
    known = of_array(value, name)["source"]
    kept = {"original": known.original, "fingerprint": known.fingerprint, "history": known.history}
    source = Snapshot(name, known.value, **kept)
    _live.add(source)
    return input_node(source, open_type(source, source.value.dtype, source.value.shape))


def of_number(number: Any, name: str) -> Node:
    """Return the input node of a Python float or complex, or of a NumPy scalar, that is read under a name of the notebook."""
    array = np.asarray(number)
    key = (f"{name}:{type(number).__name__}", array.dtype.str.encode() + array.tobytes())
    known = _floats.get(key)
    if known is None or (
        np.isnan(array) and known["source"].value is not number
    ):  # two nan objects are different numbers
        known = _floats[key] = _input(Snapshot(name, number), number)
    return known


def _input(source: Source, number: Any) -> Node:
    array = np.asarray(number)
    check_dtype(array.dtype, source.name)
    return input_node(source, Type(array.dtype, (), "python" if type(number) in {float, complex} else "scalar"))


def of_content(array: np.ndarray[Any, Any], name: str) -> Node:
    """Return the input node of an array that is created anew at every reading: one for each name and content."""
    check_dtype(array.dtype, name)
    data = np.ascontiguousarray(array)
    key = (
        f"{name}:{array.shape}:{array.dtype.str}",
        hashlib.blake2b(data.reshape(-1).view(np.uint8).data, digest_size=16).digest(),
    )
    known = _floats.get(key)
    if known is None:
        source = Snapshot(name, _frozen(array))
        known = _floats[key] = input_node(source, open_type(source, array.dtype, array.shape))
    return known


def name_of_list(values: Any) -> str:
    """Return the name under which captured code has read a list of numbers from the notebook; empty for any other."""
    capture = context.current()
    held, name = capture.names.lifted.get(("list", id(values)), (None, "")) if capture is not None else (None, "")
    return name if held is values else ""


def of_list(values: Any, array: np.ndarray[Any, Any]) -> Node:
    """Return the node of a list of numbers, which NumPy reads as ``array``; an input if it is the notebook's."""
    name = name_of_list(values)
    return of_content(array, name) if name and array.dtype.kind in "fc" else constant(array)


def lift(value: Any, name: str = "") -> Node | None:
    """Return the node of a value that code reads: an input for arrays and floats, a constant for ints and bools; None for the rest."""
    if type(value) in {bool, int}:
        return constant(value)
    if isinstance(value, np.ndarray):
        return of_array(value, name or _unnamed(value))
    if not isinstance(value, int | float | complex | np.number | np.bool_) and not is_narrow(type(value)):
        return None
    value = operand(value, name)
    if isinstance(value, np.generic):
        check_dtype(value.dtype, name or "a number")
    if isinstance(value, int | np.bool_ | np.integer):
        return constant(value)
    return of_number(value, name) if name else constant(value)


def of_object(value: Any, name: str) -> Node | None:
    """Return the node of a table or another object that NumPy reads as an array; None for other objects."""
    array = operand(value, name)
    return of_content(array, name) if isinstance(array, np.ndarray) else None


def _unnamed(array: np.ndarray[Any, Any]) -> str:
    return f"array{id(array) % 997}"
