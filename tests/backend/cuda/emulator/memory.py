"""The memory of a launch: arrays at addresses, shared memory by blocks, and what is checked at each access."""

from __future__ import annotations

import weakref
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

FIRST = 0x7F0000000000  # the address of the first array
GAP = 4096  # bytes between arrays that belong to nobody
SECTOR = 32
NOBODY, MANY = -1, -2


_blank: dict[int, tuple[weakref.ref[np.ndarray], np.ndarray]] = {}  # by identity: bytes that nobody has written yet


def blank(array: np.ndarray) -> np.ndarray:
    """An array of bytes as memory that nobody has written: what reads it before a launch has stored there is reported."""
    key = id(array)
    _blank[key] = weakref.ref(array, lambda _: _blank.pop(key, None)), np.ones(array.size, bool)
    return array


class EmulatorError(Exception):
    """A kernel does what a GPU would not survive, or an instruction is not known here."""


@dataclass
class Traffic:
    """What one instruction did to global memory.

    Parameters
    ----------
    sectors
        How many sectors of 32 bytes its warps touched.
    bytes
        How many bytes its threads asked for.
    """

    sectors: int = 0
    bytes: int = 0


@dataclass
class Space:
    """One kind of memory: bytes, and who wrote and read each byte in which stretch between barriers."""

    data: np.ndarray
    writer: np.ndarray = field(init=False)
    reader: np.ndarray = field(init=False)
    written_in: np.ndarray = field(init=False)
    read_in: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        count = self.data.size
        self.writer = np.full(count, NOBODY, np.int64)
        self.reader = np.full(count, NOBODY, np.int64)
        self.written_in = np.full(count, NOBODY, np.int64)
        self.read_in = np.full(count, NOBODY, np.int64)


class Memory:
    """All of it.

    Parameters
    ----------
    arrays
        What the kernel gets, by its bytes: changed in place.
    """

    def __init__(self, arrays: list[np.ndarray]) -> None:
        self.arrays: list[np.ndarray] = []
        self.starts: list[int] = []
        self.writers: list[np.ndarray] = []
        self.readers: list[np.ndarray] = []
        self.known: list[np.ndarray] = []
        self.unwritten: list[np.ndarray | None] = []
        self.floats: list[set[np.dtype[Any]] | None] = []
        self.issues: Counter[str] = Counter()
        self.traffic: dict[str, Traffic] = {}
        for array in arrays:
            self.add(array)

    def add(self, array: np.ndarray) -> int:
        """The address of an array, which begins on a boundary of 256 bytes; of which dtype it is, is known where it is none of bytes."""
        plain = array.dtype == np.uint8
        self.floats.append(
            None if plain else {array.dtype, array.real.dtype if array.dtype.kind == "c" else array.dtype}
        )
        held = _blank.get(id(array))
        self.unwritten.append(held[1] if held is not None and held[0]() is array else None)
        array = array.view(np.uint8)
        address = FIRST if not self.starts else -(-(self.starts[-1] + self.arrays[-1].size + GAP) // 256) * 256
        self.arrays.append(array)
        self.starts.append(address)
        self.writers.append(np.full(array.size, NOBODY, np.int64))
        self.readers.append(np.full(array.size, NOBODY, np.int64))
        return address

    def parts(self, address: np.ndarray, size: int, text: str) -> list[tuple[int, np.ndarray, np.ndarray]]:
        """The arrays that addresses lie in: their numbers, which of the addresses, and the places there."""
        if (address % size).any():
            raise EmulatorError(
                f"an access of {size} bytes at {int(address[address % size != 0][0]):#x} is not aligned: {text}"
            )
        number = np.searchsorted(np.array(self.starts, np.int64), address, "right") - 1
        found: list[tuple[int, np.ndarray, np.ndarray]] = []
        for k in np.unique(number).tolist():
            which = np.nonzero(number == k)[0]
            place = address[which] - self.starts[k] if k >= 0 else address[which]
            if k < 0 or (place + size > self.arrays[k].size).any():
                worst = int(place.max())
                held = f"of {self.arrays[k].size} of array {k}" if k >= 0 else "of no array"
                raise EmulatorError(f"out of bounds: byte {worst} {held}: {text}")
            found.append((k, which, place))
        return found

    def load(
        self, address: np.ndarray, dtype: np.dtype[Any], width: int, thread: np.ndarray, warp: np.ndarray, text: str
    ) -> list[np.ndarray]:
        """So many neighbouring elements for each thread."""
        size = dtype.itemsize * width
        found = [np.empty(address.size, dtype) for _ in range(width)]
        self._count(address, size, warp, text)
        for k, which, place in self.parts(address, size, text):
            self._check(k, dtype, text)
            for lane in range(width):
                self._read(k, place + lane * dtype.itemsize, thread[which], text)
            elements = self.arrays[k][: self.arrays[k].size // dtype.itemsize * dtype.itemsize].view(dtype)
            for lane in range(width):
                found[lane][which] = elements[place // dtype.itemsize + lane]
        return found

    def _read(self, number: int, place: np.ndarray, thread: np.ndarray, text: str) -> None:
        """Note who reads elements, and report what nobody has written, or another thread of the launch."""
        writer, unwritten = self.writers[number][place], self.unwritten[number]
        if ((writer != NOBODY) & (writer != thread)).any():
            self.issues[f"race: reads what another thread of the launch wrote: {text}"] += 1
        if unwritten is not None and unwritten[place].any():
            self.issues[f"uninitialised memory is read: {text}"] += 1
        old = self.readers[number][place]
        self.readers[number][place] = np.where((old == NOBODY) | (old == thread), thread, MANY)
        if np.unique(place).size != place.size:
            values, counts = np.unique(place, return_counts=True)
            self.readers[number][values[counts > 1]] = MANY

    def store(
        self, address: np.ndarray, values: list[np.ndarray], thread: np.ndarray, warp: np.ndarray, text: str
    ) -> None:
        """Store neighbouring elements for each thread."""
        dtype, width = values[0].dtype, len(values)
        size = dtype.itemsize * width
        self._count(address, size, warp, text)
        for k, which, place in self.parts(address, size, text):
            self._check(k, dtype, text)
            own = thread[which]
            for lane in range(width):
                at = place + lane * dtype.itemsize
                elements = self.arrays[k][: self.arrays[k].size // dtype.itemsize * dtype.itemsize].view(dtype)
                elements, value = (v.view(f"u{dtype.itemsize}") for v in (elements, values[lane][which]))
                place_of = at // dtype.itemsize
                touched, by = _touched(at, own, dtype)
                writer, reader = self.writers[k][at], self.readers[k][touched]
                differs = elements[place_of] != value  # several threads may store the same
                elements[place_of] = value
                if ((writer != NOBODY) & (writer != own) & differs).any() or (elements[place_of] != value).any():
                    self.issues[f"race: two threads store to one element: {text}"] += 1
                if ((reader != NOBODY) & (reader != by)).any():
                    self.issues[f"race: stores where another thread reads: {text}"] += 1
                self.writers[k][touched] = by
                if (unwritten := self.unwritten[k]) is not None:
                    unwritten[touched] = False

    def _check(self, number: int, dtype: np.dtype[Any], text: str) -> None:
        """A float is read and stored where there are such; integers of any size may stand for the bits of others."""
        known = self.floats[number]
        if known is not None and dtype.kind == "f" and dtype not in known:
            self.issues[f"an element of {dtype} in an array of {', '.join(map(str, known))}: {text}"] += 1

    def _count(self, address: np.ndarray, size: int, warp: np.ndarray, text: str) -> None:
        traffic = self.traffic.setdefault(text, Traffic())
        first, last = address // SECTOR, (address + size - 1) // SECTOR
        sectors = np.concatenate([(warp << 44) ^ (s - FIRST // SECTOR) for s in (first, last)])
        traffic.sectors += np.unique(sectors).size
        traffic.bytes += address.size * size


def _touched(place: np.ndarray, thread: np.ndarray, dtype: np.dtype[Any]) -> tuple[np.ndarray, np.ndarray]:
    """The places of elements and who touches them: each byte where integers may stand for several narrower elements."""
    if dtype.kind not in "iu" or dtype.itemsize < 4:
        return place, thread
    return (place[:, None] + np.arange(dtype.itemsize)).ravel(), np.repeat(thread, dtype.itemsize)


class Shared:
    """The shared memory of the blocks that run at once.

    Parameters
    ----------
    blocks
        How many.
    size
        Bytes of each.
    issues
        Where to say what is wrong.
    """

    def __init__(self, blocks: int, size: int, issues: Counter[str]) -> None:
        self.size = size
        self.issues = issues
        self.stretch = np.zeros(blocks, np.int64)  # how many barriers each block has passed
        self.space = Space(np.full(blocks * size, 0xA5, np.uint8))

    def places(self, address: np.ndarray, block: np.ndarray, size: int, text: str) -> np.ndarray:
        """The bytes at addresses within blocks."""
        if (address % size).any():
            raise EmulatorError(f"an access of {size} bytes of shared memory is not aligned: {text}")
        if ((address < 0) | (address + size > self.size)).any():
            raise EmulatorError(f"out of bounds: byte {int(address.max())} of {self.size} of shared memory: {text}")
        return block * self.size + address

    def load(
        self, address: np.ndarray, dtype: np.dtype[Any], width: int, thread: np.ndarray, block: np.ndarray, text: str
    ) -> list[np.ndarray]:
        """So many neighbouring elements for each thread."""
        space, now = self.space, self.stretch[block]
        place = self.places(address, block, dtype.itemsize * width, text)
        found: list[np.ndarray] = []
        for lane in range(width):
            at = place + lane * dtype.itemsize
            writer = space.writer[at]
            if (writer == NOBODY).any():
                self.issues[f"uninitialised shared memory is read: {text}"] += 1
            if ((space.written_in[at] == now) & (writer != thread)).any():
                self.issues[
                    f"race: reads shared memory that another thread wrote, with no barrier between: {text}"
                ] += 1
            mine = np.where((space.read_in[at] == now) & (space.reader[at] != thread), MANY, thread)
            space.reader[at], space.read_in[at] = mine, now
            values, counts = np.unique(at, return_counts=True)
            space.reader[values[counts > 1]] = MANY
            found.append(space.data.view(dtype)[at // dtype.itemsize])
        return found

    def store(
        self, address: np.ndarray, values: list[np.ndarray], thread: np.ndarray, block: np.ndarray, text: str
    ) -> None:
        """Store neighbouring elements for each thread."""
        space, now, dtype = self.space, self.stretch[block], values[0].dtype
        place = self.places(address, block, dtype.itemsize * len(values), text)
        for lane, value in enumerate(values):
            at = place + lane * dtype.itemsize
            if np.unique(at).size != at.size:
                self.issues[f"race: two threads store to one element of shared memory: {text}"] += 1
            for who, when in ((space.writer, space.written_in), (space.reader, space.read_in)):
                if ((when[at] == now) & (who[at] != thread)).any():
                    self.issues[
                        f"race: stores to shared memory that another thread uses, with no barrier between: {text}"
                    ] += 1
            space.writer[at], space.written_in[at] = thread, now
            space.data.view(dtype)[at // dtype.itemsize] = value
