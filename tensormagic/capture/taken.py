"""Numbers that lazy values have left, which no derivative goes through: plain Python takes them, and cells store them into arrays.

NumPy makes an array of the numbers (``np.array([x[0], x[1]])``) without asking whether it may, and an array of the notebook holds numbers
and no history: what is made of them is a constant to any later derivative. Here it is kept which numbers these were, of what they were
made, and at which line, so that whoever asks for such a derivative can be told.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, ref

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.inputs import Snapshot
from tensormagic.ir import site
from tensormagic.ir.errors import ConstantGradientWarning
from tensormagic.ir.node import Node, topological
from tensormagic.ops.leaf import CONSTANT, INPUT, constant_value

_MOST_NUMBERS = 64  # of one value: who takes more of one takes an array, by name
_MOST_NODES = 1000  # of the history that is looked at
_SEARCHED = 1000  # elements of one array that are compared
_KEPT = 1000  # numbers of one place
_WRITTEN = 10  # characters of a number that may stand in anybody's code
_SAMPLED = 1000  # elements that say whether an array has changed


@dataclass(eq=False)
class Taken:
    """Numbers that were taken at one place.

    Parameters
    ----------
    filename, line
        The place.
    numbers
        The numbers, each with the inputs that it depends on.
    told
        Whether the user has been told.
    """

    filename: str
    line: int
    numbers: list[tuple[Any, WeakSet[Node]]]
    told: bool = False

    def of(self, wrt: Node) -> list[Any]:
        """The numbers that depend on an input."""
        return [number for number, inputs in self.numbers if wrt in inputs]

    def make(self, numbers: list[Any], wrt: Node) -> bool:
        """Whether others were made of these: all of them, in this order, or some number of more digits than people write."""
        count, own = len(numbers), self.of(wrt)
        if count > 1 and any(own[k : k + count] == numbers for k in range(len(own) - count + 1)):
            return True
        return any(len(repr(v)) > _WRITTEN for v in set(numbers) & set(own))


Mark = tuple[Any, str, bytes]  # an array weakly, its name, some of its elements; None in place of it for a number


@dataclass(eq=False)
class Stored:
    """An array of the notebook that a cell has stored into.

    Parameters
    ----------
    array
        It, and some of its elements as they were then.
    filename, line
        The place of the store.
    inputs
        What it was made of.
    told
        The variables whose user has been told.
    """

    array: Mark
    filename: str
    line: int
    inputs: list[Mark]
    told: set[str]


_inputs: WeakKeyDictionary[Node, WeakSet[Node]] = WeakKeyDictionary()  # that a value depends on
_taken: deque[Taken] = deque(maxlen=200)
_stored: dict[int, Stored] = {}  # by the array's identity


def note(node: Node, value: Any) -> None:
    """Note that ``value``, which ``node`` has, is taken out of the graph by code that is not captured."""
    if context.current() is not None or not node.type.inexact or np.size(value) > _MOST_NUMBERS:
        return
    frame = context.user_frame()
    if frame is None:
        return
    filename, line, numbers = frame.f_code.co_filename, frame.f_lineno, np.ravel(value).tolist()
    here = next((t for t in _taken if t.line == line and t.filename == filename), None)
    if here is None:
        _taken.append(here := Taken(filename, line, []))
    while len(node.args) == 1:  # a part of an array: many are taken of one
        node = node.args[0]
    if node not in _inputs:
        nodes = topological([node])
        _inputs[node] = WeakSet([n for n in nodes if n.op is INPUT] if len(nodes) <= _MOST_NODES else ())
    inputs = _inputs[node]
    here.numbers += [(number, inputs) for number in numbers]
    del here.numbers[:-_KEPT]


def note_store(node: Node, array: np.ndarray[Any, Any], name: str) -> None:
    """Note that a cell has stored the value of ``node`` into an array of the notebook."""
    inputs: list[Mark] = []
    for one in topological([node]):
        if (mark := _mark(one)) is not None:
            known = _store_of(mark)
            inputs += [mark] if known is None else [mark, *known.inputs]
    places = [s for s in site.of(node) if s.line]
    filename, line = (places[-1].cell, places[-1].line) if places else ("a captured cell", 0)
    key = id(array)
    gone = ref(array, lambda _: _stored.pop(key, None))
    _stored[key] = Stored((gone, name, _sample(array)), filename, line, inputs, set())


def _mark(node: Node) -> Mark | None:
    """What tells an input that was read of the notebook from others, where nothing has changed it since."""
    source = node["source"] if node.op is INPUT else None
    return (source.original, source.name, _sample(source.value)) if isinstance(source, Snapshot) else None


def _same(left: Mark, right: Mark) -> bool:
    arrays = [None if m[0] is None else m[0]() for m in (left, right)]
    return arrays[0] is arrays[1] and left[2] == right[2] and (arrays[0] is not None or left[1] == right[1])


def _sample(value: Any) -> bytes:
    array = np.asarray(value)
    return array.flat[:: max(1, array.size // _SAMPLED)].tobytes()


def _store_of(mark: Mark) -> Stored | None:
    """The store whose numbers an input's array holds still."""
    array = None if mark[0] is None else mark[0]()
    found = _stored.get(id(array))
    return found if found is not None and _same(found.array, mark) else None


def _tell_stores(result: Node, wrt: Node, name: str) -> None:
    """Warn where ``result`` reads an array into which a cell has stored what was made of the input ``wrt``."""
    own = _mark(wrt)
    marks = [m for node in topological([result]) if node is not wrt and (m := _mark(node)) is not None] if own else []
    for found in filter(None, map(_store_of, marks)):
        if name in found.told or own is None or not any(_same(own, m) for m in found.inputs):
            continue
        found.told.add(name)
        array = found.array[1]
        warnings.warn_explicit(
            f"{array} was stored into here, with what depends on {name}: a later gradient takes the numbers in {array} as they are. "
            f"Store and differentiate in one cell, or have the cell make a new array",
            ConstantGradientWarning,
            found.filename,
            found.line,
        )


def tell(result: Node, wrt: Node, name: str) -> None:
    """Warn where ``result`` is made of numbers that were taken of what depends on the input ``wrt``, or stored."""
    if _stored:
        _tell_stores(result, wrt, name)
    found = [t for t in _taken if not t.told and t.of(wrt)]
    if not found:
        return
    for numbers in _constants(result, wrt):
        for taken in found:
            if taken.make(numbers, wrt):
                _warn(taken, name)


def _constants(result: Node, wrt: Node) -> Iterator[list[Any]]:
    """The numbers in each array and constant that a value is made of."""
    for node in topological([result]):
        value = None
        if node.op is CONSTANT:
            value = constant_value(node)
        elif node.op is INPUT and node is not wrt and isinstance(node["source"], Snapshot):
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


__all__ = ["note", "note_store", "tell"]
