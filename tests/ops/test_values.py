"""Every other op against NumPy: dtype, shape and bits for each dtype and layout, or an error of the same class."""

# tests named elsewhere

import numpy as np
import pytest

from tests.ops.cases import CASES
from tests.ops.harness import BACKENDS, assert_same, layouts, outcome, run_nodes


def close_enough(ours, oracle):
    """For what is defined by a formula and computed in another order."""
    assert ours.dtype == oracle.dtype
    eps = np.finfo(oracle.dtype).eps if oracle.dtype.kind in "fc" else 0
    np.testing.assert_allclose(ours, oracle, rtol=64 * eps, atol=64 * eps * float(np.max(np.abs(oracle), initial=0)))


@pytest.mark.share(3)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_values_of_every_dtype(case, backend):
    rng = np.random.default_rng(5)
    for dtype in case.dtypes:
        values = case.operands(rng, dtype)
        if "rounds" not in case.tags:
            assert_same(backend, case.build, case.oracle, values)
            continue
        expected = outcome(lambda values=values: case.oracle(*values))
        ours = outcome(lambda values=values: tuple(run_nodes(backend, case.build, values)))
        if isinstance(expected, type):
            assert ours == expected
        else:
            close_enough(ours[0], np.asarray(expected[0]))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", [c for c in CASES if "rounds" not in c.tags], ids=str)
def test_layouts(case, backend):
    values = case.operands(np.random.default_rng(6), case.dtypes[-1])
    for variant in zip(
        *(list(layouts(np.asarray(v))) if np.ndim(v) else [np.asarray(v)] * 6 for v in values), strict=False
    ):
        assert_same(backend, case.build, case.oracle, variant)
