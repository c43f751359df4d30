"""Lazy values that a captured function leaves in objects, which outlive the trace and get the values of the call.

A trace runs the body over arguments without values. What the body appends to a list, or sets as an attribute, is then
a lazy value of arguments that no longer exist. It is valid all the same once the arguments of this call replace those
of the trace: so the object holds what Python would have left there, as a lazy value, and the body runs again at each
call.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import get_ident
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tensormagic import session
from tensormagic.capture.collecting import sparsely
from tensormagic.capture.context import Capture, capturing
from tensormagic.capture.inputs.snapshots import Snapshot, own
from tensormagic.capture.numbers.classes import classes_of, is_number, of_class
from tensormagic.capture.stores.lent import show_all, whole_of
from tensormagic.capture.stores.place import Buffer, Place
from tensormagic.capture.tree import Rest, computed
from tensormagic.capture.values import live_values
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.collecting import frozen, is_frozen_by_others
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.node import Node, topological
from tensormagic.ir.site import substituted
from tensormagic.ops.effects.telling import silently
from tensormagic.ops.leaf import INPUT, PARAMETER, constant
from tensormagic.ops.reverse.tape import Tape


@contextmanager
def young(*, stays: bool = False) -> Generator[None]:
    """Freeze existing objects in the garbage collector, so that searching the objects of a trace takes a millisecond only.

    With ``stays``, the new objects stay frozen, too: the collector skips them in the next call.
    """
    if is_frozen_by_others():
        yield
        return
    if not frozen:
        gc.freeze()
    frozen.append(None)
    try:
        with sparsely():
            yield
            if stays:
                gc.freeze()  # freezing moves them to the oldest generation
    finally:
        frozen.pop()
        if not frozen:
            gc.unfreeze()


def looked_at() -> None:
    """Record the present contents of memory outside of graphs, so that earlier stores by plain Python do not seem the next trace's."""
    for value in live_values.held():
        if isinstance(value, Tensor):
            value.place.buffer.version  # noqa: B018 (which looks)


def left_behind(mark: Tensor, *, known: bool) -> list[Tensor]:
    """Return the lazy values made, or stored into, after ``mark`` that are still referenced.

    ``known``: this function is known to leave some; otherwise unreachable cycles are collected first.
    """
    for generation in (None, 1, 2):
        if generation is not None:
            if generation == 2 and known:
                break
            _collect(generation)
        if not _made_since(mark):
            break
    return _made_since(mark) + _stored_since(mark)


_WAITS = 200  # waits of a thousandth of a second each


def _collect(generation: int) -> None:
    """Collect cycles, even if another thread is collecting, which may run code of weak references."""
    own, ran = get_ident(), list[bool]()

    def note(_phase: str, _info: Mapping[str, Any]) -> None:
        if get_ident() == own:
            ran.append(True)

    gc.callbacks.append(note)
    try:
        for _ in range(_WAITS):
            gc.collect(generation)
            if ran:
                return
            time.sleep(0.001)
    finally:
        gc.callbacks.remove(note)


def _made_since(mark: Tensor) -> list[Tensor]:
    return [v for v in live_values.since(mark) if isinstance(v, Tensor)]


def _stored_since(mark: Tensor) -> list[Tensor]:
    """Return earlier lazy values, as a previous call has left them, that were stored into."""
    then = mark.place.buffer.born
    found = [v for v in live_values.held() if isinstance(v, Tensor) and not v.place.buffer.argument]
    return [v for v in found if v.place.buffer.born < then < v.place.buffer.version]


def held_by(build: Callable[[Any], Any]) -> set[int]:
    """Return the identities of the objects that a rebuilding function holds itself, such as the types in a list of unknown length."""
    seen: dict[int, Any] = {}
    pending: list[Any] = [build]
    while pending:
        one = pending.pop()
        if id(one) in seen or isinstance(one, type | ModuleType | str | int | float | np.ndarray):
            continue
        seen[id(one)] = one
        if isinstance(one, FunctionType):
            pending += [c.cell_contents for c in one.__closure__ or ()]
        elif isinstance(one, MethodType):
            pending.append(one.__self__)
        elif isinstance(one, dict):
            pending += one.values()
        elif isinstance(one, list | tuple | set | frozenset):
            pending += one
        elif not isinstance(one, Tensor | Node):
            pending += getattr(one, "__dict__", {}).values()
    return set(seen)


def bare(build: Callable[[Any], Any], count: int) -> Callable[[Any], Any]:
    """Return how ``count`` parts are assembled, without the lazy values that they were taken from."""
    return together(build(iter([0.0] * count)))[1]


def together(tree: Any) -> tuple[list[Any], Callable[[Any], Any]]:
    """Return the computed leaves of a result, and a function that rebuilds it with other leaves; shared containers are rebuilt once."""
    met: dict[int, Any] = {}  # holds the containers, so that no other object gets their identities

    def special(container: Any, usual: Callable[[], Any]) -> Any:
        key = id(container)
        if key in met:
            return lambda rest: rest.run[key]
        build, met[key] = usual(), container

        def made(rest: Any) -> Any:
            found = rest.run[key] = build(rest)
            return found

        return made

    leaves, build = computed(tree, special)
    return leaves, lambda rest: build(Rest(rest, {}))


def give_values(
    left: Sequence[Tensor], values: Mapping[Node, Any], label: str, capture: Capture
) -> tuple[dict[int, tuple[Tensor, Any]], Memory]:
    """Return lazy values, rebound from the trace's stand-ins to the call's arguments, with their Python counterparts, and their memory.

    The lazy values are given by identity. Their counterparts are numbers, arrays that the call was given, copies of
    computed arrays without parts, and NumPy views of given arrays.

    Returns, by identity, the lazy values with their Python counterparts (numbers, arrays that the call was given,
    copies of computed arrays without parts, and NumPy views of given arrays), and the memory of all of them.

    Parameters
    ----------
    left
        The lazy values.
    values
        The value of each argument of the trace.
    label
        The function, for messages.
    capture
        The notes of the trace.
    """
    codes = _codes_of_classes(left, values, capture)
    places = {id(v): _taken(v.place, values) if v.type.form == "array" else v.place for v in left}
    given = {p.buffer: values.get(p.buffer.first) for p in places.values() if p.buffer.argument}
    if not all(_given(value, values) for value in left):
        raise CaptureError(
            f"{label} stores a value of one example, or of one iteration, in an object, where it would have no meaning after the call",
            "Return the value, and store it where the function is called.",
        )
    show_all(place.buffer for place in places.values())
    arrays = [v for v in left if v.type.form == "array"]
    computed_too = [p.buffer.node for p in map(places.__getitem__, map(id, arrays)) if not p.buffer.argument]
    _computed([*(v.node for v in left), *computed_too, *codes.values()])
    own = {id(v): (v, _number(v, label)) for v in left if v.type.form != "array"}
    for i, code in codes.items():
        own[i] = own[i][0], of_class(own[i][1], capture.classes.types[int(session.value_of(code))])
    memory = Memory({buffer: array for buffer, array in given.items() if type(array) is np.ndarray})
    memory.add_wholes(places.values(), [places[id(v)] for v in arrays])
    parts = {id(v): (v, memory.part(places[id(v)])) for v in arrays}
    return own | {i: found for i, found in parts.items() if found[1] is not None}, memory


def _number(value: Tensor, label: str) -> Any:
    """A number as Python has it; what a branch keeps for the way back is none."""
    found = value.numpy()
    if isinstance(found, Tape):
        raise CaptureError(
            f"{label} stores a value in an object in a branch or loop, which derivatives compute for themselves",
            "Return the value, and store it where the function is called.",
        )
    return value.item() if value.type.form == "python" else found[()]


def _taken(place: Place, values: Mapping[Node, Any]) -> Place:
    """Return the place of an array in this call if it is one of several depending on data, else the place itself."""
    found = place
    while found.parent is None and (several := found.buffer.alias.alternatives):
        asked = [one.holds for one in several if one.holds is not None]
        unknown = [n for one in asked for n in _stand_ins(one) if n not in values]
        if unknown or any(n.op is PARAMETER for n in topological(asked)):
            return place  # the condition belongs to an iteration
        holding = [
            one.place for one in several if one.holds is None or session.compute([_of_call(one.holds, values)])[0]
        ]
        if not holding:
            return place
        found = holding[0]
    own = found.buffer
    if own.argument:
        return found if type(values.get(own.first)) is np.ndarray else place
    if leaves := _stand_ins(own.node):
        if any(n not in values for n in leaves):
            return place
        own.renew(_of_call(own.node, values))
    return found


def _computed(nodes: list[Node]) -> None:
    """Compute nodes without printing, as the call prints. If that fails, there is no call."""
    try:
        with silently():
            session.compute(nodes)
    except Exception:  # noqa: BLE001 (raised again, once it has printed)
        session.compute(nodes)


def _codes_of_classes(left: Sequence[Tensor], values: Mapping[Node, Any], capture: Capture) -> dict[int, Node]:
    """Return, for numbers of data-dependent class by identity, the node that gives the class in this call."""
    if not capture.classes.of:
        return {}
    with capturing(capture):
        noted = {id(v): classes_of(v.node) for v in left if is_number(v.type)}
    return {i: _of_call(found.code, values) for i, found in noted.items() if found and len(found.types) > 1}


class Memory:
    """NumPy arrays for buffers, and views of these for places, one each."""

    def __init__(self, wholes: dict[Buffer, Any]) -> None:
        self.wholes = wholes
        self._parts: dict[Place, Any] = {}

    def add_wholes(self, places: Iterable[Place], wanted: Sequence[Place]) -> None:
        """Give those ``wanted`` places buffers of their own that were computed and have no other places as parts."""
        inside: dict[Buffer, list[Place]] = {}
        for place in places:
            inside.setdefault(place.buffer, []).append(place)
        for buffer in dict.fromkeys(p.buffer for p in wanted):
            if buffer in self.wholes or buffer.argument:
                continue
            own = wrap(buffer.node).numpy()
            if all(p.within(own, session.number_of) is not None for p in inside[buffer]):
                self.wholes[buffer] = whole_of(buffer, own)

    def part(self, place: Place) -> Any:
        """Return the array of a place, or None if it is not a view of a known one."""
        if place.parent is None:
            return self.wholes.get(place.buffer)
        if place not in self._parts:
            base = self.part(place.parent)
            self._parts[place] = None if base is None else place.taken_from(base, session.number_of)
        return self._parts[place]


@contextmanager
def rescued(values: Mapping[Node, Any]) -> Generator[None]:
    """Rebind what the block has left in objects to the call's arguments if the block fails."""
    mark = wrap(constant(0))
    try:
        yield
    except BaseException:
        for value in left_behind(mark, known=True):
            with suppress(Exception):  # the block's own error is the one to raise
                _given(value, values)
        raise


def tell_until(token: Any, values: Mapping[Node, Any]) -> None:
    """Print what a trace printed until ``token``, and raise what it checked, for the call's arguments."""
    if not isinstance(token, Tensor):
        return
    closed = session.close_over(
        [token.node], list(values), use_values=False
    )  # printed once during the trace, and once for the call
    given = [values[leaf] if leaf in values else session.value_of(leaf) for leaf in closed.leaves]
    session.executable(closed.graph, "").by_numpy(closed.graph.bind([np.shape(v) for v in given]), *given)


def _given(value: Tensor, values: Mapping[Node, Any]) -> bool:
    """Return whether a lazy value can be rebound to the call's arguments (trivially if it depends on none)."""
    own = value.place.buffer
    node = value.node if own.argument else own.node
    leaves = _stand_ins(node)
    if leaves and all(n in values for n in leaves):
        node = _of_call(node, values)
        if own.argument:
            value.place = Place(Buffer(node))
        else:  # views and other names of the array see the store, too
            own.renew(node)
    return all(n in values for n in leaves)


def _stand_ins(node: Node) -> list[Node]:
    return [n for n in topological([node]) if n.op is INPUT and not isinstance(n["source"], Snapshot)]


def _of_call(node: Node, values: Mapping[Node, Any]) -> Node:
    """Return the node with the call's arguments in place of stand-ins."""
    return substituted([node], {n: _input(values[n], str(n["source"].name)) for n in _stand_ins(node) if n in values})[
        0
    ]


def _input(value: Any, name: str) -> Node:
    node = own(value, name)
    return node_of(value) if node is None else node
