"""Find calls of the package in cells of Python, mark them for a run, and replace them in the text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tensormagic.notebook.export.observe import EXPORTED
from tensormagic.notebook.export.source import Cell

MAKING = {"tensor", "grad", "value_and_grad", "hessian", "jacobian", "vmap", "checkpoint"}
_SEEN_THROUGH = {"stop_gradient", "evaluate"}


@dataclass(frozen=True)
class Names:
    """What a notebook calls the package, and its functions."""

    modules: frozenset[str]
    functions: Mapping[str, str]

    def function(self, node: ast.expr) -> str:
        """Return which function of the package an expression names; empty where it names none."""
        if isinstance(node, ast.Name):
            return self.functions.get(node.id, "")
        owner = node.value if isinstance(node, ast.Attribute) else None
        own = isinstance(owner, ast.Name) and owner.id in self.modules
        return node.attr if own and isinstance(node, ast.Attribute) else ""

    def mentioned(self, tree: ast.AST) -> list[str]:
        """Return where code mentions the package."""
        own = self.modules | set(self.functions)
        inner = {n.value: ast.unparse(n) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
        names = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id in own]
        return [inner.get(n, n.id) for n in names]


def names_of(texts: Iterable[str]) -> Names:
    """Return the names that cells import from the package."""
    modules: set[str] = set()
    functions: dict[str, str] = {}
    for text in texts:
        for found in re.finditer(r"^\s*import tensormagic(?: as (\w+))?\s*$", text, re.MULTILINE):
            modules.add(found[1] or "tensormagic")
        for found in re.finditer(r"^\s*from tensormagic import ([\w ,]+)$", text, re.MULTILINE):
            for part in found[1].split(","):
                name, _, alias = part.strip().partition(" as ")
                functions[alias.strip() or name] = name
    return Names(frozenset(modules), functions)


@dataclass(frozen=True)
class Site:
    """A call that makes a function: its place, and what the function does."""

    number: int
    node: ast.expr
    what: str
    decorates: str = ""


class Marks(ast.NodeTransformer):
    """The calls of one cell.

    Parameters
    ----------
    cell
        The cell, for errors.
    names
        What the package is called.
    first
        The number of the first call.
    """

    def __init__(self, cell: Cell, names: Names, first: int) -> None:
        self.cell = cell
        self.names = names
        self.first = first
        self.sites: list[Site] = []
        self.through: list[ast.Call] = []
        self.dropped: list[ast.stmt] = []

    def marked(self, text: str) -> ast.Module:
        """Return the cell with its calls going through what notes them."""
        tree = self.visit(ast.parse(text))
        return ast.fix_missing_locations(tree)

    def _site(self, node: ast.expr, what: str, decorates: str = "") -> Site:
        site = Site(self.first + len(self.sites), node, what, decorates)
        self.sites.append(site)
        return site

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = self.names.function(node.func)
        if name in MAKING:
            site = self._site(node, _title(name, node))
            return _noted(site.number, node)
        if name in _SEEN_THROUGH:
            self.through.append(node)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        own = [
            d for d in node.decorator_list if self.names.function(d.func if isinstance(d, ast.Call) else d) in MAKING
        ]
        for decorator in own:
            site = self._site(decorator, node.name, node.name)
            place = node.decorator_list.index(decorator)
            made = ast.Call(decorator, [ast.Name("made", ast.Load())], [])
            arguments = ast.arguments([], [ast.arg("made")], None, [], [], None, [])
            node.decorator_list[place] = ast.Lambda(arguments, _noted(site.number, made))
        return self.generic_visit(node) if not own else node

    def visit_Import(self, node: ast.Import) -> ast.AST:
        if all(a.name == "tensormagic" for a in node.names):
            self.dropped.append(node)
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        if node.module == "tensormagic":
            self.dropped.append(node)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        text = ast.unparse(node.targets[0])
        if any(text.startswith(f"{module}.config.") for module in self.names.modules):
            self.dropped.append(node)
        return self.generic_visit(node)

    def replaced(self, text: str, made: Mapping[int, str]) -> str:
        """Return the cell's text with names of generated functions in place of the calls."""
        lines = [line.encode() for line in text.split("\n")]
        spans = [(s.node, made.get(s.number, "")) for s in self.sites if not s.decorates]
        spans += [
            (n, ast.unparse(n.args[0]) if len(n.args) == 1 else f"({', '.join(map(ast.unparse, n.args))})")
            for n in self.through
        ]
        inner = {id(n) for node, _ in spans for n in ast.walk(node) if n is not node}
        changes = [(_span(node), new) for node, new in spans if id(node) not in inner]
        changes += [(_span(s), "pass") for s in self.dropped]
        for ((row, column), (last, end)), new in sorted(changes, reverse=True):
            rest = lines[last][end:]
            lines[row : last + 1] = [lines[row][:column] + new.encode() + rest]
        for site in self.sites:
            if site.decorates:
                lines[site.node.lineno - 1] = b""
        kept = "\n".join(line.decode() for line in lines)
        return re.sub(r"^pass[ \t]*(\n|$)", "", kept, flags=re.MULTILINE)


def _span(node: ast.expr | ast.stmt) -> tuple[tuple[int, int], tuple[int, int]]:
    return (node.lineno - 1, node.col_offset), ((node.end_lineno or node.lineno) - 1, node.end_col_offset or 0)


def _noted(number: int, node: ast.expr) -> ast.Call:
    made = ast.Call(ast.Name(EXPORTED, ast.Load()), [ast.Constant(number), node], [])
    return ast.copy_location(made, node)


def _title(name: str, node: ast.Call) -> str:
    """Return the name of the function: ``grad_of_loss``."""
    first = node.args[0] if node.args else None
    inner = _title("", first) if isinstance(first, ast.Call) else first.id if isinstance(first, ast.Name) else ""
    own = (
        node.func.attr
        if isinstance(node.func, ast.Attribute)
        else node.func.id
        if isinstance(node.func, ast.Name)
        else ""
    )
    return "_of_".join(part for part in (name or own, inner) if part)
