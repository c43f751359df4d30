"""Python's operators and NumPy's ufuncs on lazy arrays, each the op of the same name; in-place ones store as NumPy does."""

from __future__ import annotations

import functools
import numbers
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensormagic.capture import by_class, context, tables
from tensormagic.capture.deprecated import told
from tensormagic.capture.door import RefusedError, is_read, is_table
from tensormagic.capture.hooks import hooks
from tensormagic.capture.inputs import Snapshot
from tensormagic.capture.known import arithmetic, static_int
from tensormagic.capture.makers import is_numpys
from tensormagic.capture.names import FUNCTIONS, computed, unknown
from tensormagic.capture.operands import build, node_of
from tensormagic.capture.oracle import in_numpys_words
from tensormagic.capture.powers import exponent_of
from tensormagic.capture.refusal import needs_value, not_own, refuse, values_are_there, zero_like
from tensormagic.capture.staging.attributes import is_users_class
from tensormagic.capture.stores.layout import is_region
from tensormagic.capture.value import Tensor, wrap
from tensormagic.capture.words import said
from tensormagic.ir.errors import CaptureError, DTypeError, ShapeError
from tensormagic.ir.node import Node
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
)  # built once: that takes long
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
    return isinstance(value, _OPERANDS) or is_read(value)


def _binary(name: str, *, reflected: bool) -> Callable[[Tensor, Any], Any]:
    op = _op(name)

    def method(self: Tensor, other: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            refuse("pow() with a modulus", "Write (base ** exponent) % modulus.")
        if not isinstance(other, _OPERANDS):
            if (
                getattr(other, "__array_ufunc__", ...) is None
            ):  # as NumPy's arrays, which leave such operands the operator
                return NotImplemented
            if is_table(other):
                table = _labelled(other)
                return _PYTHON[name](table, self) if reflected else _PYTHON[name](self, table)
            if not _operand(other):
                return _of_object(name, self, other, reflected=reflected)
        if _is_pythons(name, self, other):
            return NotImplemented
        if not reflected:
            return _power(self, other) if name == "power" else build(op, self, other)
        if type(other) is complex and self.type.form == "scalar" and self.dtype == np.float64:  # a float, to Python
            return build(op, other, to_form(self.node, "python"))
        return _checked_power(other, self) if name == "power" else build(op, other, self)

    return method


def _of_object(name: str, number: Tensor, other: Any, *, reflected: bool) -> Any:
    """What NumPy gives of a number or an array, and an object that is none."""
    if number.type.form != "scalar" or not _is_made_one_of_objects(number, other):
        return _differs(name, number, other)
    own = wrap(to_form(astype(number.node, type(zero_like(number.type).item())), "python"))
    return _PYTHON[name](other, own) if reflected else _PYTHON[name](own, other)


def _is_made_one_of_objects(value: Tensor, other: Any) -> bool:
    """Whether NumPy makes arrays of objects of both, in which numbers are Python's: the object does not ask for the operator."""
    lowest = -1_000_000.0
    own = 0.0 if value.type.form == "array" else lowest
    return is_users_class(type(other)) and getattr(other, "__array_priority__", lowest) <= own


def _labelled(table: Any) -> Tensor:
    """The lazy array of a Series or a DataFrame that meets a lazy array: the result has its labels, as in pandas."""
    name = str(getattr(table, "name", None) or type(table).__name__)
    found = tables.labelled(table, name)
    if found is None:
        raise RefusedError(table, name)
    return found


def _differs(name: str, array: Tensor, other: Any) -> Any:
    """An array compared with what is no number: none of its elements equals that."""
    if isinstance(other, numbers.Number):
        raise RefusedError(other, type(other).__name__)
    if array.type.form != "array" or name not in {"equal", "not_equal"}:
        if array.type.form == "array" and _is_made_one_of_objects(array, other):
            kind = type(other).__name__
            refuse(
                f"an operator between an array and a {kind}, of which NumPy makes an array of objects,",
                f"Give {kind} an __array_priority__, so that its own method gets the whole array; or work with its numbers.",
            )
        return NotImplemented
    if not isinstance(other, _NO_NUMBERS) and type(other).__eq__ is not object.__eq__:
        refuse(
            f"an array compared with a {type(other).__name__}", "Compare numbers, or compare outside of captured code."
        )
    value = to_form(constant(np.bool_(name == "not_equal")), "array" if array.ndim else "scalar")
    return wrap(context.record(broadcast(value, array.type.shape)))


def _is_pythons(name: str, number: Tensor, other: Any) -> bool:
    """Whether an operator between a number and a list or a tuple is Python's, which repeats these: ``[0] * n``."""
    if not isinstance(other, _REPEATED) or number.type.form == "array":
        return False
    if name != "multiply":
        return number.type.form == "python"  # NumPy's numbers take lists for arrays
    if number.dtype.kind not in ("biu" if number.type.form == "python" else "iu"):
        raise DTypeError(
            f"can't multiply sequence by non-int of type '{number.type}'", "Make it an array: np.array(…)."
        )
    if static_int(number.node) is None:
        hint = "Write [value for _ in range(n)], or make an array: np.full(n, value)."
        needs_value("repeating a list a data-dependent number of times", hint, number.node)
    return True


def _power(base: Tensor, exponent: Any) -> Tensor:
    """``base ** exponent``."""
    exponent = exponent_of(base, exponent)
    if base.type.form == "python" and type(exponent) is int and exponent < 0 and base.dtype.kind in "biu":
        return build(scalar.power, to_form(astype(base.node, np.dtype(float)), "python"), float(exponent))
    if _is_fraction(base, exponent):
        return build(scalar.power, *(to_form(astype(node_of(v), np.dtype(float)), "python") for v in (base, exponent)))
    if (
        base.type.form == "python"
        and base.node.op is INPUT
        and isinstance(base.node["source"], Snapshot)  # and no argument of a derivative's
        and isinstance(exponent, int | float)
        and values_are_there()
    ):
        pow(base.numpy(), exponent)  # which raises where Python does: OverflowError
    short = _short_power(base, exponent)
    return _checked_power(base, exponent) if short is None else build(short, base)


def _is_fraction(base: Tensor, exponent: Any) -> bool:
    """Whether an integer of Python's is raised to a negative one of data, in a cell, where that is known."""
    if not isinstance(exponent, Tensor) or not values_are_there():
        return False
    whole = all(v.type.form == "python" and v.dtype.kind in "bi" for v in (base, exponent))
    return whole and exponent.numpy() < 0


def _checked_power(*operands: Any) -> Tensor:
    """A power, which in a cell raises at once what NumPy does of integers to negative ones: what comes after is not run."""
    result = build(scalar.power, *operands)
    exponent = operands[1]
    whole = result.type.dtype.kind == "i" and result.type.form != "python" and isinstance(exponent, Tensor)
    if whole and values_are_there() and np.less(exponent.numpy(), 0).any():
        result.numpy()
    return result


def _short_power(base: Tensor, exponent: Any) -> Pointwise | None:
    """NumPy's short way for the power of an array, which a few exponents have that stand in the code."""
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
            pythons = _is_pythons(name, self, other)
            if pythons and name == "multiply":
                return other * self  # which Python does not try by itself, of what has elements
            return NotImplemented if pythons else build(op, self, other)
        other = exponent_of(self, other) if name == "power" else other
        short = _short_power(self, other) if name == "power" else None
        if short is not None:
            return store_result(self, arithmetic(short, [self.node]), short.name)
        if name == "power" and self.dtype.kind == "i":
            _checked_power(self, other)
        operand = node_of(other)
        try:
            _check_cast(op.resolve([self.type, operand.type])[1], self.dtype, op.name)
        except DTypeError:
            _refuse_chosen(operand)
            raise
        return store_result(self, arithmetic(op, [self.node, operand]), op.name)

    return method


def _refuse_chosen(number: Node) -> None:
    """In a ``try``, refuse a number of data-dependent choice that is of a dtype which does not fit: it may be of another one."""
    capture = context.current()
    if capture is not None and capture.attempts and is_region(number) and not number.type.shape:
        refuse("an error that occurs in a `try` only for some data", "Check with `if` instead of `try`.")


def store_result(target: Tensor, node: Any, name: str, *, reduced: bool = False) -> Tensor:
    """Store a result into ``target`` as ``out=`` does: cast of the same kind, no stretching of the target.

    What is ``reduced`` is cast in any case, and has the target's own shape.
    """
    if target.type.form != "array":
        raise DTypeError(f"return arrays must be of ArrayType: {target.type} is a number")
    if not reduced:
        _check_cast(node.type.dtype, target.dtype, name)
    cast = astype(node, target.dtype)
    if reduced and not _alike(cast.type.shape, target.type.shape):
        own, given = show(target.type.shape), show(cast.type.shape)
        raise ShapeError(f"output parameter for reduction operation {name} has the shape {own}, and not {given}")
    if cast.type.ndim > target.ndim:
        own, given = show(target.type.shape), show(cast.type.shape)
        raise ShapeError(f"non-broadcastable output operand with shape {own} doesn't match the broadcast shape {given}")
    target.place.write(context.record(broadcast(cast, target.type.shape)))
    return target


def _check_cast(dtype: np.dtype[Any], target: np.dtype[Any], name: str) -> None:
    if not np.can_cast(dtype, target, "same_kind"):
        raise DTypeError(
            f"Cannot cast ufunc '{name}' output from {dtype!r} to {target!r} with casting rule 'same_kind'",
            "Write x = x + y, which makes a new array of the wider type.",
        )


def _alike(left: Sequence[Size], right: Sequence[Size]) -> bool:
    return len(left) == len(right) and all(map(same, left, right))


def _unary(name: str) -> Callable[[Tensor], Any]:
    op = _op(name)

    def method(self: Tensor) -> Any:
        if name == "invert" and self.type.form == "python" and self.dtype.kind == "b":
            told(operator.invert, True)  # deprecated from Python 3.12 on
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
    return wrap(context.record(matmul(node_of(self), node_of(other))))


def _rmatmul(self: Tensor, other: Any) -> Any:
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


def _divmod(self: Tensor, other: Any) -> Any:
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
Tensor.__divmod__ = _divmod  # type: ignore[attr-defined]
Tensor.__rdivmod__ = _reflected_divmod  # type: ignore[attr-defined]

# ufuncs ---------------------------------------------------------------------------------------------------------------

_SPECIAL = {"expit": "sigmoid", "psi": "digamma"}
UFUNCS: dict[Any, Pointwise] = {
    op.numpy: op for op in registry.values() if isinstance(op, Pointwise) and isinstance(op.numpy, np.ufunc)
}
UFUNCS.update({np.deg2rad: scalar.radians, np.rad2deg: scalar.degrees})


def op_of(ufunc: Any) -> Pointwise | None:
    """The op of a ufunc of NumPy or ``scipy.special``."""
    found = UFUNCS.get(ufunc)
    if found is None:
        name = str(ufunc.__name__)
        named = registry.get(_SPECIAL.get(name, name))
        found = named if isinstance(named, Pointwise) and not isinstance(named.numpy, np.ufunc) else None
    return found


def call_ufunc(ufunc: Any, method: str, operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What ``ufunc`` gives for lazy operands; outside captured code NumPy itself does what is not captured."""
    if any(map(is_table, operands)):  # the labelled lazy array takes it from here
        return getattr(ufunc, method)(*(_labelled(v) if is_table(v) else v for v in operands), **options)
    if context.current() is not None and not is_numpys(ufunc):
        from tensormagic.capture.staging.outside import with_arrays

        return with_arrays(ufunc if method == "__call__" else getattr(ufunc, method))(*operands, **options)
    try:
        return _in_numpys_words(ufunc, method, operands, options)
    except CaptureError:
        if context.current() is not None:
            raise
    return getattr(ufunc, method)(*map(computed, operands), **{k: computed(v) for k, v in options.items()})


def _call_ufunc(ufunc: Any, method: str, operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    if method == "at":
        from tensormagic.capture.stores.at import at

        return at(ufunc, op_of(ufunc), *operands)
    out = options.pop("out", None)
    dtype = options.pop("dtype", None)
    name = ufunc.__name__
    chosen = options.pop("where", True) if method == "__call__" else True
    if dtype is not None:
        if method in {"reduce", "accumulate"}:
            options["dtype"] = dtype
        elif np.dtype(dtype) != bool:  # which is what comparisons give of operands of any dtype
            operands = tuple(_cast(v, np.dtype(dtype), name) for v in operands)
    targets = out if isinstance(out, tuple) else (out,)
    if method in {"reduce", "accumulate"} and dtype is None and isinstance(targets[0], Tensor):
        operands = (_beside(operands[0], targets[0].dtype, op_of(ufunc)), *operands[1:])
    op = op_of(ufunc) if method == "__call__" and isinstance(targets[0], Tensor) else None
    if op is not None:  # the dtype is wrong before the shape is
        _check_cast(op.resolve([node_of(v).type for v in operands])[1], targets[0].dtype, name)
    result = _ufunc_result(ufunc, method, operands, options)
    results = result if isinstance(result, tuple) else (result,)
    if dtype is not None and len(results) == 1 and results[0].dtype != dtype:
        refuse(f"np.{name} with dtype={np.dtype(dtype)}", "Convert the operands, or the result, with astype.")
    targets = targets if len(targets) == len(results) else (None,) * len(results)
    reduced = method in {"reduce", "accumulate", "reduceat"}
    stored = tuple(_into(t, _chosen(r, t, chosen), name, reduced) for t, r in zip(targets, results, strict=True))
    return stored if isinstance(result, tuple) else stored[0]


def _asked(ufunc: Any, method: str, operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return getattr(ufunc, method)(*operands, **options)


_in_numpys_words = in_numpys_words(lambda u, m, operands, options: _call_ufunc(u, m, operands, dict(options)), _asked)


def _beside(value: Any, dtype: np.dtype[Any], op: Pointwise | None) -> Any:
    """What is folded, in the dtype that NumPy folds in where ``out`` is of ``dtype``: one that holds both."""
    node = node_of(value)
    wider = np.result_type(dtype, node.type.dtype)
    truth = op is None or "b" in (node.type.dtype.kind, op.resolve([node.type, node.type])[1].kind)
    return value if truth or wider == node.type.dtype else wrap(astype(node, wider))


def _chosen(result: Tensor, out: Any, where: Any) -> Tensor:
    """The result where ``where`` says so, and what ``out`` holds elsewhere; zeros, where there is no ``out``."""
    if where is True:
        return result
    mask = constant(np.asarray(where, bool)) if isinstance(where, list | tuple | int) else node_of(where)
    if mask.type.dtype.kind != "b":
        raise DTypeError(
            f"Cannot cast array data from {mask.type.dtype!r} to dtype('bool') according to the rule 'safe'"
        )
    old = node_of(out) if out is not None else constant(result.dtype.type(0))
    if not np.can_cast(result.dtype, old.type.dtype, "same_kind"):
        return result
    return wrap(scalar.where(mask, astype(result.node, old.type.dtype), old))


def _cast(value: Any, dtype: np.dtype[Any], name: str) -> Tensor:
    """An operand of a ufunc with ``dtype=``, which chooses the loop."""
    node = node_of(value)
    if node.type.form != "python" and not np.can_cast(node.type.dtype, dtype, "same_kind"):
        raise DTypeError(
            f"Cannot cast ufunc '{name}' input from dtype('{node.type.dtype}') to dtype('{dtype}') with casting rule 'same_kind'"
        )
    return wrap(astype(node, dtype))


def _ufunc_result(ufunc: Any, method: str, operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    name = ufunc.__name__
    if method in {"reduce", "accumulate", "reduceat"}:
        from tensormagic.capture.library.ufunc_methods import method_of

        return method_of(ufunc, op_of(ufunc), method, operands, options)
    if method == "outer":
        nodes = [node_of(v) for v in operands]
        left, right = (wrap(to_form(n, "scalar") if n.type.form == "python" else n) for n in nodes)  # none is weak
        return _ufunc_result(
            ufunc, "__call__", (left.reshape(*left.type.shape, *(1 for _ in right.type.shape)), right), options
        )
    if method != "__call__":
        refuse(f"np.{name}.{method}", "Write it as array operations, or run the cell with --plain.")
    if options and not (ufunc.signature is not None and set(options) <= {"axis"}):
        refuse(f"np.{name} with {', '.join(options)}", "Leave the option out.")
    if name == "matmul" and not options:
        return wrap(context.record(matmul(node_of(operands[0]), node_of(operands[1]))))
    if name == "divmod":
        return _divmod(wrap(node_of(operands[0])), operands[1])
    own = None if ufunc in UFUNCS else FUNCTIONS.get(ufunc) or FUNCTIONS.get(f"scipy.special.{name}")
    if own is not None:
        return own(*operands, **options)
    op = op_of(ufunc)
    if op is None:
        raise unknown(name)
    if isinstance(operands[0], np.generic) and len(operands) > 1:  # ``np.float32(2) ** x``: NumPy calls the ufunc
        return build(op, *_scalars(operands))
    made = _checked_power if op is scalar.power else functools.partial(build, op)
    nodes = [node_of(v) for v in operands]
    return by_class.of_function(lambda given: made(*_by_loop(op, _scalars(given))).node, nodes, wrap)


def _by_loop(op: Pointwise, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Operands of a ufunc: it takes NumPy's loop for numbers too, where operators of numbers round otherwise."""
    if not op.numbers:
        return operands
    nodes = [node_of(v) for v in operands]
    if any(n.type.form == "array" for n in nodes):
        return operands
    strong = next((k for k, n in enumerate(nodes) if n.type.form == "scalar"), None)
    return operands if strong is None else (*nodes[:strong], to_form(nodes[strong], "array"), *nodes[strong + 1 :])


def _scalars(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Operands of a ufunc: Python numbers alone make a NumPy scalar, and are weak beside others."""
    nodes = [node_of(v) for v in operands]
    if any(n.type.form != "python" for n in nodes):
        return tuple(nodes)
    return tuple(to_form(n, "scalar") for n in nodes)


def _into(target: Any, result: Tensor, name: str, reduced: bool) -> Any:
    """``out=``: a lazy array is stored into; an ndarray too, at once, where nothing is being captured."""
    if target is None:
        return result
    if isinstance(target, Tensor):
        return store_result(target, result.node, name, reduced=reduced)
    if context.current() is not None:
        not_own(f"np.{name} with out=, or an in-place operator such as +=,")
    casting: Any = "unsafe" if reduced else "same_kind"
    if not np.can_cast(result.dtype, target.dtype, casting):
        raise DTypeError(
            f"Cannot cast ufunc '{name}' output from {result.dtype!r} to {target.dtype!r} with casting rule 'same_kind'"
        )
    value = (
        np.broadcast_to(np.asarray(result.numpy()), target.shape)
        if result.ndim <= target.ndim
        else np.asarray(result.numpy())
    )
    np.copyto(target, value, casting=casting)
    return target


hooks.call_ufunc = call_ufunc
