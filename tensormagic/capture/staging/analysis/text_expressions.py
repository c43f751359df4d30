"""The values of the expressions in a function's text, as numbers: for :mod:`~tensormagic.capture.staging.analysis.text_graph`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import numpy as np

from tensormagic.capture.staging.analysis import numpy_functions
from tensormagic.capture.staging.analysis.known_text import OPERATORS
from tensormagic.capture.staging.analysis.short_loops import Shorts, place_of
from tensormagic.capture.staging.analysis.text_features import is_of_sizes, is_users, name_of
from tensormagic.capture.staging.analysis.text_folds import FOLDS, OF_ONE, SAME, Folded, UnseenError
from tensormagic.capture.staging.analysis.text_indices import Indices
from tensormagic.capture.staging.analysis.text_places import Place, adds_axes
from tensormagic.capture.staging.analysis.text_values import Array, View
from tensormagic.capture.staging.syntax.syntax_trees import children
from tensormagic.ir.node import Node
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import CONSTANT, constant
from tensormagic.ops.op import registry
from tensormagic.ops.pointwise import Pointwise

_FILLED = {"zeros": 0.0, "zeros_like": 0.0, "ones": 1.0, "ones_like": 1.0}
_NEW = {"empty", "empty_like", "ndarray"}
_ALIKE = {"arange", "linspace", "eye", "identity"}
_COPIED = {"copy", "array", "asarray", "float64", "float"}
_VIEWS = {"reshape", "ravel", "transpose", "squeeze", "swapaxes", "expand_dims", "flip", "fliplr", "flipud", "roll"}
_PICKED = {"min", "max", "amin", "amax", "any", "all", "argmin", "argmax", "argsort", "nonzero", "len", "int"}
_PRODUCTS = {"dot", "inner", "vdot", "tensordot"}
_OF_VECTORS = {"dot", "inner", "vdot"}
_OF_ONE_SHAPE = {"flip", "flipud", "roll", "copy", "empty_like", "zeros_like", "ones_like"}
_NO_SUMS = {"einsum", "outer"}
_OF_MANY = {"cumsum", "argsort", "nonzero"}
_OF_FOLDS = {"axis", "keepdims", "ddof"}
_BINARY: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.Pow: "power",
    ast.Mod: "remainder",
    ast.FloorDiv: "floor_divide",
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
}


class Expressions(Indices):
    """Evaluates the expressions in a text."""

    def __init__(self, *, numbers: bool) -> None:
        super().__init__(numbers=numbers)
        self.computes_with_numbers = False
        self._space: dict[str, Any] = {}
        self.file, self.shorts = "", Shorts()
        self._rolled = 0

    def users(self, call: ast.Call) -> Any:
        """Return the result of a call of a user's function."""
        raise NotImplementedError

    # expressions

    def value(self, node: Any) -> Any:
        """Return the value of an expression."""
        reads = _READS.get(type(node))
        if reads is None:
            raise UnseenError
        return reads(self, node)

    def _of(self, node: ast.AST) -> Node:
        return self.element(self.value(node))

    def constant(self, node: ast.Constant) -> Node:
        """Return a constant number."""
        if type(node.value) not in {bool, int, float, complex}:
            raise UnseenError
        return constant(node.value)

    def name(self, node: ast.Name) -> Any:
        """Return the value of a name."""
        if node.id in self.state.names:
            return self.state.names[node.id]
        value = self._space.get(node.id)
        if isinstance(value, bool | int | float | complex | np.number):
            return self.number((id(self._space), node.id), value)
        raise UnseenError

    def parts(self, node: ast.Tuple) -> Any:
        """Return the values of a tuple."""
        return tuple([self.value(p) for p in node.elts])

    def unary(self, node: ast.UnaryOp) -> Node:
        """Return the result of a unary operator."""
        value = self._of(node.operand)
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(node.op, ast.USub):
            return self._op("negative", value)
        if value.op is CONSTANT:
            raise UnseenError
        return self.any((type(node.op), value), np.bool_ if isinstance(node.op, ast.Not) else value.type, of=[value])

    def binary(self, node: ast.BinOp) -> Node:
        """Return the result of a binary operator."""
        if isinstance(node.op, ast.MatMult):
            return self.sum("matmul", [self._of(node.left), self._of(node.right)], number=self._is_of_vectors(node))
        return self._operation(node.op, self._of(node.left), self._of(node.right))

    def _is_of_vectors(self, product: ast.AST) -> bool:
        """Return whether a product is one of two vectors, which is a number."""
        return all(self.rank(factor) == 1 for factor in children(product) if isinstance(factor, ast.expr))

    def rank(self, node: ast.AST) -> int | None:
        """Return how many axes the value of an expression has; None where that is not known."""
        if isinstance(node, ast.Name):
            held = self.state.names.get(node.id)
            return self.ranks.get(held) if isinstance(held, Array) else None
        if isinstance(node, ast.Subscript):
            parts, own = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice], self.rank(node.value)
            slices = [p for p in parts if isinstance(p, ast.Slice)]
            return own if own is not None and len(slices) == len(parts) else None
        if isinstance(node, ast.Call) and name_of(node.func) in _OF_ONE_SHAPE and node.args and not is_users(node):
            return self.rank(node.args[0])
        return None

    def _operation(self, op: ast.AST, left: Node, right: Node) -> Node:
        if isinstance(op, ast.MatMult):
            return self.sum("matmul", [left, right])
        if type(op) in _BINARY:
            return self._op(_BINARY[type(op)], left, right)
        return self.any((type(op), left, right), np.result_type(left.type.dtype, right.type.dtype), of=(left, right))

    def comparison(self, node: ast.Compare) -> Node:
        """Return the result of a comparison."""
        if len(node.ops) == 1 and type(node.ops[0]) in _BINARY:
            return self._operation(node.ops[0], self._of(node.left), self._of(node.comparators[0]))
        return self.condition(node)

    def condition(self, node: ast.AST) -> Node:
        """Return an unknown boolean for a condition."""
        sides = [self._of(p) for p in children(node)]
        return self.any((type(node), *sides), np.bool_, of=sides)

    def item(self, node: ast.Subscript) -> Any:
        """Return the value of an item."""
        if is_of_sizes(node.value):
            return self._size(node)
        of = self.value(node.value)
        if isinstance(of, Array):
            return View(self._at(of, node.slice), of)
        if not isinstance(of, tuple):
            return self.moved(self.element(of), self.index(node.slice))
        parts, at = cast("tuple[Any, ...]", of), node.slice
        if isinstance(at, ast.Constant) and type(at.value) is int and at.value < len(parts):
            return parts[at.value]
        raise UnseenError

    def _at(self, array: Any, index: ast.expr) -> Node:
        place = self.index(index)
        if is_whole(place):
            return self.element(array)
        if array in self.thin and not adds_axes(place):
            raise UnseenError  # parts of one element may be all of it
        return self.part(array, place, item=self._counts(index) == self.ranks.get(array))

    def _counts(self, index: ast.expr) -> int:
        """Return how many axes are selected by integers; -1 if there is any other index."""
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        if any(isinstance(p, ast.Slice) for p in parts):
            return -1
        numbers = [self._of(p) for p in parts]
        return len(numbers) if all(n.type.dtype.kind in "iu" and self.is_number(n) for n in numbers) else -1

    def _size(self, node: Any) -> Node:
        """Return the unknown number for a size, along an axis if that is written."""
        of, axis = (node.args[0], 0) if isinstance(node, ast.Call) and node.args else (node, None)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            of, axis = node.value.value, getattr(node.slice, "value", None)
        if isinstance(of, ast.Attribute) and of.attr == "ndim":
            raise UnseenError
        return self.size(self.place(node) if axis is None else (self.place(of), axis))

    def attribute(self, node: ast.Attribute) -> Any:
        """Return the value of an attribute: a size, a module's constant, or a view."""
        if is_of_sizes(node):
            return self._size(node)
        if isinstance(node.value, ast.Name) and node.value.id not in self.state.names:
            value = getattr(self._space.get(node.value.id), node.attr, None)
            if isinstance(value, float):
                return constant(value)
            raise UnseenError
        of = self.value(node.value)
        if node.attr not in {"real", "imag"}:
            return self._view(of, node.attr)
        part = self._op(node.attr, self.element(of))
        whole = of.of if isinstance(of, View) else of
        return View(part, whole) if isinstance(whole, Array) else part

    def _view(self, of: Any, place: Any) -> Any:
        if of in self.thin or (isinstance(of, View) and of.of in self.thin):
            raise UnseenError
        element = _in_array(self.moved(self.element(of), place))
        whole = of.of if isinstance(of, View) else of
        return View(element, whole) if isinstance(whole, Array) else element

    def _op(self, name: str, *operands: Node) -> Node:
        op = registry.get({"abs": "absolute"}.get(name, name))
        if not isinstance(op, Pointwise) or op.arity != len(operands):
            raise UnseenError
        if not self.constants.isdisjoint(operands) and all(n.type.form == "python" for n in operands):
            self.computes_with_numbers = True
        if all(n.op is CONSTANT and n.type.form == "python" for n in operands):  # Python computes it
            with (
                np.errstate(all="ignore"),
                suppress(ValueError, TypeError, ArithmeticError),
            ):  # negative powers of integers, differences of booleans
                return constant(op.numpy(*[n["bits"].array()[()] for n in operands]).item())
        return op(*operands)

    # calls

    def called(self, call: ast.Call) -> Any:
        """Return the value of a call."""
        name, function = name_of(call.func), call.func
        if is_users(call) and (name not in numpy_functions.NAMES or name in OPERATORS):
            return self.users(call)
        args = list(call.args)
        if isinstance(function, ast.Attribute) and not self._is_module(function.value):
            args = [function.value, *args]
        if name == "len":
            return self._size(call)
        if name in _NO_SUMS:
            raise UnseenError
        if name in numpy_functions.FOLDS or name in _PICKED or name in FOLDS:
            return self._folded(name, args, call)
        if name in _VIEWS and args:
            options = [(k.arg, self.place(k.value)) for k in call.keywords]
            turned = name == "transpose" and len(args) == 1 and not options
            return self._view(self.value(args[0]), "T" if turned else (name, *map(self.place, args[1:]), *options))
        made = self._made(name, args)
        if made is not None:
            return made
        if call.keywords:
            raise UnseenError
        return self._op(name, *[self._of(a) for a in args])

    def _is_module(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id not in self.state.names

    def _made(self, name: str, args: list[ast.expr]) -> Node | None:
        """Return the element of a new array, filled with a number or copied from another array; None for any other call."""
        if name in _FILLED:
            return constant(np.float64(_FILLED[name]))
        if name in _NEW:
            return self.any(object())
        if name in _ALIKE:  # the same numbers for the same arguments
            return self.any((name, *map(self.place, args)))
        if name in {"full", "full_like"} and len(args) == 2:
            return _in_array(self._of(args[1]))
        if name in _COPIED and len(args) == 1 and not isinstance(args[0], ast.List | ast.Tuple):
            return self._of(args[0]) if name == "float" else _in_array(self._of(args[0]))
        return None

    def _folded(self, name: str, args: list[ast.expr], call: ast.Call) -> Node:
        elements = [self._of(a) for a in args if not isinstance(a, ast.Constant)]
        if name in _PRODUCTS and (len(elements) < len(args) or any(map(self.is_number, elements))):
            raise UnseenError  # no sum
        name = SAME.get(name, name)
        if name in {"max", "min"} and len(elements) > 1:
            return self.any((name, *elements), of=elements)
        options = [("axis", self.place(a)) for a in args if isinstance(a, ast.Constant)]
        options += [(str(k.arg), self.place(k.value)) for k in call.keywords]
        number = len(args) == 1 and not options and name not in _OF_MANY
        number |= name in _OF_VECTORS and len(args) == 2 and all(self.rank(a) == 1 for a in args)
        asked = self._asked(name, elements, args, call)
        if asked is not None and place_of(self.file, call) in self.shorts:
            return OF_ONE.get(name, _itself)(asked.element)
        if asked is not None:
            return self.fold(asked, number=number)
        if name not in numpy_functions.FOLDS and name not in _PICKED:
            raise UnseenError
        return self.sum((name, *options), elements, number=number)

    def _asked(self, name: str, elements: list[Node], args: list[ast.expr], call: ast.Call) -> Folded | None:
        """Return a fold that is examined by rules; None for other calls."""
        if name not in FOLDS or len(elements) != 1 or self.is_number(elements[0]):
            return None
        options = {str(k.arg): k.value for k in call.keywords} | ({"axis": args[1]} if len(args) > 1 else {})
        less, keeps = options.get("ddof", ast.Constant(0)), options.get("keepdims", ast.Constant(False))
        if len(args) > 2 or options.keys() - _OF_FOLDS:
            return None
        if not isinstance(less, ast.Constant) or type(less.value) is not int:
            return None
        if not isinstance(keeps, ast.Constant) or type(keeps.value) is not bool:
            return None
        axes = self.place(options["axis"]) if "axis" in options else isinstance(call.func, ast.Name) or None
        return Folded(name, elements[0], less.value, axes, keeps.value)


_READS: dict[type[ast.AST], Callable[[Expressions, Any], Any]] = {
    ast.Constant: Expressions.constant,
    ast.Name: Expressions.name,
    ast.Tuple: Expressions.parts,
    ast.List: Expressions.parts,
    ast.UnaryOp: Expressions.unary,
    ast.BinOp: Expressions.binary,
    ast.Compare: Expressions.comparison,
    ast.BoolOp: Expressions.condition,
    ast.Subscript: Expressions.item,
    ast.Attribute: Expressions.attribute,
    ast.Call: Expressions.called,
}


def _in_array(element: Node) -> Node:
    """Return a number, which may be Python's, as an element of an array."""
    return to_form(element, "scalar") if element.type.form == "python" else element


def _itself(element: Node) -> Node:
    return element


def is_whole(place: Any) -> bool:
    """Return whether a place is the whole array."""
    return isinstance(place, Place) and place.whole
