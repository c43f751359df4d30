"""Bit generators in captured code: a generator draws its bits from one, and it can spawn others."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from tensormagic.capture.errors.refusal import refuse, values_are_there
from tensormagic.capture.foreign.calls import on_values
from tensormagic.capture.hooks import hooks
from tensormagic.capture.inputs.stand_ins import StandIn
from tensormagic.capture.random.methods import Stateful
from tensormagic.capture.stores.place import Buffer
from tensormagic.ops.draws.state import bits_of, encoded, put_back
from tensormagic.ops.leaf import constant

_SEEDS: weakref.WeakKeyDictionary[Buffer, Callable[[], Any]] = weakref.WeakKeyDictionary()
_ORIGINS: weakref.WeakKeyDictionary[Buffer, Any] = weakref.WeakKeyDictionary()
_REAL: weakref.WeakKeyDictionary[Buffer, Any] = weakref.WeakKeyDictionary()


def seeded_by(buffer: Buffer, seed: Callable[[], Any]) -> None:
    """Record the function that returns the seed of a state: spawned generators derive from the seed, and not from the state."""
    _SEEDS[buffer] = seed


def stands_for(buffer: Buffer, bits: Any) -> None:
    """Record which bit generator of the notebook has a state."""
    _ORIGINS[buffer] = bits


class LazyBits(Stateful, StandIn):
    """Represents a bit generator in captured code.

    Parameters
    ----------
    buffer
        Holds the state.
    kind
        The class's name.
    """

    def __init__(self, buffer: Buffer, kind: str) -> None:
        self.buffer = buffer
        self.kind = kind

    @property
    def origin(self) -> Any:
        """Return the notebook's bit generator it stands for; None for one made by the code."""
        return _ORIGINS.get(self.buffer)

    @property
    def own_class(self) -> type:
        """Return NumPy's class of the bit generator."""
        found: type = getattr(np.random, self.kind)
        return found

    def real(self) -> Any:
        """Return NumPy's bit generator: the notebook's, or one shared by all uses of one made by the code."""
        if (kept := self.held) is not None:
            return bits_of(kept)
        if self.origin is not None:
            return self.origin
        if self.buffer not in _REAL:
            _REAL[self.buffer] = self._made()
        put_back(_REAL[self.buffer], self._words())
        return _REAL[self.buffer]

    @property
    def identity(self) -> Any:
        """Return the notebook's bit generator, or the buffer shared by all objects over it."""
        return self.buffer if self.origin is None else self.origin

    def __deepcopy__(self, memo: dict[int, Any]) -> LazyBits:
        """Return another bit generator in the same state."""
        made = Buffer(self.buffer.node, name="a generator")
        if self.buffer in _SEEDS or self.origin is not None:
            seeded_by(made, _SEEDS.get(self.buffer) or functools.partial(getattr, self.origin, "seed_seq"))
        return LazyBits(made, self.kind)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Return what NumPy's own gives for pickling, in the same state."""
        return self._borrowed("pickling").__reduce_ex__(protocol)

    def __repr__(self) -> str:
        kind = self.own_class
        return f"<{kind.__module__}.{kind.__name__} object at {id(self.identity):#x}>"

    def lent(self) -> Any:
        """Return a new NumPy bit generator, in the state that the code has left and with the same seed; or the one that is held."""
        if (kept := self.held) is not None:
            return bits_of(kept)
        made = self._made()
        put_back(made, self._words())
        return made

    def _words(self) -> Any:
        return hooks.compute([self.buffer.node])[0]

    def _made(self) -> Any:
        if self.origin is not None:
            return self.own_class(self.origin.seed_seq)
        seed = _SEEDS.get(self.buffer)
        if seed is None:
            refuse("the seed of this random generator", "Make it outside of the cell.")
        return self.own_class(seed())

    def continue_from(self, generator: Any) -> None:
        """Continue in the state of a NumPy bit generator."""
        if generator is self.origin or self.held is not None:
            return
        words = encoded(generator)
        if not np.array_equal(words, self._words()):
            self.buffer.store(constant(words))

    @property
    def state(self) -> Any:
        """Return the state, as NumPy's attribute does."""
        return self._read("state")

    @state.setter
    def state(self, state: Any) -> None:
        made = self._borrowed("state")
        on_values(setattr)(made, "state", state)
        self.continue_from(made)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(self.own_class, name):
            raise AttributeError(f"{self.own_class.__name__!r} object has no attribute {name!r}")
        return self._read(name)

    def _read(self, name: str) -> Any:
        made = self._borrowed(name)
        found = getattr(made, name)
        if not callable(found):
            return found

        def call(*args: Any, **options: Any) -> Any:
            result = on_values(found)(*args, **options)
            self.continue_from(made)
            return self if result is made else result

        return call

    def _borrowed(self, name: str) -> Any:
        if not values_are_there():
            refuse(f"{name} of a bit generator", "Read it outside of functions, loops and branches.")
        return self.lent()
