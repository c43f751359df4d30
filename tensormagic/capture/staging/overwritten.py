"""Which arguments a function may store into, by its text: only these are kept aside when Python runs its first call."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from tensormagic.capture.staging.in_text import is_into, is_store, name_of
from tensormagic.capture.staging.numpys import NEW
from tensormagic.capture.staging.trees import children, walk

_NEW = NEW | {"flatten"}  # which is a method alone


def overwritten(node: ast.FunctionDef, whose: Iterable[str] | None = None) -> frozenset[str]:
    """The parameters whose arrays it may store into itself; all of them, where lists or tuples may hold arrays.

    With ``whose``, those that share memory with one of these, whatever is stored.
    """
    parameters = frozenset(a.arg for a in node.args.args)
    groups = _Groups()
    stored: list[str] = []
    for part in walk(node):
        if isinstance(part, ast.List):
            return parameters
        if isinstance(part, ast.Assign | ast.For):
            targets, value = (part.targets, part.value) if isinstance(part, ast.Assign) else ([part.target], part.iter)
            if any(_is_kept(t, value) for t in targets if not isinstance(t, ast.Attribute)):  # a shape
                return parameters
            bound = [n for t in targets for n in walk(t)]
            stored += [name for n in bound if isinstance(n, ast.Subscript) for name in _shared(n)]
            names = [n.id for n in bound if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
            if names:  # else numbers are copied
                groups.join((*names, *_shared(value)))
        elif isinstance(part, ast.AugAssign):
            stored += _shared(part.target)
        elif is_store(part):
            stored += _shared(part.args[0])
        elif is_into(part):
            stored += _shared(part.args[-1])
    changed = set(map(groups.of, stored if whose is None else whose))
    return frozenset(name for name in parameters if groups.of(name) in changed)


class _Groups:
    """Names that may mean the same memory."""

    def __init__(self) -> None:
        self._next: dict[str, str] = {}

    def of(self, name: str) -> str:
        """The name that stands for a group."""
        while name in self._next:
            name = self._next[name]
        return name

    def join(self, names: tuple[str, ...]) -> None:
        """Make one group of those of names."""
        for name in names[1:]:
            first, second = self.of(names[0]), self.of(name)
            if first != second:
                self._next[second] = first


def _is_kept(target: ast.expr, value: ast.expr) -> bool:
    """Whether a name may get a tuple that holds arrays: what is made of that is not followed."""
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
    """The names whose arrays a value may share memory with."""
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
    """Whether a value is what a function of NumPy's, or a method, has made."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _NEW
