"""Cases of reductions, running folds and functions of rows."""

import numpy as np

from tensormagic.ops import fold
from tensormagic.ops.bit_folds import BIT_FOLDS
from tensormagic.ops.op import registry
from tests.ops.cases import ALL, CASES, case

FOLDS = {
    "sum": (fold.SUM, np.sum),
    "prod": (fold.PROD, np.prod),
    "max": (fold.MAX, np.max),
    "min": (fold.MIN, np.min),
    "any": (fold.ANY, np.any),
    "all": (fold.ALL, np.all),
}
REDUCTIONS = [
    ((), ()),
    ((5,), (0,)),
    ((1,), (0,)),
    ((0,), (0,)),
    ((3, 4), (0,)),
    ((3, 4), (1,)),
    ((3, 4), (0, 1)),
    ((2, 0, 3), (1,)),
    ((2, 0, 3), (0,)),
    ((2, 3, 4), (0, 2)),
]
for _name, (_op, _numpy) in FOLDS.items():
    for _shape, _axes in REDUCTIONS:
        case(
            _name,
            lambda x, op=_op, axes=_axes: fold.fold(op, x, axes),
            lambda x, numpy=_numpy, axes=_axes: numpy(x, axis=axes),
            _shape,
            label=f"{_shape}-{_axes}",
            derivative=_name in {"sum", "prod"} or (_name in {"max", "min"} and all(_shape[k] for k in _axes)),
        )
        case(
            _name,
            lambda x, op=_op, axes=_axes: fold.fold(op, x, axes, keepdims=True),
            lambda x, numpy=_numpy, axes=_axes: numpy(x, axis=axes, keepdims=True),
            _shape,
            label=f"{_shape}-{_axes}-keepdims",
            derivative=False,
        )
for _name, _numpy in {"argmax": np.argmax, "argmin": np.argmin}.items():
    for _shape, _axis in [((5,), 0), ((0,), 0), ((3, 4), 0), ((3, 4), 1), ((2, 3, 4), 1), ((3, 4), None)]:
        case(
            _name,
            lambda x, name=_name, axis=_axis: fold.fold(
                {"argmax": fold.ARGMAX, "argmin": fold.ARGMIN}[name], x, fold.axes_of(x, axis)
            ),
            lambda x, numpy=_numpy, axis=_axis: numpy(x, axis=axis),
            _shape,
            label=f"{_shape}-{_axis}",
            derivative=False,
        )


def _logsumexp(x, axis):
    top = np.max(x, axis=axis, keepdims=True)
    return (np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top).sum(axis=axis, dtype=x.dtype)


def _softmax(x, axis):
    """As it is written, where nothing runs over; else with the largest element taken off."""
    top = np.max(x, axis=axis, keepdims=True)
    e = np.exp(x - np.where(np.abs(top) <= np.log(float(np.finfo(x.dtype).max)) / 2, 0, top).astype(x.dtype))
    return e / np.sum(e, axis=axis, keepdims=True)


def _log_softmax(x, axis):
    shifted = x - np.max(x, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def _others(x, axis):
    """The product of all others, one element at a time."""
    moved = np.moveaxis(x, axis, -1)
    result = np.stack(
        [np.multiply.reduce(np.delete(moved, k, axis=-1), axis=-1, dtype=x.dtype) for k in range(moved.shape[-1])],
        axis=-1,
    )
    return np.moveaxis(result, -1, axis)


for _shape, _axis in [((5,), 0), ((3, 4), 0), ((3, 4), 1), ((2, 3, 4), 1)]:
    for _name, (_op, _numpy, _dtypes) in {
        "logsumexp": (fold.LOGSUMEXP, _logsumexp, "fd"),
        "softmax": (fold.SOFTMAX, _softmax, "fd"),
        "log_softmax": (fold.LOG_SOFTMAX, _log_softmax, "fd"),
        "cumsum": (fold.CUMSUM, np.cumsum, ALL),
        "cumprod": (fold.CUMPROD, np.cumprod, ALL),
    }.items():
        case(
            _name,
            lambda x, op=_op, axis=_axis: fold.fold(op, x, (axis,)),
            lambda x, numpy=_numpy, axis=_axis: numpy(x, axis),
            _shape,
            label=f"{_shape}-{_axis}",
            dtypes=_dtypes,
        )
case("prod_others", lambda x: fold.prod_others(x, (0,)), lambda x: _others(x, 0), (4,), dtypes="bhilBHIL")
case(
    "prod_others",
    lambda x: fold.prod_others(x, (1,)),
    lambda x: _others(x, 1),
    (2, 5),
    tags=frozenset({"rounds"}),
    dtypes="bhilBHILfdFD",
)
case("cumsum", lambda x: fold.row(fold.CUMSUM, x, (1,)), lambda x: np.cumsum(x, 1), (3, 0), derivative=False)
case("cumprod", lambda x: fold.row(fold.CUMPROD, x, (1,)), lambda x: np.cumprod(x, 1), (3, 0), derivative=False)


def _by_itself(op, x, axes):
    """What the fold's own function gives; without a start, an axis without elements is an error, whatever the function says."""
    if op.start is None and not all(x.shape[k] for k in axes):
        raise ValueError("no elements")
    return op.numpy(x, axes if len(axes) > 1 else axes[0] if axes else None)


def add_others() -> None:
    """Cases of folds that have none: new ones."""
    own = {c.op for c in CASES}
    for op in [op for op in registry.values() if type(op) is fold.Fold and op.name not in own]:
        for shape, axes in REDUCTIONS:
            case(
                op.name,
                lambda x, op=op, axes=axes: fold.fold(op, x, axes),
                lambda x, op=op, axes=axes: _by_itself(op, np.asarray(x), axes),
                shape,
                label=f"{shape}-{axes}",
                derivative=op.differentiable and all(shape[k] for k in axes),
                dtypes="".join(d for d in ALL if np.dtype(d).kind in op.kinds),
            )


for _name, _op in BIT_FOLDS.items():
    for _shape, _axis in [((5,), 0), ((3, 4), 0), ((3, 4), 1), ((0, 3), 0), ((0, 3), 1)]:
        if _name == "lcm" and not _shape[_axis]:
            continue  # which has no least multiple
        case(
            _op.name,
            lambda x, op=_op, axis=_axis: fold.fold(op, x, (axis,)),
            lambda x, name=_name, axis=_axis: getattr(np, name).reduce(x, axis=axis),
            _shape,
            label=f"{_shape}-{_axis}",
            dtypes="bhilBHIL",
            derivative=False,
        )
