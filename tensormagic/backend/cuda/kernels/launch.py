"""What is launched on a GPU: a source, its parameters in order, and the grid as functions of sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensormagic.backend.compiling.messages import Request
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, evaluate

Sizes = Mapping[Any, int]


class UnsupportedError(Exception):
    """There is no kernel for this: the library computes it."""


@dataclass(frozen=True)
class Array:
    """The array of an owner: the node that it is named after (`Memory.owner`)."""

    node: Node
    written: bool

    @property
    def type(self) -> str:
        """What the compiler calls it."""
        return f"*{self.node.type.dtype.name}"


@dataclass(frozen=True)
class Scratch:
    """Memory that only the launches of one kernel use, by a key."""

    key: Any
    count: Size
    dtype: str
    written: bool

    @property
    def type(self) -> str:
        """What the compiler calls it."""
        return f"*{self.dtype}"


@dataclass(frozen=True)
class Count:
    """A size."""

    size: Size
    written = False
    type = "int64"


@dataclass(frozen=True)
class Number:
    """A constant, as a number of NumPy."""

    value: Any
    written = False

    @property
    def type(self) -> str:
        """What the compiler calls it."""
        return str(self.value.dtype.name)


@dataclass(frozen=True)
class Fault:
    """Four integers, of which the first is not 0 where something went wrong."""

    written = True
    type = "*int64"


@dataclass(frozen=True)
class Live:
    """One integer: where it is 0, the launch does nothing."""

    written = False
    type = "*int64"


Parameter = Array | Scratch | Count | Number | Fault | Live


@dataclass(frozen=True, eq=False)
class Launch:
    """One kernel, launched once.

    Parameters
    ----------
    name
        What it is called in traces.
    source
        What is compiled.
    readable
        The same with the user's names, and where each line comes from.
    parameters
        What it is called with, in order.
    blocks, threads, shared
        The grid: blocks and bytes of shared memory by sizes.
    origins
        For each line of ``readable`` the node that it is for, where it is for one.
    not_empty
        Sizes that must not be 0, each with what NumPy says where one is.
    ranges
        It is for sizes that lie within these bounds.
    otherwise
        What is launched instead for others.
    """

    name: str
    source: str
    readable: str
    parameters: tuple[Parameter, ...]
    blocks: Size
    threads: int
    shared: Size = 0
    origins: tuple[Node | None, ...] = ()
    not_empty: tuple[tuple[Size, str], ...] = ()
    ranges: tuple[tuple[Size, int, int], ...] = ()
    otherwise: tuple[Launch, ...] = ()

    def grid(self, sizes: Sizes) -> tuple[int, int, int]:
        """How many blocks, how many threads in each, and bytes of shared memory that the launch has to ask for."""
        for size, message in self.not_empty:
            if evaluate(size, sizes.__getitem__) == 0:
                raise ValueError(message)
        return evaluate(self.blocks, sizes.__getitem__), self.threads, evaluate(self.shared, sizes.__getitem__)

    def fits(self, sizes: Sizes) -> bool:
        """Whether it is for these sizes; else ``otherwise`` is."""
        return all(low <= evaluate(size, sizes.__getitem__) <= high for size, low, high in self.ranges)

    def request(self, cc: tuple[int, int]) -> Request:
        """What the compiler is asked for."""
        types, written = tuple(p.type for p in self.parameters), tuple(p.written for p in self.parameters)
        return Request(self.source, "card", types, written, cc)


def chosen(launches: Sequence[Launch], sizes: Sizes) -> list[Launch]:
    """The launches for these sizes, in order."""
    found: list[Launch] = []
    for launch in launches:
        found += [launch] if launch.fits(sizes) else chosen(launch.otherwise, sizes)
    return found
