"""Rules over arrays as text and as generators: how their sides are computed over whatever stands for the variables."""

from __future__ import annotations

import ast
import inspect
import itertools
import linecache
from collections.abc import Callable, Iterator, Mapping
from ctypes import ArgumentError
from types import ModuleType
from typing import Any

import numpy as np

from tensormagic.alike import alike
from tensormagic.capture.inputs import namespace
from tensormagic.capture.python import usercode
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.functions.calls.function import Function
from tensormagic.functions.rules.array_rules import RANKS, Statement, Unfit, examples, leaves_of
from tensormagic.ir.errors import ParseError
from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rule_text import show
from tensormagic.ops.matrices.gram import gram
from tensormagic.ops.op import registry
from tensormagic.ops.pointwise import Pointwise
from tensormagic.transform.rewriting.users.text import PREDICATES, condition_parts

_PREFIXES = {"np": np, "numpy": np, "linalg": np.linalg}
_FORM = "A rule is `pattern -> replacement`, then perhaps `if` and conditions."
_STRUCTURE = {"ndim", "shape", "size"}

Space = Mapping[str, Any]


def _modules() -> tuple[ModuleType, ...]:
    """Return the modules in which names of functions are looked up; SciPy's parts are imported when the first rule is read."""
    import scipy.linalg
    import scipy.special

    return np, np.linalg, scipy.special, scipy.linalg


# text -----------------------------------------------------------------------------------------------------------------


def statement_of_text(text: str, source: str, level: str, line: int, space: Space) -> Statement:
    """Return the rule that a line states; called names are functions of NumPy, or of the notebook.

    Raises
    ------
    ParseError
        If the line states no rule.
    """
    left, arrow, rest = text.partition("->")
    right, _, condition = rest.partition(" if ")
    if not arrow or not right.strip():
        raise ParseError(f"{text!r} has no replacement", _FORM)
    sides = [_parsed(side) for side in (left, right)]
    names, wanted = (tuple(dict.fromkeys(_variables(side))) for side in sides)
    if not names or isinstance(sides[0], ast.Name | ast.Constant):
        raise ParseError(f"{left.strip()!r} is not a pattern: it would match everything, or is a number", _FORM)
    if missing := [n for n in wanted if n not in names]:
        raise ParseError(f"{', '.join(missing)} is not in the pattern", _FORM)
    functions = {name: _function(name, space) for side in sides for name in _called(side)}
    codes = [compile(ast.fix_missing_locations(ast.Expression(side)), source, "eval") for side in sides]
    parts = condition_parts(condition)
    structural = [p for p in parts if _is_structural(p)]
    checks = tuple((PREDICATES[name], variable) for name, variable in filter(None, map(_predicate, parts)))
    assumed = tuple(ast.unparse(p) for p in parts if p not in structural and _predicate(p) is None)
    tests = [compile(ast.fix_missing_locations(ast.Expression(p)), source, "eval") for p in structural]
    known = {k: namespace.value_of(v, staged=False) for k, v in _PREFIXES.items()} | functions | {"__builtins__": {}}

    def both(arrays: Mapping[str, Tensor]) -> Iterator[Any]:
        seen = {**known, **arrays}
        if not all(bool(eval(test, seen)) for test in tests):  # noqa: S307 (the user's own text, as below)
            raise Unfit
        yield None
        yield from (eval(code, seen) for code in codes)  # noqa: S307

    shown = " -> ".join(ast.unparse(side) for side in sides)
    return Statement(names, both, shown, source, line, level, checks, assumed)


def _parsed(text: str) -> ast.expr:
    return ast.parse(text.strip(), mode="eval").body


def _variables(tree: ast.expr) -> Iterator[str]:
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) not in called and node.id not in {*_PREFIXES, "None", "True"}:
            yield node.id


def _called(tree: ast.expr) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


def _function(name: str, space: Space) -> Callable[..., Any]:
    """Return the function that a bare name in a rule calls."""
    if inspect.isfunction(space.get(name)) or isinstance(space.get(name), Function):
        return space[name]
    if name == "gram":
        return lambda a: wrap(gram(node_of(a)))
    for module in _modules():
        found = getattr(module, name, None)
        if callable(found) and not isinstance(found, type):
            return getattr(namespace.value_of(module, staged=False), name)
    op = registry.get({"abs": "absolute"}.get(name, name))
    if isinstance(op, Pointwise):
        return lambda *values: wrap(op(*map(node_of, values)))
    words = {*registry, "gram", *(word for module in _modules() for word in dir(module) if not word.startswith("_"))}
    near = alike(name, sorted(words), 2)
    meant = f"; did you mean {' or '.join(near)}?" if near else ""
    raise ParseError(
        f"there is no function {name}{meant}", "Functions of NumPy, SciPy and of the notebook can be called."
    )


def _is_structural(part: ast.expr) -> bool:
    """Return whether a condition is about shapes alone: each variable is followed by ``.ndim``, ``.shape`` or ``.size``."""
    asked = [n for n in ast.walk(part) if isinstance(n, ast.Attribute) and n.attr in _STRUCTURE]
    below = {id(n) for attribute in asked for n in ast.walk(attribute)}
    names = [n for n in ast.walk(part) if isinstance(n, ast.Name)]
    return isinstance(part, ast.Compare) and bool(names) and all(id(n) in below for n in names)


def _predicate(part: ast.expr) -> tuple[str, str] | None:
    match part:
        case ast.Call(func=ast.Name(id=name), args=[ast.Name(id=variable)]) if name in PREDICATES:
            return name, variable
        case ast.Compare():
            return None
        case _:
            raise ParseError(
                f"{ast.unparse(part)!r} is not a condition", "Use a comparison, constant(x) or not_negative(x)."
            )


# generators -----------------------------------------------------------------------------------------------------------


def statements_of_function(function: Callable[..., Iterator[Any]], level: str) -> Iterator[Statement]:
    """Yield the rules over arrays that a generator yields: its variables are arrays of every number of axes that fits."""
    names = tuple(inspect.signature(function).parameters)
    known: set[int] = set()
    for ranks in itertools.product(RANKS, repeat=len(names)):
        types = next(examples(names, ranks))
        for line, given in _yielded(function, {n: wrap(leaf) for n, leaf in leaves_of(types).items()}):
            if line not in known and any(ranks) and isinstance(given, tuple) and len(given) > 1:
                known.add(line)
                yield _statement(function, names, line, given, level)


def _yielded(function: Callable[..., Iterator[Any]], arrays: Mapping[str, Any]) -> Iterator[tuple[int, Any]]:
    """Yield the values that a generator yields before it raises, each with its line."""
    generator: Any = function(*arrays.values())
    while True:
        try:
            given = next(generator)
        except (StopIteration, ArithmeticError, ArgumentError, AttributeError, IndexError, TypeError, ValueError):
            return
        yield generator.gi_frame.f_lineno, given


def _statement(
    function: Callable[..., Iterator[Any]], names: tuple[str, ...], line: int, given: tuple[Any, ...], level: str
) -> Statement:
    def both(arrays: Mapping[str, Tensor]) -> Iterator[Any]:
        ordered = {n: arrays[n] for n in names}
        for place, found in _yielded(function, ordered):
            if place == line:
                if any(isinstance(c, bool) and not c for c in found[2:]):
                    raise Unfit
                yield from (None, found[0], found[1])
                return
        raise Unfit

    assumed = tuple(show(_node(c)) for c in given[2:] if not isinstance(c, bool))
    text = _text_of(inspect.getsourcefile(function) or "", line, given)
    return Statement(names, both, text, source_of(function, line), line, level, (), assumed)


def source_of(function: Callable[..., Any], line: int) -> str:
    """Return the place of a rule of a generator."""
    return f"{usercode.span_at(function.__code__, 0, line).cell}:{line}"


def _node(value: Any) -> Any:
    return value.node if isinstance(value, Tensor) else value


def _text_of(path: str, line: int, given: tuple[Any, ...]) -> str:
    """Return the source text of a rule, if it is on one line."""
    try:
        tree = ast.parse(linecache.getline(path, line).strip())
    except SyntaxError:
        tree = ast.Module([], [])
    match tree.body:
        case [ast.Expr(value=ast.Yield(value=ast.Tuple(elts=[left, right, *_])))]:
            return f"{ast.unparse(left)} -> {ast.unparse(right)}"
        case _:
            return f"{show(_node(given[0]))} -> {show(_node(given[1]))}"


def is_pointwise(node: Node) -> bool:
    """Return whether a side of a rule over numbers has pointwise operations alone, so that the rule holds for arrays of any shape."""
    return not node.args or (isinstance(node.op, Pointwise) and all(map(is_pointwise, node.args)))
