"""Functions that Python may run instead of a capture, with the same results: of numbers and arrays, that at most store into these.

No rule for accuracy changes their results by more than rounding: either nothing that such rules apply to is among
what they call, or it is examined as it runs (:mod:`~tensormagic.capture.staging.analysis.lost_digits`).
"""

from __future__ import annotations

import ast
import builtins
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from tensormagic.capture.python import builtin_facts
from tensormagic.capture.staging.analysis import numpy_functions, short_loops
from tensormagic.capture.staging.analysis.cancelling import ONE, Findings, Flow, Mode, PassedValues, findings_in
from tensormagic.capture.staging.analysis.known_text import OPERATORS, Written, written
from tensormagic.capture.staging.analysis.overwritten import overwritten
from tensormagic.capture.staging.syntax import source
from tensormagic.capture.staging.syntax.looked_at import marked
from tensormagic.capture.staging.syntax.syntax_trees import changed, copied, placed_at

WATCH, TICK = "__tensor_watch__", "__tensor_tick__"  # the function that loops call to check for time left
_LOOKS = 8  # numbers whose examination takes as long as half of a small array's
_DEEPEST = 4  # nested loops
_BUILTIN = set(builtin_facts.called(builtin_facts.ORDINARY))
_NUMBERS = (int, float, complex, np.number, np.bool_)
_MODULES = {
    np: (numpy_functions.FUNCTIONS, numpy_functions.CONSTANTS),
    math: (numpy_functions.MATH, {"pi", "e", "inf", "nan", "tau"}),
}


class Kept(NamedTuple):
    """Holds what is known of a function's texts, so that they need not be read again.

    Parameters
    ----------
    looks
        Whether anything in them is examined as they run.
    counted
        For each reached function, the nesting depth of its loops, and the number of operations examined.
    copies
        The code of instrumented copies, by the number of the function and its options: see :meth:`Ordinary.asking`.
    """

    looks: bool
    counted: tuple[tuple[int, int], ...]
    copies: Mapping[tuple[int, bool, bool], CodeType]


@dataclass(eq=False)
class Ordinary:
    """Represents a function that Python may run.

    Parameters
    ----------
    function
        The function.
    reached
        The function itself, and the user's functions that it calls.
    stores
        Whether it may store into an array.
    hands
        Whether it calls itself or functions of the user's.
    asks
        Whether it may take long: it has loops, or calls itself.
    called
        The reached functions that are called.
    kept
        What is known of the texts, if they have been read before.
    """

    function: FunctionType
    reached: dict[FunctionType, Written]
    stores: bool
    hands: bool
    asks: bool
    called: set[FunctionType]
    kept: Kept | None = None
    _copies: dict[tuple[int, bool, bool], CodeType] = field(default_factory=dict[tuple[int, bool, bool], CodeType])

    @cached_property
    def mode(self) -> Mode:
        """Return the facts about its functions that rules for accuracy depend on."""
        return _mode(self.reached, self.called) if self.called else ONE

    @property
    def to_keep(self) -> Kept:
        """Return what is known of the texts by now, to be kept."""
        return Kept(self.looks, self._counted if self.looks else (), self._copies)

    @property
    def stored(self) -> frozenset[str]:
        """Return the names of arguments that may be stored into."""
        own: Any = self.function  # not a method: it is called without an object
        stored = {f: overwritten(found.node) for f, found in self.reached.items() if found.stores}
        if self.hands and any(stored.values()):
            return frozenset(own.__code__.co_varnames)  # what is passed on is not followed
        return stored.get(own, frozenset())

    @property
    def looks(self) -> bool:
        """Return whether anything in it is examined as it runs."""
        if not self.may_look:
            return False
        if self.kept is not None:
            return self.kept.looks
        return any(_findings(f, found, self.mode).checks for f, found in self.reached.items())

    @property
    def may_look(self) -> bool:
        """Return whether the texts have to be read to know that."""
        return self.hands or any(found.traits.alone for found in self.reached.values())

    def looks_at(self, extent: int) -> int:
        """Return a rough count of the numbers examined, if each loop has this many iterations."""
        return sum(_LOOKS * checks * extent ** min(depth, _DEEPEST) for depth, checks in self._counted)

    @property
    def _counted(self) -> tuple[tuple[int, int], ...]:
        if self.kept is not None:
            return self.kept.counted
        told = [(found.node, len(_findings(f, found, self.mode).checks)) for f, found in self.reached.items()]
        return tuple([(_depth(node), checks) for node, checks in told])

    def asking(
        self, clock: Iterator[bool], look: dict[str, Any], shorts: short_loops.Shorts | None = None
    ) -> Callable[..., Any]:
        """Return the function with its loops and calls ticking a clock, and its differences examined by ``look``, if given.

        ``shorts`` records loops with no or one iteration, and folds of one element.
        """
        own: Any = self.function  # not a method: it is called without an object
        looks = bool(look) and self.looks
        watch: Callable[..., Any] = partial(itertools.compress, selectors=clock)
        notes = shorts is not None and any(
            short_loops.may_fold(f.__code__) and short_loops.folds(found.node) for f, found in self.reached.items()
        )
        if shorts is not None:
            watch = partial(short_loops.of_loop, shorts, watch)
            look = look | short_loops.names(shorts)
        if self.asks and not self.hands and not looks and not notes and self.reached[own].ranges:  # run as written
            space = {**own.__globals__, "range": short_loops.of_range(watch)}
            return FunctionType(own.__code__, space, own.__name__, own.__defaults__)
        spaces: dict[int, dict[str, Any]] = {}
        made: dict[FunctionType, FunctionType] = {}
        for k, function in enumerate(self.reached):
            space = function.__globals__
            space = spaces.setdefault(id(space), {**space, WATCH: watch, TICK: clock.__next__} | look)
            code = self._copy(k, function, looks, notes)
            made[function] = FunctionType(code, space, function.__name__, function.__defaults__)
        for function, found in self.reached.items():
            for name, _ in found.called:
                called = function.__globals__.get(name)
                if isinstance(called, FunctionType) and called in made:
                    spaces[id(function.__globals__)][name] = made[called]
        return made[own]

    def _copy(self, k: int, function: FunctionType, looks: bool, notes: bool) -> CodeType:
        """Return the instrumented code of a reached function."""
        known = self.kept.copies.get((k, looks, notes)) if self.kept is not None else None
        if known is None:
            known = _instrumented(function.__code__, self.asks, looks, notes, self.mode if looks else ONE)
        self._copies[k, looks, notes] = known
        return known


def ordinary(function: FunctionType) -> Ordinary | None:
    """Return the function for Python to run; None where its results or effects may differ from those of captured code."""
    reached: dict[FunctionType, Written] = {}
    if not _reaches_only_known(function, reached):
        return None
    stores = any(found.stores for found in reached.values())
    if stores and any(isinstance(v, np.ndarray) for f in reached for v in _read(f)):
        return None  # it may be the one that is stored into
    meant = [f.__globals__.get(name) for f, found in reached.items() for name, _ in found.called]
    called = {f for f in meant if isinstance(f, FunctionType) and f in reached}
    asks = function in called or any(found.loops for found in reached.values())
    return Ordinary(function, reached, stores, bool(called), asks, called)


def _mode(reached: dict[FunctionType, Written], called: set[FunctionType]) -> Mode:
    """Return the facts about functions that call each other, for rules for accuracy."""
    exponentials = any(found.traits.exponentials for found in reached.values())
    negates = any(found.traits.negates for found in reached.values())
    storing = [reached[f].traits for f in called if reached[f].stores]
    stores = any(traits.holds or traits.sums for traits in storing)
    mode = Mode(exponentials=exponentials, others=True, negates=negates, stores=stores)
    tells: dict[FunctionType, Findings] = {}
    while True:
        before = mode
        for function, found in reached.items():  # each by what is known so far: it calls those that come after it
            tells[function] = _findings(function, found, mode)
            steep = _flow(mode.steep, reached, called, {f: t.steep for f, t in tells.items()})
            sums = _flow(mode.sums, reached, called, {f: t.sums for f, t in tells.items()})
            stores = mode.stores or bool(storing and (*steep.given, *steep.givers, *sums.given))
            mode = mode._replace(steep=steep, sums=sums, stores=stores)
        if mode == before:
            return mode


def _flow(
    known: Flow,
    reached: dict[FunctionType, Written],
    called: set[FunctionType],
    passed: dict[FunctionType, PassedValues],
) -> Flow:
    """Return which functions return, and are passed, values of one sort, given what each does; those ``known`` are among them."""
    giving = {f for f in called if f in passed and passed[f].gives}
    names = {name for f, found in reached.items() for name, _ in found.called if f.__globals__.get(name) in giving}
    handed = {f.__globals__.get(name) for f, own in passed.items() for name in own.hands}
    return Flow(known.givers | names, known.given | {f.__code__ for f in called if f in handed})


def _reaches_only_known(function: FunctionType, reached: dict[FunctionType, Written]) -> bool:
    """Return whether a function and all it calls are understood; user functions are added to ``reached``."""
    found = written(function.__code__)
    if found is None or function.__closure__:
        return False
    for value in _read(function, found):
        if type(value) is not np.ndarray and not _is_fixed(value):
            return False
    reached[function] = found
    names = [*found.called, *((name, 0) for name in found.asked)]
    return all(_is_known(name, *_meant(function, name), count, reached) for name, count in names)


def _is_fixed(value: Any) -> bool:
    """Return whether a value cannot be changed: a number, a text, None, or a tuple of such."""
    return value is None or isinstance(value, (*_NUMBERS, str)) or (type(value) is tuple and all(map(_is_fixed, value)))


def _read(function: FunctionType, found: Written | None = None) -> list[Any]:
    """Return the outside values a function reads apart from what it calls, and its defaults."""
    found = found or written(function.__code__)
    called = {name.partition(".")[0] for name in (*(n for n, _ in found.called), *found.asked)} if found else set[str]()
    space = function.__globals__
    return [
        *(function.__defaults__ or ()),
        *(space[n] for n in function.__code__.co_names if n in space and n not in called),
    ]


def meanings(found: Ordinary) -> Iterator[Any]:
    """Yield what determines the functions' behaviour beside their texts: the meanings of names, and numbers read from outside."""
    order = {function: k for k, function in enumerate(found.reached)}
    for function, own in found.reached.items():
        for value in _read(function, own):
            yield (
                (value.dtype.str, value.ndim) if isinstance(value, np.ndarray) else (type(value).__name__, repr(value))
            )
        for name in (*[n for n, _ in own.called], *own.asked):
            value, attribute = _meant(function, name)
            if isinstance(value, FunctionType) and value in order:
                yield name, order[value]
            else:
                yield name, getattr(value, "__module__", ""), getattr(value, "__name__", ""), attribute


def _meant(function: FunctionType, dotted: str) -> tuple[Any, str]:
    name, _, attribute = dotted.partition(".")
    return function.__globals__.get(name, getattr(builtins, name, None)), attribute


def _is_known(name: str, value: Any, attribute: str, count: int, reached: dict[FunctionType, Written]) -> bool:
    """Return whether a call with this many arguments, or a module's attribute, is known; user functions are read."""
    if attribute:
        return _is_in_module(value, attribute, count)
    if isinstance(value, FunctionType) and value not in numpy_functions.FUNCTIONS:
        if (name in numpy_functions.NAMES and name not in OPERATORS) or name in builtin_facts.ORDINARY:
            return False  # by its name it is taken for NumPy's or Python's, where texts are read
        return value in reached or _reaches_only_known(value, reached)
    if getattr(value, "__name__", "") != name:  # texts are read by what names say of functions
        return False
    if name in OPERATORS:
        return False
    if isinstance(value, type) and issubclass(value, Exception):
        return value.__module__ == "builtins"
    return (
        _among(value, _BUILTIN)
        or _among(value, numpy_functions.FUNCTIONS, count)
        or _among(value, numpy_functions.MATH)
    )


def _is_in_module(value: Any, attribute: str, count: int) -> bool:
    """Return whether a dotted name of NumPy or ``math`` is known."""
    functions, constants = _MODULES[value] if value is np or value is math else (set[Any](), set[str]())
    if "." in attribute:
        return value is np and numpy_functions.is_in_module(attribute, count)
    if attribute == "errstate":
        return value is np
    return attribute in constants or _among(getattr(value, attribute, None), functions, count)


def _among(value: Any, known: set[Any], count: int = 0) -> bool:
    """Return whether a function is known, and called without an ``out`` argument."""
    try:
        there = value in known
    except TypeError:  # not hashable
        return False
    return there and (known is not numpy_functions.FUNCTIONS or count <= 1 or count <= numpy_functions.most_read(value))


def is_among_numpys(function: Any, count: int) -> bool:
    """Return whether a function, with so many arguments, is one of NumPy's that only read the arrays they are given."""
    return _among(function, numpy_functions.FUNCTIONS, count)


# loops with a clock ---------------------------------------------------------------------------------------------------


def _findings(function: FunctionType | CodeType, found: Written, mode: Mode) -> Findings:
    """Return what was found in a function, given the facts about others."""
    code = function.__code__ if isinstance(function, FunctionType) else function
    names = frozenset([name for name, _ in found.called if "." not in name and name not in numpy_functions.NAMES])
    mode = mode.about(code, names)
    known = found.told.get(mode)
    if known is None:
        known = found.told[mode] = findings_in(found.node.body, code, found.traits, mode)
    return known


@lru_cache(maxsize=256)
def _instrumented(code: CodeType, asks: bool, looks: bool, notes: bool, mode: Mode) -> CodeType:
    """Return the code of a function whose loops, and whose beginning, check for time left, and whose differences are examined.

    Where anything is examined, NumPy gives no warnings, and ``with np.errstate`` blocks do not change that.
    """
    found = written(code)
    assert found is not None  # noqa: S101 (its caller has asked)
    checks: dict[Any, str] = _findings(code, found, mode).checks if looks else {}
    lines = {node.lineno for node in checks} | {n.lineno for n in (short_loops.folds(found.node) if notes else ())}
    node = changed(found.node, partial(_changed, checks, asks, looks, code if notes else None), lines)
    if asks:
        node.body = [placed_at(ast.Expr(_ask()), node.body[0]), *node.body]
    return source.compiled_anew(node, code)


def _changed(
    checks: dict[ast.AST, str], asks: bool, looks: bool, noted: CodeType | None, written: ast.AST, node: ast.AST
) -> ast.AST:
    """Return what replaces a part of a function: ``node``, which is ``written`` with its own parts changed, or more."""
    if asks and isinstance(node, ast.For | ast.While):
        node = copied(node)
        if isinstance(node, ast.For):
            node.iter = placed_at(ast.Call(ast.Name(WATCH, ast.Load()), [node.iter], []), node.iter)
        else:
            node.test = placed_at(ast.BoolOp(ast.And(), [_ask(), node.test]), node.test)
    if looks and isinstance(node, ast.With):
        return placed_at(ast.If(ast.Constant(True), node.body, []), node)
    looked: Any = marked(node, checks[written]) if written in checks else node
    if noted and isinstance(written, ast.Call) and short_loops.is_fold(written):
        return short_loops.noting(noted, written, looked)
    return looked


def _depth(node: ast.AST) -> int:
    """Return the nesting depth of ``for`` loops; ``while`` loops do not count, as they may end soon."""
    body = [b for name in ("body", "orelse") for b in getattr(node, name, ()) if isinstance(b, ast.stmt)]
    return isinstance(node, ast.For) + max(map(_depth, body), default=0)


def _ask() -> ast.expr:
    return ast.Call(ast.Name(TICK, ast.Load()), [], [])
