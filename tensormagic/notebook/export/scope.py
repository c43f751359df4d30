"""The names of a notebook at a cell, known without running it: what binds them, and which values they were computed from."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass, field

from tensormagic.capture.python.cell_text import Parsed

FUNCTION, CONTAINER, VALUE = "function", "container", "value"
_DEFINING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_HOLDING = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_MAKING = {"tensor", "grad", "value_and_grad", "hessian", "jacobian", "vmap", "checkpoint", "partial"}
Version = tuple[str, int]


@dataclass
class Scope:
    """The names that cells have bound so far.

    Parameters
    ----------
    kinds
        ``"function"`` for names that are no arguments of a captured cell (functions, modules, classes), ``"container"``
        for literal lists, dictionaries and sets, ``"value"`` for everything else.
    versions
        How often each has been bound.
    origins
        For lazy values, the names that a gradient could be taken in, with their versions.
    """

    kinds: dict[str, str] = field(default_factory=dict[str, str])
    versions: dict[str, int] = field(default_factory=dict[str, int])
    origins: dict[str, set[Version]] = field(default_factory=dict[str, set[Version]])

    def is_argument(self, name: str) -> bool:
        """Return whether a captured cell takes what this name holds as an argument."""
        return self.kinds.get(name, FUNCTION) != FUNCTION

    def is_free(self, name: str) -> bool:
        """Return whether nothing has bound the name so far, and Python does not either."""
        return name not in self.kinds and not hasattr(builtins, name)

    def version(self, name: str) -> Version:
        """Return a name with how often it has been bound."""
        return name, self.versions.get(name, 0)

    def plain(self, tree: ast.Module, parsed: Parsed) -> None:
        """Note the names that a plain cell binds: values that it computes from lazy ones may be lazy."""
        came = {origin for name in parsed.reads for origin in self.origins.get(name, ())}
        self._bind({**dict.fromkeys(parsed.binds, VALUE), **_kinds(tree)}, came)

    def captured(self, tree: ast.Module, parsed: Parsed, outputs: list[str]) -> None:
        """Note the names that a captured cell binds: its outputs depend on all its inputs."""
        came = {origin for name in parsed.reads for origin in self.origins.get(name, ())}
        came |= {self.version(name) for name in parsed.reads if self.is_argument(name)}
        kinds = _kinds(tree)
        self._bind({name: kinds.get(name, VALUE) for name in outputs}, came)

    def _bind(self, kinds: dict[str, str], came: set[Version]) -> None:
        for name, kind in kinds.items():
            self.kinds[name] = kind
            self.versions[name] = self.versions.get(name, 0) + 1
            self.origins[name] = set() if kind == FUNCTION else came


def _kinds(tree: ast.Module) -> dict[str, str]:
    """Return the kinds of names bound at the top of a cell to something other than a value."""
    found: dict[str, str] = {}
    for statement in tree.body:
        if isinstance(statement, _DEFINING):
            found[statement.name] = FUNCTION
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            found |= dict.fromkeys((a.asname or a.name.partition(".")[0] for a in statement.names), FUNCTION)
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                found |= _assigned(target, statement.value)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            found |= _assigned(statement.target, statement.value)
    return found


def _assigned(target: ast.expr, value: ast.expr) -> dict[str, str]:
    if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        found: dict[str, str] = {}
        for one, part in zip(target.elts, value.elts, strict=False):
            found |= _assigned(one, part)
        return found
    if not isinstance(target, ast.Name):
        return {}
    if isinstance(value, ast.Lambda) or _makes_function(value):
        return {target.id: FUNCTION}
    return {target.id: CONTAINER if isinstance(value, _HOLDING) else VALUE}


def _makes_function(value: ast.expr) -> bool:
    if not isinstance(value, ast.Call):
        return False
    function = value.func
    name = (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )
    return name in _MAKING


def bound_by(statement: ast.stmt) -> set[str]:
    """Return the names that a statement at the top of a cell defines or imports."""
    if isinstance(statement, _DEFINING):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {a.asname or a.name.partition(".")[0] for a in statement.names}
    if isinstance(statement, ast.Assign) and is_no_number(statement.value):
        return {t.id for t in statement.targets if isinstance(t, ast.Name)}
    return set()


def is_no_number(value: ast.expr) -> bool:
    """Return whether an expression is text, bytes, None or a function, as far as its syntax shows."""
    text = isinstance(value, ast.Constant) and isinstance(value.value, str | bytes | None)
    return text or isinstance(value, ast.Lambda | ast.JoinedStr)


def always_bound(statements: list[ast.stmt]) -> set[str]:
    """Return the names that statements bind whichever way of a branch is taken; loops are taken to run."""
    found: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.If):
            found |= always_bound(statement.body) & always_bound(statement.orelse)
        elif isinstance(statement, ast.Try):
            found |= always_bound(statement.finalbody)
        elif isinstance(statement, ast.For | ast.While | ast.With):
            found |= always_bound(statement.body) | _stored(statement, {*statement.body})
        else:
            found |= _stored(statement, set()) | bound_by(statement)
    return found


def _stored(statement: ast.stmt, without: set[ast.stmt]) -> set[str]:
    inside = {id(n) for s in without for n in ast.walk(s)}
    nodes = [n for n in ast.walk(statement) if id(n) not in inside]
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
