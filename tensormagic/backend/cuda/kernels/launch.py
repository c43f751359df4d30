"""Launches on a GPU: a source, its parameters in order, and the grid as a function of sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensormagic.backend.compiling.messages import Request
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, evaluate

Sizes = Mapping[Any, int]


class UnsupportedError(Exception):
    """Raised where there is no kernel for a part of a graph; the library then computes it."""


@dataclass(frozen=True)
class Array:
    """A parameter: the array of an owner, the node that it is named after (`Memory.owner`)."""

    node: Node
    written: bool

    @property
    def type(self) -> str:
        """Return the compiler's name of the type."""
        return f"*{self.node.type.dtype.name}"


@dataclass(frozen=True)
class Scratch:
    """A parameter: memory that only the launches of one kernel share, identified by a key."""

    key: Any
    count: Size
    dtype: str
    written: bool

    @property
    def type(self) -> str:
        """Return the compiler's name of the type."""
        return f"*{self.dtype}"


@dataclass(frozen=True)
class Count:
    """A parameter: a size."""

    size: Size
    written = False
    type = "int64"


@dataclass(frozen=True)
class Number:
    """A parameter: a constant, as a NumPy scalar."""

    value: Any
    written = False

    @property
    def type(self) -> str:
        """Return the compiler's name of the type."""
        return str(self.value.dtype.name)


@dataclass(frozen=True)
class Fault:
    """A parameter: four integers, the first of which a kernel sets where something goes wrong."""

    written = True
    type = "*int64"


@dataclass(frozen=True)
class Live:
    """A parameter: one integer; where it is 0, the launch does nothing."""

    written = False
    type = "*int64"


Parameter = Array | Scratch | Count | Number | Fault | Live


@dataclass(frozen=True, eq=False)
class Launch:
    """One kernel and the grid it is launched with.

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
        """Return the numbers of blocks, of threads and of bytes of shared memory; raise ValueError as NumPy does for empty folds."""
        for size, message in self.not_empty:
            if evaluate(size, sizes.__getitem__) == 0:
                raise ValueError(message)
        return evaluate(self.blocks, sizes.__getitem__), self.threads, evaluate(self.shared, sizes.__getitem__)

    def fits(self, sizes: Sizes) -> bool:
        """Return whether the launch is for these sizes; else ``otherwise`` is."""
        return all(low <= evaluate(size, sizes.__getitem__) <= high for size, low, high in self.ranges)

    def request(self, cc: tuple[int, int]) -> Request:
        """Return the request to the compiler."""
        types, written = tuple(p.type for p in self.parameters), tuple(p.written for p in self.parameters)
        return Request(self.source, "card", types, written, cc)


def chosen(launches: Sequence[Launch], sizes: Sizes) -> list[Launch]:
    """Return the launches that apply to these sizes, in order."""
    found: list[Launch] = []
    for launch in launches:
        found += [launch] if launch.fits(sizes) else chosen(launch.otherwise, sizes)
    return found
