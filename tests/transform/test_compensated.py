"""Code that works with roundings gives at the level stable what it gives in NumPy, or what is nearer to the truth."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic import session
from tests.transform import compensated
from tests.transform.compensated import SUMS, TRICKS, mp, points, program

pytestmark = [pytest.mark.filterwarnings("ignore::RuntimeWarning"), pytest.mark.usefixtures("by_numpy")]
EPS = {np.float64: 2.0**-52, np.float32: 2.0**-23}


def equal_bits(found: object, wanted: object) -> None:
    many = isinstance(wanted, tuple)
    for ours, theirs in zip(found if many else (found,), wanted if many else (wanted,), strict=True):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs), strict=True)


@pytest.mark.parametrize("seed", range(100))
def test_drawn_error_free_transformations_keep_every_bit(seed):
    run = program(seed)
    r = np.random.default_rng(1000 + seed)
    x, y = (10.0 ** r.uniform(-8, 8, 40) * r.choice([1.0, 1.0, -1.0], 40) for _ in range(2))
    found, wanted = run(tm.tensor(x), tm.tensor(y)), run(x, y)
    found = found if isinstance(wanted, tuple) else (found,)
    if seed % 2:  # all in one run; otherwise one after the other
        session.compute([t.node for t in found])
    equal_bits(found, wanted if isinstance(wanted, tuple) else (wanted,))


@pytest.mark.parametrize("function", SUMS, ids=lambda f: f.__name__)
def test_compensated_sums_keep_every_bit(function):
    r = np.random.default_rng(5)
    v = r.normal(size=50) * 10.0 ** r.uniform(-12, 12, 50)
    equal_bits(tm.tensor(function)(v), function(v))


@pytest.mark.parametrize("dtype", EPS, ids=lambda d: d.__name__)
@pytest.mark.parametrize("trick", TRICKS, ids=str)
def test_tricks_lose_nothing(trick, dtype):
    x = np.asarray([*points(trick, 3, 150)], dtype)
    x = np.concatenate([x, -x[:50]]) if trick.low < 1e-3 else x
    found, wanted = np.asarray(tm.tensor(trick.function)(x)), trick.function(x)
    assert found.dtype == wanted.dtype
    with np.errstate(all="ignore"):
        for point, ours, theirs in zip(x, found, wanted, strict=True):
            true = trick.true(mp.mpf(float(point)))
            errors = [abs(mp.mpf(float(v)) - true) for v in (ours, theirs)]
            assert errors[0] <= max(errors[1], 4 * EPS[dtype] * abs(true)), (point, ours, theirs)


def test_the_withholding_is_shown():
    v = tm.tensor(np.array([1e-10, 0.5]))
    assert "withheld: log(1 + x) -> log1p(x)" in compensated.log1p_goldberg(v).explain()
    assert "withheld: log(exp(x)) -> x" in compensated.expm1_kahan_kept(v).explain()
