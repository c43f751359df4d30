"""What holds for every record of the registry: a line of documentation, a kind, and a test of its own."""

# tests named elsewhere

import operator
import re

import numpy as np
import pytest
import scipy

from tensormagic.ops.leaf import constant
from tensormagic.ops.move import broadcast
from tensormagic.ops.op import Op
from tensormagic.ops.scalars import scalar
from tensormagic.ops.scalars.function import SPECIAL
from tests.ops.cases import CASES
from tests.ops.harness import registry

KINDS = {"pointwise", "fold", "move", "update", "contract", "opaque", "region", "leaf"}
OPS = list(registry.values())


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_every_op_says_what_it_is(op):
    assert op.kind in KINDS
    assert op.doc.endswith(".")
    assert "\n" not in op.doc
    assert registry[op.name] is op


@pytest.mark.parametrize("op", [op for op in OPS if op.in_numpy], ids=lambda op: op.name)
def test_what_a_text_calls_an_op_is_there(op):
    modules = {"np": np, "scipy": scipy}
    for module, names, behind in re.findall(r"\b(np|scipy)\.([\w.]+)([^\w.]|$)", op.in_numpy):
        found = operator.attrgetter(names)(modules[module])
        assert callable(found) if behind in {"", "("} else isinstance(found, float)


def test_every_op_is_tried():
    tried = {case.op for case in CASES} | {
        "draw",
        "random_state",
        "gamma_slope",
        "beta_slopes",
        "von_mises_slope",  # test_random.py
        "settled",
        "works",
        "converted",  # test_derivatives_of_what_is_read.py, test_matrices.py
        "outside",  # test_foreign.py
    }
    untried = [op.name for op in OPS if op.kind not in {"pointwise", "region", "leaf"} and op.name not in tried]
    assert untried == []


@pytest.mark.parametrize("op", [op for op in OPS if op.kind == "pointwise"], ids=lambda op: op.name)
def test_every_pointwise_op_has_a_derivative_or_is_a_step(op):
    assert op.name == "astype" or op.step or op.partials is not None or op.linearise is not None


def test_a_name_is_given_once():
    with pytest.raises(ValueError, match="already"):
        Op(name="sin")


@pytest.mark.parametrize("op", [op for op in OPS if op.kind == "pointwise" and op.not_negative], ids=lambda op: op.name)
def test_what_is_said_never_to_be_negative_is_not(op):
    operands = np.meshgrid(*[np.array([*SPECIAL, 3.7, -3.7])] * op.arity)
    with np.errstate(all="ignore"):
        result = op.evaluate(op(*operands), operands, int)
    assert not (result < 0).any()


def test_whether_an_op_may_raise_depends_on_its_node():
    whole, real = constant(np.arange(3)), constant(np.arange(3.0))
    assert registry["power"].may_raise(scalar.power(whole, -1))
    assert not registry["power"].may_raise(scalar.power(real, -1.0))
    assert registry["inv"].may_raise(constant(np.eye(2)))
    assert not registry["broadcast"].may_raise(broadcast(real, (2, 3)))
