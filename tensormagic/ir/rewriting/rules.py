"""Rewrite rules, and how functions in NumPy notation state them. Knows ops by their facts alone."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

from tensormagic.ir.node import Bits, Node, hands_on, is_check, make, topological
from tensormagic.ir.node import is_constant as holds_bits
from tensormagic.ir.rewriting.matching import (
    CAPTURED,
    ONLY,
    WILD,
    Parts,
    bare,
    build,
    builder,
    find,
    is_constant,
    looked_through,
    matcher,
)
from tensormagic.ir.rewriting.roundings import below as plain
from tensormagic.ir.rewriting.rule_text import replaced, show
from tensormagic.ir.rewriting.within import in_pattern, ops_within
from tensormagic.ir.type import Type

LEVELS = ("exact", "stable", "real")
Fit = Callable[[Any, Node], Node | None]
Readers = Sequence[tuple[Callable[..., bool], tuple[str, ...]]]

__all__ = [
    "CAPTURED",
    "LEVELS",
    "SAME",
    "WILD",
    "Above",
    "Assuming",
    "Constant",
    "Extending",
    "Finite",
    "Fit",
    "Found",
    "Positive",
    "Readers",
    "Regular",
    "Rule",
    "Unsigned",
    "assuming",
    "bare",
    "build",
    "extending",
    "find",
    "is_constant",
    "looked_through",
    "number",
    "pattern_rule",
    "plain",
    "rules_of",
]


@dataclass(eq=False, slots=True)
class Found:  # not frozen, as that takes a microsecond for each instance
    """The replacement that a rule has found for a node.

    Parameters
    ----------
    node
        The replacement, of the type of the node that it replaces.
    parts
        For a rule that is written as a pattern: the ops of the pattern, its root first, and the nodes that they are.
    bound
        For such a rule: what its variables are.
    absorbs
        For a rule that is no pattern: the nodes whose roundings its replacement does not show, or shows in places only, where
        these are not just what it no longer reads.
    plain
        For a rule that is written as a pattern: whether the replacement has just the ops of the rule's, since all has one type.
    """

    node: Node
    parts: tuple[tuple[Node, Node], ...] = ()
    bound: tuple[Node, ...] = ()
    absorbs: tuple[Node, ...] = ()
    plain: bool = False

    def changes(self, node: Node) -> bool:
        """Return whether the replacement differs from ``node``."""
        return self.node is not node

    def gives_back(self) -> bool:
        """Return whether the replacement is just one of the variables, perhaps broadcast."""
        return plain(self.node) in map(plain, self.bound)

    @property
    def inside(self) -> tuple[Node, ...]:
        """The nodes matched by the ops of the pattern."""
        return tuple(node for _, node in self.parts)


class _Late(Found):
    """A replacement that is built only when it is read, as most matches are withheld."""

    __slots__ = ("_bound", "_made", "_make")

    def __init__(self, make_: Callable[[dict[str, Node]], Node], bound: dict[str, Node], parts: Parts) -> None:
        self._make, self._bound = make_, bound
        self._made: Node | None = None
        self.parts, self.bound, self.absorbs, self.plain = parts, tuple(bound.values()), (), True

    @property
    def node(self) -> Node:  # type: ignore[override]
        found = self._made
        if found is None:
            found = self._made = self._make(self._bound)
        return found

    def changes(self, node: Node) -> bool:
        del node
        return True

    def gives_back(self) -> bool:
        return False


@dataclass(frozen=True, eq=False)
class Rule:
    """One rewrite rule.

    Parameters
    ----------
    words
        What it does in words, for a rule that is no pattern.
    level
        ``"exact"``: the same bits for every input. ``"stable"``: never less accurate. ``"real"``: true of real numbers.
    roots
        The names of the ops that it looks at; empty for every op.
    apply
        Looks at one node.
    source
        File and line of the rule.
    heads
        What has to be among the operands, as :func:`tensormagic.ir.rewriting.table.heads` names it: what cannot match is not looked at.
    second
        What has to be among the operands' own operands: pairs of ops and heads.
    within
        The bits of ops one of which has to be within a few levels, as
        :func:`tensormagic.ir.rewriting.within.ops_within` gives them; 0 for none.
    deep
        The bits of ops all of which have to be where they are, further down than ``second`` goes; 0 for none.
    assumptions
        What has to hold of the values, for a rule of the level ``"real"``.
    fuel
        A rule that does not make terms lighter may fire this many times for each node that the graph has.
    pattern, replacement
        Its sides, for a rule that is written as a pattern.
    cancels
        It is about what cancels in a sum: it does not look where all terms provably have one sign.
    quiet
        Housekeeping, which nobody wants to read of.
    judged
        What it costs was judged before.
    even
        It buys no digits, so it may cost no more than what goes, and is silent where it would.
    neutral
        It is not there for digits: it adds the same numbers in another order or place, or is a user's own.
    extends
        Where its value is another one than that of the replaced form beyond rounding, as text: the display says so.
    """

    words: str
    level: str
    roots: tuple[str, ...]
    apply: Callable[[Node], Found | None] = field(repr=False)
    source: str = ""
    heads: frozenset[str] = frozenset()
    second: frozenset[tuple[str, str]] = frozenset()
    within: int = 0
    deep: int = 0
    assumptions: tuple[str, ...] = ()
    fuel: int = 0
    pattern: Node | None = field(default=None, repr=False)
    replacement: Any = field(default=None, repr=False)
    quiet: bool = False
    judged: bool = False
    even: bool = False
    neutral: bool = False
    extends: str = ""
    cancels: bool = False

    @cached_property
    def name(self) -> str:
        """The rule in words, or as text, ``"log(1 + x) -> log1p(x)"``; built when it is first read."""
        return self.words or (
            f"{show(self.pattern)} -> {replaced(self.replacement)}" if self.pattern is not None else ""
        )

    def __str__(self) -> str:
        return self.name


class Constant(Node):
    """Annotation of a pattern variable: matches constants only."""


class Positive(Node):
    """Annotation of a pattern variable: matches only what is provably nonnegative (or nan)."""


class Unsigned(Node):
    """Annotation of a pattern variable: matches only what provably has no sign bit, not even as ``-0.0``."""


class Above(Node):
    """Annotation of a pattern variable: matches only what is assumed to be greater than zero."""


class Finite(Node):
    """Annotation of a pattern variable: matches only what is assumed to be finite."""


class Regular(Node):
    """Annotation of a pattern variable: matches only what is assumed to be finite and nonzero."""


@dataclass(frozen=True)
class Assuming:
    """Conditions on values that a rule assumes, as text."""

    conditions: tuple[str, ...]


@dataclass(frozen=True)
class Extending:
    """Where a rule gives a value and the original form gives none, or the other way round, as text."""

    where: str


def extending(where: str) -> Extending:
    """Return a remark for rules that give a number where the original gives nan, as mathematics or a standard defines it."""
    return Extending(where)


def assuming(*conditions: str) -> Assuming:
    """Return conditions that the log of rewriting reports when the rule fires."""
    return Assuming(conditions)


# notation -------------------------------------------------------------------------------------------------------------


def rules_of(
    function: Callable[..., Any],
    level: str,
    fit: Fit,
    kinds: str = "f",
    roots: str = "",
    fuel: int = 0,
    assumes: tuple[str, ...] = (),
    heads: str = "",
    within: str = "",
    quiet: bool = False,
    even: bool = False,
    neutral: bool = False,
    extends: str = "",
    judged: bool = False,
    cancels: bool = False,
) -> tuple[Rule, ...]:
    """Return the rules that ``function`` states.

    Parameters
    ----------
    function
        Either a generator of ``pattern, replacement, *conditions`` over pattern variables, or a procedure of one
        ``node`` that gives its replacement or None.
    level
        The level of the rules.
    fit
        Brings a replacement to the type of the node, or says that it does not fit.
    kinds
        The dtype kinds that variables may have.
    roots, heads, within
        For a procedure: ops that it looks at, ops that have to be among the operands, ops one of which has to be within a few levels.
    fuel
        See :class:`Rule`.
    assumes, quiet, even, neutral, extends, judged, cancels
        For a procedure: what it takes for granted, whether it is housekeeping, whether it buys no digits and may cost
        nothing, whether it is not there for digits, where it has another value, whether its author has judged what it costs, and
        whether it is about what cancels in a sum.
    """
    if inspect.isgeneratorfunction(function):
        return tuple(
            replace(rule, judged=judged, cancels=cancels) for rule in _patterns(function, level, fit, kinds, fuel)
        )
    line = inspect.unwrap(function).__code__.co_firstlineno
    name = (function.__doc__ or function.__name__).strip().splitlines()[0].rstrip(".").replace("``", "")

    def apply(node: Node) -> Found | None:
        found = function(node)
        if found is None:
            return None
        found = found if isinstance(found, Found) else Found(found)
        fitted = fit(found.node, node)
        return found if fitted is found.node else None if fitted is None else replace(found, node=fitted)

    where = _place(function, line)
    return (
        Rule(
            *(name, level, tuple(roots.split()), apply, where, frozenset(heads.split())),
            within=ops_within(within.split()),
            assumptions=assumes,
            fuel=fuel,
            quiet=quiet,
            even=even,
            neutral=neutral or even,
            extends=extends,
            judged=judged,
            cancels=cancels,
        ),
    )


def _place(function: Callable[..., Any], line: int) -> str:
    code: CodeType = getattr(function, "__code__")  # noqa: B009 (a function's)
    name = _names.get(code.co_filename)
    if name is None:
        name = _names[code.co_filename] = Path(inspect.getsourcefile(code) or "").name
    return f"{name}:{line}"


_names: dict[str, str] = {}  # names of files that state rules, cached as finding one takes as long as making a rule


def _patterns(function: Callable[..., Any], level: str, fit: Fit, kinds: str, fuel: int) -> Iterator[Rule]:
    names = [_wild(p) for p in inspect.signature(function).parameters.values()]
    generator = function(*names)
    for pattern, replacement, *conditions in generator:
        assumed = tuple(c for a in conditions if isinstance(a, Assuming) for c in a.conditions)
        extends = " and ".join(e.where for e in conditions if isinstance(e, Extending))
        checks = [c for c in conditions if not isinstance(c, Assuming | Extending)]
        readers = [(check, tuple(inspect.signature(check).parameters)) for check in checks]
        source = _place(function, generator.gi_frame.f_lineno)
        rule = pattern_rule(
            pattern, replacement, readers, fit, level=level, kinds=kinds, source=source, assumptions=assumed, fuel=fuel
        )
        yield replace(rule, extends=extends)


def pattern_rule(
    pattern: Node,
    replacement: Any,
    readers: Readers,
    fit: Fit,
    *,
    level: str,
    kinds: str,
    source: str,
    assumptions: tuple[str, ...],
    fuel: int,
) -> Rule:
    """Return the rule that replaces ``pattern`` by ``replacement``; ``readers`` check the variables they name."""
    return Rule(
        words="",
        level=level,
        roots=(pattern.op.name,),
        apply=_applier(pattern, replacement, readers, fit, kinds),
        source=source,
        heads=_heads(pattern),
        second=frozenset((a.op.name, head) for a in pattern.args if a.args for head in _heads(a)),
        deep=in_pattern(pattern),
        assumptions=assumptions,
        fuel=fuel,
        pattern=pattern,
        replacement=replacement,
    )


def _may_raise(value: Node) -> bool:
    """Return whether a value must still be computed because it may raise an error; assumed facts are checked separately."""
    return bool(value.args) and any(n.op.may_raise(n) and "facts" not in n.params for n in topological([value]))


def _wild(parameter: inspect.Parameter) -> Node:
    """Return the node that stands for a pattern variable; its annotation says what it matches."""
    note = parameter.annotation
    note = note if isinstance(note, str) else getattr(note, "__name__", "")
    dtype = np.dtype({"bool": bool, "int": np.int64}.get(note, np.float64))
    return make(WILD, type=Type(dtype, (), "scalar"), name=parameter.name, only=note if note in ONLY else "")


SAME = "="
"""Among the heads of a node: says that two of its operands are the same."""


def _heads(pattern: Node) -> frozenset[str]:
    """Return the names of what must be among the operands of a node for ``pattern`` to match."""
    wild = [a["name"] for a in pattern.args if a.op is WILD]
    named = {number(a) if holds_bits(a) else a.op.name for a in pattern.args if a.op is not WILD}
    numbers = {"constant" for a in pattern.args if a.op is WILD and a["only"] == "Constant"}
    return frozenset(named | numbers | ({SAME} if len(set(wild)) < len(wild) else set()))


def number(node: Node) -> str:
    """Return a constant as text; equal numbers of different dtypes have the same text."""
    return _text(node["bits"])


@lru_cache(maxsize=4096)
def _text(bits: Bits) -> str:
    value = bits.array().item()
    return str(value if isinstance(value, complex) else float(value))


def _applier(pattern: Node, replacement: Any, readers: Readers, fit: Fit, kinds: str) -> Callable[[Node], Found | None]:
    match, made = matcher(pattern), builder(replacement) if isinstance(replacement, Node) else None
    kinds += "b"
    kept = (
        {n["name"] for n in topological([replacement]) if n.op is WILD} if isinstance(replacement, Node) else set[str]()
    )
    gone = {n["name"] for n in topological([pattern]) if n.op is WILD} - kept
    late = made if made is not None and not gone and _is_another_function(replacement, pattern) else None

    def apply(node: Node) -> Found | None:
        found = match(node)
        if found is None:
            return None
        bound, parts = found
        given = tuple(bound.values())
        if any(one.type.dtype.kind not in kinds for one in given):
            return None
        if not all(check(*[bound[name] for name in names]) for check, names in readers):
            return None
        if any(_may_raise(bound[name]) for name in gone):
            return None
        if late is not None and _is_of_one_type(node, given) and not any(_lost(parts)):
            return _Late(late, bound, parts)
        built = made(bound) if made is not None else replacement
        fitted = fit(built, node)
        if fitted is None:
            return None
        new, own = _checked(fitted, parts, given), node.type
        return Found(new, parts, given, plain=new is built and all(n.type == own for n in given))

    return apply


def _is_of_one_type(node: Node, given: Sequence[Node]) -> bool:
    """Return whether all variables are floats of the node's type, so that the replacement is, too."""
    own = node.type
    return bool(given) and own.dtype.kind == "f" and all(n.type == own for n in given)


def _is_another_function(replacement: Node, pattern: Node) -> bool:
    """Return whether ``replacement`` is an element-wise function other than ``pattern``'s, of the same type if all variables have it."""
    if replacement.op is pattern.op or not replacement.args or replacement.type != pattern.type:
        return False
    return all(not n.args or (n.op.kind == "pointwise" and not n.op.hands_on) for n in topological([replacement]))


def _lost(parts: Parts) -> Iterator[Node]:
    """Yield the checks between the ops of a pattern."""
    for _, part in parts:
        for arg in part.args:
            if hands_on(arg):
                yield from _checks(arg)


def _checked(new: Node, parts: Parts, bound: Iterable[Node]) -> Node:
    """Return ``new`` with the checks that matching has skipped and ``new`` lacks, so that errors are still raised."""
    lost = dict.fromkeys(_lost(parts))
    if not lost:
        return new
    ends = {*bound, *(n for _, n in parts)}
    stack = [new]
    while stack:
        node = stack.pop()
        for check in _checks(node):
            lost.pop(check, None)
        stack += () if node in ends else node.args
    for check in reversed(lost):
        params: dict[str, Any] = {
            k: v for k, v in check.params.items() if k != "facts"
        }  # the facts are about another value
        new = make(check.op, (new, check.args[1]), **params)
    return new


def _checks(node: Node) -> Iterator[Node]:
    """Yield the checks among the broadcasts and changes of form directly at ``node``."""
    while hands_on(node):
        if is_check(node):
            yield node
        node = node.args[0]
