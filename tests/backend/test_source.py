"""Generated source, held as files: ``TENSORMAGIC_UPDATE_GOLDEN=1 pytest tests/backend`` writes them anew."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.compiling.native import start
from tensormagic.ir import site
from tensormagic.ir.site import Site
from tensormagic.ops import contract
from tensormagic.ops.fold import SOFTMAX, SUM, fold, mean, row
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars.scalar import exp, floor_divide, log1p, tanh
from tensormagic.transform.grad import gradient
from tests.backend.graphs import planned, variable

GOLDEN = Path(__file__).parent / "golden"


def logistic():
    X, w, b = variable("X", np.zeros((9, 4))), variable("w", np.zeros(4)), variable("b", np.float64(0))
    y = variable("y", np.zeros(9))
    loss = mean(log1p(exp(-y * (contract.matmul(X, w) + b))), (0,))
    return loss, *gradient(loss, [w, b])


GRAPHS = {
    "softmax": lambda: (row(SOFTMAX, variable("logits", np.zeros((5, 6))), (1,)),),
    "logistic": logistic,
    "columns": lambda: (fold(SUM, variable("x", np.zeros((5, 6), np.int8)), (0,)),),
    "narrow": lambda: (
        tanh(variable("x", np.zeros(5, np.float32))) * 0.3,
        floor_divide(astype(variable("k", np.zeros(5)), "int16"), 3),
    ),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_source(name):
    plan = planned(*GRAPHS[name]())
    text = "\n".join([*(k.source for k in plan.kernels), plan.driver.source])
    text = re.sub(r"  # .* line \d.*", "", text)  # other tests may have built the same nodes, with lines of their own
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("TENSORMAGIC_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_names_and_lines_are_shown_and_change_nothing():
    x = variable("speed", np.zeros(5))
    number = 1.84375  # of its own: equal graphs share nodes, and the lines of what other tests have built with these
    plain = planned(exp(x) * number)
    marked = variable("x", np.zeros(5))
    product = exp(marked) * number
    site.record(product, Site("In[4]", 1, 2))
    plan = planned(product)
    assert plan.sources == plain.sources
    assert "# In[4] line 2" in plan.kernels[0].source
    assert "speed[i]" in plain.kernels[0].source
    assert "speed" not in plain.sources[0]


def test_awkward_names_are_left_out():
    for name in ("lambda", "table", "i", "a b", "np", "α"):
        plan = planned(variable(name, np.zeros(5)) + 1)
        compile(plan.kernels[0].source, "<test>", "exec")
        assert start(plan).wait(60)


def test_sizes_of_slices_that_end_before_the_array_may_are_numbers_in_kernels():
    def differences(x, y):
        near = x[1 : y.shape[0] + 3, :] - x[: y.shape[0] + 2, :]
        return near[1:] * near[:-1]

    compiled = tm.compile(differences, "float64[n, m]", "float64[k]")
    for kernel in compiled.kernels:
        assert " if (" not in kernel.source
        assert "-1 *" not in kernel.source
    x, y = np.arange(24.0).reshape(8, 3) ** 2, np.ones(4)
    np.testing.assert_array_equal(compiled(x, y), differences(x, y))
