"""Ufuncs with captured operands: calls, methods, ``out=``, ``where=`` and ``dtype=``, as in NumPy."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse, refuse_foreign_store
from tensormagic.capture.foreign.native_functions import is_numpys
from tensormagic.capture.foreign.oracle import with_numpys_errors
from tensormagic.capture.hooks import hooks
from tensormagic.capture.inputs.door import is_table
from tensormagic.capture.library.ufunc_methods import method_of
from tensormagic.capture.names import FUNCTIONS, computed, unknown
from tensormagic.capture.numbers import by_class
from tensormagic.capture.staging.calls.foreign_functions import with_arrays
from tensormagic.capture.stores.at import at
from tensormagic.capture.values.casts import check_cast, check_output
from tensormagic.capture.values.operands import build, node_of
from tensormagic.capture.values.operators import checked_power, divmod_of, labelled, store_result
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.errors import CaptureError, DTypeError
from tensormagic.ir.stored import SEEN, is_stored
from tensormagic.ir.type import python_kind
from tensormagic.ops.contract import matmul
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import constant
from tensormagic.ops.op import registry
from tensormagic.ops.pointwise import Pointwise, astype, ufunc_dtypes
from tensormagic.ops.scalars import scalar

_SPECIAL = {"expit": "sigmoid", "psi": "digamma"}
UFUNCS: dict[Any, Pointwise] = {
    op.numpy: op for op in registry.values() if isinstance(op, Pointwise) and isinstance(op.numpy, np.ufunc)
}
UFUNCS.update({np.deg2rad: scalar.radians, np.rad2deg: scalar.degrees})


def op_of(ufunc: Any) -> Pointwise | None:
    """Return the op of a ufunc of NumPy or ``scipy.special``; None if there is none."""
    found = UFUNCS.get(ufunc)
    if found is None:
        name = str(ufunc.__name__)
        named = registry.get(_SPECIAL.get(name, name))
        found = named if isinstance(named, Pointwise) and not isinstance(named.numpy, np.ufunc) else None
    return found


def call_ufunc(ufunc: Any, method: str, operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Apply ``ufunc`` to lazy operands; outside captured code NumPy itself handles what is not captured."""
    if any(map(is_table, operands)):  # the labelled lazy array handles it
        return getattr(ufunc, method)(*(labelled(v) if is_table(v) else v for v in operands), **options)
    if context.current() is not None and not is_numpys(ufunc):
        return with_arrays(ufunc if method == "__call__" else getattr(ufunc, method))(*operands, **options)
    try:
        return _in_numpys_words(ufunc, method, operands, options)
    except CaptureError:
        if context.current() is not None:
            raise
    return getattr(ufunc, method)(*map(computed, operands), **{k: computed(v) for k, v in options.items()})


def _call_ufunc(ufunc: Any, method: str, operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    if method == "at":
        return at(ufunc, op_of(ufunc), *operands)
    out = options.pop("out", None)
    dtype = options.pop("dtype", None)
    name = ufunc.__name__
    chosen = options.pop("where", True) if method == "__call__" else True
    targets = out if isinstance(out, tuple) else (out,)
    if method in {"reduce", "accumulate"}:
        if dtype is not None:
            options["dtype"] = dtype
        elif isinstance(targets[0], Tensor):
            operands = (_fold_operand(operands[0], targets[0].dtype, op_of(ufunc)), *operands[1:])
    elif dtype is not None and np.dtype(dtype) != bool:  # comparisons give bool for operands of any dtype
        operands = tuple(_cast(v, np.dtype(dtype), name) for v in operands)
    op = op_of(ufunc) if method == "__call__" and isinstance(targets[0], Tensor) else None
    if op is not None:  # NumPy checks the dtype before the shape
        check_output(op.resolve([node_of(v).type for v in operands])[1], targets[0].dtype, name)
    result = _ufunc_result(ufunc, method, operands, options)
    if (
        SEEN
        and method == "__call__"
        and isinstance(result, Tensor)
        and (own := op_of(ufunc))
        and own.numpy is not ufunc
    ):
        result = in_dtype_of(result, ufunc, operands)
    if dtype is not None and not isinstance(result, tuple) and result.dtype != dtype:
        refuse(f"np.{name} with dtype={np.dtype(dtype)}", "Convert the operands, or the result, with astype.")
    reduced = method in {"reduce", "accumulate", "reduceat"}
    if not isinstance(result, tuple):
        target = targets[0] if len(targets) == 1 else None
        return _stored_into_out(target, _chosen(result, target, chosen), name, reduced)
    targets = targets if len(targets) == len(result) else (None,) * len(result)
    return tuple(
        _stored_into_out(t, _chosen(r, t, chosen), name, reduced) for t, r in zip(targets, result, strict=True)
    )


def in_dtype_of(result: Tensor, ufunc: np.ufunc, operands: tuple[Any, ...]) -> Tensor:
    """Return the result in the dtype of the ufunc that another one replaces: for bfloat16 they differ."""
    types = [node_of(v).type for v in operands]
    given = [python_kind(t) if t.form == "python" else t.dtype for t in types]
    dtype = ufunc_dtypes(ufunc)(given)[1] if any(is_stored(t.dtype) for t in types) else result.dtype
    return result if result.dtype == dtype else wrap(astype(result.node, dtype))


def _asked(ufunc: Any, method: str, operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return getattr(ufunc, method)(*operands, **options)


_in_numpys_words = with_numpys_errors(
    lambda u, m, operands, options: _call_ufunc(u, m, operands, dict(options)), _asked, resolved=True
)


def _fold_operand(value: Any, dtype: np.dtype[Any], op: Pointwise | None) -> Any:
    """Return the operand of a fold, in the dtype that NumPy folds in where ``out`` is of ``dtype``: one that holds both."""
    node = node_of(value)
    wider = np.result_type(dtype, node.type.dtype)
    truth = op is None or "b" in (node.type.dtype.kind, op.resolve([node.type, node.type])[1].kind)
    return value if truth or wider == node.type.dtype else wrap(astype(node, wider))


def _chosen(result: Tensor, out: Any, where: Any) -> Tensor:
    """Return the result where the mask ``where`` is true, and ``out`` elsewhere; zeros without ``out``."""
    if where is True:
        return result
    mask = constant(np.asarray(where, bool)) if isinstance(where, list | tuple | int) else node_of(where)
    check_cast(mask.type.dtype, bool)
    old = node_of(out) if out is not None else constant(result.dtype.type(0))
    if not np.can_cast(result.dtype, old.type.dtype, "same_kind"):
        return result
    return wrap(scalar.where(mask, astype(result.node, old.type.dtype), old))


def _cast(value: Any, dtype: np.dtype[Any], name: str) -> Tensor:
    """Return an operand of a ufunc cast to ``dtype=``, which chooses the loop."""
    node = node_of(value)
    if node.type.form != "python" and not np.can_cast(node.type.dtype, dtype, "same_kind"):
        raise DTypeError(
            f"Cannot cast ufunc '{name}' input from dtype('{node.type.dtype}') to dtype('{dtype}') with casting rule 'same_kind'"
        )
    return wrap(astype(node, dtype))


def _ufunc_result(ufunc: Any, method: str, operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    name = ufunc.__name__
    if method in {"reduce", "accumulate", "reduceat"}:
        return method_of(ufunc, op_of(ufunc), method, operands, options)
    if method == "outer":
        return _ufunc_result(ufunc, "__call__", _outer(operands), options)
    if method != "__call__":
        refuse(f"np.{name}.{method}", "Write it as array operations, or run the cell with --plain.")
    if options and not (ufunc.signature is not None and set(options) <= {"axis"}):
        refuse(f"np.{name} with {', '.join(options)}", "Leave the option out.")
    if name == "matmul" and not options:
        return wrap(context.record(matmul(node_of(operands[0]), node_of(operands[1]))))
    if name == "divmod":
        left, right = map(node_of, _scalars(operands))
        return divmod_of(wrap(left), right)
    own = None if ufunc in UFUNCS else FUNCTIONS.get(ufunc) or FUNCTIONS.get(f"scipy.special.{name}")
    if own is not None:
        return own(*operands, **options)
    op = op_of(ufunc)
    if op is None:
        raise unknown(name)
    if isinstance(operands[0], np.generic) and len(operands) > 1:  # ``np.float32(2) ** x``: NumPy calls the ufunc
        return build(op, *_scalars(operands))
    made = checked_power if op is scalar.power else functools.partial(build, op)
    nodes = [node_of(v) for v in operands]
    return by_class.of_function(lambda given: made(*_by_loop(op, _scalars(given))).node, nodes, wrap)


def _outer(operands: tuple[Any, ...]) -> tuple[Tensor, Tensor]:
    """Return the operands of ``outer`` as those of a call: the first gets an axis for each axis of the second."""
    nodes = [node_of(v) for v in operands]
    left, right = (wrap(to_form(n, "scalar") if n.type.form == "python" else n) for n in nodes)  # none is weak
    return left.reshape(*left.type.shape, *(1 for _ in right.type.shape)), right


def _by_loop(op: Pointwise, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return operands for NumPy's loop: a ufunc uses it for numbers, too, where operators of numbers round otherwise."""
    if not op.numbers:
        return operands
    nodes = [node_of(v) for v in operands]
    if any(n.type.form == "array" for n in nodes):
        return operands
    strong = next((k for k, n in enumerate(nodes) if n.type.form == "scalar"), None)
    return operands if strong is None else (*nodes[:strong], to_form(nodes[strong], "array"), *nodes[strong + 1 :])


def _scalars(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the operands of a ufunc: Python numbers alone make a NumPy scalar, and are weak beside others."""
    nodes = [node_of(v) for v in operands]
    if any(n.type.form != "python" for n in nodes):
        return tuple(nodes)
    return tuple(to_form(n, "scalar") for n in nodes)


def _stored_into_out(target: Any, result: Tensor, name: str, reduced: bool) -> Any:
    """Return the result, stored in ``target`` for ``out=``: a lazy array, or an ndarray at once if nothing is being captured."""
    if target is None:
        return result
    if isinstance(target, Tensor):
        return store_result(target, result.node, name, reduced=reduced)
    if context.current() is not None:
        refuse_foreign_store(f"np.{name} with out=, or an in-place operator such as +=,")
    casting: Any = "unsafe" if reduced else "same_kind"
    if not reduced:
        check_output(result.dtype, target.dtype, name)
    value = (
        np.broadcast_to(np.asarray(result.numpy()), target.shape)
        if result.ndim <= target.ndim
        else np.asarray(result.numpy())
    )
    np.copyto(target, value, casting=casting)
    return target


hooks.call_ufunc = call_ufunc
