"""Rewrite rules: what one is, and how a pattern in NumPy notation finds its nodes. Knows ops by their facts alone."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tensormagic.ir.errors import RuleError
from tensormagic.ir.facts import above_zero, is_finite, is_regular, not_negative, unsigned
from tensormagic.ir.node import Bits, Node, hands_on, is_check, make
from tensormagic.ir.node import is_constant as holds_bits
from tensormagic.ir.operation import Operation
from tensormagic.ir.roundings import below as plain
from tensormagic.ir.rule_text import replaced, show
from tensormagic.ir.type import Type
from tensormagic.ir.within import ops_within

LEVELS = ("exact", "stable", "real")
Fit = Callable[[Any, Node], Node | None]
Readers = Sequence[tuple[Callable[..., bool], tuple[str, ...]]]
Goals = tuple[tuple[Node, Node], Any] | None


@dataclass(frozen=True)
class Found:
    """What a rule puts in a node's place.

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

    @property
    def inside(self) -> tuple[Node, ...]:
        """The nodes that a pattern's ops are."""
        return tuple(node for _, node in self.parts)


@dataclass(frozen=True, eq=False)
class Rule:
    """One rewrite rule.

    Parameters
    ----------
    name
        Its text, ``"log(1 + x) -> log1p(x)"``, or what it does in words.
    level
        ``"exact"``: the same bits for every input. ``"stable"``: never less accurate. ``"real"``: true of real numbers.
    roots
        The names of the ops that it looks at; empty for every op.
    apply
        Looks at one node.
    source
        File and line of the rule.
    heads
        What has to be among the operands, as :func:`tensormagic.ir.table.heads` names it: what cannot match is not looked at.
    second
        What has to be among the operands' own operands: pairs of ops and heads.
    within
        The bits of ops one of which has to be within a few levels, as :func:`tensormagic.ir.within.ops_within` gives them; 0 for none.
    assumptions
        What has to hold of the values, for a rule of the level ``"real"``.
    fuel
        A rule that does not make terms lighter may fire this many times for each node that the graph has.
    pattern, replacement
        Its sides, for a rule that is written as a pattern.
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

    name: str
    level: str
    roots: tuple[str, ...]
    apply: Callable[[Node], Found | None] = field(repr=False)
    source: str = ""
    heads: frozenset[str] = frozenset()
    second: frozenset[tuple[str, str]] = frozenset()
    within: int = 0
    assumptions: tuple[str, ...] = ()
    fuel: int = 0
    pattern: Node | None = field(default=None, repr=False)
    replacement: Any = field(default=None, repr=False)
    quiet: bool = False
    judged: bool = False
    even: bool = False
    neutral: bool = False
    extends: str = ""

    def __str__(self) -> str:
        return self.name


CAPTURED = "Write both sides with NumPy's functions, SciPy's special functions, and your own functions of these."


class _Symbol(Operation):
    """The op of what stands in patterns alone."""

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
        return args[0].type

    def evaluate(self, node: Node, values: Sequence[Any], size: Callable[[Any], int]) -> Any:
        del node, values, size
        raise RuleError(
            "a function that is not captured is called with a variable of a rule, which has no value", CAPTURED
        )


WILD = _Symbol(name="wild")


class Constant(Node):
    """Annotation of a pattern variable that constants alone match."""


class Positive(Node):
    """Annotation of a pattern variable that only what is provably not negative (or nan) matches."""


class Unsigned(Node):
    """Annotation of a pattern variable that only what provably has no sign, not that of ``-0.0`` either, matches."""


class Above(Node):
    """Annotation of a pattern variable that only what was said to be greater than zero matches."""


class Finite(Node):
    """Annotation of a pattern variable that only what was said to be finite matches."""


class Regular(Node):
    """Annotation of a pattern variable that only what was said to be finite and not zero matches."""


@dataclass(frozen=True)
class Assuming:
    """Conditions on values that a rule takes for granted, as text."""

    conditions: tuple[str, ...]


@dataclass(frozen=True)
class Extending:
    """Where a rule gives a value and the replaced form has none, or the other way round, as text."""

    where: str


def extending(where: str) -> Extending:
    """What the display says of a rule that gives a number for nan, as mathematics or a standard has it."""
    return Extending(where)


def assuming(*conditions: str) -> Assuming:
    """Conditions that the ledger reports when the rule fires."""
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
) -> tuple[Rule, ...]:
    """The rules that ``function`` states.

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
    assumes, quiet, even, neutral, extends, judged
        For a procedure: what it takes for granted, whether it is housekeeping, whether it buys no digits and may cost
        nothing, whether it is not there for digits, where it has another value, and whether its author has judged what it costs.
    """
    if inspect.isgeneratorfunction(function):
        return tuple(replace(rule, judged=judged) for rule in _patterns(function, level, fit, kinds, fuel))
    line = inspect.unwrap(function).__code__.co_firstlineno
    name = (function.__doc__ or function.__name__).strip().splitlines()[0].rstrip(".").replace("``", "")

    def apply(node: Node) -> Found | None:
        found = function(node)
        if found is None:
            return None
        found = found if isinstance(found, Found) else Found(found)
        fitted = fit(found.node, node)
        return None if fitted is None else replace(found, node=fitted)

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
        ),
    )


def _place(function: Callable[..., Any], line: int) -> str:
    path = Path(inspect.getsourcefile(function) or "")
    return f"{path.name}:{line}"


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
    """The rule that puts ``replacement`` in the place of ``pattern``; ``readers`` check variables that they name."""
    return Rule(
        name=f"{show(pattern)} -> {replaced(replacement)}",
        level=level,
        roots=(pattern.op.name,),
        apply=_applier(pattern, replacement, readers, fit, kinds),
        source=source,
        heads=_heads(pattern),
        second=frozenset((a.op.name, head) for a in pattern.args if a.args for head in _heads(a)),
        assumptions=assumptions,
        fuel=fuel,
        pattern=pattern,
        replacement=replacement,
    )


def _wild(parameter: inspect.Parameter) -> Node:
    """The node that stands for a pattern variable; its annotation says what it matches."""
    note = parameter.annotation
    note = note if isinstance(note, str) else getattr(note, "__name__", "")
    dtype = np.dtype({"bool": bool, "int": np.int64}.get(note, np.float64))
    return make(WILD, type=Type(dtype, (), "scalar"), name=parameter.name, only=note if note in _ONLY else "")


SAME = "="
"""Among the heads of a node: two of its operands are the same."""


def _heads(pattern: Node) -> frozenset[str]:
    """What has to be among the operands of a node that ``pattern`` matches."""
    wild = [a["name"] for a in pattern.args if a.op is WILD]
    named = {number(a) if holds_bits(a) else a.op.name for a in pattern.args if a.op is not WILD}
    numbers = {"constant" for a in pattern.args if a.op is WILD and a["only"] == "Constant"}
    return frozenset(named | numbers | ({SAME} if len(set(wild)) < len(wild) else set()))


def number(node: Node) -> str:
    """A constant as text, in which equal numbers of all dtypes look the same."""
    return _text(node["bits"])


@lru_cache(maxsize=4096)
def _text(bits: Bits) -> str:
    value = bits.array().item()
    return str(value if isinstance(value, complex) else float(value))


def _applier(pattern: Node, replacement: Any, readers: Readers, fit: Fit, kinds: str) -> Callable[[Node], Found | None]:
    def apply(node: Node) -> Found | None:
        match = find(pattern, node)
        if match is None:
            return None
        bound, parts = match
        if any(n.type.dtype.kind not in kinds and n.type.dtype.kind != "b" for n in bound.values()):
            return None
        if not all(check(*(bound[name] for name in names)) for check, names in readers):
            return None
        built = build(replacement, bound) if isinstance(replacement, Node) else replacement
        fitted = fit(built, node)
        if fitted is None:
            return None
        new, given = _checked(fitted, parts, bound.values()), tuple(bound.values())
        return Found(new, parts, given, plain=new is built and all(n.type == node.type for n in given))

    return apply


def _checked(new: Node, parts: Parts, bound: Iterable[Node]) -> Node:
    """``new`` with the checks that were looked through and that it does not have: what was an error stays one."""
    lost: dict[Node, None] = {}
    for _, part in parts:
        for arg in part.args:
            if hands_on(arg):
                lost.update(dict.fromkeys(_checks(arg)))
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
        params: dict[str, Any] = {k: v for k, v in check.params.items() if k != "facts"}  # which are of another value
        new = make(check.op, (new, check.args[1]), **params)
    return new


def _checks(node: Node) -> Iterator[Node]:
    """The checks between ``node`` and what is below its changes of shape and form."""
    while hands_on(node):
        if is_check(node):
            yield node
        node = node.args[0]


def looked_through(node: Node) -> Iterator[Node]:
    """The operands of ``node``, and what is below the changes of shape and form and the checks that they are."""
    for arg in node.args:
        yield arg
        while hands_on(arg):
            yield from arg.args
            arg = arg.args[0]  # noqa: PLW2901 (going down)


def bare(node: Node) -> Node:
    """What :func:`plain` gives, below checks too."""
    below = node.below
    return node if below is None else below


# matching -------------------------------------------------------------------------------------------------------------


Parts = tuple[tuple[Node, Node], ...]
Match = tuple[dict[str, Node], Parts]


def find(pattern: Node, node: Node) -> Match | None:
    """What each variable of ``pattern`` is in ``node``, and which node each of its ops is.

    Broadcasts, changes of form and checks are looked through, operands of commutative ops match in either order, constants match by value.
    None where the pattern does not match.
    """
    return _solve(((pattern, node), None), {}, ()) if pattern.op is node.op else None


def _solve(goals: Goals, bound: dict[str, Node], parts: Parts) -> Match | None:
    while goals is not None:
        (pattern, node), goals = goals
        if not pattern.args:
            extended = _bind(pattern, node, bound)
            if extended is None:
                return None
            bound = extended
            continue
        if node.op is not pattern.op:
            node = bare(node)
            if node.op is not pattern.op:
                return None
        parts = (*parts, (pattern, node))
        if node.op.commutative:
            (p, q), (a, b) = pattern.args, node.args
            if a is not b and (found := _solve(((p, a), ((q, b), goals)), bound, parts)) is not None:
                return found
            goals = ((p, b), ((q, a), goals))
            continue
        for pair in zip(reversed(pattern.args), reversed(node.args), strict=True):
            goals = (pair, goals)
    return bound, parts


def _bind(pattern: Node, node: Node, bound: dict[str, Node]) -> dict[str, Node] | None:
    """The bindings with one more for a variable, the same for a constant that agrees, None for what does not fit."""
    if pattern.op is not WILD:
        return bound if _same_number(pattern, plain(node)) else None
    name = pattern["name"]
    if name in bound:
        return bound if bare(bound[name]) is bare(node) else None
    return {**bound, name: node} if _admits(pattern, node) else None


def _admits(pattern: Node, node: Node) -> bool:
    if pattern.type.dtype.kind == "b" != node.type.dtype.kind:
        return False
    only = pattern["only"]
    return not only or _ONLY[only](node)


def _same_number(pattern: Node, node: Node) -> bool:
    return node.op is pattern.op and not node.type.shape and _same_bits(pattern["bits"], node["bits"])


@lru_cache(maxsize=4096)
def _same_bits(pattern: Bits, number: Bits) -> bool:
    wanted, given = pattern.array(), number.array()
    return bool(wanted == given) and wanted.astype(given.dtype).tobytes() == given.tobytes()


def is_constant(node: Node) -> bool:
    """Whether ``node`` is a single number that is known, perhaps broadcast."""
    node = plain(node)
    return holds_bits(node) and not node.type.shape


_ONLY: dict[str, Callable[[Node], bool]] = {
    "Constant": is_constant,
    "Positive": not_negative,
    "Unsigned": unsigned,
    "Above": above_zero,
    "Finite": is_finite,
    "Regular": is_regular,
}


def build(template: Node, bound: Mapping[str, Node]) -> Node:
    """``template`` with its variables replaced by what they are bound to; numbers become weak, so that dtypes stay."""
    if template.op is WILD:
        return bound[template["name"]]
    if holds_bits(template):
        return make(template.op, type=Type(template.type.dtype, (), "python"), **template.params)
    args = [build(a, bound) for a in template.args]
    return template.op(*args) if callable(template.op) else make(template.op, args, **template.params)
