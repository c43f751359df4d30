"""The arguments of one call: values that become inputs of a trace, and everything else as its key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.capture.inputs import door
from tensormagic.capture.random import generators
from tensormagic.capture.tree import flatten
from tensormagic.functions.reads.reading import Read, is_moving
from tensormagic.functions.reads.record import bits

_PLAIN = {type(None), bool, int, str, bytes, type(...)}


@dataclass(frozen=True, eq=False)
class Given:
    """The values of one call: those that become inputs of the trace, and how the others are arranged around them.

    Parameters
    ----------
    leaves, moving, build
        The leaves of the arguments, which of them become inputs, and how to rebuild the arguments.
    held
        The reads that hold something, with their values.
    call
        The arguments, by position and by name; None if they are not known.
    """

    leaves: list[Any]
    moving: list[bool]
    build: Callable[[Any], Any]
    held: list[tuple[Read, Any]]
    call: Any = None

    @property
    def inputs(self) -> list[tuple[Read, Any]]:
        """The reads that become inputs, and what they hold."""
        return [(read, value) for read, value in self.held if is_moving(value)]

    @property
    def reads(self) -> list[Read]:
        """The reads that become inputs."""
        return [read for read, _ in self.inputs]

    @property
    def values(self) -> list[Any]:
        """The objects behind the inputs: for a generator's state, the generator."""
        return [generators.state_of(v) if generators.is_generator(v) else v for v in self.objects]

    @property
    def objects(self) -> list[Any]:
        """The objects behind the inputs: for a generator's state, the generator."""
        own = [v for v, m in zip(self.leaves, self.moving, strict=True) if m]
        return own + [value for _, value in self.held if is_moving(value)]

    def labels(self, parameters: Sequence[str]) -> list[str]:
        """Return names for the leaves that become inputs, from the parameters' names."""
        args, options = self.call or (self.leaves, {})
        named = [parameters[k] if k < len(parameters) else f"argument {k + 1}" for k in range(len(args))]
        parts = [
            (name, len(flatten(v)[0])) for name, v in zip((*named, *options), (*args, *options.values()), strict=True)
        ]
        names = [name if count == 1 else f"{name}[{k}]" for name, count in parts for k in range(count)]
        return [name for name, moving in zip(names, self.moving, strict=True) if moving]

    def with_reads(self, new: Sequence[Read]) -> Given:
        """Return these values with further reads added."""
        return Given(self.leaves, self.moving, self.build, [*self.held, *((r, held(r)) for r in new)], self.call)


def held(read: Read) -> Any:
    """Return the value of a name, as captured code sees it."""
    value = read[1][read[0]]
    return door.variable(value, read[0]) if is_moving(value) else value


def signature(value: Any) -> Any:
    """Return the dtype and shape of an array, or the class of anything else."""
    return (value.dtype, value.shape) if isinstance(value, np.ndarray) else type(value)


def kind_of(value: Any) -> Any:
    """Return the signature with extents reduced to 0, 1, or more."""
    return (value.dtype, tuple([min(n, 2) for n in value.shape])) if isinstance(value, np.ndarray) else type(value)


def fixed(value: Any) -> Any:
    """Return a key for a value that is no input; equal keys mean identical values."""
    if type(value) in _PLAIN:
        return (type(value), value)
    if type(value) is tuple:
        return tuple([fixed(v) for v in value])
    if type(value) in {range, slice}:
        return type(value), fixed(value.start), fixed(value.stop), fixed(value.step)
    found = bits(value)
    return ("object", id(value)) if found is None else (type(value), found)


def fixed_of(leaves: Sequence[Any], moving: Sequence[bool]) -> tuple[Any, ...]:
    """Return a key for the arguments that are no inputs."""
    return tuple([fixed(v) for v, m in zip(leaves, moving, strict=True) if not m])
