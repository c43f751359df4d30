"""Numbers that plain Python takes of lazy values, as ``np.array([x[0], x[1]])`` does: no derivative goes through them.

NumPy makes an array of the numbers without asking whether it may, so what is made of that is a constant to any later derivative. Here it
is kept which numbers were taken, of what, and at which line, so that whoever asks for such a derivative can be told.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.inputs import Snapshot
from tensormagic.ir.errors import ConstantGradientWarning
from tensormagic.ir.node import Node, topological
from tensormagic.ops.leaf import CONSTANT, INPUT, constant_value

_MOST_NUMBERS = 64  # of one value: who takes more of one takes an array, by name
_MOST_NODES = 1000  # of the history that is looked at
_SEARCHED = 1000  # elements of one array that are compared
_KEPT = 1000  # numbers of one place
_WRITTEN = 10  # characters of a number that may stand in anybody's code


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


_inputs: WeakKeyDictionary[Node, WeakSet[Node]] = WeakKeyDictionary()  # that a value depends on
_taken: deque[Taken] = deque(maxlen=200)


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


def tell(result: Node, wrt: Node, name: str) -> None:
    """Warn where ``result`` is made of numbers that were taken of what depends on the input ``wrt``."""
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
        f"numbers were taken here of a lazy value that depends on {name}, and what is differentiated is made of them: its gradient "
        "leaves that out. Keep them lazy, np.stack([...]) for np.array([...]), or write a function: tm.grad(lambda w: ...)",
        ConstantGradientWarning,
        taken.filename,
        taken.line,
    )


__all__ = ["note", "tell"]
