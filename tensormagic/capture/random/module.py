"""``np.random`` in captured code: its functions, which draw from NumPy's global generator, and the makers of generators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.inputs.stand_ins import noted
from tensormagic.capture.names import implements
from tensormagic.capture.random.bits import LazyBits, seeded_by
from tensormagic.capture.random.generators import (
    DRAWING,
    LazyGenerator,
    bits_stand_in,
    global_generator,
    needs_seed,
    stand_in,
)
from tensormagic.capture.random.methods import FUNCTIONS, METHODS, free_method
from tensormagic.capture.stores.place import Buffer
from tensormagic.capture.values.operands import has_lazy, node_of
from tensormagic.ops.draws.random import seeded
from tensormagic.ops.draws.state import KINDS, bits_of, encoded, fresh
from tensormagic.ops.leaf import constant


def method_of(function: Any) -> Any:
    """Return the lazy method for a method of one of NumPy's generators; None for any other function."""
    owner, free = getattr(function, "__self__", None), free_method(function)
    if context.current() is None or not (free or isinstance(owner, DRAWING)):
        return None
    of_module = free or owner is global_generator()
    return getattr(_module_generator() if of_module else stand_in(owner), free or function.__name__)


class _Global(Mapping[str, Any]):
    """The mapping from which functions read NumPy's global generator."""

    def __getitem__(self, name: str) -> Any:
        if name != "np.random":
            raise KeyError(name)
        return global_generator()

    def __iter__(self) -> Any:
        return iter(("np.random",))

    def __len__(self) -> int:
        return 1


_GLOBAL = _Global()


def _module_generator() -> LazyGenerator:
    """Return the global generator in captured code; record that a function reads it."""
    capture, place = context.current(), ("np.random", id(_GLOBAL))
    if capture is not None and capture.abstract:
        capture.names.noted[place] = ("np.random", _GLOBAL)
    return stand_in(global_generator(), "np.random", place=place)


class Random:
    """Represents ``np.random`` in captured code."""

    __name__ = "numpy.random"
    __wrapped__ = np.random

    def __getattr__(self, name: str) -> Any:
        if context.current() is None:
            return getattr(np.random, name)
        value = getattr(np.random, name)
        if name in _MADE:
            return noted(_MADE[name], value)
        if name in METHODS[True] or name in FUNCTIONS:
            return noted(_call(FUNCTIONS.get(name, name)), value)
        if isinstance(getattr(value, "__self__", None), np.random.RandomState):
            return noted(_call(name), value)
        return value

    def __dir__(self) -> list[str]:
        return dir(np.random)

    def __repr__(self) -> str:
        return repr(np.random)


def _call(name: str) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        of = np.random if context.current() is None else _module_generator()  # an object of a cell may have kept it
        return getattr(of, name)(*args, **options)

    call.__name__ = name
    return call


def default_rng(seed: Any = None) -> Any:
    """Implement ``np.random.default_rng``."""
    if isinstance(seed, LazyGenerator):
        return seed
    if isinstance(seed, np.random.Generator):
        return stand_in(seed)
    if isinstance(seed, np.random.RandomState):
        refuse("default_rng of a RandomState", "Make the generator from a seed.")
    return LazyGenerator(_bits(seed, "PCG64", legacy=False), legacy=False, kind="PCG64")


def generator(bit_generator: Any) -> LazyGenerator:
    """Implement ``np.random.Generator``."""
    if isinstance(bit_generator, np.random.BitGenerator):
        bit_generator = bits_stand_in(bit_generator, "a bit generator")
    if not isinstance(bit_generator, LazyBits):
        np.random.Generator(bit_generator)  # raises as NumPy does
        raise TypeError("Generator() takes a bit generator")
    return LazyGenerator(bit_generator.buffer, legacy=False, kind=bit_generator.kind)


def random_state(seed: Any = None) -> LazyGenerator:
    """Implement ``np.random.RandomState``."""
    if isinstance(seed, LazyBits | np.random.BitGenerator):
        refuse("RandomState over a bit generator", "Make it from a seed.")
    return LazyGenerator(_bits(seed, "MT19937", legacy=True), legacy=True, kind="MT19937")


def class_of(maker: Any) -> Any:
    """Return NumPy's class for its stand-in in captured code; anything else unchanged."""
    try:
        name = _CLASSES.get(maker)
    except TypeError:  # not hashable
        return maker
    return maker if name is None else getattr(np.random, name)


def _bits(seed: Any, kind: str, *, legacy: bool) -> Buffer:
    if isinstance(seed, LazyBits):
        return seed.buffer
    if isinstance(seed, np.random.BitGenerator):
        return bits_stand_in(seed, "a bit generator").buffer
    if has_lazy(seed):
        made = Buffer(seeded(node_of(seed), kind, legacy=legacy), name="a generator")
        seeded_by(made, lambda: np.random.SeedSequence(np.asarray(seed).tolist()))
        return made
    needs_seed(seed)
    return _over(fresh(kind, legacy=legacy, seed=seed))


def _over(generator: Any) -> Buffer:
    """Return the buffer with the state of a new NumPy generator."""
    made = Buffer(constant(encoded(generator)), name="a generator")
    seed = getattr(bits_of(generator), "seed_seq", None)
    seeded_by(made, lambda: seed)
    return made


def _bit_generator(kind: str) -> Callable[..., LazyBits]:
    def make(seed: Any = None, **options: Any) -> LazyBits:
        if not options:
            return LazyBits(_bits(seed, kind, legacy=False), kind)
        return LazyBits(_over(getattr(np.random, kind)(seed, **options)), kind)

    make.__name__ = kind
    return make


_MADE: dict[str, Any] = {
    "default_rng": default_rng,
    "Generator": generator,
    "RandomState": random_state,
    **{kind: _bit_generator(kind) for kind in KINDS},
}
_CLASSES = {made: name for name, made in _MADE.items() if name != "default_rng"}
for _name, _made in _MADE.items():
    implements(getattr(np.random, _name))(_made)
