"""Rewrites expressions whose evaluation depends on values as calls of the run time with functions for their parts.

``and``, ``or``, ``not``, chained comparisons, ``a if c else b``, comprehensions, texts and calls become calls. Every
node keeps the line and the columns of its origin. ``statements.py`` rewrites statements and scopes.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from tensormagic.capture.python.builtin_facts import IN_FRAMES
from tensormagic.capture.staging.loops.recursion import ITSELF
from tensormagic.capture.staging.loops.simple_code import as_written, called_by
from tensormagic.capture.staging.messages import argument_texts
from tensormagic.capture.staging.numbers.array_names import NAMES
from tensormagic.capture.staging.syntax import formulas, liveness, matching
from tensormagic.capture.staging.syntax.generated_code import arguments as _arguments
from tensormagic.capture.staging.syntax.generated_code import call as _call
from tensormagic.capture.staging.syntax.generated_code import thunk as _thunk
from tensormagic.capture.staging.syntax.syntax_trees import parts_of, placed_at, walk

SUSPEND = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
LEFT = "__tensor_left__"  # the name for the items of a loop that are left to Python

_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_OURS = {  # names that stand for run-time functions
    argument_texts.FORMATTED: "formatted", matching.SEQUENCE: "is_sequence", matching.CLASS: "is_of_class",
    matching.MAPPING: "is_mapping", matching.MEMBER: "member", matching.BETWEEN: "between", matching.BESIDE: "beside",
}  # fmt: skip
_ATTRIBUTES = {"__class__": "class_of", "__array_interface__": "interface_of"}  # that the run time reads
_JOINS = {"c_", "r_", "mgrid", "ogrid"}  # NumPy's objects that are called by an index


def constant(value: Any) -> ast.expr:
    """Return a constant node."""
    return ast.Constant(value)


def is_movable(*nodes: ast.AST) -> bool:
    """Return whether code means the same when it is moved into a function of its own."""
    return not any(
        isinstance(n, (*SUSPEND, ast.NamedExpr)) or looks_at_frame(n)
        for node in nodes
        for n in liveness.own_nodes(node)
    )


def looks_at_frame(node: ast.AST) -> bool:
    """Return whether a node calls a function that reads the frame of its caller."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IN_FRAMES


def _flat_names(target: ast.expr) -> list[str] | None:
    """Return the names of a target that is a name, or a tuple of different ones; None for others."""
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    names = [p.id for p in parts if isinstance(p, ast.Name)]
    return names if len(names) == len(parts) == len(set(names)) else None


@dataclass
class Scope:
    """Represents a scope, which says what the names in its code mean.

    Parameters
    ----------
    kind
        ``"module"``, ``"function"`` or ``"class"``.
    shared
        Names of other scopes that this one declares: ``global`` ones.
    always
        Names that may be read at any time, by functions inside this scope.
    changing
        Names that functions inside this scope may change whenever they are called.
    """

    kind: str
    shared: set[str] = field(default_factory=set[str])
    always: set[str] = field(default_factory=set[str])
    changing: set[str] = field(default_factory=set[str])
    captured: dict[str, None] = field(default_factory=dict[str, None])  # names that functions made here bind


def _asked(name: str, node: ast.Compare, *, negative: type[ast.cmpop]) -> Any:
    """Return a comparison as a call of the run time; negated for ``is not`` and ``not in``."""
    found = _call(name, node, node.left, *node.comparators)
    return _call("negated", node, found) if isinstance(node.ops[0], negative) else found


def _may_be_sequences(node: ast.Compare) -> bool:
    """Return whether a comparison may be one of lists or tuples, by how its sides are written."""
    sides = [node.left, *node.comparators]
    if any(isinstance(s, ast.List | ast.Tuple | ast.Dict | ast.ListComp | ast.Call) for s in sides):
        return True
    return all(isinstance(s, ast.Name | ast.Attribute | ast.Subscript) for s in sides)


class Expressions(ast.NodeTransformer):
    """Rewrites the expressions of a cell, or of a function."""

    def __init__(self) -> None:
        self.scope = Scope("module")
        self.asked: list[set[str]] = []  # the operands of the formulas around

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Visit the fields that may hold nodes, as the base class does for all."""
        own: dict[str, Any] = node.__dict__
        for name in parts_of(node.__class__):
            value = own.get(name)
            if isinstance(value, list):
                own[name] = self._visited(value)
            elif value is not None:
                own[name] = self.visit(value)
        return node

    def _visited(self, values: list[Any]) -> list[Any]:
        found: list[Any] = []
        for value in values:
            new = self.visit(value) if isinstance(value, ast.AST) else value
            found += new if isinstance(new, list) else [new]
        return found

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        values = [self.visit(v) for v in node.values]
        if self.scope.kind == "class" or not is_movable(*node.values):
            node.values = values
            return node
        name = "both" if isinstance(node.op, ast.And) else "either"
        return _call(name, node, values[0], *map(_thunk, values[1:]))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        node.operand = self.visit(node.operand)
        return _call("negated", node, node.operand) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        movable = is_movable(node.body, node.orelse)
        test, first, second = (self.visit(v) for v in (node.test, node.body, node.orelse))
        if self.scope.kind == "class" or not movable:
            node.test, node.body, node.orelse = test, first, second
            return node
        return _call("chosen", node, test, _thunk(first), _thunk(second))

    def visit_Compare(self, node: ast.Compare) -> Any:
        movable = is_movable(*node.comparators)
        node.left = self.visit(node.left)
        node.comparators = [self.visit(v) for v in node.comparators]
        alone = len(node.ops) == 1 and isinstance(node.ops[0], ast.Is | ast.IsNot)
        sides = [side.value for side in (node.left, *node.comparators) if isinstance(side, ast.Constant)]
        if alone and all(value is None or isinstance(value, bool) for value in sides):
            return _asked("identical", node, negative=ast.IsNot)
        if self.scope.kind == "class":
            return node
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn):
            return _asked("contained", node, negative=ast.NotIn)
        if len(node.ops) == 1 and _may_be_sequences(node):
            return _call("compare", node, constant(_OPERATORS[type(node.ops[0])]), node.left, *node.comparators)
        if len(node.ops) == 1 or not movable:
            return node
        names = tuple(_OPERATORS[type(op)] for op in node.ops)
        return _call("compared", node, constant(names), node.left, *map(_thunk, node.comparators))

    def visit_ListComp(self, node: ast.ListComp) -> Any:
        return self._comprehension(node, "comprehended")

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        return self._comprehension(node, "generated")

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp, name: str) -> Any:
        (first, *more), inside = node.generators, is_movable(node)
        names = _flat_names(first.target)
        inside = inside and not liveness.keeps(names or (), node.elt, *first.ifs)
        written, calls = None, None
        if isinstance(node, ast.ListComp) and not more:
            calls = called_by([first.target, node.elt, *first.ifs])
            written = None if calls is None else formulas.within(as_written(node))
        self.generic_visit(node)
        if more or first.is_async or names is None or not inside or self.scope.kind == "class":
            return node
        iteration = placed_at(ast.Lambda(_arguments(*names), node.elt), node.elt)
        tests: list[ast.expr] = []
        if first.ifs:
            test = (
                first.ifs[0]
                if len(first.ifs) == 1
                else self.visit_BoolOp(placed_at(ast.BoolOp(ast.And(), first.ifs), node))
            )
            tests = [placed_at(ast.Lambda(_arguments(*names), test), test)]
        plainly: list[ast.expr] = []
        if written is not None:
            written.generators[0].iter = placed_at(ast.Name(LEFT, ast.Load()), node)
            plainly = [constant(calls), placed_at(ast.Lambda(_arguments(LEFT), written), node)]
            tests = tests or [constant(None)]
        single = constant(isinstance(first.target, ast.Name))
        return _call(name, node, first.iter, iteration, single, *tests, *plainly)

    def visit_Call(self, node: ast.Call) -> Any:
        if (
            isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Constant)
            and argument_texts.pieces_of(node)
        ):
            return self._text(node)
        framed = looks_at_frame(node)
        if (names := self._operands_of(node)) is not None:
            return self._formula(node, names)
        if isinstance(node.func, ast.Name) and node.func.id == ITSELF and len(node.args) == 2:
            return _call("itself", node, *node.args)
        if isinstance(node.func, ast.Name) and node.func.id == "print":
            node.args = [a if isinstance(a, ast.Starred) else argument_texts.visit(a) for a in node.args]
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _OURS:
            return _call(_OURS[node.func.id], node, *node.args)
        if not framed:
            node.func = _call("called", node.func, node.func)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        return self._text(node)

    def _operands_of(self, node: ast.expr) -> set[str] | None:
        """Return the names of the operands of a formula that needs a check; None if there is none, or a formula around has checked them."""
        names = None if self.scope.kind == "class" else formulas.names_in(node)
        return None if names is None or names in self.asked else names

    def _formula(self, node: ast.expr, names: set[str]) -> Any:
        """Return a conditional expression: the formula of numbers where its operands are numbers, else the rewritten formula."""
        number = formulas.of_numbers(node)
        self.asked.append(names)
        try:
            return placed_at(ast.IfExp(*number, self.visit(node)), node)
        finally:
            self.asked.pop()

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        if (names := self._operands_of(node)) is not None:
            return self._formula(node, names)
        known = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
        return self._text(node) if known and isinstance(node.op, ast.Mod) else self.generic_visit(node)

    def _text(self, node: ast.expr) -> Any:
        """Return an f-string, or another expression that makes a text of values, as a call of the run time."""
        pieces = None if self.scope.kind == "class" or not is_movable(node) else argument_texts.pieces_of(node)
        if pieces is None or all(isinstance(p, ast.Constant) for p in pieces):
            return self.generic_visit(node)
        call = _call("text", node, *map(self.visit, pieces))
        return placed_at(call, node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        if node.attr in NAMES:
            return _call("of_array", node, node.value, constant(node.attr))
        own = _ATTRIBUTES.get(node.attr)
        return node if own is None else _call(own, node, node.value)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        name = getattr(node.value, "attr", getattr(node.value, "id", None))
        if isinstance(node.ctx, ast.Load) and name in _JOINS:
            node.value = _call("called", node.value, node.value)
        elif isinstance(node.ctx, ast.Store) or any(
            isinstance(n, ast.Name | ast.Call) for n in walk(node.slice)
        ):  # expressions that may be lazy
            node.value = _call("indexed", node.value, node.value)
        return node
