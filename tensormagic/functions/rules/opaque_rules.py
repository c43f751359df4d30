"""Functions that no graph can look into, in rules: how they are recognised, and how calls of them become parts of a rule's sides."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any

import numpy as np

from tensormagic.capture.foreign.native_functions import is_numpys, maker_of
from tensormagic.capture.hooks import hooks
from tensormagic.capture.library.applying import Vectorized
from tensormagic.capture.staging.calls.staged import replacement_without_rules
from tensormagic.capture.values.operands import build, node_of
from tensormagic.capture.values.value import Tensor
from tensormagic.functions.calls.function import Function
from tensormagic.ir.node import Node, topological
from tensormagic.ir.rewriting.rules import Rule
from tensormagic.ops.declared import FLOAT, Declared, declared, op_of
from tensormagic.ops.pointwise import Pointwise

_CALL = "__called_in_a_rule__"


def is_opaque(function: Any) -> bool:
    """Return whether a function is Numba's, of C, of np.vectorize or np.frompyfunc, and not the class of such functions."""
    if isinstance(function, type | Function) or not callable(function):
        return False
    if isinstance(function, np.ufunc):
        return bool(maker_of(function)) or not is_numpys(function)
    return isinstance(function, np.vectorize) or bool(maker_of(function))


def called(function: Any, *args: Any, **options: Any) -> Any:
    """Return the result of a call in a rule: part of a side, if an opaque function is called with variables."""
    if options or not is_opaque(function) or not any(isinstance(a, Tensor) for a in args):
        return function(*args, **options)
    return build(declared(function, len(args)), *args)


def opened(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a generator of rules whose calls of opaque functions become parts of its sides; unchanged if its text is not known."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return function
    match tree.body:
        case [ast.FunctionDef() as own]:
            own.decorator_list = []
        case _:
            return function
    _Calls().visit(own)
    own.name, own.returns = function.__name__, None
    given = inspect.getclosurevars(function).nonlocals
    outer = ast.parse(f"def outer({', '.join(given)}):\n    return {own.name}")
    outer.body[0].body.insert(0, own)  # type: ignore[attr-defined]
    ast.increment_lineno(own, function.__code__.co_firstlineno - 1)
    space = {**function.__globals__, _CALL: called}
    exec(compile(ast.fix_missing_locations(outer), function.__code__.co_filename, "exec"), space)  # noqa: S102 (the user's own text)
    made: FunctionType = space["outer"](**given)
    made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    made.__module__, made.__qualname__ = function.__module__, function.__qualname__
    return made


class _Calls(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        return ast.copy_location(ast.Call(ast.Name(_CALL, ast.Load()), [node.func, *node.args], node.keywords), node)


def in_text(text: str, space: Mapping[str, Any]) -> dict[str, Pointwise]:
    """Return the opaque functions that a rule of one line calls, by the names that it uses."""
    found: dict[str, Pointwise] = {}
    left, _, rest = text.partition("->")
    for side in (left, rest.partition(" if ")[0]):
        try:
            calls = [n for n in ast.walk(ast.parse(side.strip(), mode="eval")) if isinstance(n, ast.Call)]
        except SyntaxError:
            return {}
        for call in calls:
            function = _behind(call.func, space)
            if is_opaque(function) and not call.keywords:
                found[ast.unparse(call.func)] = declared(function, len(call.args))
    return found


def _behind(tree: ast.expr, space: Mapping[str, Any]) -> Any:
    """Return the notebook object that a name, or an attribute of one, refers to."""
    if isinstance(tree, ast.Attribute):
        return getattr(_behind(tree.value, space), tree.attr, None)
    return space.get(tree.id) if isinstance(tree, ast.Name) else None


# captured code --------------------------------------------------------------------------------------------------------

_in_force: set[Declared] = set()


def put_in_force(rules: Iterable[Rule]) -> None:
    """Start capturing calls of exactly those opaque functions that occur in patterns of ``rules``."""
    patterns = [r.pattern for r in rules if isinstance(r.pattern, Node)]
    _in_force.clear()
    _in_force.update(n.op for n in topological(patterns) if isinstance(n.op, Declared))
    hooks.of_rules = _captured if _in_force else None


def _captured(function: Any) -> Callable[..., Any] | None:
    """Return the replacement for an opaque function that occurs in a pattern, or None."""
    op = op_of(function.real() if isinstance(function, Vectorized) else function)
    if op is None or op not in _in_force:
        return None

    def call(*args: Any, **options: Any) -> Any:
        fits = len(args) == op.arity and not options and any(isinstance(a, Tensor) for a in args)
        if fits and all(_is_float(a) for a in args):
            return build(op, *args)
        return replacement_without_rules(function)(*args, **options)

    return call


def _is_float(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, np.ndarray | Tensor) and node_of(value).type.dtype == FLOAT)
