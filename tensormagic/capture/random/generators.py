"""Random generators in captured code: a generator is a place that holds its state, and every draw stores the next state into it."""

from __future__ import annotations

import copy
import functools
import weakref
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.context import Capture
from tensormagic.capture.errors.refusal import refuse, values_are_there
from tensormagic.capture.foreign.calls import on_values
from tensormagic.capture.hooks import hooks
from tensormagic.capture.inputs.snapshots import Snapshot
from tensormagic.capture.inputs.stand_ins import StandIn
from tensormagic.capture.random.bits import LazyBits, stands_for
from tensormagic.capture.random.methods import METHODS, Draws
from tensormagic.capture.staging.trials.trial import fail_trial
from tensormagic.capture.stores.place import Buffer, serials
from tensormagic.capture.values.abstract import found_input
from tensormagic.capture.values.live_values import hold
from tensormagic.capture.values.operands import has_lazy, node_of
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.errors import CaptureError, ForeignStoreError
from tensormagic.ir.node import Node
from tensormagic.ir.type import Type
from tensormagic.ops.draws.random import seeded
from tensormagic.ops.draws.state import KINDS, Words, bits_of, encoded, fresh, put_back
from tensormagic.ops.leaf import constant, input_node

_NUMPYS = {
    True: np.random.RandomState(0),
    False: np.random.Generator(np.random.PCG64(0)),
}  # of which no number is drawn
DRAWING = (np.random.Generator, np.random.RandomState)
_GENERATORS = (*DRAWING, np.random.BitGenerator)


def is_generator(value: Any) -> bool:
    """Return whether a value is one of NumPy's generators."""
    return isinstance(value, _GENERATORS)


def global_generator() -> Any:
    """Return the generator behind ``np.random.normal`` and the other functions of the module."""
    return np.random.rand.__self__  # the functions are methods of it


class Drawn:
    """Records which existing generators the code in its block draws from.

    Parameters
    ----------
    refusal
        What the block is, if it may not draw from any.
    """

    def __init__(self, refusal: str = "") -> None:
        self.refusal = refusal
        self.before: dict[Buffer, Node] = {}

    def __enter__(self) -> Self:
        self._capture = context.current()
        self._start = next(serials)
        self._journal: dict[Any, Any] = {}
        if self._capture is not None:
            self._capture.heap.journals.append(self._journal)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._capture is not None:
            self._capture.heap.journals[:] = [j for j in self._capture.heap.journals if j is not self._journal]
        self.before = {b: held[0] for b, held in self._journal.items() if b in _STATES and b.born < self._start}
        if kind is None and self.before and self.refusal:
            refuse(
                f"a draw in {self.refusal} from a generator made outside of it",
                "Make the generator inside, from a seed; or write the loop or the branch as ordinary Python.",
            )

    def stores_outside(self, arguments: Sequence[Tensor]) -> bool:
        """Return whether the block has stored into an existing array other than the ``arguments``."""
        own = {a.place.buffer for a in arguments} | {*_STATES}
        return any(b.born < self._start and b not in own for b in self._journal)

    def changed(self, given: Sequence[Buffer]) -> list[Buffer]:
        """Return the buffers that the block has stored into, and those of ``given`` that it has made."""
        made = (b for b in given if b.born >= self._start)
        return [b for b in dict.fromkeys([*self._journal, *made]) if not b.alias.alternatives]


_STATES: weakref.WeakSet[Buffer] = weakref.WeakSet()


class LazyGenerator(Draws, StandIn):
    """Represents a ``Generator`` or ``RandomState`` in captured code.

    Parameters
    ----------
    buffer
        Holds the state.
    legacy
        Whether it is a ``RandomState``.
    origin
        The notebook's generator it stands for; None for one made by the code.
    kind
        The name of the bit generator.
    """

    def __init__(self, buffer: Buffer, *, legacy: bool, origin: Any = None, kind: str = "") -> None:
        self.buffer = buffer
        _STATES.add(buffer)
        hold(buffer)
        self.legacy = legacy
        self.origin = origin
        self.kind = kind
        self.ended = False  # the cell in which it stood for ``origin`` has ended
        self.samples: list[Node] = []
        if origin is not None:
            stands_for(buffer, bits_of(origin))
        self._real: Any = None
        if origin is None and (capture := context.current()) is not None:
            capture.generators = True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if (kept := self.held) is not None:
            if not values_are_there():
                raise fail_trial(
                    "a draw from a generator that an object of a library holds", "Draw before the loop or the branch."
                )
            found = getattr(kept, name)
            return on_values(found) if callable(found) else found
        table = METHODS[self.legacy]
        if name == "bit_generator" and not self.legacy:
            return self.bits()
        if name == "seed" and self.legacy:
            return self.reseed
        if name in table:
            return getattr(self.origin, name) if self.ended else self._or_on_values(name, table[name].__get__(self))
        owner = np.random.RandomState if self.legacy else np.random.Generator
        if not hasattr(owner, name):
            raise AttributeError(f"{owner.__name__!r} object has no attribute {name!r}")
        return self._or_on_values(name, _refused(name))

    def _or_on_values(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method that in a cell falls back to NumPy's, in the same state, if it is not captured or raises."""

        @functools.wraps(getattr(_NUMPYS[self.legacy], name))  # whose signature cannot be read, which SciPy relies on
        def draw(*args: Any, **options: Any) -> Any:
            with drawn_inside():
                return self._drawn(name, method, args, options)

        return draw

    def _drawn(self, name: str, method: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        before = self.buffer.node
        try:
            return method(*args, **options)
        except (CaptureError, ValueError, TypeError, IndexError):
            if not values_are_there():
                raise
            if self.buffer.node is not before:
                self.buffer.put(before)
            made = self.lent()
            found = on_values(getattr(made, name))(*args, **options)
            self.continue_from(made)
            return found

    def reseed(self, seed: Any = None) -> None:
        """Implement ``RandomState.seed``: start from a new state."""
        if self.kind != "MT19937":
            raise TypeError("can only re-seed a MT19937 BitGenerator")
        self.buffer.store(_state(seed, "MT19937", legacy=True))

    @property
    def own_class(self) -> type:
        """Return NumPy's class of the generator."""
        return np.random.RandomState if self.legacy else np.random.Generator

    def real(self) -> Any:
        """Return NumPy's own generator: the notebook's, or a new one in the state that the code has left."""
        if (kept := self.held) is not None:
            return kept
        if self.origin is not None:
            return self.origin
        if self._real is None:
            self._real = self.lent() if self.legacy else np.random.Generator(self.bits().real())
        return self._real

    @property
    def identity(self) -> Any:
        """Return the notebook's generator it stands for, or itself."""
        return self if self.origin is None else self.origin

    def __deepcopy__(self, memo: dict[int, Any]) -> LazyGenerator:
        """Return another generator in the same state."""
        return LazyGenerator(copy.deepcopy(self.bits()).buffer, legacy=self.legacy, kind=self.kind)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Return what NumPy's own gives for pickling, in the same state."""
        if not values_are_there():
            refuse("pickling a random generator", "Do this outside of functions, loops and branches.")
        return self.lent().__reduce_ex__(protocol)

    def bits(self) -> LazyBits:
        """Return the bit generator that it draws from."""
        return LazyBits(self.buffer, self.kind)

    def continue_from(self, generator: Any) -> None:
        """Continue in the state of a NumPy generator."""
        if generator is self.origin or self.held is not None:
            return  # see `drawn_from_outside`
        words = encoded(generator)
        if not np.array_equal(words, hooks.compute([self.buffer.node])[0]):
            self.buffer.store(constant(words))

    def lent(self) -> Any:
        """Return a new NumPy generator in the state that the code has left; or the one that is held."""
        if (kept := self.held) is not None:
            return kept
        if not self.legacy:
            return np.random.Generator(self.bits().lent())
        words = hooks.compute([self.buffer.node])[0]
        made = fresh(KINDS[int(words[0])], legacy=True)
        put_back(made, words)
        return made


def _refused(name: str) -> Callable[..., Any]:
    def refusing(*_args: Any, **_options: Any) -> Any:
        refuse(
            f"{name} of a random generator",
            "Call it in a separate cell without %%tensor, or run this one with --plain.",
        )

    return refusing


# generators that functions are given or read --------------------------------------------------------------------------


class State(np.ndarray[Any, Any]):
    """The words of a generator's state, with the generator."""

    owner: Any = None

    def give_back(self, words: Words) -> None:
        """Give the generator another state."""
        put_back(self.owner, words)


def state_of(generator: Any) -> State:
    """Return the state of a generator, as a function's input."""
    found = encoded(generator).view(State)
    found.owner = generator
    return found


def over(value: Any, tensor: Tensor, capture: Capture) -> Any:
    """Return an input as a function sees it: a lazy generator for a generator's state, else the lazy array."""
    if not is_generator(value):
        return tensor
    found = capture.names.lifted.get(("generator", id(bits_of(value))))
    if found is None:
        buffer = tensor.place.buffer
        buffer.born = 0
        legacy = isinstance(value, np.random.RandomState)
        found = LazyGenerator(buffer, legacy=legacy, origin=value, kind=type(bits_of(value)).__name__)
        capture.names.lifted["generator", id(bits_of(value))] = found
    return found.bits() if isinstance(value, np.random.BitGenerator) else found


def pattern(values: Sequence[Any]) -> tuple[Any, ...]:
    """Return which values are generators, their classes, and which of them are identical."""
    found = [(type(v).__name__, bits_of(v)) for v in values if is_generator(v)]
    first: dict[int, int] = {}
    return tuple([(name, type(b).__name__, first.setdefault(id(b), k)) for k, (name, b) in enumerate(found)])


# generators of the notebook -------------------------------------------------------------------------------------------


def stand_in(generator: Any, name: str = "a generator", *, place: Any = None) -> LazyGenerator:
    """Return the stand-in for a generator of the notebook in the current capture: one for all references.

    Parameters
    ----------
    generator, name
        The generator, and its name in messages.
    place
        Where a traced function reads it: the state becomes an input of the trace, like an array read there.

    Raises
    ------
    CaptureError
        In a traced function that reads the generator from no place that is looked up again.
    """
    capture = context.current()
    if capture is None:
        raise AssertionError
    legacy = isinstance(generator, np.random.RandomState)
    key = ("generator", id(bits_of(generator)))
    found = capture.names.lifted.get(key)
    if capture.abstract and place is not None and place not in capture.names.lifted:
        capture.names.lifted[place] = found_input(state_of(generator), name, capture)
        over(generator, capture.names.lifted[place], capture)
        found = capture.names.lifted[key]
    if found is None:
        if capture.abstract:
            raise ForeignStoreError(
                f"{name}, which a function reaches through an object or a container, is not captured",
                "Give it a name that the function reads, or pass it as an argument.",
            )
        words = encoded(generator)
        node = input_node(Snapshot(name, words), Type(words.dtype, words.shape))
        found = stand_in_for(generator, node, name, capture)
    if found.legacy is not legacy:
        refuse("a Generator and a RandomState over one bit generator", "Use one of them.")
    return found


def stand_in_for(generator: Any, state: Node, name: str, capture: Capture) -> LazyGenerator:
    """Return a lazy generator with the state ``state`` for one of the notebook."""
    buffer = Buffer(state, name=name, born=0)  # it existed before, even if a trial reads it first
    legacy = isinstance(generator, np.random.RandomState)
    made = LazyGenerator(buffer, legacy=legacy, origin=generator, kind=type(bits_of(generator)).__name__)
    capture.names.lifted["generator", id(bits_of(generator))] = made
    return made


def lift(visible: dict[str, Any], notebook: Mapping[str, Any], capture: Capture) -> None:
    """Give a cell lazy generators for those it reads by name."""
    with context.capturing(capture):
        for name in visible:
            value = notebook.get(name)
            if isinstance(value, DRAWING):
                visible[name] = stand_in(value, name)
            elif isinstance(value, np.random.BitGenerator):
                visible[name] = bits_stand_in(value, name)


def bits_stand_in(bits: Any, name: str) -> LazyBits:
    """Return the stand-in for a bit generator of the notebook."""
    return stand_in(bits, name).bits()


def advanced(capture: Capture) -> list[LazyGenerator]:
    """Return the notebook's generators that captured code has drawn from.

    Raises
    ------
    CaptureError
        Where code that is not captured has drawn from one of them as well.
    """
    found = [g for g in _lifted(capture) if g.buffer.stored]
    for generator in found:
        first = generator.buffer.first
        before = capture.inputs.values[first] if first in capture.inputs.values else first.params["source"].value
        if not np.array_equal(encoded(generator.origin), before):
            raise CaptureError(
                f"{generator.buffer.name} is used both by captured code and by code that is not captured",
                "Draw in a separate cell without %%tensor, or run this one with --plain.",
            )
    return found


def _lifted(capture: Capture) -> list[LazyGenerator]:
    """Return what stands for the notebook's generators, but for those that objects of libraries hold."""
    return [g for g in capture.names.lifted.values() if isinstance(g, LazyGenerator) and g.held is None]


class _Left:
    """A notebook generator lent to code that is not captured, which calls back captured code that draws from it, too."""

    def __init__(self, generator: LazyGenerator) -> None:
        self.generator = generator
        self.before = encoded(generator.origin)  # its state in the notebook
        self.leave()

    def leave(self) -> None:
        """Set the generator to the state in which captured code has left it."""
        self.node = self.generator.buffer.node
        self.words = hooks.compute([self.node])[0]
        put_back(self.generator.origin, self.words)

    def resume(self) -> None:
        """Let captured code continue from the generator's present state."""
        words = encoded(self.generator.origin)
        if np.array_equal(words, self.words):
            return
        if self.generator.buffer.node is not self.node:
            raise CaptureError(
                f"{self.generator.buffer.name} is used both by captured code and by code that is not captured",
                "Draw in a separate cell without %%tensor, or run this one with --plain.",
            )
        self.generator.buffer.store(constant(words))


@contextmanager
def drawn_from_outside() -> Generator[None]:
    """Set the notebook's generators, for the block, to the states that captured code has left: uncaptured code may draw."""
    capture = context.current()
    if capture is None or not values_are_there():
        yield
        return
    around, capture.outside.generators = capture.outside.generators, {}
    _left_to(capture)
    try:
        yield
    finally:
        lefts, capture.outside.generators = [*capture.outside.generators.values()], around
        try:
            for left in lefts:
                left.resume()
        finally:
            for left in lefts:
                put_back(left.generator.origin, left.before)


@contextmanager
def drawn_inside() -> Generator[None]:
    """Let captured code, called back by uncaptured code in the block, continue from the generators' states, and write them back."""
    capture = context.current()
    if capture is None or capture.outside.generators is None or not values_are_there():
        yield
        return
    for left in capture.outside.generators.values():
        left.resume()
    try:
        yield
    finally:
        _left_to(capture)


def _left_to(capture: Capture) -> None:
    """Set the notebook's generators to captured code's states, for code that is not captured."""
    lefts = capture.outside.generators
    if lefts is None:
        return
    for generator in _lifted(capture):
        left = lefts.get(id(generator))
        if left is None:
            lefts[id(generator)] = _Left(generator)
        elif left.node is not generator.buffer.node:
            left.leave()


hooks.on_values, hooks.called_back = drawn_from_outside, drawn_inside


def commit(generators: list[LazyGenerator], states: list[Words]) -> None:
    """Give the notebook's generators the states that the cell has left."""
    for generator, words in zip(generators, states, strict=True):
        put_back(generator.origin, words)


def _state(seed: Any, kind: str, *, legacy: bool) -> Node:
    """Return the state of a new generator."""
    if has_lazy(seed):
        return seeded(node_of(seed), kind, legacy=legacy)
    needs_seed(seed)
    return constant(encoded(fresh(kind, legacy=legacy, seed=seed)))


def needs_seed(seed: Any) -> None:
    """Refuse a generator without a seed if there are no values yet."""
    capture = context.current()
    if seed is None and capture is not None and (capture.abstract or capture.heap.trials):
        raise fail_trial(
            "a random generator without a seed", "Give it a seed, or make it outside the function or the loop."
        )
