"""Objects of the user's classes as sets of variables: the floats and arrays of floats they hold, with their places and gradients.

An object stays what it is, since methods, closures and other objects refer to it: lazy values are put into its places
while code is captured.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensormagic.capture.foreign import rebuilt_containers
from tensormagic.capture.foreign.rebuilt_containers import Gradient
from tensormagic.capture.inputs.items import is_numbers
from tensormagic.capture.staging.trials.attributes import Slotted
from tensormagic.capture.stores.holding import attributes_of, is_own
from tensormagic.capture.tree import flatten
from tensormagic.capture.values.value import Tensor
from tensormagic.functions.reads.arrays_in_objects import Inside, InTuple, held, put
from tensormagic.ir.errors import DifferentiationError
from tensormagic.ir.plain_texts import key_text

_ATOMS = {
    np.ndarray,
    Tensor,
    float,
    int,
    bool,
    complex,
    str,
    type(None),
    np.float64,
}  # classes that contain nothing, for a quick test
MOST = 2000  # objects, containers and numbers in objects that are visited

Path = tuple[tuple[str, Any], ...]  # ("attribute", name) and ("item", key) from a variable to a part
Place = tuple[Any, Any]  # a holder, and the key in it


@dataclass(frozen=True, eq=False)
class Met:
    """A value reached in a walk through objects: its name and path, its place (None if nothing can be stored there), and the value."""

    name: str
    path: Path
    place: Place | None
    value: Any


def walk(value: Any, name: str, *, numbers: bool = True) -> Iterator[Met]:
    """Yield a value, and the values in its objects and containers, outer ones first; a list of numbers counts as one if ``numbers``.

    Cycles are not followed.

    Cycles are not followed.
    """
    pending: list[tuple[Met, tuple[int, ...]]] = [(Met(name, (), None, value), ())]
    while pending:
        met, above = pending.pop()
        yield met
        if type(met.value) not in _ATOMS and id(met.value) not in above:
            inner = [(part, (*above, id(met.value))) for part in _parts(met, numbers=numbers)]
            pending += reversed(inner)


def _parts(met: Met, *, numbers: bool) -> Iterable[Met]:
    value = met.value
    if isinstance(value, dict):
        steps = [("item", k, (value, k), v) for k, v in value.items()]
    elif isinstance(value, list | tuple | deque):
        if numbers and is_numbers(value):
            return
        holder = InTuple(value, met.place) if isinstance(value, tuple) else value
        steps = [("item", k, (holder, k), v) for k, v in enumerate(value)]
    else:
        steps = [("attribute", k, (_holder(s), k), s[k]) for s in attributes_of(value) for k in s]
    for step, key, place, inner in steps:
        text = f".{key}" if step == "attribute" else f"[{key_text(key)}]"
        movable = not isinstance(place[0], InTuple) or place[0].place is not None
        yield Met(met.name + text, (*met.path, (step, key)), place if movable else None, inner)


def _holder(attributes: Any) -> Any:
    """Return the holder of attributes for a place: a dictionary, or an object with slots."""
    return attributes.owner if isinstance(attributes, Slotted) else attributes


def gathered(parts: Sequence[tuple[Path, Any]], forms: Mapping[Path, Any], above: Path = ()) -> Any:
    """Return gradients arranged like the variables that they belong to; ``parts`` has them by their paths relative to ``above``.

    Attributes become a :class:`Gradient` and items a dictionary, both only with those that have a gradient; lists and
    tuples are as long as those in ``forms``, with None.
    """
    if len(parts) == 1 and not parts[0][0]:
        return parts[0][1]
    inner = dict[tuple[str, Any], list[tuple[Path, Any]]]()
    for (first, *rest), gradient in parts:
        inner.setdefault(first, []).append((tuple(rest), gradient))
    found = {step[1]: gathered(below, forms, (*above, step)) for step, below in inner.items()}
    if all(step == "attribute" for step, _ in inner):
        return Gradient(found)
    form = forms.get(above)
    if isinstance(form, list | tuple | deque):
        kind = type(form) if isinstance(form, tuple) else list
        return rebuilt_containers.sequence(kind, [found.get(k) for k in range(len(form))])
    return found


# objects that a function is differentiated by -------------------------------------------------------------------------


def is_object(value: Any) -> bool:
    """Return whether a value is an object of a user's class, or a namespace, and not a container that can be rebuilt."""
    return is_own(value) and not isinstance(value, Gradient)


@dataclass
class Part:
    """One variable in an object: a number, or an array with all its places.

    Parameters
    ----------
    name
        How the user would write it: ``net.layers[0].w``.
    value
        Its value.
    places, paths
        The places that hold it, and their paths from the object, each with its number in the walk.
    """

    name: str
    value: Any
    places: list[Place] = field(default_factory=list[Place])
    paths: list[tuple[int, Path]] = field(default_factory=list[tuple[int, Path]])

    @property
    def key(self) -> Any:
        """A key that identifies the variable."""
        return _identity(self.value, self.places[0])

    def add(self, place: Place) -> None:
        """Add a place that holds the variable."""
        if not any(_is_same(place, known) for known in self.places):
            self.places.append(place)


def _identity(value: Any, place: Place) -> Any:
    """Return a key that is equal for two values of one variable: the identity of an array, and the place of a number."""
    return id(value) if isinstance(value, np.ndarray | Tensor) else _spot(place)


def _spot(place: Place) -> Any:
    holder, key = place
    return (
        (id(holder.own), key, holder.place and _spot(holder.place))
        if isinstance(holder, InTuple)
        else (id(holder), key)
    )


def _is_same(one: Place, other: Place) -> bool:
    return _spot(one) == _spot(other)


@dataclass
class Apart:
    """An object as its variables, and the containers in it by their paths."""

    parts: list[Part]
    forms: dict[Path, Any]

    @property
    def paths(self) -> list[tuple[Path, Part]]:
        """All paths to variables, in the order of the walk."""
        found = {number: (path, part) for part in self.parts for number, path in part.paths}
        return [found[number] for number in sorted(found)]

    def like(self, values: Iterable[Any]) -> Any:
        """Return values in the places of the variables, one for each path."""
        return gathered([(path, v) for (path, _), v in zip(self.paths, values, strict=True)], self.forms)


def taken_apart(value: Any, name: str) -> Apart:
    """Return the floats and arrays of floats in an object; an array at two places is one variable.

    Raises
    ------
    DifferentiationError
        If there are too many.
    """
    found: dict[Any, Part] = {}
    forms: dict[Path, Any] = {}
    for count, met in enumerate(walk(value, name, numbers=False)):
        if count > MOST:
            raise DifferentiationError(
                f"{name} holds more than {MOST} numbers, arrays and objects", "Hold its numbers in arrays."
            )
        if isinstance(met.value, list | tuple | deque):
            forms[met.path] = met.value
        if met.place is not None and is_variable(met.value):
            part = found.setdefault(_identity(met.value, met.place), Part(met.name, met.value))
            part.paths.append((count, met.path))
            part.add(met.place)
    return Apart(list(found.values()), forms)


def is_variable(value: Any) -> bool:
    """Return whether a value in an object is a variable of gradients."""
    if isinstance(value, Tensor):
        return value.type.inexact
    if type(value) is np.ndarray:
        return value.dtype.kind in "fc" and value.dtype.isnative
    return type(value) in {float, complex} or isinstance(value, np.inexact)


def reads_in(arguments: Iterable[tuple[str, Any]]) -> tuple[tuple[str, Inside], ...]:
    """Return the places of variables in objects among the arguments, each with its name, as places that the function reads."""
    merged: dict[Any, Part] = {}
    for name, argument in arguments:
        for leaf in filter(is_object, flatten(argument)[0]):
            for part in taken_apart(leaf, name).parts:
                known = merged.setdefault(part.key, part)
                for place in part.places:
                    known.add(place)
    return tuple((p.name, Inside(p.name, p.places, moving=True, apart=True)) for p in merged.values())


@contextmanager
def standing_in(parts: Sequence[tuple[Part, Any]]) -> Generator[None]:
    """Put stand-ins into the places of variables, and afterwards restore those that are still there."""
    try:
        for part, lazy in parts:
            for place in part.places:
                put(*place, lazy)
        yield
    finally:
        for part, lazy in parts:
            for place in part.places:
                if held(*place) is lazy:
                    put(*place, part.value)


def as_gradients(tree: Any) -> Any:
    """Return tangents in which an object that is shaped like a gradient is replaced by the floats that it holds."""
    leaves, build = flatten(tree)
    return build(iter([_as_gradient(v) if is_object(v) else v for v in leaves]))


def _as_gradient(value: Any) -> Any:
    found = taken_apart(value, "a tangent")
    return found.like(part.value for _, part in found.paths)
