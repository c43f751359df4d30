"""Track the names that plain cells compute from numbers of lazy values, so that a later gradient can warn of them.

It follows names as the text assigns them, and knows of values only whether they are lazy, numbers, or neither.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from types import FunctionType, ModuleType
from typing import Any
from weakref import ref

import numpy as np

from tensormagic.capture.inputs import notebook_names
from tensormagic.capture.inputs.door import is_table
from tensormagic.capture.inputs.items import root_of
from tensormagic.capture.numbers import numbers_taken
from tensormagic.capture.numbers.numbers_taken import Mark
from tensormagic.capture.python.builtin_facts import STEPS
from tensormagic.capture.python.bytecode import names_in
from tensormagic.capture.stores.lent import look_at_all
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.node import Node
from tensormagic.ir.plain_texts import key_text

_LOOKED_AT = 50  # items of one container
_DEPTH = 3  # of containers within containers
_WITHOUT_SLOPE = STEPS | {  # what does not move with the numbers that it is made of, or not smoothly
    *("shape", "size", "ndim", "dtype", "nbytes", "argmax", "argmin", "argsort"),
}
_SAID = "was computed here from numbers of lazy values"
_MAGICS = {"run_cell_magic", "run_line_magic"}
_COMPOUND = (ast.For, ast.AsyncFor, ast.While, ast.If, ast.Try, ast.TryStar, ast.Match)


@dataclass
class _Root:
    """The lazy values that a variable held before a cell, and the inputs of its numbers that plain cells have computed."""

    nodes: list[ref[Node]] = field(default_factory=list[Any])
    known: list[Mark] = field(default_factory=list[Any])


class HandedOn:
    """The variables of a notebook that hold lazy values, or numbers computed from these, before a cell runs."""

    def __init__(self) -> None:
        self._roots: dict[str, _Root] = {}
        self._held: dict[str, bytes] = {}  # what containers and objects held before the cell

    def before(self, space: Mapping[str, Any], gradients: Collection[str]) -> None:
        """Record the variables before a plain cell runs. ``gradients`` names those to leave out: nobody differentiates in them."""
        numbers_taken.begin()
        found = {n: _root(space[n], n) for n in notebook_names.variables(space) if n not in gradients}
        self._roots = {name: root for name, root in found.items() if root.nodes or root.known}
        containers = [n for n in notebook_names.variables(space) if _holds(space[n])] if self._roots else []
        self._held = {path: numbers_taken.sample(value) for n in containers for path, value in numbers(space[n], n)}

    def after(self, text: str, space: Mapping[str, Any], cell: str, above: int = 0) -> None:
        """Record, after a cell, which inputs each bound number may depend on; ``above`` counts lines before the text."""
        roots, self._roots = self._roots, {}
        held, self._held = self._held, {}
        look_at_all()
        left = numbers_taken.begin()
        try:
            tree = ast.parse(text) if roots else None
        except SyntaxError:
            return
        if tree is None:
            return
        flow = _Flow({name: {name} for name in roots}, space)
        flow.block(tree.body, sure=True)
        for name, line in flow.bound.items():
            marks = [m for n in flow.sources.get(name, ()) for m in _behind(roots[n], left)]
            for path, value in numbers(space[name], name) if name in space else ():
                if not _holds(space[name]) or held.get(path) != numbers_taken.sample(value):
                    numbers_taken.note_computed(path, value, marks, (cell, above + line), _SAID)


def _root(value: Any, name: str) -> _Root:
    """Return the lazy values and computed numbers that a variable holds."""
    root = _Root()
    for path, part in _parts(value, name, _DEPTH):
        if isinstance(part, Tensor):
            root.nodes.append(ref(part.node))
        else:
            root.known += numbers_taken.computed(part, path)
    return root


def _behind(root: _Root, left: list[Mark]) -> list[Mark]:
    """Return the inputs of the numbers that left the graph through a variable; all of ``left`` if its nodes no longer exist."""
    nodes = [node for r in root.nodes if (node := r()) is not None]
    if len(nodes) < len(root.nodes):  # gone, and with it what it was made of
        return [*root.known, *left]
    return [*root.known, *numbers_taken.among(left, nodes)]


def _holds(value: Any) -> bool:
    """Return whether a value is a container, or an object of a class of the notebook."""
    users = type(value).__module__ == "__main__" and hasattr(value, "__dict__") and not isinstance(value, type)
    return isinstance(value, list | tuple | dict) or users


def _parts(value: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield the arrays, numbers and tables that a variable holds, each with the text that reads it."""
    if isinstance(value, Tensor | np.ndarray | float | complex | np.inexact) or is_table(value):
        yield path, value
        return
    items: Iterable[tuple[str, Any]] = ()
    if not depth or not _holds(value):
        return
    if isinstance(value, list | tuple):
        yield path, value
        items = ((f"{path}[{k}]", v) for k, v in enumerate(value[:_LOOKED_AT]))
    elif isinstance(value, dict):
        items = ((f"{path}[{key_text(k)}]", v) for k, v in islice(value.items(), _LOOKED_AT))
    else:
        items = ((f"{path}.{k}", v) for k, v in list(vars(value).items())[:_LOOKED_AT])
    for inner, part in items:
        yield from _parts(part, inner, depth - 1)


def numbers(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the numbers that a variable holds which are not lazy, and of a kind that has derivatives."""
    for inner, part in _parts(value, path, _DEPTH):
        if isinstance(part, Tensor):
            continue
        if is_table(part):
            columns = [(f"{inner}[{c!r}]", part[c]) for c in part] if hasattr(part, "columns") else [(inner, part)]
            yield from ((name, np.asarray(c)) for name, c in columns if c.dtype.kind in "fc")
        elif isinstance(part, list | tuple):
            if part and all(isinstance(v, float | complex | np.inexact) for v in part):
                yield inner, np.array(part)
        elif not isinstance(part, np.ndarray) or part.dtype.kind in "fc":
            yield inner, part


class _Flow:
    """The data flow between variables, as a cell's text assigns them.

    Parameters
    ----------
    sources
        The variables that each name depends on.
    space
        The notebook, where functions are looked up.
    """

    def __init__(self, sources: dict[str, set[str]], space: Mapping[str, Any]) -> None:
        self.sources = sources
        self.space = space
        self.bound: dict[str, int] = {}  # the line at which each name was bound last to what comes from others

    def block(self, body: Iterable[ast.stmt], *, sure: bool) -> None:
        """Follow statements, which run, or may run."""
        for statement in body:
            self._statement(statement, sure)

    def _statement(self, node: ast.stmt, sure: bool) -> None:
        self._expressions(node)
        if isinstance(node, ast.Assign):
            self._assign(node, sure)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._to(node.target, self.behind(node.value), sure=sure)
        elif isinstance(node, ast.AugAssign):
            self._to(node.target, self.behind(node.value), sure=False)
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                if item.optional_vars is not None:
                    self._to(item.optional_vars, self.behind(item.context_expr), sure=sure)
            self.block(node.body, sure=sure)
        elif isinstance(node, _COMPOUND):
            self._compound(node)

    def _expressions(self, node: ast.stmt) -> None:
        for part in ast.walk(node):
            if isinstance(part, ast.NamedExpr):
                self._to(part.target, self.behind(part.value), sure=False)
            elif isinstance(part, ast.Call):
                self._call(part)

    def _assign(self, node: ast.Assign, sure: bool) -> None:
        given = node.value.elts if isinstance(node.value, ast.Tuple) else []
        for target in node.targets:
            targets = target.elts if isinstance(target, ast.Tuple) and len(target.elts) == len(given) else []
            for one, found in [(t, self.behind(v)) for t, v in zip(targets, given, strict=False)]:
                self._to(one, found, sure=sure)
            if not targets:
                self._to(target, self.behind(node.value), sure=sure)

    def _compound(self, node: ast.stmt) -> None:
        """Follow a compound statement; a loop twice, since an iteration reads what the one before has bound."""
        for _ in range(2 if isinstance(node, ast.For | ast.AsyncFor | ast.While) else 1):
            if isinstance(node, ast.For | ast.AsyncFor):
                self._to(node.target, self.behind(node.iter), sure=False)
            for part in ast.iter_child_nodes(node):
                if isinstance(part, ast.stmt):
                    self._statement(part, sure=False)
                elif isinstance(part, ast.ExceptHandler | ast.match_case):
                    self.block(part.body, sure=False)

    def _call(self, node: ast.Call) -> None:
        """Handle calls that change a name, such as ``found.append(float(z))``, and the code of timed lines."""
        if not isinstance(node.func, ast.Attribute):
            return
        if node.func.attr in _MAGICS and len(node.args) > 1:
            text = node.args[-1].value if isinstance(node.args[-1], ast.Constant) else None
            try:
                self.block(ast.parse(text).body if isinstance(text, str) else [], sure=True)
            except SyntaxError:
                return
            return
        root = root_of(node.func)
        given = set[str]().union(*map(self.behind, [*node.args, *(k.value for k in node.keywords)]))
        if root and given - {root} and not isinstance(self.space.get(root), ModuleType | type | FunctionType):
            self._to(ast.Name(root, ast.Store(), lineno=node.lineno), given, sure=False)

    def _to(self, target: ast.expr, found: set[str], *, sure: bool) -> None:
        """Record that a target is bound to, or has stored into it, a value that depends on the variables ``found``."""
        if isinstance(target, ast.Tuple | ast.List):
            for part in target.elts:
                self._to(part, found, sure=sure)
        elif isinstance(target, ast.Starred):
            self._to(target.value, found, sure=sure)
        elif name := root_of(target):
            if sure and _is_whole(target):
                self.sources[name] = set(found)
            elif not found and not isinstance(target, ast.Name):
                return
            self.sources[name] = self.sources.get(name, set()) | found
            if found or name not in self.bound:
                self.bound[name] = target.lineno

    def behind(self, node: ast.AST) -> set[str]:
        """Return the variables that the value of an expression moves with."""
        if isinstance(node, ast.Compare) or (isinstance(node, ast.Attribute) and node.attr in _WITHOUT_SLOPE):
            return set()
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if called in _WITHOUT_SLOPE:
                return set()
        if isinstance(node, ast.IfExp):
            return self.behind(node.body) | self.behind(node.orelse)
        if isinstance(node, ast.Subscript):  # which element it is has no derivative
            return self.behind(node.value)
        if isinstance(node, ast.Name):
            found = self.sources.get(node.id, set())
            function = self.space.get(node.id)
            return found | self._of_function(function) if isinstance(function, FunctionType) else found
        return set[str]().union(*map(self.behind, ast.iter_child_nodes(node)))

    def _of_function(self, function: FunctionType) -> set[str]:
        """Return the variables that the globals which a notebook function reads depend on."""
        if function.__globals__ is not self.space:
            return set()
        return set[str]().union(*(self.sources.get(name, ()) for name in names_in(function.__code__)))


def _is_whole(target: ast.expr) -> bool:
    """Return whether a target is a variable, or all of it: ``v[:]``, ``v[...]``."""
    if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
        index = target.slice
        return (isinstance(index, ast.Slice) and index.lower is index.upper is index.step is None) or (
            isinstance(index, ast.Constant) and index.value is ...
        )
    return isinstance(target, ast.Name)
