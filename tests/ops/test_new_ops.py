"""Ops that a contributor adds, one record each: a fold whose step is not how its results are put together, and what a record lacks."""

import numpy as np
import pytest

from tensormagic.capture.names import FUNCTIONS
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import wrap
from tensormagic.ir.errors import CaptureError
from tensormagic.ops.fold import fold, reduce_sum
from tensormagic.ops.fold_kind import Fold
from tensormagic.ops.leaf import constant
from tensormagic.ops.op import registry
from tensormagic.ops.scalars.scalar import scalar_op, sign
from tensormagic.transform.grad import vjp
from tests.capture.harness import cell, given
from tests.ops.test_native import run_both, variable


def wide(dtype):
    return np.dtype(np.int64) if dtype.kind in "bi" else np.dtype(np.uint64) if dtype.kind == "u" else dtype


FOLDS = {
    "squares_of": {
        "joins": "add",
        "numpy": lambda x, axis: np.add.reduce(x * x, axis=axis, dtype=wide(x.dtype)),
        "result": wide,
        "start": lambda dtype: dtype.type(0),
        "step": "{0} + {1} * {1}",
        "tangent": lambda node, t: reduce_sum(2 * node.args[0] * t, node["axes"]),
    },
    "largest_size": {
        "joins": "maximum",
        "numpy": lambda x, axis: np.max(np.abs(x), axis=axis, initial=0),
        "start": lambda dtype: dtype.type(0),
        "step": "max({0}, abs({1}))",
        "tangent": lambda node, t: reduce_sum(sign(node.args[0]) * t, node["axes"]),
    },
    "product_of_rises": {
        "joins": "multiply",
        "numpy": lambda x, axis: np.multiply.reduce(x + 1, axis=axis, dtype=x.dtype),
        "start": lambda dtype: dtype.type(1),
        "step": "{0} * ({1} + 1)",
        "tangent": lambda node, t: reduce_sum(t, node["axes"]),
    },
    "how_many_above": {
        "joins": "add",
        "numpy": lambda x, axis: np.add.reduce((x > 1).astype(np.int64), axis=axis),
        "result": lambda _dtype: np.dtype(np.int64),
        "start": lambda _dtype: 0,
        "step": "{0} + ({1} > 1)",
        "differentiable": False,
    },
    "any_above": {
        "joins": "logical_or",
        "numpy": lambda x, axis: np.logical_or.reduce(x > 3, axis=axis),
        "result": lambda _dtype: np.dtype(bool),
        "start": lambda _dtype: False,
        "step": "{0} or ({1} > 3)",
        "differentiable": False,
    },
}


@pytest.fixture(params=FOLDS)
def new(request):
    op = Fold(name=request.param, kinds="if", doc="Of a test.", **FOLDS[request.param])
    yield op
    del registry[op.name]


@pytest.mark.parametrize("dtype", "bilfd")
@pytest.mark.parametrize("shape", [(7, 6, 5), (20000, 3), (3, 20000), (1, 2, 1)], ids=str)
def test_totals_are_put_together_as_the_fold_says(new, shape, dtype):
    rng = np.random.default_rng(0)
    x = variable("x", rng.integers(0, 2 if "rises" in new.name else 5, shape).astype(dtype))
    axes = [(0,), (len(shape) - 1,), (0, len(shape) - 1), tuple(range(len(shape)))]
    with np.errstate(all="ignore"):
        got, expected = run_both([fold(new, x, a) for a in axes])
    for left, right in zip(got, expected, strict=True):
        assert np.asarray(left).dtype == np.asarray(right).dtype
        np.testing.assert_array_equal(left, right)


def test_its_text_in_numpy_and_its_formula_come_by_themselves(new, monkeypatch):
    monkeypatch.setitem(FUNCTIONS, np.ptp, lambda x, axis: wrap(fold(new, node_of(x), (axis,))))
    x = np.random.default_rng(0).integers(0, 5, (4, 3)).astype(float)
    result = cell("np.ptp(a, 1)", given({"a": x})).result
    name = new.name.replace("_", r"\_")
    assert f"\\operatorname*{{{name}}}_{{j \\lt n}} a_{{ij}}" in result.formula().latex
    if new.name == "squares_of":  # which reads a function of this file
        with pytest.raises(CaptureError, match="squares_of has no text in NumPy"):
            result.code("numpy")
        return
    names = {}
    exec(str(result.code("numpy")), names)
    np.testing.assert_array_equal(names["f"](x), new.numpy(x, 1), strict=True)


def test_its_gradient_follows_from_its_tangent():
    op = Fold(name="squares_of", kinds="f", doc="Of a test.", **FOLDS["squares_of"])
    try:
        data = np.random.default_rng(0).normal(size=(40, 3))
        x = variable("x", data)
        (slope,) = vjp([fold(op, x, (0, 1))], [constant(np.float64(1))], [x])
        got, expected = run_both([slope])
        np.testing.assert_allclose(got[0], 2 * data)
        np.testing.assert_allclose(expected[0], 2 * data)
    finally:
        del registry["squares_of"]


@pytest.mark.parametrize(
    ("left_out", "advice"), [("joins", "joins='add'"), ("start", "start=lambda dtype")], ids=["joins", "start"]
)
def test_a_fold_with_a_step_says_how_it_begins_and_is_put_together(left_out, advice):
    fields = {k: v for k, v in FOLDS["squares_of"].items() if k != left_out}
    with pytest.raises(ValueError, match=advice):
        Fold(name="squares_of", doc="Of a test.", **fields)
    assert "squares_of" not in registry


def test_a_function_that_numpy_lacks_says_what_it_is():
    with pytest.raises(ValueError, match="NumPy has no function versine_of: give one as the second argument"):
        scalar_op("versine_of", doc="Of a test.")
    with pytest.raises(
        ValueError, match="versine_of is no ufunc of NumPy's and does not say its dtypes: give dtypes=float_loop"
    ):
        scalar_op("versine_of", lambda x: 1 - np.cos(x), doc="Of a test.")
    assert "versine_of" not in registry


def test_a_second_definition_says_what_there_is():
    with pytest.raises(
        ValueError, match="there is an op 'log2' already, of the kind pointwise: The logarithm to base 2"
    ):
        scalar_op("log2", doc="Of a test.")
