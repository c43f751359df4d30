"""Statements and expressions that decide, as calls of the run time with functions for their parts.

``if``, ``for`` and ``while`` become functions for their blocks, which share the names of the code around them, and a call
that is told which names the blocks bind and which are needed afterwards. ``and``, ``or``, ``not``, chained comparisons,
``a if c else b``, ``assert`` and calls become calls, too. Every node keeps the line and the columns of what it came from.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tensormagic.capture.pythons import IN_FRAMES
from tensormagic.capture.staging import formulas, liveness, matching, texts
from tensormagic.capture.staging.jumps import STOPS, Jumps
from tensormagic.capture.staging.made import arguments as _arguments
from tensormagic.capture.staging.made import call as _call
from tensormagic.capture.staging.made import thunk as _thunk
from tensormagic.capture.staging.recursion import ITSELF, as_loop
from tensormagic.capture.staging.simple import as_written, called_by
from tensormagic.capture.staging.trees import parts_of, placed_at, walk

LEFT = "__tensor_left__"  # the name of what is left of a loop for Python

_SUSPEND = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
_UNBRANCHED = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Import, ast.ImportFrom, ast.Pass, ast.Delete)
_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_OURS = {  # names that stand for the run time's
    texts.FORMATTED: "formatted", matching.SEQUENCE: "is_sequence", matching.CLASS: "is_of_class",
    matching.MAPPING: "is_mapping", matching.MEMBER: "member", matching.BETWEEN: "between", matching.BESIDE: "beside",
}  # fmt: skip
_ATTRIBUTES = {"__class__": "class_of", "__array_interface__": "interface_of"}  # that the run time reads


def _constant(value: Any) -> ast.expr:
    return ast.Constant(value)


def _plainly(call: ast.expr, written: ast.For | ast.While, like: ast.AST) -> ast.stmt:
    """What a loop's call leaves of it, which Python runs as it is ``written``."""
    return placed_at(ast.With([ast.withitem(call, ast.Name(LEFT, ast.Store()))], [written]), like)


def _movable(*nodes: ast.AST) -> bool:
    """Whether code means the same in a function of its own."""
    return not any(
        isinstance(n, (*_SUSPEND, ast.NamedExpr)) or _looks_at_frame(n)
        for node in nodes
        for n in liveness.own_nodes(node)
    )


def _looks_at_frame(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IN_FRAMES


def _swallows(statement: ast.Try | ast.TryStar) -> bool:
    """Whether an error ends in ``finally``, which goes on elsewhere."""
    leaves = ast.Return | ast.Break | ast.Continue
    return any(isinstance(s, leaves) for f in statement.finalbody for s in walk(f))


def _attempted(statement: Any) -> Any:
    """A ``try`` whose body knows that errors of it are caught."""
    if statement.handlers or _swallows(statement):
        inside = ast.With([ast.withitem(_call("attempting", statement))], statement.body)
        statement.body = [placed_at(inside, statement)]
    return statement


def _fixed(statement: ast.AST) -> bool:
    """Whether a statement holds something that has to stay in the function that it stands in."""
    return any(
        isinstance(n, _SUSPEND)
        or _looks_at_frame(n)
        or (isinstance(n, ast.ImportFrom) and n.names[0].name == "*")
        or (isinstance(n, ast.Try) and _swallows(n))
        or isinstance(n, ast.TryStar)
        for n in liveness.own_nodes(statement)
    )


@dataclass
class _Scope:
    """What names mean where code stands.

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


class Staging(ast.NodeTransformer):
    """Rewrites the code of a cell, or of a function."""

    def __init__(self) -> None:
        self.scope = _Scope("module")
        self.asked: list[set[str]] = []  # the operands of the formulas around

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """The same as the base's, for what may hold nodes alone."""
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

    # whole pieces of code ---------------------------------------------------------------------------------------------

    def module(self, statements: list[ast.stmt], after: set[str]) -> list[ast.stmt]:
        """The statements of a cell, of which the names ``after`` are needed later."""
        if all(isinstance(s, _UNBRANCHED) for s in statements):  # nothing asks which names are needed
            return [self._within(s) for s in statements]
        self.scope = _Scope("module", always=liveness.read_in_scopes(statements))
        self.scope.changing = liveness.changed_by_scopes(statements)
        lowered: list[ast.stmt] = []
        for statement in matching.lowered(statements):
            lowered += _annotations(statement)
            lowered += [statement] if _fixed(statement) else Jumps().block([statement], None, tail=False)[0]
        return self.block(lowered, after)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, first_line: int = 0) -> None:
        """The body of a function, in place; ``first_line`` is its own, where decorators were taken off it."""
        outer, self.scope = self.scope, _Scope("function")
        if isinstance(node, ast.AsyncFunctionDef) or any(map(_fixed, node.body)):
            node.body = [self._within(s) for s in node.body]
        else:
            text = node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
            node.body = matching.lowered(node.body[len(text) :])
            body = as_loop(node, first_line or node.lineno)
            declared = [s for b in body for s in liveness.own_nodes(b) if isinstance(s, ast.Global | ast.Nonlocal)]
            names = {n for s in declared for n in s.names}
            self.scope.shared = {n for s in declared if isinstance(s, ast.Global) for n in s.names}
            self.scope.always = liveness.read_in_scopes(body) | names
            self.scope.changing = liveness.changed_by_scopes(body)
            args = node.args
            own = {a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg) if a}
            node.body = [*text, *self.block(Jumps().function(body), set())]
            missing = [n for n in self.scope.captured if n not in own | names]
            if missing:  # a function may share only what its surroundings bind
                never: ast.stmt = ast.Assign([ast.Name(n, ast.Store()) for n in missing], ast.Constant(None))
                node.body.insert(len(text), placed_at(ast.If(ast.Constant(False), [never], []), body[0]))
        self.scope = outer

    def block(self, statements: Sequence[ast.stmt], after: set[str]) -> list[ast.stmt]:
        """A block of which the names ``after`` are needed behind it."""
        needed = [after]
        for statement in reversed(statements):
            needed.append(liveness.before(statement, needed[-1]))
        done: list[ast.stmt] = []
        for statement, behind in zip(statements, reversed(needed[:-1]), strict=True):
            done += self.statement(statement, behind)
        return done

    # statements -------------------------------------------------------------------------------------------------------

    def statement(self, statement: ast.stmt, after: set[str]) -> list[ast.stmt]:
        """One statement of which the names ``after`` are needed behind it."""
        if self.scope.kind == "class" or (self.scope.kind == "module" and _fixed(statement)):
            return [self._within(statement)]
        if isinstance(statement, ast.If):
            return self._if(statement, after)
        if isinstance(statement, ast.For):
            return self._for(statement, after)
        if isinstance(statement, ast.While) and _movable(statement.test):
            return self._while(statement, after)
        if isinstance(statement, ast.Try | ast.With | ast.Match | ast.While):
            self._parts(statement, after | liveness.read(statement))
            told = (
                [placed_at(ast.Expr(_call("attempted", statement)), statement)]
                if isinstance(statement, ast.Try)
                else []
            )
            return [*told, _attempted(statement) if isinstance(statement, ast.Try) else statement]
        return [self._within(statement)]

    def _within(self, node: ast.stmt) -> Any:
        """A statement with its expressions rewritten."""
        return self.visit(node)

    def _parts(self, statement: Any, after: set[str]) -> None:
        """The blocks and the expressions of a statement that stays one."""
        for part in (*getattr(statement, "handlers", []), *getattr(statement, "cases", [])):
            part.body = self.block(part.body, after)
        for name in ("body", "orelse", "finalbody"):
            if getattr(statement, name, None):
                setattr(statement, name, self.block(getattr(statement, name), after))
        for name in ("test", "subject"):
            if hasattr(statement, name):
                setattr(statement, name, self.visit(getattr(statement, name)))
        for item in getattr(statement, "items", []):
            given = self.visit(item.context_expr)
            item.context_expr = _call("managed", given, given)

    def _names(self, blocks: Sequence[Sequence[ast.AST]]) -> list[str]:
        names = {n: None for block in blocks for statement in block for n in liveness.bound_once(statement)}
        return [*names, *sorted(self.scope.changing - set(names))]

    def _part(self, name: str, body: list[ast.stmt], names: Iterable[str], like: ast.AST, *given: str) -> ast.stmt:
        """A function for a block, which binds ``names`` of the code around it."""
        names = list(names)
        self.scope.captured.update(dict.fromkeys(names))
        outside = [n for n in names if self.scope.kind == "module" or n in self.scope.shared]
        inside = [n for n in names if n not in outside]
        body = [_plain(s) for s in body] or [ast.Pass()]
        if inside:
            body.insert(0, ast.Nonlocal(inside))
        if outside:
            body.insert(0, ast.Global(outside))
        return placed_at(ast.FunctionDef(name, _arguments(*given), body, []), like)

    def _if(self, node: ast.If, after: set[str]) -> list[ast.stmt]:
        names = self._names([node.body, node.orelse])
        needed = tuple(n for n in names if n in after | self.scope.always | self.scope.changing)
        lists = tuple(sorted(liveness.lists_changed([*node.body, *node.orelse])))
        first, second = (self.block(block, after) for block in (node.body, node.orelse))
        call = _call(
            "branch", node.test, self.visit(node.test), ast.Name("__tensor_then__", ast.Load()),
            ast.Name("__tensor_else__", ast.Load()), _constant((tuple(names), needed, lists)),
        )  # fmt: skip
        return [
            self._part("__tensor_then__", first, names, node),
            self._part("__tensor_else__", second, names, node),
            placed_at(ast.Expr(call), node.test),
        ]

    def _loop_names(self, node: ast.For | ast.While, after: set[str]) -> tuple[list[str], ast.expr]:
        targets: list[ast.AST] = [node.target] if isinstance(node, ast.For) else []
        names = self._names([[*targets, *node.body]])
        anyway = self.scope.always | self.scope.changing
        before, behind = liveness.entering(node, after) | anyway, after | anyway
        otherwise = liveness.rebound(node.body) | set(targets and liveness.bound_once(targets[0]))
        entering, leaving, anew = (tuple(n for n in names if n in some) for some in (before, behind, otherwise))
        stored = tuple(sorted(liveness.stored_into(node.body)))
        grown = tuple(sorted(liveness.appended_to(node.body)))
        lists = tuple(sorted(liveness.lists_changed(node.body)))
        return names, _constant((tuple(names), entering, leaving, anew, stored, grown, lists))

    def _for(self, node: ast.For, after: set[str]) -> list[ast.stmt]:
        names, told = self._loop_names(node, after)
        behind = liveness.before_iteration(node, after)
        calls = called_by([node.target, *node.body])
        written = None if calls is None else formulas.within(as_written(node))
        body = self.block(node.body, behind)
        take = placed_at(ast.Assign([node.target], ast.Name("__tensor_next__", ast.Load())), node.target)
        stops: list[str] = getattr(node, STOPS, [])
        stop: ast.expr = _constant(None)
        if stops:
            flags: list[ast.expr] = [placed_at(ast.Name(n, ast.Load()), node) for n in stops]
            either = flags[0] if len(flags) == 1 else placed_at(ast.BoolOp(ast.Or(), flags), node)
            stop = _thunk(self.visit(either))
        call = _call(
            "each", node.iter, self.visit(node.iter), ast.Name("__tensor_iteration__", ast.Load()), stop, told, _constant(calls),
            _constant(not isinstance(node.iter, ast.Call)),
        )  # fmt: skip
        part = self._part("__tensor_iteration__", [self._within(take), *body], names, node, "__tensor_next__")
        if written is None:
            return [part, placed_at(ast.Expr(call), node.iter)]
        written.iter = placed_at(ast.Name(LEFT, ast.Load()), node.iter)
        return [part, _plainly(call, written, node.iter)]

    def _while(self, node: ast.While, after: set[str]) -> list[ast.stmt]:
        names, told = self._loop_names(node, after)
        calls = called_by([node.test, *node.body])
        written = None if calls is None else formulas.within(as_written(node))
        body = self.block(node.body, liveness.before_iteration(node, after))
        test = _thunk(self.visit(node.test))
        call = _call(
            "repeat", node.test, test, ast.Name("__tensor_iteration__", ast.Load()), told, _constant(calls)
        )  # fmt: skip
        part = self._part("__tensor_iteration__", body, names, node)
        if written is None:
            return [part, placed_at(ast.Expr(call), node.test)]
        written.test = placed_at(ast.BoolOp(ast.And(), [ast.Name(LEFT, ast.Load()), written.test]), node.test)
        return [part, _plainly(call, written, node.test)]

    # scopes -----------------------------------------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        node.args = self._defaults(node.args)
        if node.name == "__array__" and self.scope.kind == "class":
            node.decorator_list.append(_call("giving_arrays", node))
        self.function(node, min([node.lineno, *(d.lineno for d in node.decorator_list)]))
        return node

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]

    def _defaults(self, args: ast.arguments) -> ast.arguments:
        args.defaults = [self.visit(d) for d in args.defaults]
        args.kw_defaults = [None if d is None else self.visit(d) for d in args.kw_defaults]
        return args

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        outer, self.scope = self.scope, _Scope("class")
        node.body = [self._within(s) for s in node.body]
        self.scope = outer
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        node.args = self._defaults(node.args)
        outer, self.scope = self.scope, _Scope("function")
        node.body = self.visit(node.body)
        self.scope = outer
        return node

    def visit_Try(self, node: ast.Try) -> Any:
        return _attempted(self.generic_visit(node))

    def visit_TryStar(self, node: ast.TryStar) -> Any:
        return _attempted(self.generic_visit(node))

    # expressions ------------------------------------------------------------------------------------------------------

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        values = [self.visit(v) for v in node.values]
        if self.scope.kind == "class" or not _movable(*node.values):
            node.values = values
            return node
        name = "both" if isinstance(node.op, ast.And) else "either"
        return _call(name, node, values[0], *map(_thunk, values[1:]))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        node.operand = self.visit(node.operand)
        return _call("negated", node, node.operand) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        movable = _movable(node.body, node.orelse)
        test, first, second = (self.visit(v) for v in (node.test, node.body, node.orelse))
        if self.scope.kind == "class" or not movable:
            node.test, node.body, node.orelse = test, first, second
            return node
        return _call("chosen", node, test, _thunk(first), _thunk(second))

    def visit_Compare(self, node: ast.Compare) -> Any:
        movable = _movable(*node.comparators)
        node.left = self.visit(node.left)
        node.comparators = [self.visit(v) for v in node.comparators]
        alone = len(node.ops) == 1 and isinstance(node.ops[0], ast.Is | ast.IsNot)
        sides = [side.value for side in (node.left, *node.comparators) if isinstance(side, ast.Constant)]
        if alone and all(value is None or isinstance(value, bool) for value in sides):
            found = _call("identical", node, node.left, *node.comparators)
            return found if isinstance(node.ops[0], ast.Is) else _call("negated", node, found)
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn) and self.scope.kind != "class":
            found = _call("contained", node, node.left, *node.comparators)
            return found if isinstance(node.ops[0], ast.In) else _call("negated", node, found)
        if len(node.ops) == 1 or self.scope.kind == "class" or not movable:
            return node
        names = tuple(_OPERATORS[type(op)] for op in node.ops)
        return _call("compared", node, _constant(names), node.left, *map(_thunk, node.comparators))

    def visit_ListComp(self, node: ast.ListComp) -> Any:
        return self._comprehension(node, "comprehended")

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        return self._comprehension(node, "generated")

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp, name: str) -> Any:
        (first, *more), inside = node.generators, _movable(node)
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
            plainly = [_constant(calls), placed_at(ast.Lambda(_arguments(LEFT), written), node)]
            tests = tests or [_constant(None)]
        single = _constant(isinstance(first.target, ast.Name))
        return _call(name, node, first.iter, iteration, single, *tests, *plainly)

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Constant) and texts.pieces_of(node):
            return self._text(node)
        framed = _looks_at_frame(node)
        if (names := self._operands_of(node)) is not None:
            return self._formula(node, names)
        if isinstance(node.func, ast.Name) and node.func.id == ITSELF and len(node.args) == 2:
            return _call("itself", node, *node.args)
        if isinstance(node.func, ast.Name) and node.func.id == "print":
            node.args = [a if isinstance(a, ast.Starred) else texts.visit(a) for a in node.args]
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _OURS:
            return _call(_OURS[node.func.id], node, *node.args)
        if not framed:
            node.func = _call("called", node.func, node.func)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        return self._text(node)

    def _operands_of(self, node: ast.expr) -> set[str] | None:
        """The names of the operands of a formula that Python may have to compute; None where there is nothing to be asked anew."""
        names = None if self.scope.kind == "class" else formulas.names_in(node)
        return None if names is None or names in self.asked else names

    def _formula(self, node: ast.expr, names: set[str]) -> Any:
        """A formula, and what computes it where its operands are numbers."""
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
        """An f-string, or what else makes a text of values, as a call of the run time."""
        pieces = None if self.scope.kind == "class" or not _movable(node) else texts.pieces_of(node)
        if pieces is None or all(isinstance(p, ast.Constant) for p in pieces):
            return self.generic_visit(node)
        call = _call("text", node, *map(self.visit, pieces))
        return placed_at(call, node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        own = _ATTRIBUTES.get(node.attr) if isinstance(node.ctx, ast.Load) else None
        return node if own is None else _call(own, node, node.value)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        name = getattr(node.value, "attr", getattr(node.value, "id", None))
        if isinstance(node.ctx, ast.Load) and name in _JOINS:
            node.value = _call("called", node.value, node.value)
        elif isinstance(node.ctx, ast.Store) or any(
            isinstance(n, ast.Name | ast.Call) for n in walk(node.slice)
        ):  # what may be lazy
            node.value = _call("indexed", node.value, node.value)
        return node

    def visit_Raise(self, node: ast.Raise) -> Any:
        if node.exc is not None and self.scope.kind != "class":
            node.exc = texts.visit_exception(node.exc)
        self.generic_visit(node)
        if node.exc is not None and self.scope.kind != "class":
            node.exc = _call("raised", node.exc, node.exc)
        return node

    def visit_Assert(self, node: ast.Assert) -> Any:
        movable = self.scope.kind != "class" and (node.msg is None or _movable(node.msg))
        if node.msg is not None and movable:
            node.msg = texts.visit(node.msg)
        self.generic_visit(node)
        if not movable:
            return node
        told = _constant(None) if node.msg is None else _thunk(node.msg)
        return placed_at(ast.Expr(_call("asserted", node, node.test, told)), node)


_JOINS = {"c_", "r_", "mgrid", "ogrid"}  # NumPy's objects that an index calls


def _flat_names(target: ast.expr) -> list[str] | None:
    """The names of a target that is a name, or a tuple of different ones; None for others."""
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    names = [p.id for p in parts if isinstance(p, ast.Name)]
    return names if len(names) == len(parts) == len(set(names)) else None


def _annotations(statement: ast.stmt) -> list[ast.stmt]:
    """The annotations of names within a loop or a branch of a cell, whose blocks become functions."""
    if isinstance(statement, _UNBRANCHED):
        return []
    found = [n for n in liveness.own_nodes(statement) if isinstance(n, ast.AnnAssign) and n.simple]
    return [ast.copy_location(ast.AnnAssign(n.target, n.annotation, None, 1), n) for n in found]


def _plain(statement: ast.stmt) -> ast.stmt:
    """A statement of a block that has become a function: an annotated name may not be shared."""
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        if statement.value is None:
            return ast.copy_location(ast.Pass(), statement)
        return ast.copy_location(ast.Assign([statement.target], statement.value), statement)
    for name in ("body", "orelse", "finalbody"):
        if isinstance(statement, ast.Try | ast.With | ast.If | ast.For | ast.While) and getattr(statement, name, None):
            setattr(statement, name, [_plain(s) for s in getattr(statement, name)])
    return statement
