"""Loops that store running sums, products and extremes are scans: with NumPy's bits, from its own text."""

import numpy as np
import pytest

import tensormagic as tm
from tests.functions.test_first_looks import of
from tests.transform.loops import PLAIN, VECTORS, ops, own, same


def sums(x):
    out, total = np.zeros(x.shape[0]), 0.0
    for k in range(x.shape[0]):
        total = total + x[k]
        out[k] = total
    return out


def sums_in_place(x):
    y = x.copy()
    for k in range(1, len(y)):
        y[k] += y[k - 1]
    return y


def sums_of_another(x):
    y = np.zeros_like(x)
    y[0] = x[0]
    for k in range(1, len(x)):
        y[k] = y[k - 1] + x[k]
    return y


def balance(x):
    out, left = np.empty_like(x), 100.0
    for k, v in enumerate(x):
        left -= v
        out[k] = left
    return out


def products(x):
    out, p = np.zeros_like(x), 1.0
    for k in range(len(x)):
        p *= x[k]
        out[k] = p
    return out


def growth(x):
    out, p = np.zeros(len(x)), x[0]
    for k in range(len(x)):
        p = p * 1.05
        out[k] = p
    return out


def squares(x):
    out, total = np.zeros_like(x), 1.0
    for k in range(len(x)):
        total += x[k] * x[k]
        out[k] = total
    return out


def listed(x):
    out, total = [], 0.0
    for v in x:
        total += v
        out.append(total)
    return np.array(out)


def rows(x):
    a = np.stack([x, 2 * x, x - 1], 1)
    out, total = np.zeros_like(a), np.zeros(3)
    for k in range(len(a)):
        total = total + a[k]
        out[k] = total
    return out


def columns(x):
    a = np.stack([x, 2 * x, x - 1], 0)
    out, total = np.zeros_like(a), np.zeros(3)
    for k in range(a.shape[1]):
        total = total + a[:, k]
        out[:, k] = total
    return out


def sums_and_total(x):
    out, total = np.zeros_like(x), 0.0
    for k in range(len(x)):
        total += x[k]
        out[k] = total
    return out, total


def part(x):
    out, total = np.ones(len(x) + 3), 0.0
    for k in range(len(x)):
        total += x[k]
        out[k + 2] = total
    return out


def neighbours(x):
    d = np.zeros_like(x)
    for k in range(1, len(x)):
        d[k] = x[k] - x[k - 1]
    return d


def shared(x):
    y = x.copy()
    for k in range(1, len(x)):
        y[k] = x[k] + x[k - 1]
    return y


def from_behind(x):
    d = np.zeros_like(x)
    for k in range(len(x) - 2, -1, -1):
        d[k] = x[k + 1] * 2
    return d


SCANS = {
    sums: "cumsum",
    sums_in_place: "cumsum",
    sums_of_another: "cumsum",
    balance: "cumsum",
    products: "cumprod",
    growth: "cumprod",
    squares: "cumsum",
    listed: "cumsum",
    rows: "cumsum",
    columns: "cumsum",
    sums_and_total: "cumsum",
    part: "cumsum",
    neighbours: "subtract",
    shared: "add",
    from_behind: "multiply",
}


@pytest.mark.parametrize("f", SCANS)
def test_there_is_no_loop_at_any_level(f):
    for level in ("exact", "stable", "real"):
        found = ops(f, [PLAIN], level)
        assert "loop" not in found
        assert SCANS[f] in found


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("f", SCANS)
def test_bits_are_those_of_the_loop(f, name):
    x = VECTORS[name]
    if name == "none" and f in {sums_of_another, growth}:
        with pytest.raises(IndexError):
            f(x)
        return
    same(f, [x])


@pytest.mark.parametrize("f", [sums, sums_in_place, products, balance, rows, part])
def test_compiled_bits_are_those_of_the_loop(f):
    for x in (VECTORS["specials"], np.random.default_rng(1).normal(size=5000)):
        same(f, [x], compiled=True)


def logarithms(x):
    out, total = np.zeros_like(x), 0.0
    for k in range(len(x)):
        total += np.exp(x[k])
        out[k] = np.log(total)
    return out


def extremes(x):
    out, best = np.zeros_like(x), x[0]
    for k in range(len(x)):
        best = np.maximum(best, x[k])
        out[k] = best
    return out


@pytest.mark.parametrize("f", [logarithms, extremes])
def test_functions_of_sums_and_extremes_need_no_loop_unless_bits_count(f):
    assert "loop" in ops(f, [PLAIN], "exact")
    assert "loop" not in ops(f, [PLAIN])
    for x in VECTORS.values():
        if x.size:
            same(f, [x], "stable")
    same(f, [VECTORS["specials"]], "stable", compiled=True)


def with_a_recurrence(x):
    out, total, s = np.zeros_like(x), 0.0, 0.5
    for k in range(len(x)):
        total += x[k]
        out[k] = total
        s = np.sin(s + total)
    return out, s


def two_back(x):
    y = x.copy()
    for k in range(2, len(x)):
        y[k] = y[k - 1] + y[k - 2]
    return y


def decays(x):
    out, s = np.zeros_like(x), 0.0
    for k in range(len(x)):
        s = 0.9 * s + x[k]
        out[k] = s
    return out


def only_some(x):
    out, total = np.zeros_like(x), 0.0
    for k in range(len(x)):
        if x[k] > 0:
            total += x[k]
        out[k] = total
    return out


def stops(x):
    out, total = np.zeros_like(x), 0.0
    for k in range(len(x)):
        total += x[k]
        if total > 100:
            raise ValueError("too much")
        out[k] = total
    return out


def backwards(x):
    out, total = np.zeros_like(x), 0.0
    for k in range(len(x) - 1, -1, -1):
        total += x[k]
        out[k] = total
    return out


def before(x):
    out, total = np.zeros_like(x), 0.0
    for k in range(len(x)):
        out[k] = total
        total += x[k]
    return out


def whole_read(x):
    y = x.copy()
    for k in range(1, len(x)):
        y[k] = y[k - 1] + y.max()
    return y


@pytest.mark.parametrize("f", [with_a_recurrence, two_back, decays, only_some, stops, backwards, before, whole_read])
def test_other_loops_stay(f):
    assert "loop" in ops(f, [PLAIN])
    for level in ("exact", "stable"):
        same(f, [PLAIN], level)


def test_the_error_of_an_iteration_stays():
    with pytest.raises(ValueError, match="too much"):
        tm.tensor(stops)(np.full(5, 60.0))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float16])
def test_integers_and_halves_are_added_up_as_the_loop_does(dtype):
    x = np.arange(1, 9).astype(dtype)
    for f in (sums_in_place, sums_of_another):
        same(f, [x])


@pytest.mark.parametrize("f", [sums, sums_in_place, products, squares, logarithms, sums_of_another])
def test_gradients_are_those_of_the_loop(f):
    x, w = PLAIN / 3 + 1, np.linspace(1, 2, PLAIN.size)

    def loss(x):
        return np.sum(f(x) * w)

    step = 1e-6
    found = tm.grad(loss)(x)
    for k in range(x.size):
        change = np.zeros_like(x)
        change[k] = step
        slope = (own(loss, [x + change]) - own(loss, [x - change])) / (2 * step)
        assert found[k] == pytest.approx(slope, rel=1e-5)


def test_themes_of_loops_can_be_left_out():
    assert "loop" in ops(sums, [PLAIN], "stable without loops")


SELECTED = {
    "a mean": "out[k] = x[x > e[k]].mean()",
    "a sum": "out[k] = x[x > e[k]].sum()",
    "a running sum": "t = t + x[x > e[k]].sum()\n        out[k] = t",
    "a largest": "out[k] = np.max(x[x > e[k]])",
    "in place": "out[k] = out[k - 1] + x[np.logical_and(x > e[k], x < 9)].sum()",
    "of what is not zero": "out[k] = x[np.nonzero(x > e[k])[0]].sum()",
}


@pytest.mark.parametrize("name", SELECTED)
def test_loops_whose_arrays_have_sizes_of_data_stay_loops(name, tmp_path):
    loop = f"for k in range(len(e)):\n        {SELECTED[name]}"
    text = f"import numpy as np\ndef f(x, e):\n    out, t = np.zeros(len(e)), 0.0\n    {loop}\n    return out\n"
    function = of(text, tmp_path / "given.py")
    x, e = np.arange(6.0), np.array([0.5, 1.5, 3.5])
    np.testing.assert_allclose(tm.tensor(function)(x, e), function(x, e), rtol=1e-14)
