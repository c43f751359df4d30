"""Which names of a kernel's text need memory: a name with one assignment that precedes every use is a value itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_Path = tuple[int, ...]


@dataclass
class _Uses:
    """Where a name is assigned, and where it is read: the blocks around, and the number of the statement."""

    given: list[tuple[_Path, int]] = field(default_factory=list)
    read: list[tuple[_Path, int]] = field(default_factory=list)

    def is_value(self) -> bool:
        """Return whether every use comes after the one assignment, in its block or within."""
        if len(self.given) != 1:
            return False
        ((path, number),) = self.given
        return all(at > number and where[: len(path)] == path for where, at in self.read)


class Names:
    """The names of a function."""

    def __init__(self, body: Sequence[ast.stmt]) -> None:
        self._uses: dict[str, _Uses] = {}
        self._number = 0
        self._blocks = 0
        self._walk(body, ())
        self.values = {name for name, uses in self._uses.items() if uses.is_value()}

    def _walk(self, body: Sequence[ast.stmt], path: _Path) -> None:
        for statement in body:
            self._number += 1
            number = self._number
            for name in _read(statement):
                self._of(name).read.append((path, number))
            blocks = [getattr(statement, part, []) for part in ("body", "orelse")]
            for k, block in enumerate(blocks):
                if block:
                    self._blocks += 1
                    inner = (*path, self._blocks)
                    if k == 0 and isinstance(statement, ast.For) and isinstance(statement.target, ast.Name):
                        self._of(statement.target.id).given.append((inner, number))
                    self._walk(block, inner)
            target = _given(statement)
            if target is not None:
                self._of(target).given.append((path, number))

    def _of(self, name: str) -> _Uses:
        return self._uses.setdefault(name, _Uses())


def _given(statement: ast.stmt) -> str | None:
    """Return the name that a statement assigns."""
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        return statement.target.id
    return None


def _expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the expressions of a statement itself, without those of the statements in it."""
    if isinstance(statement, ast.If | ast.While):
        yield statement.test
    elif isinstance(statement, ast.For):
        yield statement.iter
    else:
        yield statement


def _read(statement: ast.stmt) -> Iterator[str]:
    for root in _expressions(statement):
        for node in ast.walk(root):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                yield node.id
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        yield statement.target.id
