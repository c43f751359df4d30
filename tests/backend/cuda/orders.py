"""A fake device with streams: what is given to them is noted, and can be done again in any order that its events allow.

Each operation has a vector clock: how far each stream has come, for certain, when it begins. Two operations of which one stores
into memory that the other uses are ordered where the clock of one says that the other is done; else a wait is missing.
"""

from __future__ import annotations

import random
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.backend.cuda.fake import FakeArray, FakeDevice

COMPUTE = "compute"
_HOST = frozenset(["fetch", "read", "finish"])  # what the host waits for
_GARBAGE = 0xCB


@dataclass(eq=False)
class Step:
    """What a stream is given.

    Parameters
    ----------
    name, stream
        What it is, and where. ``record`` and ``wait`` are events.
    reads, writes
        The memory that it uses, by number.
    again
        Does it, once more.
    event
        The step that a wait waits for.
    """

    name: str
    stream: str
    reads: frozenset[int] = frozenset()
    writes: frozenset[int] = frozenset()
    again: Callable[[], None] | None = None
    event: Step | None = None
    clock: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name} on {self.stream}"


class Traced(FakeDevice):
    """A fake device that notes what its streams are given."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._stream = COMPUTE
        self._memory: list[np.ndarray[Any, Any]] = []  # all that there has been: a number stands for one memory
        self._number: dict[int, int] = {}
        self._home: dict[int, str] = {}
        self._users: dict[int, int] = {}
        self._seen: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []  # what the host got, with a copy
        super().__init__()

    @contextmanager
    def on(self, stream: str) -> Generator[None]:
        """The stream of what is done within."""
        before, self._stream = self._stream, stream
        try:
            yield
        finally:
            self._stream = before

    def record(self) -> Step:
        """A step that is done when all before it is."""
        self.steps.append(Step("record", self._stream))
        return self.steps[-1]

    def wait(self, event: Step) -> None:
        """A step that is done when that of the event is."""
        self.steps.append(Step("wait", self._stream, event=event))

    def finish(self, event: Step) -> None:
        """The host waits."""
        self.steps.append(Step("finish", "host", event=event))

    def fetch(self, array: FakeArray) -> np.ndarray[Any, Any]:
        """A copy of one's own: what was fetched is fetched again in other orders."""
        return super().fetch(array).copy()

    def does(self, name: str, function: Callable[..., Any], *args: Any, stores: bool = False) -> Any:
        """Done, and noted."""
        given = [self.inside(a) for a in args]
        with np.errstate(all="ignore"):
            made = self.outside(function(*given))
        reads = frozenset(self._memory_of(a) for a in _arrays(given))
        stored = [next(_arrays(given))] if stores and name != "launch" else list(_arrays(given)) if stores else []
        results = [a._held for a in (made if isinstance(made, tuple) else (made,)) if isinstance(a, FakeArray)]  # pyright: ignore[reportPrivateUsage]
        new = [a for a in results if self._memory_of(a) not in reads]
        if not new and not stored:  # a part of what there is
            return made

        def again() -> None:
            with np.errstate(all="ignore"):
                found = function(*given)
            for target, value in zip(results, found if isinstance(found, tuple) else (found,), strict=False):
                if (
                    not any(target is one for one in new) or not _root(target).flags.writeable
                ):  # a number in many places
                    continue
                if name == "empty":
                    _garble(_root(target))
                else:
                    np.copyto(_root(target), _root(np.asarray(value)))

        writes = frozenset(map(self._memory_of, [*new, *stored]))
        self.steps.append(Step(name, self._stream, reads, writes, again))
        if name in _HOST:
            self._seen.extend((a, a.copy()) for a in new)
        return made

    def _memory_of(self, array: np.ndarray[Any, Any]) -> int:
        array = _root(array)
        if id(array) not in self._number:
            self._number[id(array)] = len(self._memory)
            self._home[len(self._memory)] = self._stream
            self._memory.append(array)
        return self._number[id(array)]

    def holds(self, array: FakeArray) -> None:
        """Memory is given back to the stream that it belongs to when nothing has it any more."""
        number = self._memory_of(array._held)  # pyright: ignore[reportPrivateUsage]
        self._users[number] = self._users.get(number, 0) + 1
        weakref.finalize(array, self._let_go, number).atexit = False

    def _let_go(self, number: int) -> None:
        self._users[number] -= 1
        if self._users[number]:
            return
        memory = self._memory[number]
        if not any(np.shares_memory(memory, a) for a, _ in self._seen):  # that is the host's
            self.steps.append(
                Step("free", self._home[number], writes=frozenset([number]), again=lambda: _garble(memory))
            )

    # what is found of the steps

    def waits(self) -> list[Step]:
        """The waits that order something: not those for what the stream, or the host, has waited for already."""
        return [s for s in self.steps if s.name == "wait" and self._orders_something(s)]

    def _orders_something(self, wait: Step) -> bool:
        _clocked(self.steps, wait)
        known, event = wait.clock, wait.event
        return event is not None and any(known.get(stream, 0) < tick for stream, tick in event.clock.items())

    def races(self, without: Step | None = None) -> list[str]:
        """Pairs of steps that use the same memory and are not ordered, where a wait is left out."""
        steps = [s for s in _clocked(self.steps, without) if s.again is not None]
        ticks = {s: s.clock[s.stream] for s in steps}
        found = []
        for k, later in enumerate(steps):
            for before in steps[:k]:
                meets = before.writes & (later.reads | later.writes) or before.reads & later.writes
                if meets and later.clock.get(before.stream, 0) < ticks[before]:
                    found.append(f"{later} uses what {before} uses, and waits for nothing between them")
        return found

    def orders(self, count: int, seed: int, without: Step | None = None) -> Iterator[bool]:
        """For so many random orders whether the host gets the same values as it did."""
        draws, needs = random.Random(seed), _needs(self.steps, without)
        values = [expected for _, expected in self._seen]
        for _ in range(count):
            for memory in self._memory:
                _garble(memory)
            for step in _ordered(self.steps, needs, draws):
                if step.again is not None:
                    step.again()
            yield all(
                np.array_equal(a, v, equal_nan=a.dtype.kind in "fc")
                for (a, _), v in zip(self._seen, values, strict=True)
            )


def _root(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array whose memory it is."""
    base: Any = array.base
    if base is not None and not isinstance(base, np.ndarray):
        base = getattr(base, "base", None)  # of a view by strides
    return _root(base) if isinstance(base, np.ndarray) else array


def _arrays(values: Any) -> Iterator[np.ndarray[Any, Any]]:
    if isinstance(values, np.ndarray):
        yield values
    elif isinstance(values, Mapping):
        yield from _arrays(list(values.values()))
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _arrays(value)


def _garble(memory: np.ndarray[Any, Any]) -> None:
    if memory.flags.writeable and memory.size:
        memory.reshape(-1).view(np.uint8)[...] = _GARBAGE


def _clocked(steps: Sequence[Step], without: Step | None) -> list[Step]:
    """The steps with their clocks: what the stream has seen, what the host has, and what was waited for."""
    streams: dict[str, dict[str, int]] = {}
    host: dict[str, int] = {}
    for step in steps:
        own = streams.setdefault(step.stream, {})
        sources = [host]
        if step.event is not None and step is not without:
            sources.append(step.event.clock)
        for source in sources:
            for stream, tick in source.items():
                own[stream] = max(own.get(stream, 0), tick)
        own[step.stream] = own.get(step.stream, 0) + (step.again is not None)
        step.clock = dict(own)
        if step.name in _HOST:
            host = {k: max(host.get(k, 0), own.get(k, 0)) for k in host.keys() | own.keys()}
    return list(steps)


def _needs(steps: Sequence[Step], without: Step | None) -> dict[Step, set[Step]]:
    """What has to be done before each step may be."""
    last: dict[str, Step] = {}
    host: list[Step] = []
    found: dict[Step, set[Step]] = {}
    for step in steps:
        needed = set(host)
        if step.stream in last:
            needed.add(last[step.stream])
        if step.event is not None and step is not without:
            needed.add(step.event)
        found[step] = needed
        last[step.stream] = step
        if step.name in _HOST:
            host = [*host, step]
    return found


def _ordered(steps: Sequence[Step], needs: Mapping[Step, set[Step]], draws: random.Random) -> Iterator[Step]:
    """The steps in an order that is drawn among those that streams allow; some streams are slow in it."""
    speed = {s.stream: draws.choice([0.01, 0.3, 1.0, 30.0]) for s in steps}
    queues: dict[str, list[Step]] = {}
    for step in reversed(steps):
        queues.setdefault(step.stream, []).append(step)
    done: set[Step] = set()
    while any(queues.values()):
        ready = [q for q in queues.values() if q and needs[q[-1]] <= done]
        queue = draws.choices(ready, [speed[q[-1].stream] for q in ready])[0]
        step = queue.pop()
        done.add(step)
        yield step


__all__ = ["Step", "Traced"]
