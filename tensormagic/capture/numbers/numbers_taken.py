"""Numbers taken out of lazy values, through which no derivative flows: plain Python takes them, and cells store them into arrays.

NumPy makes an array of the numbers (``np.array([x[0], x[1]])``) without any hook, and an array of the notebook holds
numbers and no history: what is made of them is a constant to any later derivative. This module records which numbers
these were, what they were computed from, and at which line, so that a warning can be given when such a derivative is
taken.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, ref

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.inputs.snapshots import Snapshot, histories_by
from tensormagic.capture.python import usercode
from tensormagic.capture.values import live_values
from tensormagic.ir import site
from tensormagic.ir.errors import ConstantGradientWarning
from tensormagic.ir.node import Node, topological
from tensormagic.ops.leaf import CONSTANT, INPUT, constant_value

_MOST_NUMBERS = 64  # numbers taken from one value, at most: code that takes more uses an array with a name
_MOST_NODES = 1000  # nodes of the history that are visited, at most
_SEARCHED = 1000  # elements of one array that are compared
_KEPT = 1000  # numbers of one place
_WRITTEN = 10  # characters of a number that anybody may write in code
_LOOKED_AT = 200  # arrays that are checked for memory shared with one
_SAMPLED = 1000  # elements by which a changed array is recognised


Mark = tuple[
    Any, str, bytes
]  # an array (weakly; None for a number) or a node that is no input, its name, some of its elements


@dataclass(eq=False)
class Inputs:
    """Represents the inputs that a number depends on, by weak reference, with marks to recognise inputs read from the same array."""

    nodes: WeakSet[Node]
    marks: list[Mark]

    def has(self, wrt: Node, own: Mark) -> tuple[bool, bool]:
        """Return whether an input is among them, and whether one like it is."""
        same = wrt in self.nodes
        return same, same or any(_same(own, m) for m in self.marks)


@dataclass(eq=False)
class Taken:
    """Represents numbers that were taken at one place.

    Parameters
    ----------
    filename, line
        The place.
    numbers
        The numbers, each with the inputs that it depends on.
    told
        Whether the user has been warned.
    """

    filename: str
    line: int
    numbers: list[tuple[Any, Inputs]]
    told: bool = False

    def of(self, wrt: Node, own: Mark) -> tuple[list[Any], list[Any]]:
        """Return the numbers that depend on an input, and those that depend on what it was read from."""
        known = {id(inputs): inputs.has(wrt, own) for _, inputs in self.numbers}
        found = [(number, known[id(inputs)]) for number, inputs in self.numbers]
        return [n for n, (same, _) in found if same], [n for n, (_, alike) in found if alike]

    def make(self, numbers: list[Any], wrt: Node, own: Mark) -> bool:
        """Return whether other numbers contain these: all in this order, or one with more digits than people write."""
        count, (same, alike) = len(numbers), self.of(wrt, own)
        if count > 1 and any(same[k : k + count] == numbers for k in range(len(same) - count + 1)):
            return True
        return any(len(repr(v)) > _WRITTEN for v in set(numbers) & set(alike))


@dataclass(eq=False)
class Stored:
    """Represents an array with numbers that have left the graph: a cell has stored them, or plain code has converted a value.

    Parameters
    ----------
    array
        It, and some of its elements as they were then.
    filename, line
        The place.
    inputs
        What it was made of.
    said
        What has happened there, for messages.
    told
        The variables of derivatives for which the user has been warned.
    """

    array: Mark
    filename: str
    line: int
    inputs: list[Mark]
    said: str
    told: set[str] = field(default_factory=set[str])


_WAYS = {
    "was stored into here": "Store and differentiate in one cell, or have the cell make a new array",
    "was computed here as plain Python": "Write array operations in place of the loop, or differentiate in that cell, with --grad",
    "was given to plain code here, which has stored into it": "Store into the lazy array itself, or compute a new one in a %%tensor cell",
    "was taken here": "Use the lazy value itself, where a gradient is to go through it",
    "was computed here from numbers of lazy values": "Compute it in a %%tensor cell, where a gradient is to go through it",
}
_inputs: WeakKeyDictionary[Node, Inputs] = WeakKeyDictionary()  # the inputs that a value depends on
_taken: deque[Taken] = deque(maxlen=200)
_stored: dict[int, Stored] = {}  # by the array's identity
_computed: dict[tuple[str, bytes], Stored] = {}  # numbers, by the text that reads them and their bits
_left: deque[Inputs] = deque(maxlen=1000)  # the inputs of what has left the graph since a plain cell began


def note(node: Node, value: Any) -> None:
    """Record that ``value``, the value of ``node``, is taken out of the graph by code that is not captured."""
    capture = context.current()
    if not node.type.inexact or (capture is not None and (capture.abstract or capture.heap.trials)):
        return
    if np.size(value) > _MOST_NUMBERS:
        note_array(node, value)
        return
    frame = usercode.user_frame()
    if frame is None:
        return
    filename, line, numbers = frame.f_code.co_filename, frame.f_lineno, np.ravel(value).tolist()
    here = next((t for t in _taken if t.line == line and t.filename == filename), None)
    if here is None:
        _taken.append(here := Taken(filename, line, []))
    inputs = _inputs_of(node)
    _left.append(inputs)
    here.numbers += [(number, inputs) for number in numbers]
    del here.numbers[:-_KEPT]


def _inputs_of(node: Node) -> Inputs:
    """Return the inputs that a value depends on."""
    while len(node.args) == 1:  # a part of an array: many are taken from one
        node = node.args[0]
    if node not in _inputs:
        nodes = topological([node])
        nodes = nodes if len(nodes) <= _MOST_NODES else []
        _inputs[node] = Inputs(WeakSet([n for n in nodes if n.op is INPUT]), _made_of(nodes))
    return _inputs[node]


def begin() -> list[Mark]:
    """Start recording what leaves the graph in a plain cell; return the marks of what has left it before."""
    found = {id(inputs): inputs for inputs in _left}
    _left.clear()
    return [mark for inputs in found.values() for mark in inputs.marks]


def among(marks: list[Mark], nodes: Iterable[Node]) -> list[Mark]:
    """Return those of ``marks`` that belong to inputs of ``nodes``."""
    own = [mark for node in nodes for mark in _inputs_of(node).marks]
    return [mark for mark in marks if any(_same(mark, one) for one in own)]


def computed(value: Any, name: str) -> list[Mark]:
    """Return the inputs of a value that plain code has computed from numbers of lazy values, and that ``name`` holds."""
    if isinstance(value, np.ndarray):
        found = _stored.get(id(value))
    else:
        found = _computed.get((name, sample(value))) if isinstance(value, float | complex | np.inexact) else None
    return [] if found is None or (found.array[0] is not None and sample(value) != found.array[2]) else found.inputs


def note_computed(name: str, value: Any, marks: list[Mark], place: tuple[str, int], said: str) -> None:
    """Note the inputs that a number bound by plain code may depend on; with no marks, forget earlier ones."""
    key = name, sample(value)
    _computed.pop(key, None)
    if not marks:
        return
    if isinstance(value, np.ndarray):
        _keep(value, name, *place, marks, said)
    else:
        _taken.append(Taken(*place, [(value, Inputs(WeakSet(), marks))]))
    _computed[key] = Stored((None, *key), *place, marks, said)
    while len(_computed) > _KEPT:
        del _computed[next(iter(_computed))]


def note_store(node: Node, array: np.ndarray[Any, Any], name: str) -> None:
    """Record that a cell has stored the value of ``node`` into an array of the notebook."""
    places = [s for s in site.of(node) if s.line]
    filename, line = (places[-1].cell, places[-1].line) if places else ("a captured cell", 0)
    _keep(array, name, filename, line, _made_of(topological([node])), "was stored into here")


def note_array(node: Node, value: Any) -> None:
    """Record that plain code has the array of a value."""
    if context.current() is not None or not node.type.inexact:
        return
    _left.append(_inputs_of(node))
    if type(value) is not np.ndarray or value.size < 2:
        return
    frame = None if id(value) in _stored else usercode.user_frame()
    if frame is not None and len(nodes := topological([node])) <= _MOST_NODES:
        _keep(value, "an array", frame.f_code.co_filename, frame.f_lineno, _made_of(nodes), "was taken here")


def note_stored_outside(node: Node, array: np.ndarray[Any, Any], name: str, place: tuple[str, int]) -> None:
    """Record that plain code, which has had the memory of ``node`` since ``place``, has stored into it."""
    if node.type.inexact and _history(array) is None:
        left = {id(inputs): inputs for inputs in _left}
        marks = [mark for inputs in (_inputs_of(node), *left.values()) for mark in inputs.marks]
        _keep(array, name, *place, marks, "was given to plain code here, which has stored into it")


def store(array: np.ndarray[Any, Any], value: Any) -> None:
    """Store what a function has computed into an array, and keep the known origin of its numbers."""
    known = _stored.get(id(array))
    known = known if known is not None and sample(array) == known.array[2] else None
    np.copyto(array, value)
    if known is not None:
        _keep(array, known.array[1], known.filename, known.line, known.inputs, known.said)


def marks_of(read: Mapping[str, Any]) -> list[Mark]:
    """Return the marks of the arrays and numbers of the notebook that plain code has read, by their names."""
    arrays = [(ref(v), n, sample(v)) for n, v in read.items() if isinstance(v, np.ndarray) and v.dtype.kind in "fc"]
    return arrays + [(None, n, sample(v)) for n, v in read.items() if isinstance(v, float | complex | np.inexact)]


def _made_of(nodes: Iterable[Node]) -> list[Mark]:
    """Return the marks of the inputs among nodes, of the inputs of their numbers, and of other nodes that the user holds."""
    nodes = list(nodes)
    held = live_values.nodes_held() if nodes else set[Node]()
    found = [(ref(n), "", b"") for n in nodes if n in held and n.type.inexact and n.op is not CONSTANT]
    for node in nodes:
        if (mark := _mark(node)) is not None:
            known = _store_of(node, mark)
            found += [mark] if known is None else [mark, *known.inputs]
    return found


def _keep(array: np.ndarray[Any, Any], name: str, filename: str, line: int, inputs: list[Mark], said: str) -> None:
    key = id(array)
    gone = ref(array, lambda _: _stored.pop(key, None))
    _stored[key] = Stored((gone, name, sample(array)), filename, line, inputs, said)


def _mark(node: Node) -> Mark | None:
    """Return the mark of an input that was read from the notebook; None for other nodes."""
    source = node["source"] if node.op is INPUT else None
    return (source.original, source.name, sample(source.value)) if isinstance(source, Snapshot) else None


def _mark_of(node: Node) -> Mark:
    """Return the mark of the node to differentiate by: an input, or a computed value."""
    return _mark(node) or (ref(node), "", b"")


def _same(left: Mark, right: Mark) -> bool:
    arrays = [None if m[0] is None else m[0]() for m in (left, right)]
    return arrays[0] is arrays[1] and left[2] == right[2] and (arrays[0] is not None or left[1] == right[1])


def sample(value: Any) -> bytes:
    """Return the bytes of some elements of an array, by which a change is noticed."""
    array = np.asarray(value)
    return array.flat[:: max(1, array.size // _SAMPLED)].tobytes()


def _store_of(node: Node, mark: Mark) -> Stored | None:
    """Return the origin of an input's numbers: as noted when it was read, or else that of its array."""
    history = node["source"].history
    if history is not None:
        return history
    if mark[0] is None:
        return _computed.get(mark[1:])
    array = mark[0]()
    found = None if array is None else _history(array)
    return found if found is not None and sample(array) == mark[2] else None


def _history(array: np.ndarray[Any, Any]) -> Stored | None:
    """Return the origin of the numbers in an array, or in one that shares its memory and still holds them."""
    for found in (_stored.get(id(array)), *list(_stored.values())[-_LOOKED_AT:]):
        other = None if found is None or found.array[0] is None else found.array[0]()
        if found is None or other is None or sample(other) != found.array[2]:
            continue
        if other is array or np.may_share_memory(other, array):
            return found
    return None


histories_by(lambda array: _history(array) if _stored else None)


def _warn_of_stores(result: Node, wrt: Node, name: str) -> set[Node]:
    """Warn where ``result`` reads numbers that are known to depend on the input ``wrt``; return the nodes that were warned about."""
    told: set[Node] = set()
    own = _mark_of(wrt)
    for node in topological([result]):
        mark = _mark(node) if node is not wrt else None
        found = None if mark is None else _store_of(node, mark)
        if found is None or not any(_same(own, m) for m in found.inputs):
            continue
        told.add(node)
        if name in found.told:
            continue
        found.told.add(name)
        array = found.array[1]
        warnings.warn_explicit(
            f"{array} {found.said}, with what depends on {name}: a later gradient takes the numbers in it as they are. "
            f"{_WAYS[found.said]}",
            ConstantGradientWarning,
            found.filename,
            found.line,
        )
    return told


def warn_of_taken_numbers(result: Node, wrt: Node, name: str) -> None:
    """Warn where ``result`` is made of numbers that were taken from what depends on the input ``wrt``, or stored."""
    told = _warn_of_stores(result, wrt, name)
    own = _mark_of(wrt)
    found = [t for t in _taken if not t.told and any(t.of(wrt, own))]
    for numbers in _constants(result, told | {wrt}) if found else ():
        for taken in found:
            if taken.make(numbers, wrt, own):
                _warn(taken, name)


def _constants(result: Node, but: set[Node]) -> Iterator[list[Any]]:
    """Yield the numbers in each array and constant that a value is made of, ``but`` for those of some nodes."""
    for node in topological([result]):
        value = None
        if node.op is CONSTANT:
            value = constant_value(node)
        elif node.op is INPUT and node not in but and isinstance(node["source"], Snapshot):
            value = node["source"].value
        if value is not None and np.asarray(value).dtype.kind in "fc" and 0 < np.size(value) <= _SEARCHED:
            yield np.ravel(value).tolist()


def _warn(taken: Taken, name: str) -> None:
    if taken.told:
        return
    taken.told = True
    warnings.warn_explicit(
        f"numbers were read here from a lazy value that depends on {name}, and the result is computed from them: the gradient "
        "leaves that out. Keep the values lazy, np.stack([...]) for np.array([...]), or write a function: tm.grad(lambda w: ...)",
        ConstantGradientWarning,
        taken.filename,
        taken.line,
    )
