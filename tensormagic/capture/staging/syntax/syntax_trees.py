"""Syntax trees: child nodes, walks and copies, like ``ast.walk`` and ``copy.deepcopy`` but faster, since trees are visited often."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Iterator
from functools import cache
from typing import Any, TypeVar

_Node = TypeVar("_Node", bound=ast.AST)
_BARE = {
    "ctx", "op", "ops", "id", "attr", "arg", "kind", "type_comment", "name", "module", "level", "asname", "rest", "simple",
    "is_async", "conversion", "kwd_attrs", "str", "tag",
}  # fmt: skip
"""Fields that hold no nodes, or such as have no parts: operators and contexts."""


@cache
def parts_of(kind: type[ast.AST]) -> tuple[str, ...]:
    """Return the fields of a kind of node that may hold nodes."""
    none = issubclass(kind, ast.Constant | ast.MatchSingleton | ast.Global | ast.Nonlocal)
    named = issubclass(kind, getattr(ast, "TypeAlias", ()))  # from Python 3.12 on: the one name that is a node
    return () if none else tuple([name for name in kind._fields if name not in _BARE or (named and name == "name")])


def children(node: ast.AST) -> list[ast.AST]:
    """Return the child nodes, without operators and contexts."""
    found: list[ast.AST] = []
    values: dict[str, Any] = node.__dict__
    for name in parts_of(node.__class__):
        value = values.get(name)
        if isinstance(value, list):
            found += [v for v in value if v is not None] if None in value else value
        elif value is not None:
            found.append(value)
    return found


def walk(root: ast.AST) -> Iterator[ast.AST]:
    """Yield ``root`` and everything below it but operators and contexts, level by level."""
    pending = [root]
    for node in pending:  # the list grows meanwhile
        yield node
        if parts_of(node.__class__):
            pending += children(node)


def placed(tree: _Node) -> _Node:
    """Give nodes without a position that of their parent, like ``ast.fix_missing_locations``; return ``tree``."""
    pending: list[tuple[ast.AST, tuple[int, ...]]] = [(tree, (1, 0, 1, 0))]
    while pending:
        node, place = pending.pop()
        own: dict[str, Any] = node.__dict__
        if node._attributes:  # noqa: SLF001 (that is where ast says it)
            for name, value in zip(_PLACE, place, strict=True):
                if own.get(name) is None:
                    own[name] = value
            place = tuple([own[name] for name in _PLACE])
        pending += [(part, place) for part in children(node)]
    return tree


def placed_at(node: _Node, like: ast.AST) -> _Node:
    """Give a new node the position of ``like``, and inner nodes without one, too; return it. A part that has a position is not entered."""
    there: dict[str, Any] = like.__dict__
    place = {name: there[name] for name in _PLACE if name in there}
    pending: list[ast.AST] = [node]
    while pending:
        part = pending.pop()
        if part._attributes:  # noqa: SLF001 (that is where ast says it)
            part.__dict__.update(place)
        pending += [p for p in children(part) if "lineno" not in p.__dict__]
    return node


_PLACE = ("lineno", "col_offset", "end_lineno", "end_col_offset")


def cloned(node: _Node) -> _Node:
    """Return a deep copy of a tree; operators and contexts are shared, as the parser shares them."""
    made: _Node = node.__class__.__new__(node.__class__)
    own: dict[str, Any] = made.__dict__
    own.update(node.__dict__)
    for name in parts_of(node.__class__):
        value = own.get(name)
        if isinstance(value, ast.AST):
            own[name] = cloned(value)
        elif isinstance(value, list):
            own[name] = [cloned(v) if isinstance(v, ast.AST) else v for v in value]
    return made


def copied(node: _Node) -> _Node:
    """Return a shallow copy of a node."""
    made: _Node = node.__class__.__new__(node.__class__)
    made.__dict__.update(node.__dict__)
    return made


_Change = Callable[[ast.AST, ast.AST], ast.AST]


def changed(node: _Node, change: _Change, lines: Collection[int]) -> _Node:
    """Return a function like ``node`` with changed parts; unchanged parts are shared, but the root is a copy.

    Parameters
    ----------
    node
        The function.
    change
        Gives the replacement of a part, from the original and the version with its own parts changed.
    lines
        Where expressions are entered, beside statements.
    """
    made = copied(node)
    own: dict[str, Any] = made.__dict__
    own["body"] = [_changed(v, change, frozenset(lines)) for v in own["body"]]
    return made


def _changed(node: Any, change: _Change, lines: frozenset[int]) -> Any:
    """Return what replaces a statement or an expression; the node itself if nothing in it changes."""
    whole = not isinstance(node, ast.stmt) or not lines.isdisjoint(range(node.lineno, (node.end_lineno or 0) + 1))
    before: dict[str, Any] = node.__dict__
    now: dict[str, Any] = {}
    for name in parts_of(node.__class__):
        value = before.get(name)
        if isinstance(value, list):
            parts = [_changed(v, change, lines) if _is_gone_into(v, whole) else v for v in value]
            if any(map(operator.is_not, parts, value)):
                now[name] = parts
        elif _is_gone_into(value, whole):
            part = _changed(value, change, lines)
            if part is not value:
                now[name] = part
    made = node
    if now:
        made = copied(node)
        made.__dict__.update(now)
    return change(node, made)


def _is_gone_into(part: Any, whole: bool) -> bool:
    kind = part.__class__
    return kind is not ast.Name and kind is not ast.Constant and isinstance(part, ast.AST if whole else ast.stmt)
