"""What a cell's text says: the names it reads and binds, its last expression, and the imports that have to be seen through."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

CAPTURED = "__tensor_captured__"


@dataclass(frozen=True)
class Parsed:
    """A cell, taken apart.

    Parameters
    ----------
    body
        The statements, with imported names passed through the capture.
    last
        The last expression, to be evaluated for its value; None where the cell ends in another statement.
    last_name
        The name that a final assignment binds, for gradients of it.
    reads
        Names that the cell reads, in order of first reading.
    binds
        Names that the cell binds at its top level, in order, without loop counters.
    places
        Where each name is first read.
    """

    body: ast.Module
    last: ast.Expression | None
    last_name: str
    reads: tuple[str, ...]
    binds: tuple[str, ...]
    places: dict[str, ast.expr] = field(default_factory=dict)


class _Names(ast.NodeVisitor):
    """Names read anywhere, and names bound at the top level, in order."""

    def __init__(self) -> None:
        self.reads: dict[str, ast.expr] = {}
        self.binds: dict[str, None] = {}
        self.counters: set[str] = set()
        self.depth = 0

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.reads.setdefault(node.id, node)
        elif self.depth == 0:
            self.binds.setdefault(node.id)

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
            self.reads.setdefault(node.target.id, node.target)
        self.visit(node.value)
        self.visit(node.target)

    def visit_For(self, node: ast.For) -> None:
        if self.depth == 0:
            self.counters |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
        self.visit(node.iter)
        for child in (*node.body, *node.orelse):
            self.visit(child)

    def _scope(self, node: ast.AST, name: str | None) -> None:
        if name is not None and self.depth == 0:
            self.binds.setdefault(name)
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._scope(node, node.name)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._scope(node, node.name)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._scope(node, None)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._scope(node, None)

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp  # type: ignore[assignment]

    def visit_Import(self, node: ast.Import) -> None:
        if self.depth == 0:
            self.binds.update(dict.fromkeys(a.asname or a.name.partition(".")[0] for a in node.names))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if self.depth == 0:
            self.binds.update(dict.fromkeys(a.asname or a.name for a in node.names))

    def visit_With(self, node: ast.With) -> None:
        self.generic_visit(node)


class _Imports(ast.NodeTransformer):
    """After each import, what was imported as the capture sees it."""

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> list[ast.stmt]:
        names = [a.asname or (a.name if isinstance(node, ast.ImportFrom) else a.name.partition(".")[0]) for a in node.names]
        seen: list[ast.stmt] = [
            ast.copy_location(
                ast.Assign([ast.Name(n, ast.Store())], ast.Call(ast.Name(CAPTURED, ast.Load()), [ast.Name(n, ast.Load())], [])), node
            )
            for n in names
            if n != "*"
        ]
        return [node, *seen]

    visit_ImportFrom = visit_Import  # type: ignore[assignment]


def parse(source: str, filename: str) -> Parsed:
    """Take a cell's text apart; raises SyntaxError as Python would."""
    tree = ast.parse(source, filename)
    names = _Names()
    names.visit(tree)
    tree = ast.fix_missing_locations(_Imports().visit(tree))
    last: ast.Expression | None = None
    last_name = ""
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    elif tree.body and isinstance(tree.body[-1], ast.Assign | ast.AugAssign | ast.AnnAssign):
        final = tree.body[-1]
        target = final.targets[0] if isinstance(final, ast.Assign) else final.target
        last_name = target.id if isinstance(target, ast.Name) else ""
    binds = tuple(n for n in names.binds if n not in names.counters)
    return Parsed(tree, last, last_name, tuple(names.reads), binds, names.reads)
