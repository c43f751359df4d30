"""Rules that users write as text: ``log(1 + exp(x)) -> logaddexp(0, x)``, one a line."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

import numpy as np

from tensormagic.ir.errors import ParseError
from tensormagic.ir.node import Node, make, topological
from tensormagic.ir.rules import WILD, Rule, is_constant, not_negative, show
from tensormagic.ir.type import Type
from tensormagic.ops.leaf import constant
from tensormagic.ops.op import registry
from tensormagic.ops.pointwise import Pointwise
from tensormagic.ops.scalar import add, divide, multiply, negative, power, subtract
from tensormagic.transform.rewriting.notation import rule_of

_OPERATORS: dict[type[ast.AST], Callable[..., Node]] = {
    ast.Add: add,
    ast.Sub: subtract,
    ast.Mult: multiply,
    ast.Div: divide,
    ast.Pow: power,
    ast.USub: negative,
}
_PREDICATES: dict[str, Callable[[Node], bool]] = {"constant": is_constant, "not_negative": not_negative}


def parse_rules(text: str, source: str = "rules") -> tuple[Rule, ...]:
    """The rules that ``text`` states, one a line; empty lines and what follows ``#`` say nothing.

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
    return tuple(_rules(text, source))


def _rules(text: str, source: str) -> Iterator[Rule]:
    for number, line in enumerate(text.splitlines(), 1):
        stated = line.partition("#")[0].strip()
        if not stated:
            continue
        try:
            yield _rule(stated, f"{source}:{number}")
        except (ParseError, SyntaxError, TypeError) as error:
            what = getattr(error, "message", "") or str(error)
            raise ParseError(
                f"line {number}: {what}", "A rule is `pattern -> replacement`, then perhaps `if`."
            ) from None


def _rule(text: str, source: str) -> Rule:
    left, arrow, rest = text.partition("->")
    right, _, condition = rest.partition(" if ")
    if not arrow or not right.strip():
        raise ParseError(f"{text!r} has no replacement")
    pattern, replacement = _normal(_expression(left)), _expression(right)
    if not pattern.args:
        raise ParseError(f"{left.strip()!r} is no pattern: it matches everything or a number")
    known, wanted = _variables(pattern), _variables(replacement)
    if missing := sorted(wanted - known):
        raise ParseError(f"{', '.join(missing)} is not in the pattern")
    checks, assumed = _conditions(condition, known)
    return rule_of(pattern, replacement, checks, assumed, source)


def _normal(pattern: Node) -> Node:
    """The pattern as it looks in graphs: ``x ** 2`` is ``square(x)`` there."""
    from tensormagic.transform.rewriting import rewrite_nodes

    (normal,), _ = rewrite_nodes([pattern], "exact")
    return normal if normal.args else pattern


def _variables(node: Node) -> set[str]:
    return {n["name"] for n in topological([node]) if n.op is WILD}


def _conditions(text: str, known: set[str]) -> tuple[list[tuple[Callable[[Node], bool], str]], tuple[str, ...]]:
    """The predicates with the variable that each is about, and the comparisons as text."""
    if not text.strip():
        return [], ()
    tree = ast.parse(text.strip(), mode="eval").body
    checks: list[tuple[Callable[[Node], bool], str]] = []
    assumed: list[str] = []
    for part in tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]:
        match part:
            case ast.Call(func=ast.Name(id=name), args=[ast.Name(id=variable)]) if (
                name in _PREDICATES and variable in known
            ):
                checks.append((_PREDICATES[name], variable))
            case ast.Compare():
                assumed.append(ast.unparse(part))
            case _:
                raise ParseError(f"{ast.unparse(part)!r} is no condition")
    return checks, tuple(assumed)


def _expression(text: str) -> Node:
    return _node(ast.parse(text.strip(), mode="eval").body)


def _node(tree: ast.expr) -> Node:
    match tree:
        case ast.Constant(value=int() | float() as number):
            return constant(number)
        case ast.Name(id=name) if _operation(name) is None:
            return make(WILD, type=Type(np.dtype(float), (), "scalar"), name=name, only="")
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_node(operand))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_node(left), _node(right))
        case ast.Call(
            func=ast.Name(id=name) | ast.Attribute(value=ast.Name(id="np"), attr=name), args=args, keywords=[]
        ):
            return _call(name, [_node(a) for a in args])
        case _:
            raise ParseError(f"{ast.unparse(tree)!r} is no pointwise expression")


def _operation(name: str) -> Pointwise | None:
    op = registry.get({"abs": "absolute"}.get(name, name))
    return op if isinstance(op, Pointwise) else None


def _call(name: str, args: list[Node]) -> Node:
    op = _operation(name)
    if op is None:
        raise ParseError(f"there is no pointwise operation {name}")
    if len(args) != op.arity:
        raise ParseError(f"{name} takes {op.arity} operands, not {', '.join(map(show, args)) or 'none'}")
    return op(*args)
