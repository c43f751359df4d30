"""Properties of Python results beside their values: the class of numbers, and which arrays are read-only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.numbers.classes import classes_of, is_number, of_class
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.node import Node
from tensormagic.ir.text import parse_type
from tensormagic.ir.type import Type

Coded = dict[
    int, tuple[int, list[Type]]
]  # for a number the index of the result with its class, and the possible classes


@dataclass(frozen=True, eq=False)
class Outward:
    """Properties of the results of a compiled function other than their values.

    Parameters
    ----------
    classes
        Numbers of data-dependent class: for each the index of a result after the ``count`` of the user's, and the
        possible classes.
    frozen
        Arrays that NumPy returns read-only.
    """

    count: int = 0
    classes: Mapping[int, tuple[int, list[Type]]] = field(default_factory=dict[int, tuple[int, list[Type]]])
    frozen: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.classes or self.frozen)

    def given(self, results: Sequence[Any], arrays: Sequence[Any] = ()) -> list[Any]:
        """Return the user's results as Python has them; those in the caller's ``arrays`` stay."""
        found = list(results[: self.count])
        own = {k for k, array in enumerate(arrays) if array is not None}
        for k in self.frozen:
            if k not in own:
                found[k].flags.writeable = False
        for k, (code, types) in self.classes.items():
            if k not in own:
                found[k] = of_class(found[k], types[int(results[code])])
        return found

    @property
    def written(self) -> dict[str, Any]:
        """These properties as JSON data."""
        classes = {str(k): [code, [*map(str, types)]] for k, (code, types) in self.classes.items()}
        return {"count": self.count, "classes": classes, "frozen": list(self.frozen)}


def outward_of(written: Mapping[str, Any] | None, count: int) -> Outward:
    """Return the properties read from a file's data, or for a function with ``count`` results if the file has none."""
    if written is None:
        return Outward(count)
    classes = {int(k): (int(code), [*map(parse_type, types)]) for k, (code, types) in written["classes"].items()}
    return Outward(int(written["count"]), classes, tuple(map(int, written["frozen"])))


def outward_and_nodes(results: Sequence[Any], nodes: Sequence[Node]) -> tuple[Outward, list[Node]]:
    """Return the properties of a trace's results, and their nodes followed by additional ones that determine these."""
    every = list(nodes)
    coded = codes_behind(nodes, every)
    frozen = tuple([k for k, v in enumerate(results) if is_frozen(v)])
    return Outward(len(nodes), {k: (code, list(types)) for k, (code, types) in coded.items()}, frozen), every


def codes_behind(nodes: Sequence[Node], every: list[Node]) -> Coded:
    """Append the codes of numbers of data-dependent class to ``every``, and return where they are, by result."""
    capture, found = context.current(), Coded()
    for k, node in enumerate(nodes):
        classes = classes_of(node) if is_number(node.type) else None
        if capture is not None and classes is not None and len(classes.types) > 1:
            found[k] = len(every), capture.classes.types
            every.append(classes.code)
    return found


def is_frozen(result: Any) -> bool:
    """Return whether NumPy's array would be read-only."""
    if isinstance(result, np.ndarray):
        return not result.flags.writeable
    return isinstance(result, Tensor) and result.type.form == "array" and result.place.frozen
