"""Python's operators and NumPy's ufuncs on lazy arrays, each the op of the same name; in-place ones store as NumPy does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.names import FUNCTIONS, computed, unknown
from tensormagic.capture.value import Tensor, arithmetic, build, hooks, node_of, refuse, wrap
from tensormagic.ir.errors import CaptureError, DTypeError, ShapeError
from tensormagic.ops import scalar
from tensormagic.ops.contract import matmul
from tensormagic.ops.form import to_form
from tensormagic.ops.move import broadcast, show
from tensormagic.ops.op import registry
from tensormagic.ops.pointwise import Pointwise, astype

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


def _operand(value: Any) -> bool:
    return isinstance(value, Tensor | int | float | complex | np.ndarray | np.generic | list | tuple) or hasattr(
        value, "__array__"
    )


def _binary(name: str, *, reflected: bool) -> Callable[[Tensor, Any], Any]:
    op = _op(name)

    def method(self: Tensor, other: Any) -> Any:
        if not _operand(other):
            return NotImplemented
        if name == "power" and not reflected:
            return _power(self, other)
        return build(op, other, self) if reflected else build(op, self, other)

    return method


def _power(base: Tensor, exponent: Any) -> Tensor:
    """``base ** exponent``, with NumPy's short ways for a few exponents that stand in the code."""
    if base.type.form == "array" and type(exponent) in {int, float}:
        if exponent == 2 and type(exponent) is int:
            return build(scalar.square, base)
        if base.type.inexact and ((exponent == -1 and type(exponent) is int) or exponent == 0.5):
            return build(scalar.sqrt if exponent == 0.5 else scalar.reciprocal, base)
    return build(scalar.power, base, exponent)


def _in_place(name: str) -> Callable[[Tensor, Any], Any]:
    op = _op(name)

    def method(self: Tensor, other: Any) -> Any:
        if self.type.form != "array":  # NumPy's scalars and Python's numbers are rebound, not changed
            return build(op, self, other)
        return store_result(self, arithmetic(op, [self.node, node_of(other)]), op.name)

    return method


def store_result(target: Tensor, node: Any, name: str) -> Tensor:
    """Store a result into ``target`` as ``out=`` does: cast of the same kind, no stretching of the target."""
    if not np.can_cast(node.type.dtype, target.dtype, "same_kind"):
        raise DTypeError(
            f"Cannot cast ufunc '{name}' output from dtype('{node.type.dtype}') to dtype('{target.dtype}') with casting rule 'same_kind'",
            "Write x = x + y, which makes a new array of the wider type.",
        )
    cast = astype(node, target.dtype)
    if cast.type.ndim > target.ndim:
        own, given = show(target.type.shape), show(cast.type.shape)
        raise ShapeError(f"non-broadcastable output operand with shape {own} doesn't match the broadcast shape {given}")
    target.place.write(context.record(broadcast(cast, target.type.shape) if target.ndim else to_form(cast, "array")))
    return target


def _unary(name: str) -> Callable[[Tensor], Any]:
    op = _op(name)

    def method(self: Tensor) -> Any:
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


def _divmod(self: Tensor, other: Any) -> Any:
    return build(scalar.floor_divide, self, other), build(scalar.remainder, self, other)


Tensor.__matmul__ = _matmul  # type: ignore[attr-defined]
Tensor.__rmatmul__ = _rmatmul  # type: ignore[attr-defined]
Tensor.__divmod__ = _divmod  # type: ignore[attr-defined]

# ufuncs ---------------------------------------------------------------------------------------------------------------

_SPECIAL = {"expit": "sigmoid", "psi": "digamma"}
UFUNCS: dict[Any, Pointwise] = {
    op.numpy: op for op in registry.values() if isinstance(op, Pointwise) and isinstance(op.numpy, np.ufunc)
}
UFUNCS.update({np.deg2rad: scalar.radians, np.rad2deg: scalar.degrees})
_REDUCE = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
}
_ACCUMULATE = {"add": "cumsum", "multiply": "cumprod"}


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
    try:
        return _call_ufunc(ufunc, method, operands, dict(options))
    except CaptureError:
        if context.current() is not None:
            raise
    return getattr(ufunc, method)(*map(computed, operands), **{k: computed(v) for k, v in options.items()})


def _call_ufunc(ufunc: Any, method: str, operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    out = options.pop("out", None)
    dtype = options.pop("dtype", None)
    if options.pop("where", True) is not True:
        refuse(f"np.{ufunc.__name__} with where=", "Use np.where(condition, new, old).")
    if dtype is not None:
        if method in {"reduce", "accumulate"}:
            options["dtype"] = dtype
        else:
            operands = tuple(_cast(v, np.dtype(dtype), ufunc.__name__) for v in operands)
    result = _ufunc_result(ufunc, method, operands, options)
    if isinstance(result, tuple):
        return result
    if dtype is not None and result.dtype != dtype:
        refuse(f"np.{ufunc.__name__} with dtype={np.dtype(dtype)}", "Convert the operands, or the result, with astype.")
    return _into(out, result, ufunc.__name__)


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
    if method in {"reduce", "accumulate"}:
        table = _REDUCE if method == "reduce" else _ACCUMULATE
        if name not in table:
            refuse(f"np.{name}.{method}", f"Those of {', '.join(table)} are captured.")
        options.setdefault("axis", 0)
        options.pop("initial", None) if options.get("initial") is None else None
        return hooks.methods[table[name]](operands[0], *operands[1:], **options)
    if method == "outer":
        left, right = (wrap(node_of(v)) for v in operands)
        return _ufunc_result(
            ufunc, "__call__", (left.reshape(*left.type.shape, *(1 for _ in right.type.shape)), right), options
        )
    if method != "__call__":
        refuse(f"np.{name}.{method}", "Write it as array operations, or run the cell with --plain.")
    if options:
        refuse(f"np.{name} with {', '.join(options)}", "Leave the option out.")
    if name == "matmul":
        return wrap(context.record(matmul(node_of(operands[0]), node_of(operands[1]))))
    if name == "divmod":
        return _divmod(wrap(node_of(operands[0])), operands[1])
    op = op_of(ufunc)
    if op is None:
        own = FUNCTIONS.get(ufunc) or FUNCTIONS.get(f"scipy.special.{name}")
        if own is None:
            raise unknown(name)
        return own(*operands)
    return build(op, *_scalars(operands))


def _scalars(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Operands of a ufunc: Python numbers alone make a NumPy scalar, and are weak beside others."""
    nodes = [node_of(v) for v in operands]
    if any(n.type.form != "python" for n in nodes):
        return tuple(nodes)
    return tuple(to_form(n, "scalar") for n in nodes)


def _into(out: Any, result: Tensor, name: str) -> Any:
    """``out=``: a lazy array is stored into; an ndarray too, at once, where nothing is being captured."""
    target = out[0] if isinstance(out, tuple) else out
    if target is None:
        return result
    if isinstance(target, Tensor):
        return store_result(target, result.node, name)
    if context.current() is not None:
        raise CaptureError(
            "out= with an array that is not the cell's own is not captured",
            "Use an array that the cell reads by its name.",
        )
    if not np.can_cast(result.dtype, target.dtype, "same_kind"):
        raise DTypeError(
            f"Cannot cast ufunc '{name}' output from {result.dtype!r} to {target.dtype!r} with casting rule 'same_kind'"
        )
    value = (
        np.broadcast_to(np.asarray(result.numpy()), target.shape)
        if result.ndim <= target.ndim
        else np.asarray(result.numpy())
    )
    np.copyto(target, value, casting="same_kind")
    return target


hooks.call_ufunc = call_ufunc
