"""Rules that users write as text: ``log(1 + exp(x)) -> logaddexp(0, x)``, one a line."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tensormagic.ir.errors import ParseError
from tensormagic.ir.facts import not_negative
from tensormagic.ir.node import Node, make, topological
from tensormagic.ir.rewriting.rule_text import show
from tensormagic.ir.rewriting.rules import WILD, Rule, is_constant
from tensormagic.ir.type import Type
from tensormagic.ops.leaf import constant
from tensormagic.ops.op import registry
from tensormagic.ops.pointwise import Pointwise
from tensormagic.ops.scalars.scalar import add, divide, multiply, negative, power, subtract
from tensormagic.transform.rewriting import rewrite_nodes
from tensormagic.transform.rewriting.notation import rule_of
from tensormagic.transform.rewriting.users.chains import anywhere
from tensormagic.transform.rewriting.users.trial import Trial, trial

_OPERATORS: dict[type[ast.AST], Callable[..., Node]] = {
    ast.Add: add,
    ast.Sub: subtract,
    ast.Mult: multiply,
    ast.Div: divide,
    ast.Pow: power,
    ast.USub: negative,
}
Operations = Mapping[str, Pointwise]
PREDICATES: dict[str, Callable[[Node], bool]] = {"constant": is_constant, "not_negative": not_negative}


@dataclass(frozen=True)
class Stated:
    """A user's rule with its parts, for a trial on numbers.

    Parameters
    ----------
    rule
        The rule.
    pattern, replacement
        Its sides, over variables.
    assumed, not_negative
        Its conditions as text, and the variables required to be nonnegative.
    line
        The line that states it.
    """

    rule: Rule
    pattern: Node
    replacement: Node
    assumed: tuple[str, ...] = ()
    not_negative: tuple[str, ...] = ()
    line: int = 0

    def trial(self) -> Trial:
        """Return the result of trying the rule on numbers, as its level asks."""
        return trial(self.pattern, self.replacement, self.rule.level, self.assumed, self.not_negative)


def parse_rules(text: str, source: str = "rules", level: str = "real") -> tuple[Rule, ...]:
    """Return the rules that ``text`` states, one a line; empty lines and what follows ``#`` say nothing.

    ``pattern -> replacement``, and after ``if``, joined by ``and``: ``constant(c)`` and ``not_negative(x)``, which are
    checked, or any comparison, which is taken for granted and listed with the result. Names of pointwise operations
    (bare, or after ``np.``) are operations; all others are variables.

    Raises
    ------
    ParseError
        For a line that is no rule, with its number.

    Examples
    --------
    >>> [rule.name for rule in parse_rules("log(exp(x) * c) -> x + log(c) if c > 0")]
    ['log(exp(x) * c) -> x + log(c)']
    """
    return tuple(stated.rule for stated in stated_rules(text, source, level))


def stated_rules(text: str, source: str, level: str) -> Iterator[Stated]:
    """Yield the rules that ``text`` states, with their parts; see :func:`parse_rules`."""
    for number, line in enumerate(text.splitlines(), 1):
        stated = line.partition("#")[0].strip()
        if not stated:
            continue
        try:
            yield stated_rule(stated, f"{source}:{number}", level, number)
        except (ParseError, SyntaxError, TypeError) as error:
            what = getattr(error, "message", "") or str(error)
            refused = ParseError(f"line {number}: {what}", "A rule is `pattern -> replacement`, then perhaps `if`.")
            refused.lineno = number  # type: ignore[attr-defined]
            raise refused from None


def stated_rule(text: str, source: str, level: str, line: int, own: Operations | None = None) -> Stated:
    """Return the rule over single numbers that a line states; raises ParseError if it states none.

    ``own`` are further operations by name.
    """
    left, arrow, rest = text.partition("->")
    right, _, condition = rest.partition(" if ")
    if not arrow or not right.strip():
        raise ParseError(f"{text!r} has no replacement")
    own = own or {}
    pattern, replacement = _normal(_expression(left, own)), _expression(right, own)
    if not pattern.args:
        raise ParseError(f"{left.strip()!r} is not a pattern: it would match everything, or is a number")
    known, wanted = _variables(pattern), _variables(replacement)
    if missing := sorted(wanted - known):
        raise ParseError(f"{', '.join(missing)} is not in the pattern")
    checks, assumed = _conditions(condition, known)
    above = tuple(name for check, name in checks if check is not_negative)
    rule = anywhere(rule_of(pattern, replacement, checks, assumed, source, level))
    return Stated(rule, pattern, replacement, assumed, above, line)


def rules_of_function(
    function: Callable[..., Any], level: str, enter: Callable[[Node], Any], leave: Callable[[Any], Any]
) -> Iterator[Stated]:
    """Yield the rules that a generator function yields: pattern, replacement, conditions.

    Parameters
    ----------
    function
        Takes the variables.
    level
        The level of the rules.
    enter, leave
        What the function sees for a variable's node, and the node of what it gives.

    Raises
    ------
    ParseError
        For what is no rule.
    """
    names = list(inspect.signature(function).parameters)
    variables = [make(WILD, type=Type(np.dtype(float), (), "scalar"), name=name, only="") for name in names]
    generator = function(*map(enter, variables))
    for given in generator:
        line = generator.gi_frame.f_lineno
        sides = tuple(map(leave, given)) if isinstance(given, tuple) else given
        if not isinstance(sides, tuple) or len(sides) < 2 or not isinstance(sides[0], Node) or not sides[0].args:
            raise ParseError(f"{function.__name__}, line {line}: a rule is `yield pattern, replacement, *conditions`")
        pattern, replacement, *conditions = sides
        replacement = replacement if isinstance(replacement, Node) else constant(replacement)
        assumed = tuple(show(c) if isinstance(c, Node) else str(c) for c in conditions)
        pattern = _normal(pattern)
        source = f"{Path(inspect.getsourcefile(function) or 'cell').name}:{line}"
        own = anywhere(rule_of(pattern, replacement, [], assumed, source, level))
        yield Stated(own, pattern, replacement, assumed, (), line)


def _normal(pattern: Node) -> Node:
    """Return the pattern as it appears in graphs: ``x ** 2`` is ``square(x)`` there."""
    (normal,), _ = rewrite_nodes([pattern], "exact")
    return normal if normal.args else pattern


def _variables(node: Node) -> set[str]:
    return {n["name"] for n in topological([node]) if n.op is WILD}


def _conditions(text: str, known: set[str]) -> tuple[list[tuple[Callable[[Node], bool], str]], tuple[str, ...]]:
    """Return the predicates with their variables, and the comparisons as text."""
    checks: list[tuple[Callable[[Node], bool], str]] = []
    assumed: list[str] = []
    for part in condition_parts(text):
        match part:
            case ast.Call(func=ast.Name(id=name), args=[ast.Name(id=variable)]) if (
                name in PREDICATES and variable in known
            ):
                checks.append((PREDICATES[name], variable))
            case ast.Compare() if not any(isinstance(n, ast.Attribute) for n in ast.walk(part)):
                assumed.append(ast.unparse(part))
            case _:
                raise ParseError(f"{ast.unparse(part)!r} is not a condition")
    return checks, tuple(assumed)


def condition_parts(text: str) -> list[ast.expr]:
    """Return the conditions of a rule, one by one."""
    if not text.strip():
        return []
    tree = ast.parse(text.strip(), mode="eval").body
    return tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]


def _expression(text: str, own: Operations) -> Node:
    return _node(ast.parse(text.strip(), mode="eval").body, own)


def _node(tree: ast.expr, own: Operations) -> Node:
    match tree:
        case ast.Constant(value=int() | float() as number):
            return constant(number)
        case ast.Name(id=name) if _operation(name) is None:
            return make(WILD, type=Type(np.dtype(float), (), "scalar"), name=name, only="")
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_node(operand, own))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_node(left, own), _node(right, own))
        case ast.Call(func=func, args=args, keywords=[]) if ast.unparse(func) in own:
            return own[ast.unparse(func)](*(_node(a, own) for a in args))
        case ast.Call(
            func=ast.Name(id=name) | ast.Attribute(value=ast.Name(id="np"), attr=name), args=args, keywords=[]
        ):
            return _call(name, [_node(a, own) for a in args])
        case _:
            raise ParseError(f"{ast.unparse(tree)!r} is not an elementwise expression")


def _operation(name: str) -> Pointwise | None:
    op = registry.get({"abs": "absolute"}.get(name, name))
    return op if isinstance(op, Pointwise) else None


def _call(name: str, args: list[Node]) -> Node:
    op = _operation(name)
    if op is None:
        raise ParseError(f"there is no elementwise operation {name}")
    if len(args) != op.arity:
        raise ParseError(f"{name} takes {op.arity} operands, not {', '.join(map(show, args)) or 'none'}")
    return op(*args)
