"""Names alone in the body of a ``try``, as in ``return y``: no operation there would check whether one is bound.

Here such a check is added.
"""

from __future__ import annotations

import ast
from typing import Any

from tensormagic.capture.staging.syntax.generated_code import call


class BareNames(ast.NodeTransformer):
    """Adds a check to names that stand alone, or in a tuple, a list, a dictionary or a call: an operand is checked by its operation."""

    def _asked(self, value: Any) -> Any:
        own = isinstance(value, ast.Name) and isinstance(value.ctx, ast.Load) and not value.id.startswith("__tensor")
        return call("there", value, value) if own else self.visit(value) if isinstance(value, ast.AST) else value

    def _of_value(self, node: Any) -> Any:
        node.value = self._asked(node.value)
        return node

    def _of_elements(self, node: Any) -> Any:
        node.elts = [self._asked(v) for v in node.elts]
        return node

    visit_Return = visit_Assign = visit_Expr = visit_NamedExpr = _of_value
    visit_Tuple = visit_List = _of_elements

    def visit_Dict(self, node: ast.Dict) -> ast.Dict:
        node.values = [self._asked(v) for v in node.values]
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        node.func = self.visit(node.func)
        node.args = [self._asked(v) for v in node.args]
        for option in node.keywords:
            option.value = self._asked(option.value)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Rewrite a block that has become a function; a function of the user's runs elsewhere."""
        if node.name.startswith("__tensor"):
            node.body = [self.visit(s) for s in node.body]
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return node

    visit_ClassDef = visit_AsyncFunctionDef = visit_Lambda  # type: ignore[assignment]
