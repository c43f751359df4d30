"""Take apart the variables that gradients are with respect to, including containers and objects."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, is_dataclass
from itertools import islice
from typing import Any

import numpy as np

from tensormagic.capture.inputs.items import input_of, is_numbers, lifted
from tensormagic.capture.stores.holding import Recast, is_own
from tensormagic.capture.tree import flatten
from tensormagic.capture.values.value import Tensor
from tensormagic.functions.gradients.objects import MOST, Path, Place, gathered, walk
from tensormagic.functions.reads.arrays_in_objects import InTuple, held, put
from tensormagic.ir.errors import CaptureError, DifferentiationError
from tensormagic.ir.node import Node


def root_of(path: str) -> str:
    """Return the variable of a path: ``net`` of ``net.layers[0].w``."""
    return re.split(r"[.\[]", path, maxsplit=1)[0]


def is_container(value: Any) -> bool:
    """Return whether a value holds others: a list, a tuple, a dictionary, a dataclass."""
    return isinstance(value, list | tuple | dict) or (is_dataclass(value) and not isinstance(value, type))


@dataclass(frozen=True)
class Parted:
    """The variables of the gradients, with containers and objects split into their lazy arrays.

    Containers are copied for the cell, with lazy arrays in the copy; objects are not copied, since functions and other
    objects refer to them, and hold lazy numbers while the cell is captured (``lent``). Their arrays stay: captured code
    handles them.

    Parameters
    ----------
    notebook, space
        The variables, and as the cell sees them: with lazy arrays in these containers.
    parts
        The lazy arrays in each container or object, by their names: ``params['w']``, ``net.layers[0].w``.
    entry
        The lazy arrays before the cell stored into them.
    inside
        The arrays found in objects.
    names
        The variables.
    """

    notebook: dict[str, Any]
    space: dict[str, Any]
    parts: dict[str, dict[str, Tensor]]
    entry: dict[str, Node]
    inside: dict[str, _Inside]
    names: list[str]

    @classmethod
    def of(cls, names: Iterable[str], notebook: dict[str, Any]) -> Parted:
        """Take the containers and objects among ``names`` apart."""
        space, parts, inside = Recast(notebook), dict[str, dict[str, Tensor]](), dict[str, _Inside]()
        wanted = dict[str, list[str]]()
        for name in names:
            wanted.setdefault(root_of(name), []).append(name)
        for root, paths in wanted.items():
            value = notebook.get(root)
            if paths != [root] or _is_object(value) or _holds_objects(value):
                inside[root] = _Inside.of(value, root, paths)
                parts[root] = inside[root].parts
                continue
            own: dict[str, Tensor] = {}
            if is_container(value):
                space[root] = lifted(value, root, own)
            if own:
                parts[root] = own
        entry = {name: value.node for name in wanted if isinstance(value := notebook.get(name), Tensor)}
        return cls(notebook, space, parts, entry, inside, list(wanted))

    @contextmanager
    def lent(self) -> Generator[None]:
        """Put lazy numbers into objects while a cell is captured, and afterwards the values that the cell has left there."""
        for one in self.inside.values():
            one.put()
        try:
            yield
        finally:
            for one in self.inside.values():
                one.put_back()

    def check(self) -> None:
        """Refuse what the cell has changed in a container: that would not reach the notebook's."""
        for name, own in self.parts.items():
            if name in self.inside or name in own:
                continue
            if {id(v) for v in flatten(self.space[name])[0] if isinstance(v, Tensor)} != {id(v) for v in own.values()}:
                raise CaptureError(
                    f"the cell changes {name}, and --grad asks for the gradient with respect to it",
                    f"Give the new values other names, and change {name} in the next cell.",
                )

    def whole(self, name: str, gradients: Mapping[str, Tensor]) -> Any:
        """Return the gradients in a container like the variable's, with None elsewhere; for an object, those of its parts."""
        if name in self.inside:
            inside = self.inside[name]
            return gathered([(inside.paths[part], gradients[part]) for part in self.parts[name]], inside.forms)
        if name in self.parts[name]:
            return gradients[name]
        leaves, build = flatten(self.space[name])
        by_id = {id(tensor): gradients[part] for part, tensor in self.parts[name].items()}
        return build(iter([by_id.get(id(leaf)) for leaf in leaves]))


@dataclass
class _Inside:
    """The floats and arrays of floats in an object, or at paths in a container.

    Parameters
    ----------
    parts, paths
        The lazy array of each, and where it is, by its name.
    forms
        What was found, by its path.
    lent
        What is put into which place for as long as a cell is captured, and what belongs there.
    """

    parts: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    paths: dict[str, Path] = field(default_factory=dict[str, Path])
    forms: dict[Path, Any] = field(default_factory=dict[Path, Any])
    lent: list[tuple[Place, Any, Any]] = field(default_factory=list[tuple[Place, Any, Any]])

    @classmethod
    def of(cls, value: Any, name: str, wanted: list[str]) -> _Inside:
        """Return the parts of ``value``, the variable ``name``, at the paths ``wanted`` and below them."""
        found, met = cls(), dict[str, Any]()
        for part in islice(walk(value, name), MOST):
            met[part.name] = found.forms[part.path] = part.value
            movable = part.place is not None and not isinstance(part.place[0], InTuple)
            if any(is_in(part.name, w) for w in wanted):
                new = _part(part.value, part.name, found.parts, movable=movable)
                if new is not part.value and part.place is not None:
                    found.lent.append((part.place, new, part.value))
                if part.name in found.parts:
                    found.paths[part.name] = part.path
        for one in wanted:
            if not any(is_in(part, one) for part in found.parts):
                raise _nothing(one, met)
        return found

    def put(self) -> None:
        for place, new, _ in self.lent:
            put(*place, new)

    def put_back(self) -> None:
        for place, new, old in self.lent:
            if held(*place) is new:
                put(*place, old)


def is_in(path: str, above: str) -> bool:
    """Return whether a path is ``above``, or of a part of that."""
    return path == above or path.startswith((f"{above}.", f"{above}["))


def _part(value: Any, name: str, parts: dict[str, Tensor], *, movable: bool) -> Any:
    """Return what represents a part of an object during capture; add its lazy array to ``parts`` if it has a derivative."""
    if isinstance(value, np.ndarray | Tensor):
        tensor = input_of(value, name) if isinstance(value, np.ndarray) else value
        if tensor is not None and tensor.type.inexact:
            parts[name] = tensor
        return value
    if movable and (isinstance(value, float | complex | np.inexact) or is_numbers(value)):
        return lifted(value, name, parts)
    return value


def _is_object(value: Any) -> bool:
    """Return whether a value is an instance of a class of the user's that is not treated as a container."""
    return is_own(value) and not is_container(value)


def _holds_objects(value: Any) -> bool:
    """Return whether a container holds objects of the user's classes."""
    return is_container(value) and any(map(_is_object, flatten(value)[0]))


def _is_float(value: Any) -> bool:
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.kind in "fc"
    return isinstance(value, float | complex) or is_numbers(value) or (isinstance(value, Tensor) and value.type.inexact)


def _nothing(path: str, met: Mapping[str, Any]) -> DifferentiationError:
    """Return the error where no float is found at a path, or below it."""
    if root_of(path) not in met or met[root_of(path)] is None:
        what = f"there is no {root_of(path)} before the cell runs"
        return DifferentiationError(what, f"Make {root_of(path)} in an earlier cell.")
    what = (
        f"{path} is {type(met[path]).__name__}: there is no derivative with respect to it"
        if path in met
        else f"there is no {path}"
    )
    floats = [n for n, value in met.items() if _is_float(value)]
    if floats:
        return DifferentiationError(what, f"There are derivatives with respect to {', '.join(floats[:6])}.")
    return DifferentiationError(
        what, "A derivative is with respect to floats and arrays of floats: 2.0 for 2, x.astype(float)."
    )
