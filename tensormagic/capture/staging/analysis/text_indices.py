"""The places that indices in a text select: an integer is known by what it is computed from, however that is written."""

from __future__ import annotations

import ast
from typing import Any, cast

from tensormagic.capture.staging.analysis.text_features import is_of_sizes, name_of
from tensormagic.capture.staging.analysis.text_folds import UnseenError
from tensormagic.capture.staging.analysis.text_places import FULL, SIZE, Item, Linear, New, at, between, linear, place
from tensormagic.capture.staging.analysis.text_values import Values
from tensormagic.ir.node import Node
from tensormagic.ops.leaf import constant_value

_INTEGERS = {"argmax", "argmin", "int"}
_UNKNOWN = ast.Mod, ast.FloorDiv, ast.Mult
_SIGNS: dict[type[ast.AST] | str, int] = {ast.Add: 1, ast.Sub: -1, "add": 1, "subtract": -1}


class Indices(Values):
    """Reads indices into places."""

    def name(self, node: ast.Name) -> Any:
        """Return the value of a name."""
        raise NotImplementedError

    def value(self, node: Any) -> Any:
        """Return the value of an expression."""
        raise NotImplementedError

    def index(self, index: ast.expr) -> Any:
        """Return the place of an index: by integers and slices, or else by a key that tells it from others."""
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        dots = [k for k, p in enumerate(parts) if isinstance(p, ast.Constant) and p.value is ...]
        if dots and dots != [len(parts) - 1]:
            raise UnseenError
        items = [FULL if k in dots else self._item(p) for k, p in enumerate(parts)]
        return self.place(index) if None in items else place(cast("list[Item]", items))

    def _item(self, part: ast.expr) -> Item | None:
        """Return an index along an axis; None unless it is an integer or a slice of step 1."""
        if isinstance(part, ast.Slice):
            if part.step is not None and not (isinstance(part.step, ast.Constant) and part.step.value in {1, None}):
                return None
            ends = [None if end is None or _is_none(end) else self._integer(end) for end in (part.lower, part.upper)]
            known = [
                end is None or _is_none(end) or found is not None
                for end, found in zip((part.lower, part.upper), ends, strict=True)
            ]
            return between(*ends) if all(known) else None
        if _is_none(part):
            return New()
        found = self._integer(part)
        return None if found is None else at(found)

    def _integer(self, node: ast.AST) -> Linear | None:
        """Return an integer from its text; None if it may be something else."""
        if isinstance(node, ast.Subscript | ast.Attribute | ast.Call):
            if isinstance(node, ast.Call) and name_of(node.func) in _INTEGERS:
                return self._integer_of(self.element(self.value(node)))
            sized = node.value if isinstance(node, ast.Subscript) else node
            return linear({SIZE: 1}, 0) if is_of_sizes(sized) else None
        if isinstance(node, ast.Constant):
            return linear({}, node.value) if type(node.value) is int else None
        if isinstance(node, ast.Name):
            held = self.element(self.name(node))
            return self._integer_of(held)
        if isinstance(node, ast.UnaryOp):
            of = self._integer(node.operand) if isinstance(node.op, ast.USub) else None
            return None if of is None else linear({}, 0).plus(of, -1)
        if not isinstance(node, ast.BinOp):
            return None
        left, right = self._integer(node.left), self._integer(node.right)
        return None if left is None or right is None else _combined(type(node.op), left, right)

    def _integer_of(self, node: Node) -> Linear | None:
        known = constant_value(node)
        if known is not None:
            return linear({}, int(known)) if known.dtype.kind in "biu" else None
        if node in self.sizes:
            return linear({SIZE: 1}, 0)
        sign = _SIGNS.get(node.op.name)
        if sign is not None and len(node.args) == 2:
            left, right = map(self._integer_of, node.args)
            return None if left is None or right is None else left.plus(right, sign)
        return linear({node: 1}, 0) if self.is_number(node) else None


def _combined(op: type[ast.AST], left: Linear, right: Linear) -> Linear | None:
    sign = _SIGNS.get(op)
    if sign is not None:
        return left.plus(right, sign)
    known = left.known, right.known
    if op in {ast.Mod, ast.FloorDiv} and None not in known and known[1]:
        return linear({}, left.number % right.number if op is ast.Mod else left.number // right.number)
    if op is ast.Mult:
        for one, other in ((left, right), (right, left)):
            if one.known is not None:
                return linear({}, 0).plus(other, one.known)
        left, right = sorted((left, right), key=hash)
    return linear({(op, left, right): 1}, 0) if op in _UNKNOWN else None


def _is_none(node: ast.AST) -> bool:
    """Return whether an expression is a new axis, or an omitted end of a slice."""
    return (isinstance(node, ast.Constant) and node.value is None) or (
        isinstance(node, ast.Attribute) and node.attr == "newaxis"
    )
