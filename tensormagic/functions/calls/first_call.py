"""The first call of a function, which Python runs as written if captured code would give the same result and that takes no longer."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any
from weakref import ref

import numpy as np

from tensormagic.capture.staging.analysis.lost_digits import NO_SQUARES, OF_ARRAYS, OF_NUMBERS, Looks, Lost, alike
from tensormagic.capture.staging.analysis.ordinary import Kept, Ordinary, ordinary
from tensormagic.capture.staging.analysis.overflows import may_run_over, runs_over_silently
from tensormagic.capture.staging.analysis.text_folds import UnseenError
from tensormagic.capture.staging.analysis.text_graph import graphs_of
from tensormagic.config import config
from tensormagic.functions.calls.remembered_calls import Memory, Verdicts, memory_of, note
from tensormagic.functions.reads.left_in_objects import young
from tensormagic.ir.node import Node, topological
from tensormagic.ops.move import BROADCAST
from tensormagic.transform.rewriting import rewrite_nodes
from tensormagic.transform.rewriting.themes.overflows import runs_over
from tensormagic.transform.rewriting.themes.reductions import OF_ROWS
from tensormagic.transform.rewriting.users.trial import changes_digits

NOT = object()  # returned if Python does not run the call
TIME = 1.0  # seconds of this thread after which the function is captured: about as long as that takes, with compiling
_BETWEEN = 32  # iterations between two readings of the clock
_COPIED = 2**27  # bytes of arrays that are copied, to restore them if a call does not finish
_QUICKLY = (
    2**21
)  # bytes of arrays that are copied before it is known which may be stored into, as finding that out takes longer
_AGAIN = 15e-6  # seconds of a run for each byte of code: running it twice more takes no longer than capturing it
_BESIDE = 400  # bytes of code that testing rules on it corresponds to in addition
_ASKED = 12e-6  # seconds for each byte of code that testing rules on it takes
_LOOKS = 40  # numbers that are watched for each byte of code: testing rules on it takes as long
_NUMBERS = {int, float, bool, complex, np.float64, np.float32, np.int64, np.int32, np.bool_, np.complex128}
_KINDS = {np.dtype(c) for c in "?bhilqBHILQfdFD"}
enabled = True


class OutOfTime(BaseException):
    """Raised if the call takes long, so that machine code may be faster."""


def may(tier: str, device: str, level: str) -> bool:
    """Return whether the settings allow any way to compute, at a level whose values are NumPy's up to rounding."""
    return enabled and tier == "auto" and device == "cpu" and level in {"stable", "exact"}


def kind_of(args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return the kind of a call's arguments, or None unless all are arrays and numbers."""
    found: list[Any] = []
    for value in args:
        if type(value) is np.ndarray and value.dtype in _KINDS and value.dtype.isnative:
            found.append((value.dtype, value.ndim))
        elif type(value) in _NUMBERS:
            found.append(type(value))
        else:
            return None
    return tuple(found)


def result_of(function: FunctionType, args: tuple[Any, ...], begins: Callable[[], Any] = lambda: None) -> Any:
    """Return the result of running a call in Python, stores included, or :data:`NOT` (and no change) if captured code must be used.

    ``begins`` is called directly before the function runs.
    """
    with young(stays=True):
        found = ordinary(function)
        run = _running(function, found, args)
    if found is None or run is None:
        return NOT
    kept: list[tuple[Any, Any]] = []
    if found.stores:
        named = list(zip(function.__code__.co_varnames, args, strict=False))
        large = sum(v.nbytes for _, v in named if type(v) is np.ndarray) > _QUICKLY
        shared = _share(args)
        stored = found.stored if large or shared else frozenset(name for name, _ in named)
        arrays = [v for name, v in named if name in stored and type(v) is np.ndarray and v.flags.writeable]
        if sum(v.nbytes for v in arrays) > _COPIED or (shared and arrays):
            return NOT  # captured code raises an error for such arguments
        kept = [(v, v.copy()) for v in arrays]
    begins()
    try:
        return run(args, kept)
    except BaseException as error:
        _put_back(kept)
        if not isinstance(error, OutOfTime | Exception):
            raise
    return NOT  # captured code reports more about the error


def prepare(function: FunctionType) -> None:
    """Analyse the text of a function before its first call, which then finds in caches what depends on the text alone.

    The call checks again what names mean, and what its arguments are.
    """
    level = config.level("")
    if not may(config.tier, config.device, level):
        return
    found = ordinary(function)
    if found is None:
        return
    if found.looks and level != "exact":
        found.asking(iter(()), Looks().names(), {})
    elif found.asks:
        found.asking(iter(()), {})


_Run = Callable[[tuple[Any, ...], list[tuple[Any, Any]]], Any]


def _running(function: FunctionType, found: Ordinary | None, args: tuple[Any, ...]) -> _Run | None:
    """Return how to run a function, with copies of the arrays it stores into, or None if Python must not run it."""
    if found is None or (config.level("") != "exact" and runs_over_silently(found.reached)):
        return None
    memory = memory_of(found, args) if found.may_look and config.level("") != "exact" else None
    if memory is not None:
        found.kept = memory.kept
    looked_at = found.looks and config.level("") != "exact"  # at this level no rule changes digits
    if looked_at:
        return _looked(found, args, memory)
    if memory is not None and memory.kept is None:
        note(memory, found.to_keep)
    within = _within if config.level("") != "exact" and may_run_over(found.reached) else _as_it_is
    if not found.asks:
        return within(lambda args, _: function(*args))
    run = found.asking(itertools.chain.from_iterable(_times()), {})
    return within(lambda args, _: run(*args))


def _looked(found: Ordinary, args: tuple[Any, ...], memory: Memory | None) -> _Run:
    """Return how to run a function while watching it, unless rules are known not to apply in it."""
    clock = itertools.chain.from_iterable(_times())
    rules = _Rules(found, args, memory)
    code, ranged = sum(len(f.__code__.co_code) for f in found.reached), may_run_over(found.reached)
    whole = code + _BESIDE
    looks = Looks(_AGAIN * code, rules.see_nothing, _LOOKS * whole, lambda: rules.squares, _ASKED * whole)
    looks.excuse((rules.were_asked or found.looks_at(_extent(args)) > _LOOKS * code) and rules.see_nothing())
    run = found.asking(clock, {} if looks.blind else looks.names(), rules.shorts)

    def looked(args: tuple[Any, ...], kept: list[tuple[Any, Any]]) -> Any:
        # captured code does not warn, and Python's run may leave the range of values
        beyond: list[str] = []

        def notes(kind: str, _: int) -> None:
            beyond.append(kind)
            looks.under |= kind == "underflow"

        with np.errstate(all="ignore", under="call", over="call" if ranged else "ignore", call=notes):
            looks.begins()
            try:
                result = looks.ends(run(*args))
            except Lost:
                if looks.free or not rules.see_nothing() or rules.squares == OF_ARRAYS:
                    raise
                looks.excuse(True)
                _put_back(kept)
                result = run(*args)
            if looks.lost and not looks.holds(lambda: _stands(found, clock, result, args, kept)):
                raise Lost
            if (ranged and beyond) or (
                looks.free and not rules.see_nothing()
            ):  # loops that have had one iteration since the last test
                raise Lost
        return result

    def remembered(args: tuple[Any, ...], kept: list[tuple[Any, Any]]) -> Any:
        try:
            return looked(args, kept)
        finally:
            if memory is not None:
                rules.keep(memory)

    return remembered


def _as_it_is(run: _Run) -> _Run:
    return run


def _within(run: _Run) -> _Run:
    """Return a run that raises Lost if a NumPy number leaves the range in which rules keep values."""

    def within(args: tuple[Any, ...], kept: list[tuple[Any, Any]]) -> Any:
        beyond: list[str] = []
        with np.errstate(over="call", under="call", call=lambda kind, _: beyond.append(kind)):
            result = run(args, kept)
        if beyond:
            raise Lost
        return result

    return within


def _extent(args: tuple[Any, ...]) -> int:
    """Return an upper bound of the iterations of a loop: the largest integer, or extent of an array."""
    integers = [v for v in args if type(v) is int]
    return max([1, *integers, *(n for v in args if type(v) is np.ndarray for n in v.shape)])


class _Rules:
    """Whether rules would change digits in the texts of functions, tested on demand.

    ``known`` caches the answers; ``squares`` the squares in them that may overflow.
    """

    def __init__(self, found: Ordinary, args: tuple[Any, ...], memory: Memory | None = None) -> None:
        self.squares = memory.squares if memory else NO_SQUARES
        self.shorts: dict[tuple[str, int], int] = {}
        self._found, self._args = found, args
        self.known = dict(memory.verdicts) if memory else Verdicts()
        self.were_asked = frozenset[Any]() in self.known

    def keep(self, memory: Memory) -> None:
        """Store the answers, if they or the texts were not known."""
        if memory.kept is None or memory.verdicts != self.known:
            memory.squares, memory.verdicts = self.squares, self.known
            own: Any = self._found.function  # no method, as a reference to it is kept
            note(memory, self._found.to_keep, _completing(own, self._args, memory, self.shorts))

    def see_nothing(self) -> bool:
        """Return whether captured code would give the same digits, also if loops with one or no iteration are removed."""
        one = frozenset(self.shorts.items())
        return all(self._see_nothing(shorts) for shorts in {frozenset[Any](), one})

    def _see_nothing(self, shorts: frozenset[Any]) -> bool:
        known = self.known.get(shorts)
        if known is None:
            known = self.known[shorts] = not self._fire(dict(shorts))
        return known

    def _see_squares(self, nodes: list[Node]) -> None:
        for node in nodes:
            squares = runs_over(node)
            if squares is not None and self.squares != OF_ARRAYS:
                while squares.op is BROADCAST:
                    squares = squares.args[0]
                self.squares = OF_NUMBERS if squares.type.form == "python" else OF_ARRAYS

    def _fire(self, shorts: dict[tuple[str, int], int]) -> bool:
        function: Any = self._found.function  # no method, as a reference to it is kept
        try:
            for results in graphs_of(function, self._found.reached, self._args, shorts):
                found, log = rewrite_nodes(results, "stable")
                self._see_squares(topological(found))
                fired = [f.rule for f in log.fired if not f.rule.neutral and changes_digits(f.rule)]
                if any(rule not in OF_ROWS for rule in fired):
                    return True
                if fired:
                    self.squares = OF_ARRAYS  # exponentials are still watched
        except UnseenError:
            return True
        return False


def _completing(
    function: FunctionType, args: tuple[Any, ...], memory: Memory, shorts: dict[tuple[str, int], int]
) -> Callable[[], Kept | None]:
    """Return a function that later tests the rules which a call has not tested, and prepares the run, if the program is unchanged."""
    still, like = ref(function), tuple(map(_alike, args))

    def complete() -> Kept | None:
        own = still()
        found = None if own is None else ordinary(own)
        again = None if found is None else memory_of(found, like)
        if found is None or again is None or again.key != memory.key:
            return None
        rules = _Rules(found, like, memory)
        rules.shorts = shorts
        if rules.see_nothing() and rules.squares == NO_SQUARES:
            found.asking(iter(()), {}, shorts)
        memory.squares, memory.verdicts = rules.squares, rules.known
        return found.to_keep

    return complete


def _alike(value: Any) -> Any:
    """Return a value with the argument's type and shape, without its content."""
    return np.broadcast_to(np.zeros((), value.dtype), value.shape) if isinstance(value, np.ndarray) else value


def _put_back(kept: list[tuple[Any, Any]]) -> None:
    """Set arrays back to their contents before the call."""
    for array, before in kept:
        array[...] = before


def _stands(
    found: Ordinary,
    clock: Iterator[bool],
    result: Any,
    args: tuple[Any, ...],
    kept: list[tuple[Any, Any]],
) -> bool:
    """Return whether a call's results and stores stay the same if differences are off by rounding errors in either direction."""
    for sign in (1, -1):
        own = {id(array): before.copy() for array, before in kept}
        again = Looks()
        shaken = found.asking(clock, again.shaken(sign))
        other = again.ends(shaken(*[own.get(id(v), v) for v in args]))
        stored = [(array, own[id(array)]) for array, _ in kept]
        if not alike(result, other) or not all(alike(*pair) for pair in stored):
            return False
    return True


def _share(args: tuple[Any, ...]) -> bool:
    """Return whether two arrays among arguments may share memory."""
    arrays = [v for v in args if type(v) is np.ndarray]
    return any(np.may_share_memory(a, b) for a, b in itertools.combinations(arrays, 2))


def _times() -> Iterator[Iterator[bool]]:
    """Yield iterators of True while there is time; raise OutOfTime after that.

    The thread's clock costs 200 times the wall clock, which is asked first: it is never behind.
    """
    start, wall = time.thread_time(), time.perf_counter()
    until = wall + TIME
    while True:
        while time.perf_counter() < until:
            yield itertools.repeat(True, _BETWEEN)
        left = TIME - (time.thread_time() - start)
        if left <= 0:
            raise OutOfTime
        until = time.perf_counter() + left
