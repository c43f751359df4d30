"""Builds graphs of numbers from the arithmetic in function texts, to find what rewrite rules would match, without capturing.

A value that captured code hides from rules is an unknown number here. All else is visible: more than rules would see,
never less.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import Any, cast

import numpy as np

from tensormagic.capture.staging.analysis.known_text import Written
from tensormagic.capture.staging.analysis.short_loops import EITHER, Shorts
from tensormagic.capture.staging.analysis.text_expressions import Expressions, is_whole
from tensormagic.capture.staging.analysis.text_features import is_into, is_users, name_of
from tensormagic.capture.staging.analysis.text_folds import UnseenError
from tensormagic.capture.staging.analysis.text_places import Place
from tensormagic.capture.staging.analysis.text_values import Array, State, View
from tensormagic.capture.staging.syntax.syntax_trees import walk
from tensormagic.ir.errors import TensorError
from tensormagic.ir.node import Node, topological
from tensormagic.ir.type import python
from tensormagic.ops.leaf import CONSTANT, constant, constant_value
from tensormagic.ops.pointwise import Pointwise

_DEEPEST = 8  # nesting of calls of the user's functions


def graphs_of(
    function: FunctionType, reached: Mapping[FunctionType, Written], args: tuple[Any, ...], shorts: Shorts
) -> Iterator[list[Node]]:
    """Yield the values that a call of a function returns, stores or decides by, as graphs of what they are computed from.

    With arithmetic on known numbers, such as integers and literals, there are two graphs: these numbers are
    constants in captured code, and operands in formulas of numbers alone.

    Parameters
    ----------
    function
        The function.
    reached
        The texts of it and of the user functions it calls.
    args
        Its arguments: arrays and numbers.
    shorts
        The number of iterations of loops with at most one, and folds of one element.

    Raises
    ------
    UnseenError
        If it is not known what rules make of something in the texts.
    """
    reading = _Reading(reached, shorts, numbers=True)
    yield reading.read_through(function, args)
    if reading.computes_with_numbers:
        yield _of_numbers(_Reading(reached, shorts, numbers=False).read_through(function, args))


def _of_numbers(results: list[Node]) -> list[Node]:
    """Return the values computed from Python numbers alone, without those that only lead to others."""
    alone: dict[Node, None] = {}
    inside = set[Node]()
    for node in topological(results):
        own = all(a in alone for a in node.args) if node.args else node.op is CONSTANT or node.type.form == "python"
        if own:
            alone[node] = None
            inside.update(node.args)
    return [n for n in alone if n.args and n not in inside]


class _Reading(Expressions):
    """Reads the text of a call once, statement by statement."""

    def __init__(self, reached: Mapping[FunctionType, Written], shorts: Shorts, *, numbers: bool) -> None:
        super().__init__(numbers=numbers)
        self._reached, self.shorts = reached, shorts
        self.file, self._depth = "", 0
        self._indices: list[Node | None] = []  # indices of the enclosing loops

    def read_through(self, function: FunctionType, args: tuple[Any, ...]) -> list[Node]:
        """Return the nodes of the values of a call."""
        if any(isinstance(v, np.ndarray) and 0 in v.shape for v in args):
            raise UnseenError
        try:
            arrays = [self.given(v) for v in args]
            self.ends(self._call(function, dict(zip(function.__code__.co_varnames, arrays, strict=False))))
        except (TensorError, RecursionError) as error:
            raise UnseenError from error
        self.ends(tuple(arrays))
        results = self.needed()
        nodes = self.through(results)
        if self.thin and not self.sizes.isdisjoint(nodes):
            raise UnseenError  # sizes of 1 are constants in captured code
        if not self.sums_are_apart(nodes) or not self.parts_are_apart(nodes):
            raise UnseenError
        return self.as_rules_see(results)

    def users(self, call: ast.Call) -> Any:
        function = self._space.get(name_of(call.func))
        if not isinstance(function, FunctionType) or function not in self._reached or self._depth > _DEEPEST:
            raise UnseenError
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        given = {n: self._bindable(a) for n, a in zip(names, call.args, strict=False)}
        given |= {k.arg: self._bindable(k.value) for k in call.keywords if k.arg}
        return self._call(function, given)

    def _call(self, function: FunctionType, given: dict[str, Any]) -> Any:
        """Return the result of a function for arguments; its stores take effect."""
        code = function.__code__
        names = code.co_varnames[: code.co_argcount]
        defaults: dict[str, Any] = dict(zip(names[::-1], (function.__defaults__ or ())[::-1], strict=False))
        for name in set(names) - given.keys():
            if not isinstance(defaults.get(name), bool | int | float | complex):
                raise UnseenError
            given[name] = self.array(self.number((code, name), defaults[name]))
        before = self.state.names, self._space, self.file
        self.state.names, self._space, self.file = given, function.__globals__, code.co_filename
        self._depth += 1
        returned = self._block(self._reached[function].node.body)
        self._depth -= 1
        self.state.names, self._space, self.file = before
        return returned

    # statements

    def _block(self, block: list[ast.stmt]) -> Any:
        """Read statements; return the returned value."""
        for k, statement in enumerate(block):
            if isinstance(statement, ast.Return):
                if k < len(block) - 1:
                    raise UnseenError
                return None if statement.value is None else self._bindable(statement.value)
            self._statement(statement)
        return None

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign() | ast.AugAssign():
                self._assigned(statement)
            case ast.For():
                self._for(statement)
            case ast.While(test=test, body=body, orelse=[]):
                self._loop(body, test)
            case ast.If():
                self._if(statement)
            case ast.With(body=body):
                if self._block(body) is not None:
                    raise UnseenError
            case ast.Expr(value=ast.Call() as call):
                self._alone(call)
            case (
                ast.Expr(value=ast.Constant()) | ast.Pass() | ast.Break() | ast.Continue() | ast.Assert() | ast.Raise()
            ):
                pass
            case _:
                raise UnseenError

    def _alone(self, call: ast.Call) -> None:
        """Read a call as a statement, of a function that stores."""
        match call.func, call.args:
            case ast.Attribute(attr=name), [*args, ast.Name() as target] if is_into(call):
                self.store(self.name(target), None, self._op(name, *[self._of(a) for a in args]))
            case _ if is_users(call):
                self.users(call)
            case _:
                raise UnseenError

    def _assigned(self, statement: ast.Assign | ast.AugAssign) -> None:
        match statement:
            case ast.AugAssign(target=target, op=op, value=value):
                self._augment(target, op, self._of(value))
            case ast.Assign(targets=[ast.Subscript() as target], value=value):
                self._assign(target, self._of(value))
            case ast.Assign(targets=targets, value=value):
                bound, rank = self._bindable(value), self.rank(value)
                if rank is not None:
                    self.ranks[bound] = rank
                for target in targets:
                    self._assign(target, bound)

    def _bindable(self, node: ast.expr) -> Any:
        """Return the array or tuple that a name may be bound to."""
        value = self.value(node)
        if isinstance(value, tuple):
            parts = cast("tuple[Any, ...]", value)
            return tuple([v if isinstance(v, Array) else self.array(self.element(v)) for v in parts])
        if isinstance(value, View):
            made = self.array(value.element)
            self.viewed |= {made, value.of}
            return made
        return value if isinstance(value, Array) else self.array(value)

    def _assign(self, target: ast.expr, value: Any) -> None:
        match target:
            case ast.Name(id=name):
                self.state.names[name] = self.bound(value)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                parts = cast("tuple[Any, ...]", value) if isinstance(value, tuple) else ()
                if len(parts) != len(targets):
                    raise UnseenError
                for one, own in zip(targets, parts, strict=True):
                    self._assign(one, own)
            case ast.Subscript(value=ast.Name() as name, slice=index):
                self._store_at(self.name(name), self.index(index), self.element(value))
            case _:
                raise UnseenError

    def _augment(self, target: ast.expr, op: ast.operator, value: Node) -> None:
        match target:
            case ast.Name() as name:
                array = self.name(name)
                if list(self.state.names.values()).count(array) > 1:
                    raise UnseenError  # another name for it, or for the same number
                self.store(array, None, self._operation(op, self.element(array), value))
            case ast.Subscript(value=ast.Name() as name, slice=index):
                array = self.name(name)
                self._store_at(array, self.index(index), self._operation(op, self._at(array, index), value))
            case _:
                raise UnseenError

    def _store_at(self, array: Any, place: Any, element: Node) -> None:
        if isinstance(place, Place) and place.may_be_whole(self._indices):
            raise UnseenError
        self.store(array, None if is_whole(place) else place, element)

    def _for(self, loop: ast.For) -> None:
        over, target = loop.iter, loop.target
        if loop.orelse or not isinstance(target, ast.Name):
            raise UnseenError
        if not isinstance(over, ast.Call) or name_of(over.func) != "range":
            raise UnseenError
        least = self.shorts.get((self.file, over.lineno))
        if least == EITHER and not self._rolled:
            raise UnseenError
        if least in {0, EITHER}:
            return
        upwards = all(isinstance(a, ast.Constant) for a in over.args[:-1]) and len(over.args) < 3
        index = self.any(object(), python(int), number=True, within=(0, None) if upwards else None)
        self.state.names[target.id] = self.array(index)
        if least == 1:
            first = self._of(over.args[0]) if len(over.args) > 1 else constant(0)
            self.state.names[target.id] = self.bound(self.array(first))
            if self._block(loop.body) is not None:
                raise UnseenError
        else:
            self._loop(loop.body, None, index)

    def _loop(self, body: list[ast.stmt], test: ast.expr | None, index: Node | None = None) -> None:
        """Read a loop of at least two iterations, or of a data-dependent number."""
        (bound, stored), before = _changed_in(body), (self.read, self.stored)
        numbers = [name for name in bound if self.is_number(self.state.names.get(name))]
        handed = self.hand_on(bound | {n for n in stored if not self.is_pythons(self.state.names.get(n))}, bound)
        self.read, self.stored = set(), set()
        asked = None if test is None else self._of(test)
        self.results += [] if asked is None else [asked]
        self._rolled += 1
        self._indices.append(index)
        if self._block(body) is not None:
            raise UnseenError
        self._indices.pop()
        self._rolled -= 1
        self.go_on(handed, index)
        if asked is not None and not self.depends_on_data(asked):
            raise UnseenError  # Python runs the loop, and each of its iterations is seen
        if not all(self.is_number(self.state.names[name]) for name in numbers):
            raise UnseenError  # a number that becomes an array: Python runs this loop, too
        self.read |= before[0]
        self.stored |= before[1]

    def _if(self, branch: ast.If) -> None:
        test = self._of(branch.test)
        self.results.append(test)
        holds = _holds(test)
        before, ends = self.state, list[State]()
        for block in [branch.body, branch.orelse] if holds is None else [branch.body if holds else branch.orelse]:
            self.state = before.copy()
            returns = bool(block) and isinstance(block[-1], ast.Return)
            if returns and self._depth > 1:
                raise UnseenError
            self.ends(self._block(block))
            if not returns and not (block and isinstance(block[-1], ast.Raise)):
                ends.append(self.state)
        self.state = ends[0] if ends else before
        for other in ends[1:]:
            self.state.join(other)


def _holds(test: Node) -> bool | None:
    """Return whether a condition holds; None where that is not known."""
    sides = [constant_value(n) for n in test.args]
    if isinstance(test.op, Pointwise) and sides and all(v is not None for v in sides):
        return bool(test.op.numpy(*sides))
    return None


def _changed_in(body: list[ast.stmt]) -> tuple[set[str], set[str]]:
    """Return the names that are bound, and those of arrays that may be stored into or that user functions are given."""
    bound, stored = set[str](), set[str]()
    for node in (n for s in body for n in walk(s)):
        kind = node.__class__
        if kind is ast.Name:
            if node.ctx.__class__ is ast.Store:  # type: ignore[attr-defined]
                bound.add(node.id)  # type: ignore[attr-defined]
        elif kind is ast.Subscript:
            if node.ctx.__class__ is ast.Store and node.value.__class__ is ast.Name:  # type: ignore[attr-defined]
                stored.add(node.value.id)  # type: ignore[attr-defined]
        elif isinstance(node, ast.Call) and (is_users(node) or is_into(node)):
            stored |= {a.id for a in node.args if isinstance(a, ast.Name)}
    return bound, stored
