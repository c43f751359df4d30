"""Reports of calls over a cluster: which worker computed what, what was moved, and how many bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensormagic.distributed.stages import Split
    from tensormagic.ir.node import Node
    from tensormagic.ir.site import Lens
    from tensormagic.ir.size import Symbol


class Told(NamedTuple):
    """A task's report of itself: its chunk, where and how long it ran, the memory, and whether its machine code was ready."""

    chunk: int
    worker: str
    seconds: float
    processor: float
    memory: int
    found: bool


@dataclass
class Moved:
    """One kind of data that was sent: how often, and how many bytes in total."""

    what: str
    times: int = 0
    bytes: int = 0

    def add(self, values: Iterable[Any], times: int = 1) -> None:
        """Count values that were sent so many times."""
        self.times += times
        self.bytes += times * sum(map(size_of, values))


@dataclass
class Work:
    """The work of one worker."""

    chunks: int = 0
    seconds: float = 0.0
    processor: float = 0.0
    memory: int = 0


class Passed(NamedTuple):
    """The data that one stage has moved.

    Parameters
    ----------
    reads, workers
        The bytes of each value that chunks read, and to how many workers each went.
    parts, between, blocks
        The bytes of each part of one chunk; how many chunks' parts went to another worker; and how often parts came to the client.
    lent
        How many chunks were lent rows of the next one.
    later
        Whether its rows are computed when they are asked for.
    """

    reads: tuple[int, ...]
    workers: int
    parts: tuple[int, ...]
    between: int
    blocks: int
    lent: int
    later: bool


class Call(NamedTuple):
    """The computation of a call, for a picture of it.

    Parameters
    ----------
    split, sizes
        The graph with its stages, and the numbers that its sizes are.
    names, results
        What the parameters and the results are called.
    level, lens
        What could be rewritten, and where nodes came from.
    rows
        How many the largest chunk has.
    arrived
        For each argument that is split, how many bytes of it were sent in this call, and how its rows came to be on the workers.
    row
        For each of them, the bytes of a row.
    """

    split: Split
    sizes: Mapping[Symbol, int]
    names: tuple[str, ...]
    results: tuple[str, ...]
    level: str
    lens: Lens
    rows: int
    arrived: tuple[tuple[int, str], ...]
    row: tuple[int, ...]


@dataclass
class Report:
    """A report of the last call.

    Attributes
    ----------
    rows, chunks, stages
        The numbers of rows and of chunks, and of passes over the chunks.
    data, parameters, halos, parts, results
        The traffic: chunks sent to workers (none if they are already there, or read there); values that are the same
        for all rows, sent to each worker that computed; rows lent to a neighbour; parts sent between workers and to the
        client.
    workers
        What each worker did.
    found
        For how many chunks all machine code was ready, in the process or in its cache.
    lost, doubled
        Workers that were lost, whose chunks were computed again; and chunks that took long and were computed twice.
    seconds
        The duration of the call.
    passed, within, call
        The traffic of each stage, and that of driven loops and branches, by their nodes; and the split function, which
        a notebook draws.
    """

    name: str
    rows: int = 0
    chunks: int = 0
    stages: int = 0
    data: Moved = field(default_factory=lambda: Moved("chunks, client to workers"))
    parameters: Moved = field(default_factory=lambda: Moved("parameters, client to workers"))
    halos: Moved = field(default_factory=lambda: Moved("rows lent to the chunk before"))
    parts: Moved = field(default_factory=lambda: Moved("parts, between workers"))
    results: Moved = field(default_factory=lambda: Moved("parts, workers to client"))
    workers: dict[str, Work] = field(default_factory=dict[str, Work])
    found: int = 0
    lost: list[str] = field(default_factory=list[str])
    doubled: int = 0
    again: int = 0
    seconds: float = 0.0
    passed: list[Passed] = field(default_factory=list[Passed], repr=False)
    within: dict[Node, list[Passed]] = field(default_factory=dict["Node", list[Passed]], repr=False)
    call: Call | None = field(default=None, repr=False)

    @property
    def moved(self) -> list[Moved]:
        """All that was sent."""
        return [self.data, self.parameters, self.halos, self.parts, self.results]

    def took(self, told: Sequence[Told]) -> None:
        """Add the reports of tasks."""
        for one in told:
            work = self.workers.setdefault(one.worker, Work())
            work.chunks += 1
            work.seconds += one.seconds
            work.processor += one.processor
            work.memory = max(work.memory, one.memory)
            self.found += one.found

    @property
    def tables(self) -> Tables:
        """Tables of what was moved, and of what the workers did: heads and lines."""
        moved = [(m.what, f"{m.times:,}", in_bytes(m.bytes)) for m in self.moved if m.times]
        did = [
            (name, f"{w.chunks:,}", f"{w.seconds:.3g} s", f"{w.processor:.3g} s", in_bytes(w.memory))
            for name, w in sorted(self.workers.items())
        ]
        return [
            (("what moved", "times", "bytes"), moved),
            (("worker", "chunks computed", "time", "processor time", "memory"), did),
        ]

    @property
    def title(self) -> str:
        """One line on the call."""
        parts = [
            f"{self.name}: {self.rows:,} rows in {self.chunks:,} chunks, {counted(self.stages, 'stage')}, {self.seconds:.3g} s"
        ]
        if self.lost:
            parts.append(f"{counted(len(self.lost), 'worker')} lost, {counted(self.again, 'chunk')} handed out again")
        if self.doubled:
            parts.append(f"{counted(self.doubled, 'chunk')} computed twice, as it took long")
        return "; ".join(parts)

    def __repr__(self) -> str:
        return text_of(self.title, self.tables)

    def _repr_html_(self) -> str:
        return page_of(self.title, self.tables)


Tables = list[tuple[tuple[str, ...], list[tuple[str, ...]]]]
"""Heads, and lines."""


def text_of(title: str, tables: Tables) -> str:
    """Return a title and tables as text."""
    lines = [title]
    for head, body in tables:
        widths = [max(len(line[k]) for line in (head, *body)) for k in range(len(head))]
        for first, *others in (head, *body):
            cells = [v.rjust(w) for v, w in zip(others, widths[1:], strict=True)]
            lines.append("  " + "  ".join([first.ljust(widths[0]), *cells]))
    return "\n".join(lines)


def page_of(title: str, tables: Tables) -> str:
    """Return a title and tables as HTML for a notebook."""
    parts = [f"<p>{escape(title)}</p>"]
    for head, body in tables:
        rows = ["".join(f"<th scope='col'>{escape(v)}</th>" for v in head)]
        rows += ["".join(f"<td>{escape(v)}</td>" for v in line) for line in body]
        parts.append(f"<table>{''.join(f'<tr>{r}</tr>' for r in rows)}</table>")
    return "".join(parts)


def counted(count: int, what: str) -> str:
    """Return a count with its noun, in the singular or plural."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def size_of(value: Any) -> int:
    """Return the bytes of a value's elements."""
    return int(value.nbytes) if isinstance(value, np.ndarray | np.generic) else 8


def in_bytes(count: float) -> str:
    """Return a number of bytes as text with a unit.

    Examples
    --------
    >>> in_bytes(123), in_bytes(50_000_000)
    ('123 B', '47.7 MiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.3g} {unit}" if unit != "B" else f"{count:.0f} B"
        count /= 1024
    return f"{count:.3g} TiB"
