"""What a slice, a mask, a store, a sort or a maximum leaves out has the derivative 0, where its own slope is infinite too."""

import warnings

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ops.reverse import spans

ROOT = np.sqrt(2)
X = np.array([0.0, 1.0, 2.0])  # the logarithm of the first is -inf, and its slope is infinite


def stored(x):
    y = np.log(x)
    y[0] = 0.0
    return y.sum()


def stored_by_index(x):
    y = np.log(x)
    y[np.array([0, 0])] = 0.0
    return y.sum()


def stored_by_mask(x):
    y = np.log(x)
    y[y < -5] = 0.0
    return y.sum()


def added(x):
    y = np.zeros(4)
    y[1:] += np.log(x)
    return y[2:].sum()


PROGRAMS = {
    "an element": (lambda x: np.log(x)[1], [0, 1, 0]),
    "a slice": (lambda x: np.log(x)[1:].sum(), [0, 1, 0.5]),
    "slices that meet": (lambda x: np.log(x)[1:2].sum() + np.log(x)[2:].sum(), [0, 1, 0.5]),
    "slices apart": (lambda x: np.log(x + np.array([1.0, -1.0, 0.0]))[::2].sum(), [1, 0, 0.5]),
    "two elements": (lambda x: np.log(x)[1] * 2 + np.log(x)[2], [0, 2, 0.5]),
    "a mask": (lambda x: np.log(x)[x > 0].sum(), [0, 1, 0.5]),
    "where=": (lambda x: np.log(x).sum(where=x > 0), [0, 1, 0.5]),
    "indices": (lambda x: np.log(x)[np.array([1, 2])].sum(), [0, 1, 0.5]),
    "indices that repeat": (lambda x: np.log(x)[np.array([1, 2, 2, 1, 2])].sum(), [0, 2, 1.5]),
    "an index that is computed": (lambda x: np.log(x)[np.argmax(x)], [0, 0, 0.5]),
    "take_along_axis": (lambda x: np.take_along_axis(np.log(x), np.array([1]), 0).sum(), [0, 1, 0]),
    "sort": (lambda x: np.sort(np.log(x))[1:].sum(), [0, 1, 0.5]),
    "partition": (lambda x: np.partition(np.log(x), 1)[1:].sum(), [0, 1, 0.5]),
    "median": (lambda x: np.median(np.log(x)), [0, 1, 0]),
    "max": (lambda x: np.max(np.log(x)), [0, 0, 0.5]),
    "maximum": (lambda x: np.maximum(np.log(x), -1.0).sum(), [0, 1, 0.5]),
    "minimum": (lambda x: np.minimum(-np.log(x), 1.0).sum(), [0, -1, -0.5]),
    "clip": (lambda x: np.clip(np.log(x), -1.0, 5.0).sum(), [0, 1, 0.5]),
    "reversed": (lambda x: np.flip(np.log(x))[:2].sum(), [0, 1, 0.5]),
    "roll": (lambda x: np.roll(np.log(x), 1)[:1].sum(), [0, 0, 0.5]),
    "pad": (lambda x: np.pad(np.log(x), 1)[2:].sum(), [0, 1, 0.5]),
    "diag": (lambda x: np.diag(np.log(x))[1:, 1:].sum(), [0, 1, 0.5]),
    "concatenate": (lambda x: np.concatenate([np.log(x), x])[1:].sum(), [1, 2, 1.5]),
    "cumsum": (lambda x: np.cumsum(np.log(x)[::-1])[1], [0, 1, 0.5]),
    "diff": (lambda x: np.diff(np.log(x))[1], [0, -1, 0.5]),
    "rows": (lambda x: np.log(x.reshape(3, 1))[1:].sum(), [0, 1, 0.5]),
    "broadcast": (lambda x: np.broadcast_to(np.log(x), (2, 3))[:, 1:].sum(), [0, 2, 1]),
    "outer": (lambda x: np.outer(np.log(x), np.ones(2))[1:].sum(), [0, 2, 1]),
    "a quotient": (lambda x: (np.ones(3) / x)[1:].sum(), [0, -1, -0.25]),
    "a power": (lambda x: (x**-0.5)[1:].sum(), [0, -0.5, -(2**-2.5)]),
    "a chain": (lambda x: np.exp(2 * np.sqrt(x))[1], [0, np.exp(2), 0]),
    "a product": (lambda x: (np.log(x) * np.sqrt(x))[1:].sum(), [0, 1, (1 + np.log(2) / 2) / np.sqrt(2)]),
    "a store": (stored, [0, 1, 0.5]),
    "a store by index": (stored_by_index, [0, 1, 0.5]),
    "a store by mask": (stored_by_mask, [0, 1, 0.5]),
    "an addition to a part": (added, [0, 1, 0.5]),
    "zeros of a factor": (lambda x: (np.sqrt(x) * np.array([0.0, 1.0, 1.0])).sum(), [0, 0.5, 0.5 / ROOT]),
    "zeros of integers": (lambda x: (np.arange(3) * np.sqrt(x)).sum(), [0, 0.5, 1 / ROOT]),
    "a mask as a factor": (lambda x: (np.sqrt(x) * (x > 0.5)).sum(), [0, 0.5, 0.5 / ROOT]),
    "zeros of a matrix": (lambda x: (np.sqrt(x) @ np.eye(3))[1:].sum(), [0, 0.5, 0.5 / ROOT]),
    "zeros in einsum": (lambda x: np.einsum("i,ij->j", np.sqrt(x), np.eye(3))[1:].sum(), [0, 0.5, 0.5 / ROOT]),
    "rows of a product": (lambda x: (np.log(x[:, None]) @ np.ones((1, 2)))[1:].sum(), [0, 2, 1]),
    "norm of order 0.5": (lambda x: np.linalg.norm(x, 0.5), [0, 1 + ROOT, (1 + ROOT) / ROOT]),
    "norm of order -1": (lambda x: np.linalg.norm(x, -1), [0, 0, 0]),
    "norm of order -2, all zeros": (lambda x: np.linalg.norm(x - tm.stop_gradient(x), -2), [0, 0, 0]),
}


def stored_in_iterations(x):
    y = np.log(x)
    for i in range(3):
        y[0] = x[1] * i
    return y.sum()


def stored_while(x):
    y = np.log(x)
    i = 0
    while i < 2:
        y[i] = x[1] * i
        i = i + 1
    return y.sum()


def stored_by_indices_in_iterations(x):
    y = np.log(x)
    places = np.array([[0, 1], [0, 2]])
    for i in range(2):
        y[places[i]] = x[1]
    return y.sum()


def computed_in_iterations(x):
    y = x
    for i in range(3):
        y = np.sqrt(x) * i
        y[0] = x[1] * i
    return y.sum()


def turned(x):
    y, z = np.log(x), np.sqrt(x)
    for _ in range(3):
        y, z = z, y * 2
        y[0] = 1.0
        z[0] = x[1]
    return (y + z).sum()


def read_by_indices_in_iterations(x):
    y = np.log(x)
    places = np.array([[1, 2], [2, 1], [1, 1]])
    total = 0.0
    for i in range(3):
        total = total + y[places[i]].sum() * i
    return total


def shifted(x):
    y = np.log(x)
    for _ in range(2):
        y = np.concatenate([x[1:2], y[1:]])
    return y.sum()


def scalar_in_iterations(x):
    y = np.log(x[0])
    for i in range(3):
        y = x[1] * i
    return y + x[2]


def chosen(x):
    y = np.log(x)
    if x[1] > 0:
        y[0] = x[1]
    return y.sum()


def chosen_in_iterations(x):
    y = np.log(x)
    for i in range(3):
        if x[i] < 0.5:
            y[i] = x[1]
    return y.sum()


def loops_in_loops(x):
    y = np.log(x)
    for j in range(2):
        for i in range(2):
            y[i] = x[1] * j
    return y.sum()


def checkpointed(x):
    return tm.checkpoint(lambda y, first: np.concatenate([first, y[1:]]))(np.log(x), x[1:2]).sum()


def long(x):
    y = np.log(x)
    for _ in range(80):
        y = np.sin(y) + 0.1 * y
        y[0] = x[1] * x[2]
    return y.sum()


REGIONS = {
    "stored in iterations": (stored_in_iterations, [0, 3, 0.5]),
    "stored while": (stored_while, [0, 1, 0.5]),
    "stored by indices in iterations": (stored_by_indices_in_iterations, [0, 3, 0]),
    "computed in iterations": (computed_in_iterations, [0, 3, 1 / ROOT]),
    "turned": (turned, [0, 6, 2 + 1 / ROOT]),
    "read by indices in iterations": (read_by_indices_in_iterations, [0, 5, 0.5]),
    "shifted": (shifted, [0, 2, 0.5]),
    "a number in iterations": (scalar_in_iterations, [0, 2, 1]),
    "chosen": (chosen, [0, 2, 0.5]),
    "chosen in iterations": (chosen_in_iterations, [0, 2, 0.5]),
    "loops in loops": (loops_in_loops, [0, 2, 0.5]),
    "a checkpoint": (checkpointed, [0, 2, 0.5]),
}
COMPILED_REGIONS = ["stored in iterations", "chosen in iterations"]
COMPILED = ["slices apart", "indices that repeat", "sort", "maximum", "diff", "a store", "cumsum", "outer"]


@pytest.fixture(autouse=True)
def one_tier(monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # of the logarithm, as NumPy has it
        yield


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=0)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_left_out_has_no_slope(name):
    function, expected = PROGRAMS[name]
    close(tm.grad(function)(X), expected)
    assert np.isfinite(tm.hessian(function)(X)).all()


@pytest.mark.parametrize("name", REGIONS)
def test_what_loops_and_branches_leave_out_has_no_slope(name):
    function, expected = REGIONS[name]
    close(tm.grad(function)(X), expected)
    second_order(function)


def second_order(function):
    """What is left out is so at the second order; for the others, differences of the gradient say the same."""
    second = tm.hessian(function)(X)
    assert (second[0] == 0).all()
    assert (second[:, 0] == 0).all()
    steps = 1e-5 * np.eye(3)[1:]
    differences = [(tm.grad(function)(X + step) - tm.grad(function)(X - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(second[1:], differences, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["zeros of a factor", "zeros of a matrix", "rows of a product", "norm of order 0.5"])
def test_zeros_of_factors_have_no_slope_at_the_second_order(name):
    second_order(PROGRAMS[name][0])


def test_what_loops_in_blocks_leave_out_has_no_slope(monkeypatch):
    monkeypatch.setattr(spans, "MOST_BYTES", 0)
    in_blocks = tm.grad(long)
    assert "checkpoint(" in tm.trace(in_blocks, X).text
    expected = in_blocks(np.array([1.0, 1.0, 2.0]))  # the first element is stored over
    assert (expected[1:] != 0).all()
    close(in_blocks(X), [0.0, *expected[1:]])


def test_forward_mode_leaves_out_what_a_factor_does():
    def product(x):
        return np.sqrt(x) * np.array([0.0, 1.0, 1.0])

    close(tm.jvp(product, (X,), (np.ones(3),))[1], [0, 0.5, 0.5 / ROOT])
    close(tm.jacobian(product)(X), np.diag([0, 0.5, 0.5 / ROOT]))


def test_what_is_not_left_out_keeps_its_slope():
    assert tm.grad(lambda x: (np.sqrt(x) @ np.eye(3)).sum())(X)[0] == np.inf
    assert tm.grad(lambda x: (np.sqrt(x) * (x < 0.5)).sum())(X)[0] == np.inf

    def stored_elsewhere(x):
        y = np.sqrt(x)
        for i in range(3):
            y[1] = x[2] * i
        return y.sum()

    close(tm.grad(stored_elsewhere)(X), [np.inf, 0, 2 + 0.5 / ROOT])


@pytest.mark.parametrize("name", COMPILED_REGIONS)
def test_compiled_loops_agree(name, monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numba")
    function, expected = REGIONS[name]
    close(tm.grad(function)(X), expected)


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_code_agrees(name, monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numba")
    function, expected = PROGRAMS[name]
    close(tm.grad(function)(X), expected)


@pytest.mark.parametrize("name", COMPILED)
def test_stacks_and_exact_graphs_agree(name, monkeypatch):
    function, expected = PROGRAMS[name]
    close(tm.vmap(tm.grad(function))(np.stack([X, X + 0.0])), [expected, expected])
    monkeypatch.setattr(tm.config, "math", "exact")
    close(tm.grad(function)(X), expected)
    tm.check_grads(function, (X + np.array([0.3, 0.1, 0.3]),), order=2)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (np.sqrt(x)[1:] ** 2).sum(),
        lambda x: np.exp(np.log(x)[1:]).sum(),
        lambda x: (np.cbrt(x)[np.array([1, 2])] ** 3).sum(),
    ],
)
def test_a_zero_that_was_computed_leaves_nothing_out(function):
    first, second, third = tm.grad(function)(np.array([4.0, 0.0, 9.0]))
    assert first == 0
    assert second == 1 or np.isnan(second)
    assert third == pytest.approx(1, rel=1e-14)


def test_parts_that_cover_an_array_need_no_mask():
    def graph(f):
        return str(tm.rewrite(tm.trace(tm.grad(f), np.arange(1.0, 6.0))))

    assert "where" not in graph(lambda x: (np.diff(np.exp(x)) ** 2).sum())
    assert "where" in graph(lambda x: (np.exp(x)[1] - np.exp(x)[3]) ** 2)
    long = graph(lambda x: (np.exp(x)[1:] ** 2).sum())
    assert "where" not in long
    assert long.count("add_at") == 1
