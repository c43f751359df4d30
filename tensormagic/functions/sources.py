"""What arrays that a captured function gives are parts of: NumPy gives one memory, and one object for what is one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tensormagic.capture.stores.place import Buffer, Place
from tensormagic.capture.value import Tensor
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size


@dataclass(frozen=True, eq=False)
class Source:
    """What an array of the results is, or is a part of.

    Parameters
    ----------
    number
        Of the input, or of the result before it.
    of_result
        Which of the two.
    places
        The views that lead from there to the result, with their shapes.
    """

    number: int
    of_result: bool
    places: tuple[tuple[Place, tuple[Size, ...]], ...] = ()


def sources_of(results: Sequence[Any], tensors: Sequence[Tensor]) -> tuple[dict[int, Source], list[Node]]:
    """For results of a body that are inputs, other results, or parts of these: what they are parts of.

    Beside them computed arrays of which several results are parts, and that are none themselves: they follow the results.
    """
    inputs = {id(t.place.buffer): k for k, t in enumerate(tensors) if t.place.parent is None and t.type.form == "array"}
    arrays = {k: v for k, v in enumerate(results) if isinstance(v, Tensor) and v.type.form == "array"}
    wholes: dict[int, int] = {}
    for k, value in arrays.items():
        if value.place.parent is None:
            wholes.setdefault(id(value.place.buffer), k)
    parts = {id(v): v.place.buffer for v in arrays.values() if id(v.place.buffer) not in {*wholes, *inputs}}
    several = [b for b, count in Counter(parts.values()).items() if count > 1 and type(b) is Buffer and b.array is None]
    wholes |= {id(buffer): len(results) + k for k, buffer in enumerate(several)}
    first: dict[int, int] = {}
    found: dict[int, Source] = {}
    for k, value in sorted(arrays.items(), key=lambda item: item[1].place.parent is not None):
        buffer, places = id(value.place.buffer), tuple([(p, p.read().type.shape) for p in _downwards(value.place)])
        if buffer in inputs:
            found[k] = Source(inputs[buffer], of_result=False, places=places)
        elif wholes.get(buffer, k) != k:
            found[k] = Source(wholes[buffer], of_result=True, places=places)
        elif first.setdefault(id(value), k) != k:  # the same part
            found[k] = Source(first[id(value)], of_result=True)
    return found, [buffer.node for buffer in several]


def _downwards(place: Place) -> list[Place]:
    """The views that lead from a buffer to a place."""
    found: list[Place] = []
    while place.parent is not None:
        found.insert(0, place)
        place = place.parent
    return found


__all__ = ["Source", "sources_of"]
