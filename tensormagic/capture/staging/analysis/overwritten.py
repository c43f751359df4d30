"""Which arguments a function may store into, by its text: only these are copied when Python runs its first call."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from tensormagic.capture.staging.analysis.numpy_functions import NEW
from tensormagic.capture.staging.analysis.text_features import is_into, is_store, name_of
from tensormagic.capture.staging.syntax.syntax_trees import children, walk

_NEW = NEW | {"flatten"}  # which is a method only


def overwritten(node: ast.FunctionDef, whose: Iterable[str] | None = None) -> frozenset[str]:
    """Return the parameters whose arrays the code may store into; all of them if lists or tuples may hold arrays.

    With ``whose``, those that share memory with one of these, whether or not anything is stored.
    """
    parameters = frozenset(a.arg for a in node.args.args)
    memory = _Memory()
    if not all(map(memory.follows, walk(node))):
        return parameters
    changed = set(map(memory.of, memory.stored if whose is None else whose))
    return frozenset(name for name in parameters if memory.of(name) in changed)


class _Memory:
    """Records which names may refer to the same memory, and which of them are stored into."""

    def __init__(self) -> None:
        self.stored: list[str] = []
        self._next: dict[str, str] = {}

    def follows(self, part: ast.AST) -> bool:
        """Record what a part of a text binds and stores into; return False where lists or tuples may hold arrays."""
        if isinstance(part, ast.Assign | ast.For):
            targets, value = (part.targets, part.value) if isinstance(part, ast.Assign) else ([part.target], part.iter)
            return self._binds([t for t in targets if not isinstance(t, ast.Attribute)], value)  # which is a shape
        if isinstance(part, ast.AugAssign):
            self.stored += _shared(part.target)
        elif is_store(part):
            self.stored += _shared(part.args[0])
        elif is_into(part):
            self.stored += _shared(part.args[-1])
        return not isinstance(part, ast.List)

    def _binds(self, targets: list[ast.expr], value: ast.expr) -> bool:
        if any(_is_kept(t, value) for t in targets):
            return False
        bound = [n for t in targets for n in walk(t)]
        self.stored += [name for n in bound if isinstance(n, ast.Subscript) for name in _shared(n)]
        names = [n.id for n in bound if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        if names:  # otherwise numbers are copied
            self._join((*names, *_shared(value)))
        return True

    def of(self, name: str) -> str:
        """Return the representative of all names that may refer to the same memory."""
        while name in self._next:
            name = self._next[name]
        return name

    def _join(self, names: tuple[str, ...]) -> None:
        for name in names[1:]:
            first, second = self.of(names[0]), self.of(name)
            if first != second:
                self._next[second] = first


def _is_kept(target: ast.expr, value: ast.expr) -> bool:
    """Return whether a name may be bound to a tuple that holds arrays, which is not tracked further."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return any(map(_is_kept, target.elts, value.elts))
    if isinstance(value, ast.Tuple):
        return True
    if isinstance(value, ast.Call):
        return name_of(value.func) in {"zip", "enumerate"} and not (
            isinstance(target, ast.Tuple) and all(isinstance(t, ast.Name) for t in target.elts)
        )
    if isinstance(value, ast.Subscript):
        return _is_kept(target, value.value)
    parts = children(value)
    return any(isinstance(p, ast.expr) and _is_kept(target, p) for p in parts)


def _shared(value: ast.expr) -> list[str]:
    """Return the names whose arrays a value may share memory with."""
    found: list[str] = []
    pending: list[ast.AST] = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name):
            found.append(node.id)
        elif isinstance(node, ast.Subscript):
            pending.append(node.value)
        elif is_into(node):
            pending.append(node.args[-1])
        elif not isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Constant) and not _is_new(node):
            pending += children(node)
    return found


def _is_new(node: ast.AST) -> bool:
    """Return whether a value is a new array, made by a function of NumPy's or a method."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _NEW
