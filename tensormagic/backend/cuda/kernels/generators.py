"""Bit generators on a device that can skip ahead to any position in their stream.

A state of PCG64 follows from the one before by a product and a sum of 128 bits: a thread skips to its first number,
and from each number by as many steps as there are threads. Philox numbers its blocks of four words, and the words
follow from the number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tensormagic.backend.cuda.kernels.launch import Count, Launch, Number, Scratch
from tensormagic.ir.size import Symbol, atom
from tensormagic.ops.draws.state import Words, encoded, generator_at

THREADS = 256
MOST_BLOCKS = 1024
_EACH = 4  # numbers per thread, where there are too few to occupy all blocks
_WORD = (1 << 64) - 1
_ALL = (1 << 128) - 1


def _launch(name: str, body: str, counts: Sequence[str], words: Sequence[str]) -> Launch:
    """Return the launch that draws ``count`` numbers ``begin + width * u``, with u uniform from 0 to 1."""
    heads = [*counts, *words, "begin", "width"]
    source = f"def kernel(out, {', '.join(heads)}):\n{body}"
    count = atom(Symbol("count"))
    real, word = Number(np.float64(0)), Number(np.uint64(0))
    own = [*(Count(atom(Symbol(n))) for n in counts), *[word] * len(words), real, real]
    return Launch(name, source, source, (Scratch("out", count, "float64", True), *own), 1, THREADS)


def _halves(numbers: Sequence[int]) -> list[np.uint64]:
    return [np.uint64(w) for v in numbers for w in (v >> 64, v & _WORD)]


@dataclass(frozen=True)
class Leaping:
    """A linear congruential generator, which multiplies its state and adds to it.

    Parameters
    ----------
    factor
        What a state is multiplied by.
    first
        How many steps are done before the first number is taken from the state.
    unit
        The function of the kernel that takes a number from 0 to 1 from a state.
    """

    factor: int
    first: int
    unit: str

    @cached_property
    def launch(self) -> Launch:
        """Return the launch that draws."""
        body = f"""    i = block() * {THREADS} + thread()
    if i < count:
        zero = np.uint64(0)
        a = (zero, np.uint64(1))
        b = (zero, zero)
        m = (np.uint64({self.factor >> 64}), np.uint64({self.factor & _WORD}))
        c = (more_high, more_low)
        k = i + {self.first}
        while k > 0:
            if k & 1 == 1:
                a = leap(a[0], a[1], m[0], m[1], zero, zero)
                b = leap(b[0], b[1], m[0], m[1], c[0], c[1])
            c = leap(c[0], c[1], m[0], m[1], c[0], c[1])
            m = leap(m[0], m[1], m[0], m[1], zero, zero)
            k = k >> 1
        state = leap(high, low, a[0], a[1], b[0], b[1])
        while i < count:
            out[i] = begin + width * {self.unit}(state[0], state[1])
            state = leap(state[0], state[1], leap_high, leap_low, add_high, add_low)
            i = i + blocks() * {THREADS}
"""
        words = [f"{n}_{half}" if n else half for n in ("", "more", "leap", "add") for half in ("high", "low")]
        return _launch("draws", body, ["count"], words)

    def call(self, words: Words, count: int) -> tuple[int, list[Any]]:
        """Return the number of blocks, and the arguments between the array and the bounds."""
        blocks = min(-(-count // (THREADS * _EACH)), MOST_BLOCKS)
        state, more = self._state(words)
        return blocks, [np.int64(count), *_halves((state, more, *self._leap(more, blocks * THREADS)))]

    def after(self, words: Words, count: int) -> Words:
        """Return the state after ``count`` numbers."""
        state, more = self._state(words)
        factor, term = self._leap(more, count)
        state = (state * factor + term) & _ALL
        found = words.copy()
        found[1:3] = state >> 64, state & _WORD
        return found

    @staticmethod
    def _state(words: Words) -> tuple[int, int]:
        high, low, more_high, more_low = map(int, words[1:5])
        return high << 64 | low, more_high << 64 | more_low

    def _leap(self, more: int, count: int) -> tuple[int, int]:
        """Return the factor and the term that advance a state by ``count`` steps."""
        factor, term, once, plus = 1, 0, self.factor, more
        while count:
            if count & 1:
                factor, term = factor * once & _ALL, (term * once + plus) & _ALL
            plus = (plus * once + plus) & _ALL
            once = once * once & _ALL
            count >>= 1
        return factor, term


class Counting:
    """Philox, ten rounds over a counter of four words and a key of two; NumPy buffers blocks of four words."""

    _PRODUCTS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
    _STEPS = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
    _LEFT, _PLACE = (
        slice(7, 11),
        11,
    )  # the buffered words of the current block, and the index of the next one among them

    @cached_property
    def launch(self) -> Launch:
        """Return the launch that draws: each thread computes a block of four numbers."""
        buffered = "".join(f"            w = left{k} if i == {k} else w\n" for k in range(4))
        stores = "".join(
            f"        if at + {k} < count:\n            out[at + {k}] = begin + width * unit_of_word(x{k})\n"
            for k in range(4)
        )
        body = f"""    i = block() * {THREADS} + thread()
    zero = np.uint64(0)
    one = np.uint64(1)
    if i < held:
        if i < count:
            w = zero
{buffered}            out[i] = begin + width * unit_of_word(w)
    at = held + 4 * i
    while at < count:
        x0 = c0 + np.uint64(i)
        carry = one if x0 < c0 else zero
        x1 = c1 + carry
        carry = one if carry == one and x1 == zero else zero
        x2 = c2 + carry
        carry = one if carry == one and x2 == zero else zero
        x3 = c3 + carry
        k0 = key0
        k1 = key1
        r = 0
        while r < 10:
            p = leap(zero, x0, zero, np.uint64({self._PRODUCTS[0]}), zero, zero)
            q = leap(zero, x2, zero, np.uint64({self._PRODUCTS[1]}), zero, zero)
            x0 = q[0] ^ x1 ^ k0
            x2 = p[0] ^ x3 ^ k1
            x1 = q[1]
            x3 = p[1]
            k0 = k0 + np.uint64({self._STEPS[0]})
            k1 = k1 + np.uint64({self._STEPS[1]})
            r = r + 1
{stores}        i = i + blocks() * {THREADS}
        at = held + 4 * i
"""
        words = [*(f"c{k}" for k in range(4)), "key0", "key1", *(f"left{k}" for k in range(4))]
        return _launch("draws", body, ["count", "held"], words)

    def call(self, words: Words, count: int) -> tuple[int, list[Any]]:
        """Return the number of blocks, and the arguments between the array and the bounds."""
        place = int(words[self._PLACE])
        left = list(words[self._LEFT][place:]) + [np.uint64(0)] * place
        first = self._counter(self._number(words) + 1)
        blocks = min(-(-count // (THREADS * _EACH)), MOST_BLOCKS)
        return blocks, [np.int64(count), np.int64(4 - place), *first, *words[5:7], *left]

    def after(self, words: Words, count: int) -> Words:
        """Return the state after ``count`` numbers."""
        found = words.copy()
        place = int(words[self._PLACE])
        behind = count - (4 - place)
        if behind <= 0:
            found[self._PLACE] = place + count
            return found
        taken = -(-behind // 4)
        found[1:5] = self._counter(self._number(words) + taken - 1)
        found[self._PLACE] = 4
        last = generator_at(found, legacy=False)
        last.bit_generator.random_raw(1)
        found[:12] = encoded(last)[:12]
        found[self._PLACE] = behind - 4 * (taken - 1)
        return found

    @staticmethod
    def _number(words: Words) -> int:
        return sum(int(w) << (64 * k) for k, w in enumerate(words[1:5]))

    @staticmethod
    def _counter(number: int) -> list[np.uint64]:
        return [np.uint64(number >> (64 * k) & _WORD) for k in range(4)]


GENERATORS: Mapping[str, Leaping | Counting] = {
    "PCG64": Leaping(0x2360ED051FC65DA44385DF649FCCF645, 1, "unit_of_pcg"),
    "PCG64DXSM": Leaping(0xDA942042E4DD58B5, 0, "unit_of_dxsm"),
    "Philox": Counting(),
}
"""The generators that have a kernel, by the names of their bit generators."""
