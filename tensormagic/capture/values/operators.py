"""Python's operators on lazy arrays, each the op of the same name; in-place ones store as NumPy does."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.deprecated import show_deprecations
from tensormagic.capture.errors.refusal import needs_value, refuse, refuse_python, values_are_there, zero_like
from tensormagic.capture.foreign.calls import on_values
from tensormagic.capture.inputs.door import RefusedError, is_itself, is_read, is_table
from tensormagic.capture.inputs.snapshots import Snapshot
from tensormagic.capture.numbers import classes as number_classes
from tensormagic.capture.numbers.known_values import arithmetic, static_int
from tensormagic.capture.python.words import said
from tensormagic.capture.staging.trials.attributes import is_users_class
from tensormagic.capture.stores.layout import is_region
from tensormagic.capture.tables import labelled as tables
from tensormagic.capture.values.casts import check_output
from tensormagic.capture.values.operands import build, is_ours, node_of
from tensormagic.capture.values.powers import exponent_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.errors import DTypeError, ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.stored import is_stored
from tensormagic.ir.type import Size
from tensormagic.ops.contract import matmul
from tensormagic.ops.effects.checks import not_zero
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import INPUT, constant
from tensormagic.ops.move import broadcast
from tensormagic.ops.move_kind import same, show
from tensormagic.ops.op import registry
from tensormagic.ops.pointwise import Pointwise, astype
from tensormagic.ops.scalars import scalar

_BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide", "mod": "remainder", "pow": "power",
    "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
}  # fmt: skip
_COMPARE = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"}
_UNARY = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}


def _op(name: str) -> Pointwise:
    op = registry[name]
    if not isinstance(op, Pointwise):
        raise TypeError(name)
    return op


_OPERANDS = (
    Tensor | int | float | complex | np.ndarray | np.generic | list | tuple | range
)  # built once, as building takes long
_REPEATED = list | tuple
_PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "divide": operator.truediv, "subtract": operator.sub, "multiply": operator.mul, "remainder": operator.mod, "power": operator.pow,
    "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor, "left_shift": operator.lshift,
    "right_shift": operator.rshift, "less": operator.lt, "less_equal": operator.le, "greater": operator.gt,
    "greater_equal": operator.ge, "equal": operator.eq, "not_equal": operator.ne, "add": operator.add,
    "floor_divide": operator.floordiv,
}  # fmt: skip
_NO_NUMBERS = str | bytes | dict | set | frozenset | None


def _operand(value: Any) -> bool:
    return isinstance(value, _OPERANDS) or is_read(value) or _is_own_sequence(value)


def _is_own_sequence(value: Any) -> bool:
    """Return whether a value stands for a range or list of lazy length."""
    return is_ours(value) and hasattr(type(value), "lazy")


def _binary(name: str, *, reflected: bool) -> Callable[[Tensor, Any], Any]:
    op = _op(name)

    def method(self: Tensor, other: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            refuse("pow() with a modulus", "Write (base ** exponent) % modulus.")
        if not isinstance(other, _OPERANDS):
            if (
                getattr(other, "__array_ufunc__", ...) is None
            ):  # as NumPy's arrays, which leave the operator to such operands
                return NotImplemented
            if is_table(other):
                return _with_table(name, self, other, reflected=reflected)
            if not _operand(other) or (self.type.form == "python" and is_itself(other)):  # floats do not read these
                return _of_object(name, self, other, reflected=reflected)
        if _is_pythons(name, self, other, reflected=reflected):
            return NotImplemented
        if not reflected:
            return _power(self, other) if name == "power" else build(op, self, other)
        if type(other) is complex and self.type.form == "scalar" and self.dtype == np.float64:  # a float for Python
            return build(op, other, to_form(self.node, "python"))
        return checked_power(other, self) if name == "power" else build(op, other, self)

    return method


def _of_object(name: str, number: Tensor, other: Any, *, reflected: bool) -> Any:
    """Return the result of NumPy (or of Python, for its numbers) for an operator between a number or array and another object."""
    if number.type.form == "python" and is_itself(other):  # it has no operators
        sample = zero_like(number.type)
        return _PYTHON[name](other, sample) if reflected else _PYTHON[name](sample, other)
    if number.type.form != "scalar" or not _is_made_one_of_objects(number, other):
        return _differs(name, number, other, reflected=reflected)
    if hasattr(type(other), "__getitem__") and hasattr(type(other), "__len__") and not isinstance(other, str | bytes):
        refuse_python(
            f"an operator between a number of NumPy's and a {type(other).__name__}, which NumPy reads as a sequence,",
            "Convert the number first: float(v).",
        )
    own = wrap(to_form(astype(number.node, type(zero_like(number.type).item())), "python"))
    return _PYTHON[name](other, own) if reflected else _PYTHON[name](own, other)


def _is_made_one_of_objects(value: Tensor, other: Any) -> bool:
    """Return whether NumPy makes object arrays of both, with Python's numbers in them: the object does not claim the operator."""
    lowest = -1_000_000.0
    own = 0.0 if value.type.form == "array" else lowest
    return is_users_class(type(other)) and getattr(other, "__array_priority__", lowest) <= own


def labelled(table: Any) -> Tensor:
    """Return the lazy array of a Series or a DataFrame in an operation with a lazy array: the result has its labels, as in pandas."""
    found = tables.labelled(table, name := _name_of_table(table))
    if found is None:
        raise RefusedError(table, name)
    return found


def _with_table(name: str, array: Tensor, table: Any, *, reflected: bool) -> Any:
    """Return the result of an operator with a table; in a plain cell pandas computes if it has gaps or mixed columns."""
    operator_of = _PYTHON[name]
    found = tables.labelled(table, _name_of_table(table)) if context.current() is None else labelled(table)
    if found is None:
        operator_of, found = on_values(operator_of), table
    return operator_of(found, array) if reflected else operator_of(array, found)


def _name_of_table(table: Any) -> str:
    return str(getattr(table, "name", None) or type(table).__name__)


def _of_no_number(name: str, number: Tensor, other: Any, *, reflected: bool | None) -> Any:
    """Raise the error of a number beside a text or a container, which names the number's class; NotImplemented if there is none."""
    if isinstance(other, _NO_NUMBERS | _REPEATED) and reflected is not None:  # a comparison does not know
        sample = zero_like(number.type)
        _PYTHON[name](other, sample) if reflected else _PYTHON[name](sample, other)
    return NotImplemented


def _differs(name: str, array: Tensor, other: Any, *, reflected: bool | None = None) -> Any:
    """Return the result of comparing an array with a non-number: no element is equal."""
    if isinstance(other, numbers.Number):
        raise RefusedError(other, type(other).__name__)
    text = array.type.form == "scalar" and isinstance(other, str | bytes)  # as NumPy compares its numbers
    if not (array.type.form == "array" or text) or name not in {"equal", "not_equal"}:
        if array.type.form == "array" and _is_made_one_of_objects(array, other):
            kind = type(other).__name__
            refuse(
                f"an operator between an array and a {kind}, of which NumPy makes an array of objects,",
                f"Give {kind} an __array_priority__, so that its own method gets the whole array; or work with its numbers.",
            )
        return NotImplemented if array.type.form == "array" else _of_no_number(name, array, other, reflected=reflected)
    if not isinstance(other, _NO_NUMBERS) and type(other).__eq__ is not object.__eq__:
        refuse(
            f"an array compared with a {type(other).__name__}", "Compare numbers, or compare outside of captured code."
        )
    value = to_form(constant(np.bool_(name == "not_equal")), "array" if array.ndim else "scalar")
    return wrap(context.record(broadcast(value, array.type.shape)))


def _is_pythons(name: str, number: Tensor, other: Any, *, reflected: bool | None = None) -> bool:
    """Return whether an operator between a number and a list or a tuple is Python's, which repeats these: ``[0] * n``."""
    if number.type.form == "python" and (isinstance(other, range) or _is_own_sequence(other)):
        return True  # these have no operators
    if not isinstance(other, _REPEATED) or number.type.form == "array":
        return False
    if name != "multiply":
        if number.type.form == "python":
            _of_no_number(name, number, other, reflected=reflected)
        return number.type.form == "python"  # NumPy's numbers read lists as arrays
    if number.dtype.kind not in ("biu" if number.type.form == "python" else "iu"):
        raise DTypeError(
            f"can't multiply sequence by non-int of type '{number.type}'", "Make it an array: np.array(…)."
        )
    if static_int(number.node) is None:
        hint = "Write [value for _ in range(n)], or make an array: np.full(n, value)."
        needs_value("repeating a list a data-dependent number of times", hint, number.node)
    return True


def _power(base: Tensor, exponent: Any) -> Tensor:
    """Return ``base ** exponent``."""
    exponent = exponent_of(base, exponent)
    if base.type.form == "python" and type(exponent) is int and exponent < 0 and base.dtype.kind in "biu":
        return build(scalar.power, to_form(astype(base.node, np.dtype(float)), "python"), float(exponent))
    if _is_fraction(base, exponent):
        return build(scalar.power, *(to_form(astype(node_of(v), np.dtype(float)), "python") for v in (base, exponent)))
    if (
        base.type.form == "python"
        and base.node.op is INPUT
        and isinstance(base.node["source"], Snapshot)  # and not an argument of a function that is differentiated
        and isinstance(exponent, int | float)
        and values_are_there()
    ):
        pow(base.numpy(), exponent)  # it raises where Python does: OverflowError
    short = None if is_stored(base.dtype) else _short_power(base, exponent)
    return checked_power(base, exponent) if short is None else build(short, base)


def _is_fraction(base: Tensor, exponent: Any) -> bool:
    """Return whether a Python integer is raised to a data-dependent exponent that is negative, in a cell, where that is known."""
    if not isinstance(exponent, Tensor) or not values_are_there():
        return False
    whole = all(v.type.form == "python" and v.dtype.kind in "bi" for v in (base, exponent))
    return whole and exponent.numpy() < 0


def checked_power(*operands: Any) -> Tensor:
    """Return a power; in a cell, raise NumPy's error for negative integer exponents at once, so that nothing after it runs."""
    result = build(scalar.power, *operands)
    exponent = operands[1]
    whole = result.type.dtype.kind == "i" and result.type.form != "python" and isinstance(exponent, Tensor)
    if whole and values_are_there() and np.less(exponent.numpy(), 0).any():
        result.numpy()
    return result


def _short_power(base: Tensor, exponent: Any) -> Pointwise | None:
    """Return NumPy's shortcut for an array's power with a literal exponent: square, sqrt or reciprocal; None for any other."""
    if base.type.form == "array" and type(exponent) in {int, float}:
        if exponent == 2 and type(exponent) is int:
            return scalar.square
        if base.type.inexact and ((exponent == -1 and type(exponent) is int) or exponent == 0.5):
            return scalar.sqrt if exponent == 0.5 else scalar.reciprocal
    return None


def _in_place(name: str) -> Callable[[Tensor, Any], Any]:
    op = _op(name)

    def method(self: Tensor, other: Any) -> Any:
        if self.type.form != "array":  # NumPy's scalars and Python's numbers are rebound, not changed
            if number_classes.may_be_array(self.node):
                refuse_python(
                    f"an operator {name} in place of what is a number or an array without axes, depending on data",
                    "Make a new one: v = v + w.",
                )
            pythons = _is_pythons(name, self, other)
            if pythons and name == "multiply":
                return other * self  # Python does not try this itself for sequences
            return NotImplemented if pythons else build(op, self, other)
        other = exponent_of(self, other) if name == "power" else other
        short = _short_power(self, other) if name == "power" else None
        if short is not None:
            return store_result(self, arithmetic(short, [self.node]), short.name)
        if name == "power" and self.dtype.kind == "i":
            checked_power(self, other)
        operand = node_of(other)
        try:
            check_output(op.resolve([self.type, operand.type])[1], self.dtype, op.name)
        except DTypeError:
            _refuse_chosen(operand)
            raise
        return store_result(self, arithmetic(op, [self.node, operand]), op.name)

    return method


def _refuse_chosen(number: Node) -> None:
    """Raise, in a ``try``, if a number whose dtype does not fit depends on a branch: for other data it may fit."""
    capture = context.current()
    if capture is not None and capture.attempts.depth and is_region(number) and not number.type.shape:
        refuse("an error that occurs in a `try` only for some data", "Check with `if` instead of `try`.")


def store_result(target: Tensor, node: Any, name: str, *, reduced: bool = False) -> Tensor:
    """Store a result into ``target`` as ``out=`` does: same-kind cast, no broadcasting of the target.

    A ``reduced`` result is always cast, and has the target's shape.
    """
    if target.type.form != "array":
        raise DTypeError(f"return arrays must be of ArrayType: {target.type} is a number")
    if not reduced:
        check_output(node.type.dtype, target.dtype, name)
    cast = astype(node, target.dtype)
    if reduced and not _alike(cast.type.shape, target.type.shape):
        own, given = show(target.type.shape), show(cast.type.shape)
        raise ShapeError(f"output parameter for reduction operation {name} has the shape {own}, and not {given}")
    if cast.type.ndim > target.ndim:
        own, given = show(target.type.shape), show(cast.type.shape)
        raise ShapeError(f"non-broadcastable output operand with shape {own} doesn't match the broadcast shape {given}")
    target.place.write(context.record(broadcast(cast, target.type.shape)))
    return target


def _alike(left: Sequence[Size], right: Sequence[Size]) -> bool:
    return len(left) == len(right) and all(map(same, left, right))


def _unary(name: str) -> Callable[[Tensor], Any]:
    op = _op(name)

    def method(self: Tensor) -> Any:
        if name == "invert" and self.type.form == "python" and self.dtype.kind == "b":
            show_deprecations(operator.invert, True)  # deprecated since Python 3.12
        return build(op, self)

    return method


for _name, _target in _BINARY.items():
    setattr(Tensor, f"__{_name}__", _binary(_target, reflected=False))
    setattr(Tensor, f"__r{_name}__", _binary(_target, reflected=True))
    setattr(Tensor, f"__i{_name}__", _in_place(_target))
for _name, _target in _COMPARE.items():
    setattr(Tensor, f"__{_name}__", _binary(_target, reflected=False))
for _name, _target in _UNARY.items():
    setattr(Tensor, f"__{_name}__", _unary(_target))


def _matmul(self: Tensor, other: Any) -> Any:
    if (
        self.type.form == "python"
        and isinstance(other, Tensor | int | float | complex)
        and node_of(other).type.form == "python"
    ):
        raise DTypeError(f"unsupported operand types for @: {self.type} and {node_of(other).type}")
    if self.type.form != "array" and _is_sequence(other):
        return NotImplemented
    return wrap(context.record(matmul(node_of(self), node_of(other))))


def _is_sequence(value: Any) -> bool:
    """Return whether a value is a sequence but no array, which operators such as @ leave to Python."""
    return isinstance(value, list | tuple | range) or _is_own_sequence(value)


def _rmatmul(self: Tensor, other: Any) -> Any:
    if self.type.form != "array" and _is_sequence(other):
        return NotImplemented
    return wrap(context.record(matmul(node_of(other), node_of(self))))


def _matmul_in_place(self: Tensor, other: Any) -> Any:
    if self.type.form != "array":
        return _matmul(self, other)
    if not self.ndim or node_of(other).type.ndim < 2:
        raise ShapeError(
            "inplace matrix multiplication requires the first operand to have at least one and the second at least two dimensions."
        )
    result = matmul(self.node, node_of(other))
    own = self.type.shape
    if not _alike(own, result.type.shape):
        raise ShapeError(
            f"matmul: Output operand 0 has a mismatch: the product has shape {show(result.type.shape)}, the array {show(own)}"
        )
    return store_result(self, result, "matmul")


def divmod_of(self: Tensor, other: Any) -> Any:
    """Return the quotient and the remainder, as ``divmod``."""
    return _both_parts(self, other)


def _both_parts(left: Any, right: Any) -> Any:
    given = node_of(left), node_of(right)
    if all(n.type.form == "python" for n in given) and any(n.type.inexact for n in given):
        right = wrap(not_zero(given[1], said(divmod, 1.0, 0)))
    return build(scalar.floor_divide, left, right), build(scalar.remainder, left, right)


def _reflected_divmod(self: Tensor, other: Any) -> Any:
    if not _operand(other):
        return NotImplemented
    return _both_parts(other, self)


Tensor.__matmul__ = _matmul  # type: ignore[attr-defined]
Tensor.__imatmul__ = _matmul_in_place  # type: ignore[attr-defined]
Tensor.__rmatmul__ = _rmatmul  # type: ignore[attr-defined]
Tensor.__divmod__ = divmod_of  # type: ignore[attr-defined]
Tensor.__rdivmod__ = _reflected_divmod  # type: ignore[attr-defined]
