"""Tapes: records of a loop for its derivative, if the number of iterations or the sizes are not known before it runs.

A tape is a list of values of one dtype. Each place is written once; places not written count as zero. Its entries may
differ in shape, and may be tapes themselves, which the inner loops of an iteration have recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.ir.errors import DTypeError, ShapeError
from tensormagic.ir.node import Node, make
from tensormagic.ir.type import Size, Type
from tensormagic.ops.leaf import constant, constant_value
from tensormagic.ops.move import broadcast, lead
from tensormagic.ops.op import AWAY, Leaf, Op, Tangent, Value, as_form

# values ---------------------------------------------------------------------------------------------------------------


class Tape:
    """The value of a tape: its entries, None for those not written."""

    __slots__ = ("entries",)
    is_choice = False

    def __init__(self, entries: list[Any] | None = None) -> None:
        self.entries = entries or []

    def at(self, place: int) -> Any:
        """Return the entry at ``place``, or None."""
        return self.entries[place] if 0 <= place < len(self.entries) else None

    def put(self, place: int, value: Any) -> None:
        """Write ``value`` at ``place``; negative places are ignored."""
        if place == len(self.entries):
            self.entries.append(value)
        elif place >= 0:
            self.entries += [None] * (place + 1 - len(self.entries))
            self.entries[place] = value

    def copy(self) -> Tape:
        """Return a tape with the same entries that may be written to."""
        return Tape(list(self.entries))

    def extent(self, place: int, axis: int) -> int:
        """Return the length of an axis of the entry at ``place``; 0 if there is none."""
        found = self.at(place)
        return 0 if found is None else np.shape(found)[axis]

    def array(self, place: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """Return the entry at ``place`` as an array of ``shape``; zeros if there is none."""
        found = self.at(place)
        if type(found) is np.ndarray and found.shape == shape:
            return found
        if found is not None and np.shape(found) != shape:
            message = f"an entry of shape {np.shape(found)} is read as one of shape {shape}"
            raise ShapeError(message)
        return np.zeros(shape, dtype) if found is None else found if type(found) in AWAY else np.asarray(found)

    def number(self, place: int, kind: type, dtype: np.dtype[Any], form: str) -> Any:
        """Return the entry at ``place`` as a number in ``form``, whose class is ``kind``; zero if there is none."""
        found = self.entries[place] if 0 <= place < len(self.entries) else None
        return found if type(found) is kind else as_form(self.array(place, (), dtype), form)

    def tape(self, place: int) -> Tape:
        """Return the entry at ``place``, which is a tape; an empty one if there is none."""
        found = self.at(place)
        return Tape() if found is None else found


class Chosen(Tape):
    """For each element of a batch, one of two tapes: ``first`` where ``mask`` holds, else ``second``."""

    __slots__ = ("first", "mask", "second")
    is_choice = True

    def __init__(self, mask: np.ndarray[Any, Any], first: Tape, second: Tape) -> None:
        super().__init__()
        self.mask, self.first, self.second = mask, first, second

    def at(self, place: int) -> Any:
        message = "an entry of a choice of tapes has no shape of its own"
        raise TypeError(message)

    def copy(self) -> Tape:
        first, second = self.first.copy(), self.second.copy()
        count = max(len(first.entries), len(second.entries))
        return Tape([self._merged(first.at(k), second.at(k)) for k in range(count)])

    def _merged(self, first: Any, second: Any) -> Any:
        if first is None and second is None:
            return None
        if isinstance(first, Tape) or isinstance(second, Tape):
            return Chosen(self.mask, first or Tape(), second or Tape())
        a, b = (np.zeros_like(other) if one is None else one for one, other in ((first, second), (second, first)))
        return np.where(_wide(self.mask, np.ndim(a)), a, b)

    def array(self, place: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        first, second = self.first.array(place, shape, dtype), self.second.array(place, shape, dtype)
        return np.where(_wide(self.mask, len(shape)), first, second)

    def number(self, place: int, kind: type, dtype: np.dtype[Any], form: str) -> Any:
        return as_form(self.array(place, (), dtype), form)

    def tape(self, place: int) -> Tape:
        return Chosen(self.mask, self.first.tape(place), self.second.tape(place))


def _wide(mask: np.ndarray[Any, Any], ndim: int) -> np.ndarray[Any, Any]:
    """Return a mask over leading axes, reshaped for arrays of ``ndim`` axes."""
    return mask.reshape(mask.shape + (1,) * (ndim - mask.ndim))


def _kept(value: Value) -> Value:
    """Return the value to record: a view is copied, so that its base is not kept alive."""
    return value.copy() if getattr(value, "base", None) is not None else value


def _holding(value: Value) -> Tape:
    """Return a tape with one value, at place 0."""
    return Tape([_kept(value)])


def _written(tape: Tape, index: Value, value: Value) -> Tape:
    places = np.asarray(index)
    if not places.ndim:
        tape.put(int(places), _kept(value))
        return tape
    for place in np.unique(places):
        mask = places == place
        if isinstance(value, Tape):
            tape.put(int(place), Chosen(mask, value, tape.tape(int(place))))
        else:
            old = tape.array(int(place), value.shape, value.dtype)
            tape.put(int(place), np.where(_wide(mask, value.ndim), value, old))
    return tape


def _added(tape: Tape, index: Value, value: Value) -> Tape:
    places = np.asarray(index)
    if not places.ndim:
        tape.put(int(places), _sum(tape.at(int(places)), value))
        return tape
    for place in np.unique(places):
        if isinstance(value, Tape):
            part: Any = Chosen(places == place, value, Tape())
        else:
            part = np.where(_wide(places == place, value.ndim), value, value.dtype.type(0))
        tape.put(int(place), _sum(tape.at(int(place)), part))
    return tape


def _sum(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return right if left is None else left
    if not isinstance(left, Tape):
        return left + right
    total, other = left.copy(), right.copy()
    for k, entry in enumerate(other.entries):
        if entry is not None:
            total.put(k, _sum(total.at(k), entry))
    return total


# ops ------------------------------------------------------------------------------------------------------------------


def tape_type(t: Type) -> Type:
    """Return the type of a tape of values of type ``t``."""
    return Type(t.dtype, (), "tape")


def is_tape(node: Node) -> bool:
    """Return whether the value of a node is a tape."""
    return len(node.types) == 1 and node.types[0].form == "tape"


EMPTY = Leaf(
    name="tape",
    value=lambda _node, _size: Tape(),
    text=lambda scope: f"{scope.text.object(Tape)}()",
    doc="A tape on which nothing is written.",
)


def index_text(index: Node, given: str) -> str | None:
    """Return an index of a tape as text for a Python integer, or None if it has axes."""
    if index.type.ndim:
        return None
    return given if index.type.form == "python" and index.type.dtype.kind == "i" else f"int({given})"


@dataclass(frozen=True, eq=False, kw_only=True)
class Write(Op):
    """``(tape, index, value)``: the tape with the value written, or added, at the index."""

    kind = "opaque"
    any_dtype = True
    write: Callable[[Tape, Value, Value], Tape]

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
        tape, _, value = args
        if not is_tape(tape) or tape.type.dtype != value.type.dtype:
            raise DTypeError(f"{value.type} cannot be written on {tape.type}")
        return tape.type

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        return self.reuse(node, [values[0].copy(), *values[1:]], size)

    def reuse(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        """Return the value as ``evaluate``, on the tape itself, which nothing else reads."""
        del node, size
        return self.write(values[0].copy() if values[0].is_choice else values[0], *values[1:])

    def expression(self, node: Node, given: Sequence[str], scope: Any) -> str | None:
        tape, index, value = node.args
        if tape.op is not EMPTY or constant_value(index) != 0 or value.type.form == "tape":
            return None
        return f"{scope.text.object(_holding)}({given[2]})"

    def store(self, node: Node, given: Sequence[str], scope: Any) -> tuple[str, Callable[[str], str]] | None:
        """Return texts for a loop: the copy of the tape, and a statement that writes the value to a tape of a given name; else None."""
        index = index_text(node.args[1], given[1])
        if index is None or self.write is not _written:
            return None
        value = f"{scope.text.object(_kept)}({given[2]})" if node.args[2].type.shape else given[2]
        return f"{given[0]}.copy()", lambda name: f"{name}.put({index}, {value})"

    def jvp(self, node: Node, tangents: Sequence[Tangent]) -> Tangent:
        tape, _, value = tangents
        if value is None:
            return tape
        return make(self, (empty_tape(node.type) if tape is None else tape, node.args[1], value))

    def transpose(self, node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
        part = read_tape(cotangent, node.args[1], node.args[2].type) if linear[2] else None
        return cotangent if linear[0] else None, None, part

    def batch(self, node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
        tape, index, value = args
        if batched[1] or index.type.ndim:
            index = lead(index, batched[1], size)
        return make(self, (lead(tape, batched[0], size), index, lead(value, batched[2], size)))


RECORD = Write(name="record", write=_written, doc="A tape with a value written at an index.")
ADD_RECORD = Write(name="add_record", write=_added, doc="A tape with a value added at an index.")


@dataclass(frozen=True, eq=False, kw_only=True)
class Read(Op):
    """``(tape, index)``: the value written there."""

    kind = "opaque"
    any_dtype = True

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
        if not is_tape(args[0]):
            raise DTypeError(f"{args[0].type} is no tape")
        return Type(args[0].type.dtype, params["shape"], params["form"])

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        tape, places = values[0], np.asarray(values[1])
        if node.type.form == "tape":
            return _tape_at(tape, places)
        shape = tuple(size(s) for s in node["shape"])
        if not places.ndim:
            found = tape.array(int(places), shape, node.type.dtype)
            return found if shape else as_form(found, node.type.form)
        result = np.zeros(shape, node.type.dtype)
        for place in np.unique(places):
            mask = _wide(places == place, len(shape))
            np.copyto(result, tape.array(int(place), shape, node.type.dtype), where=mask)
        return result

    def expression(self, node: Node, given: Sequence[str], scope: Any) -> str | None:
        index = index_text(node.args[1], given[1])
        if index is None or node.type.form == "tape":
            return None
        if not node.type.shape:
            dtype, form = node.type.dtype, node.type.form
            kind = {"python": type(dtype.type(0).item()), "scalar": dtype.type}.get(form, np.ndarray)
            return f"{given[0]}.number({index}, {scope.text.object(kind)}, {scope.text.object(dtype)}, {form!r})"
        return f"{given[0]}.array({index}, {scope.shape(node['shape'])}, {scope.text.object(node.type.dtype)})"

    def jvp(self, node: Node, tangents: Sequence[Tangent]) -> Tangent:
        return None if tangents[0] is None else make(self, (tangents[0], node.args[1]), **node.params)

    def transpose(self, node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
        del linear
        return make(ADD_RECORD, (empty_tape(cotangent.type), node.args[1], cotangent)), None

    def batch(self, node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
        tape, index = args
        tape = lead(tape, batched[0], size)
        if batched[1] or index.type.ndim:
            index = lead(index, batched[1], size)
        if node.type.form == "tape":
            return make(self, (tape, index), shape=(), form="tape")
        return make(self, (tape, index), shape=(size, *node["shape"]), form="array")


def _tape_at(tape: Tape, places: np.ndarray[Any, Any]) -> Tape:
    if not places.ndim:
        return tape.tape(int(places))
    result: Tape | None = None
    for place in np.unique(places):
        found = tape.tape(int(place))
        result = found if result is None else Chosen(places == place, found, result)
    return Tape() if result is None else result


REPLAY = Read(name="replay", doc="The value at an index of a tape: zeros where nothing was written.")


@dataclass(frozen=True, eq=False, kw_only=True)
class Join(Op):
    """Two tapes combined entry by entry."""

    kind = "opaque"
    any_dtype = True

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
        if not all(map(is_tape, args)) or args[0].type != args[1].type:
            raise DTypeError(f"{args[0].type} and {args[1].type} are no tapes of one dtype")
        return args[0].type

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        return _sum(values[0], values[1])

    def jvp(self, node: Node, tangents: Sequence[Tangent]) -> Tangent:
        left, right = tangents
        return right if left is None else left if right is None else add_tapes(left, right)

    def transpose(self, node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
        return tuple(cotangent if wanted else None for wanted in linear)

    def batch(self, node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
        return make(self, [lead(a, b, size) for a, b in zip(args, batched, strict=True)])


ADD_TAPES = Join(name="add_tapes", doc="The sums of the entries of two tapes.")


@dataclass(frozen=True, eq=False, kw_only=True)
class Choose(Op):
    """``(condition, first, second)``: for each element of a batch the first tape if its condition holds, else the second."""

    kind = "opaque"
    any_dtype = True

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
        if args[0].type.dtype != np.dtype(bool) or args[1].type != args[2].type:
            raise DTypeError(f"a choice by {args[0].type} between {args[1].type} and {args[2].type}")
        return args[1].type

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        mask, first, second = values
        return first if first is second else Chosen(np.asarray(mask), first, second)

    def jvp(self, node: Node, tangents: Sequence[Tangent]) -> Tangent:
        _, first, second = tangents
        if first is None and second is None:
            return None
        empty = empty_tape(node.type)
        return make(self, (node.args[0], empty if first is None else first, empty if second is None else second))

    def transpose(self, node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
        condition, empty = node.args[0], empty_tape(cotangent.type)
        first = make(self, (condition, cotangent, empty)) if linear[1] else None
        return None, first, make(self, (condition, empty, cotangent)) if linear[2] else None

    def batch(self, node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
        return make(self, [lead(a, b, size) for a, b in zip(args, batched, strict=True)])


CHOOSE_TAPE = Choose(name="choose_tape", doc="For each element of a batch one of two tapes.")


@dataclass(frozen=True, eq=False, kw_only=True)
class Reshaped(Op):
    """A tape whose entries get an axis ``params["axis"]`` of extent ``params["size"]``, or lose it.

    Parameters
    ----------
    adds
        Whether the entries are repeated along the axis, rather than summed.
    """

    kind = "opaque"
    any_dtype = True
    adds: bool

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
        if not is_tape(args[0]):
            raise DTypeError(f"{args[0].type} is no tape")
        return args[0].type

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        return self.by(node, values[0], size, lambda _: np)

    def by(self, node: Node, tape: Tape, size: Callable[[Size], int], library: Callable[[Any], Any]) -> Tape:
        """Return the tape with each entry reshaped; ``library`` gives the array functions for an entry."""
        if self.adds:
            return _repeated(tape, node["axis"], size(node["size"]), library)
        return _summed(tape, node["axis"], library)

    def jvp(self, node: Node, tangents: Sequence[Tangent]) -> Tangent:
        return None if tangents[0] is None else make(self, (tangents[0],), **node.params)

    def transpose(self, node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
        del linear
        return (make(SUM_TAPE if self.adds else LEAD_TAPE, (cotangent,), **node.params),)

    def batch(self, node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
        return make(self, args, axis=node["axis"] + 1, size=node["size"])


def _repeated(tape: Tape, axis: int, count: int, library: Callable[[Any], Any]) -> Tape:
    if isinstance(tape, Chosen):
        mask = np.expand_dims(tape.mask, axis) if axis <= tape.mask.ndim else tape.mask
        return Chosen(mask, *(_repeated(one, axis, count, library) for one in (tape.first, tape.second)))

    def repeat(entry: Any) -> Any:
        if entry is None or isinstance(entry, Tape):
            return None if entry is None else _repeated(entry, axis, count, library)
        shape, xp = np.shape(entry), library(entry)
        return xp.broadcast_to(xp.expand_dims(entry, axis), (*shape[:axis], count, *shape[axis:]))

    return Tape([repeat(entry) for entry in tape.entries])


def _summed(tape: Tape, axis: int, library: Callable[[Any], Any]) -> Tape:
    def total(entry: Any) -> Any:
        if entry is None or isinstance(entry, Tape):
            return None if entry is None else _summed(entry, axis, library)
        return library(entry).sum(entry, axis)

    return Tape([total(entry) for entry in tape.copy().entries])


LEAD_TAPE = Reshaped(name="lead_tape", adds=True, doc="A tape with every entry repeated along a new axis.")
SUM_TAPE = Reshaped(name="sum_tape", adds=False, doc="A tape with every entry summed along an axis.")


def lead_tape(tape: Node, size: Size) -> Node:
    """Return ``tape`` with each entry repeated ``size`` times along a new leading axis."""
    return tape if tape.op is EMPTY else make(LEAD_TAPE, (tape,), axis=0, size=size)


# building -------------------------------------------------------------------------------------------------------------


def empty_tape(t: Type) -> Node:
    """Return an empty tape for values of type ``t``."""
    return make(EMPTY, type=tape_type(t))


def record(tape: Node, index: Node, value: Node) -> Node:
    """Return ``tape`` with ``value`` written at ``index``."""
    return make(RECORD, (tape, index, value))


def read_tape(tape: Node, index: Node, t: Type) -> Node:
    """Return the value of type ``t`` at ``index`` of ``tape``."""
    return make(REPLAY, (tape, index), shape=t.shape, form=t.form)


def add_tapes(left: Node, right: Node) -> Node:
    """Return the sum of two tapes; values added to an empty one are added to the other instead."""
    for base, other in ((left, right), (right, left)):
        if other.op is EMPTY:
            return base
        if other.op is ADD_RECORD and other.args[0].op is EMPTY:
            return make(ADD_RECORD, (base, *other.args[1:]))
    return make(ADD_TAPES, (left, right))


def choose_tape(condition: Node, first: Node, second: Node) -> Node:
    """Return for each element of a batch ``first`` if its condition holds, else ``second``."""
    return first if first is second else make(CHOOSE_TAPE, (condition, first, second))


def zeros(x: Node) -> Node:
    """Return zeros like ``x``; for a tape, an empty one."""
    if is_tape(x):
        return empty_tape(x.type)
    return broadcast(constant(x.type.dtype.type(0)), x.type.shape)
