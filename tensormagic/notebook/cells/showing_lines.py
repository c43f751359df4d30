"""Which statements of a cell only show values: ``print(w, grad_w)`` computes nothing. It knows syntax alone."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import TypeVar

_Tree = TypeVar("_Tree", bound=ast.AST)
_SHOW = {"print", "display", "repr", "str", "float", "type", "len", "round", "list", "tuple"}
_METHODS = {"round", "tolist", "item", "copy", "numpy", "format"}
_AROUND = ast.Tuple | ast.List | ast.Dict | ast.Starred | ast.Subscript | ast.Slice | ast.Constant | ast.expr_context
_TEXT = ast.JoinedStr | ast.FormattedValue | ast.keyword | ast.Name


def computing(tree: _Tree, names: Collection[str]) -> _Tree:
    r"""Return the code without the statements that only show ``names``: it is read, and not changed.

    Examples
    --------
    >>> tree = ast.parse("w -= 0.1 * g\nprint(w, g.round(3))\nprint(w - g)\ng")
    >>> print(ast.unparse(computing(tree, {"g"})))
    w -= 0.1 * g
    pass
    print(w - g)
    pass
    """
    return _Shown(names).visit(ast.parse(ast.unparse(tree)))


class _Shown(ast.NodeTransformer):
    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        own = any(isinstance(n, ast.Name) and n.id in self._names for n in ast.walk(node))
        return ast.copy_location(ast.Pass(), node) if own and _shows(node.value) else node


def _shows(node: ast.AST) -> bool:
    """Return whether an expression only displays existing values: names, items, formatted strings, calls like ``print`` of these."""
    if isinstance(node, ast.Call):
        called = node.func
        known = (isinstance(called, ast.Name) and called.id in _SHOW) or (
            isinstance(called, ast.Attribute) and called.attr in _METHODS and _shows(called.value)
        )
        return known and all(map(_shows, [*node.args, *node.keywords]))
    if isinstance(node, ast.Attribute):
        return _shows(node.value)
    return isinstance(node, _AROUND | _TEXT) and all(map(_shows, ast.iter_child_nodes(node)))
