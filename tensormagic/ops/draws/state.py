"""States of NumPy's bit generators as rows of 64-bit words: what a graph passes from draw to draw."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from tensormagic.ir.errors import CaptureError

Words = np.ndarray[Any, Any]
KINDS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
_WORD = 2**64 - 1


def bits_of(generator: Any) -> Any:
    """Return the bit generator behind a ``Generator`` or a ``RandomState``; a bit generator is returned itself."""
    if isinstance(generator, np.random.BitGenerator):
        return generator
    return generator.bit_generator if isinstance(generator, np.random.Generator) else generator._bit_generator  # noqa: SLF001 (no other way)


def encoded(generator: Any) -> Words:
    """Return the state as words: the bit generator, its numbers, and for a ``RandomState`` the normal number it keeps.

    Raises
    ------
    CaptureError
        For a bit generator that is not NumPy's.
    """
    legacy = isinstance(generator, np.random.RandomState)
    state: Any = generator.get_state(legacy=False) if legacy else bits_of(generator).state
    name = state["bit_generator"]
    if name not in KINDS:
        raise CaptureError(f"a generator over {name} is not captured", f"Use one of NumPy's: {', '.join(KINDS)}.")
    if name == "MT19937":
        return _of_twister(state, legacy=legacy)
    words = [KINDS.index(name), *_words(name, state)]
    if legacy:
        words += [state["has_gauss"], int(np.float64(state["gauss"]).view(np.uint64))]
    return np.array(words, np.uint64)


def _of_twister(state: Any, *, legacy: bool) -> Words:
    """Return the words of a state of MT19937, which has 624 numbers; a fast path, since each draw in a loop needs it."""
    words = np.empty(628 if legacy else 626, np.uint64)
    words[0], words[1:625], words[625] = KINDS.index("MT19937"), state["state"]["key"], state["state"]["pos"]
    if legacy:
        words[626] = state["has_gauss"]
        words[627:].view(np.float64)[0] = state["gauss"]
    return words


def _words(name: str, state: Any) -> list[int]:
    own = state["state"]
    rest = [int(state["has_uint32"]), int(state["uinteger"])]
    if name == "SFC64":
        return [*map(int, own["state"]), *rest]
    if name == "Philox":
        parts = [*own["counter"], *own["key"], *state["buffer"], state["buffer_pos"]]
        return [*map(int, parts), *rest]
    return [own["state"] >> 64, own["state"] & _WORD, own["inc"] >> 64, own["inc"] & _WORD, *rest]


def decoded(words: Words, *, legacy: bool) -> dict[str, Any]:
    """Return the state that ``words`` encode, in NumPy's form."""
    name = KINDS[int(words[0])]
    own: dict[str, Any] = {"bit_generator": name}
    if legacy:
        own |= {"has_gauss": int(words[-2]), "gauss": float(words[-1:].view(np.float64)[0])}
    body = words[1:-2] if legacy else words[1:]
    if name == "MT19937":
        return own | {"state": {"key": body[:624].astype(np.uint32), "pos": int(body[624])}}
    own |= {"has_uint32": int(body[-2]), "uinteger": int(body[-1])}
    if name == "SFC64":
        return own | {"state": {"state": np.array(body[:4])}}
    if name == "Philox":
        state = {"counter": np.array(body[:4]), "key": np.array(body[4:6])}
        return own | {"state": state, "buffer": np.array(body[6:10]), "buffer_pos": int(body[10])}
    high, low, step_high, step_low = map(int, body[:4])
    return own | {"state": {"state": high << 64 | low, "inc": step_high << 64 | step_low}}


def put_back(generator: Any, words: Words) -> None:
    """Set a generator to the state that ``words`` encode."""
    if isinstance(generator, np.random.RandomState):
        generator.set_state(decoded(words, legacy=True))
    else:
        bits_of(generator).state = decoded(words, legacy=False)


class _Own(threading.local):
    """The generators used for draws, one of each kind per thread, and the words of the state each was left in."""

    def __init__(self) -> None:
        self.made: dict[tuple[int, bool], Any] = {}
        self.left: dict[tuple[int, bool], Words] = {}
        self.memory: dict[bool, Words] = {}  # memory of the twisters' states
        self.normal: Callable[[], tuple[int, float]] | None = (
            None  # reads the normal number that the legacy twister keeps
        )


_own = _Own()


def generator_at(words: Words, *, legacy: bool) -> Any:
    """Return a generator in the state that ``words`` encode, for immediate use only: it is shared."""
    words = np.asarray(words)
    key = int(words[0]), legacy
    found = _own.made.get(key)
    if found is None:
        found = _own.made[key] = fresh(KINDS[key[0]], legacy=legacy)
    if _own.left.pop(key, None) is not words:
        put_back(found, words)
    return found


def left_by(generator: Any, before: Words, method: str, *, legacy: bool) -> Words:
    """Return the state after a draw; the next draw from it need not set the generator's state again.

    Nobody else writes to these words: they are a value of a graph. ``before`` is the state that ``method`` has drawn
    from.
    """
    kind = int(before[0])
    words = _moved(generator, before, method, legacy=legacy) if kind == _TWISTER else encoded(generator)
    words.flags.writeable = False
    _own.left[kind, legacy] = words
    return words


_TWISTER = KINDS.index("MT19937")
_NO_NORMALS = {
    "random", "random_sample", "rand", "uniform", "randint", "random_integers", "tomaxint", "bytes", "choice", "permutation", "shuffle",
}  # fmt: skip
"""Methods of a ``RandomState`` that draw no normal numbers, and so do not change the normal number that it keeps."""


def _moved(generator: Any, before: Words, method: str, *, legacy: bool) -> Words:
    """Return the words of the twister's new state, read from its memory: NumPy's own way takes longer than the draw."""
    memory = _own.memory.get(legacy)
    if memory is None:
        address = bits_of(generator).ctypes.state_address
        memory = _own.memory[legacy] = np.ctypeslib.as_array((ctypes.c_uint32 * 625).from_address(address))
        _own.normal = _normal_of(generator) if legacy else _own.normal
    kept = legacy and method not in _NO_NORMALS
    if kept and _own.normal is None:
        return encoded(generator)
    words = np.array(before)
    words[1:626] = memory
    if kept and _own.normal is not None:
        words[626], words[627:].view(np.float64)[0] = _own.normal()
    return words


def _normal_of(generator: Any) -> Callable[[], tuple[int, float]] | None:
    """Return a function that reads from memory which normal number a ``RandomState`` keeps, if any; None if it is not found there.

    NumPy gives both only together with all 624 numbers. Their place is where two test values, set one after the other,
    appear.
    """
    before = generator.get_state(legacy=False)
    count = type(generator).__basicsize__ // 8
    whole = np.ctypeslib.as_array((ctypes.c_uint64 * count).from_address(id(generator)))
    places = set(range(1, count))
    try:
        for has, number in ((1, 0.8414709848078965), (0, -0.4161468365471424)):
            generator.set_state(before | {"has_gauss": has, "gauss": number})
            flags = whole.view(np.int32)[::2]
            places &= {k for k in range(1, count) if whole.view(np.float64)[k] == number and flags[k - 1] == has}
    finally:
        generator.set_state(before)
    if len(places) != 1:
        return None
    place = places.pop()
    address = id(generator) + 8 * (place - 1)
    has, number = ctypes.c_int32.from_address(address), ctypes.c_double.from_address(address + 8)
    return lambda: (has.value, number.value)


def fresh(kind: str, *, legacy: bool, seed: Any = 0) -> Any:
    """Return a new ``Generator`` or ``RandomState`` over the bit generator ``kind``."""
    bits = getattr(np.random, kind)
    if not legacy:
        return np.random.Generator(bits(seed))
    return np.random.RandomState(seed) if kind == "MT19937" else np.random.RandomState(bits(seed))
