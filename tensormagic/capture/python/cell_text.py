"""Facts from a cell's text: the names it reads and binds, its last expression, and the imports that capture must follow."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tensormagic.capture.inputs.items import with_items
from tensormagic.capture.numbers.named_numbers import with_numbers
from tensormagic.capture.staging.syntax.liveness import own_nodes
from tensormagic.capture.staging.syntax.syntax_trees import walk

CAPTURED = "__tensor_captured__"
_DEFINING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(frozen=True)
class Parsed:
    """Represents a parsed cell.

    Parameters
    ----------
    body
        The statements, with imported names passed through the capture.
    last
        The last expression, to be evaluated for its value; None where the cell ends in another statement.
    last_name
        The name that a final assignment binds, for gradients of it.
    reads
        Names that the cell reads before it has bound them itself, in order of first reading.
    binds
        Names that the cell binds at its top level, in order.
    places
        Where each name is first read.
    defines
        Whether it makes functions or classes.
    """

    body: ast.Module
    last: ast.Expression | None
    last_name: str
    reads: tuple[str, ...]
    binds: tuple[str, ...]
    places: dict[str, ast.expr] = field(default_factory=dict)
    defines: bool = False


class _Names(ast.NodeVisitor):
    """Collects names read before the cell has bound them itself, and names bound at the top level, in order."""

    def __init__(self) -> None:
        self.reads: dict[str, ast.expr] = {}
        self.binds: dict[str, None] = {}
        self.bound: set[str] = set()  # bound on every path to this statement
        self.local: list[set[str]] = []  # names of the enclosing functions and loops
        self.depth = 0
        self.imports = False  # whether there is any function or class

    def _read(self, name: str, where: ast.expr) -> None:
        if name not in self.bound and not any(name in names for names in self.local):
            self.reads.setdefault(name, where)

    def _bind(self, *names: str) -> None:
        if self.depth == 0:
            self.binds.update(dict.fromkeys(names))
            self.bound.update(names)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._read(node.id, node)
        else:
            self._bind(node.id)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)  # the value is read before the name is bound
        for target in node.targets:
            self.visit(target)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
            self.visit(node.target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self._read(node.target.id, node.target)
        self.visit(node.value)
        self.visit(node.target)

    def _ways(self, *ways: Sequence[ast.AST]) -> None:
        """Visit alternative lists of statements; only names that all of them bind are bound afterwards."""
        before, ends = set(self.bound), []
        for statements in ways:
            self.bound = set(before)
            for statement in statements:
                self.visit(statement)
            ends.append(self.bound)
        self.bound = set.intersection(*ends)

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self._ways(node.body, node.orelse)

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        self._ways(node.body, [])
        self._ways(node.orelse, [])

    def visit_For(self, node: ast.For) -> None:
        self.visit(node.iter)
        targets = {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
        self.local.append(targets)
        self._ways(node.body, [])
        self.local.pop()
        self._ways(node.orelse, [])
        self.binds.update({} if self.depth else dict.fromkeys(sorted(targets)))

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        for case in node.cases:
            self._ways([case], [])

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> None:
        self.generic_visit(node)
        self._bind(*[node.name] if node.name else [])

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        self.generic_visit(node)
        self._bind(*[node.rest] if node.rest else [])

    def visit_Try(self, node: ast.Try) -> None:
        self._ways(node.body, [])
        for handler in node.handlers:
            self.local.append({handler.name} if handler.name else set())
            self._ways(handler.body, [])
            self.local.pop()
        self._ways(node.orelse, [])
        for statement in node.finalbody:
            self.visit(statement)

    visit_TryStar = visit_Try  # type: ignore[assignment]

    def _scope(self, node: ast.AST, name: str | None, local: set[str]) -> None:
        self.depth += 1
        self.local.append(local)
        self.generic_visit(node)
        self.local.pop()
        self.depth -= 1
        if name is not None:
            self._bind(name)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._scope(node, node.name, {node.name} | _own_names(node))

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._scope(node, node.name, _own_names(node))

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._scope(node, None, _own_names(node))

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._scope(node, None, _own_names(node))
        if self.depth == 0:  # an ``:=`` in it binds a name of the cell, where there is an element
            named = [n.target.id for n in own_nodes(node) if isinstance(n, ast.NamedExpr)]
            self.binds.update(dict.fromkeys(named))

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp  # type: ignore[assignment]

    def visit_Global(self, node: ast.Global) -> None:
        self.binds.update(dict.fromkeys(node.names))  # looked up where the function is called

    def visit_Import(self, node: ast.Import) -> None:
        self.imports = True
        self._bind(*(a.asname or a.name.partition(".")[0] for a in node.names))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.imports = True
        self._bind(*(a.asname or a.name for a in node.names))


def _own_names(scope: ast.AST) -> set[str]:
    """Return the parameters of a function and the names that it, or a comprehension, binds."""
    nodes = list(ast.walk(scope))
    foreign = {n for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for n in node.names}
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    return (stored | {n.arg for n in nodes if isinstance(n, ast.arg)}) - foreign


class _Imports(ast.NodeTransformer):
    """Inserts after each import a call that replaces the imported object; imports inside functions are left alone."""

    def visit(self, node: ast.AST) -> Any:
        return node if isinstance(node, _DEFINING) else super().visit(node)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> list[ast.stmt]:
        names = [
            a.asname or (a.name if isinstance(node, ast.ImportFrom) else a.name.partition(".")[0]) for a in node.names
        ]
        seen: list[ast.stmt] = [
            ast.fix_missing_locations(
                ast.copy_location(
                    ast.Assign(
                        [ast.Name(n, ast.Store())],
                        ast.Call(ast.Name(CAPTURED, ast.Load()), [ast.Name(n, ast.Load())], []),
                    ),
                    node,
                )
            )
            for n in names
            if n != "*"
        ]
        return [node] if _is_future(node) else [node, *seen]  # these stand before all other statements

    visit_ImportFrom = visit_Import


def _is_future(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__" and not node.level


def parse(source: str, filename: str) -> Parsed:
    """Parse a cell's text; raise SyntaxError as Python would."""
    names = _Names()
    parsed = ast.parse(source, filename)
    names.visit(parsed)
    defines = any(isinstance(n, _DEFINING) for n in walk(parsed))
    tree: Any = with_numbers(with_items(parsed, names.reads))
    if names.imports:
        tree = _Imports().visit(tree)
        tree.body.sort(key=lambda node: not _is_future(node))  # IPython compiles each statement by itself
    last: ast.Expression | None = None
    last_name = ""
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    elif tree.body and isinstance(tree.body[-1], ast.Assign | ast.AugAssign | ast.AnnAssign):
        final = tree.body[-1]
        target = final.targets[0] if isinstance(final, ast.Assign) else final.target
        last_name = target.id if isinstance(target, ast.Name) else ""
    return Parsed(tree, last, last_name, tuple(names.reads), tuple(names.binds), names.reads, defines)
