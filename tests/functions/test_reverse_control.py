"""Reverse mode through loops, branches and calls: against finite differences, against forward mode, at orders 1 to 3, in batches."""

import math

import mpmath
import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import wrap
from tests.ops.test_derivatives import check

pytestmark = pytest.mark.usefixtures("by_numpy")
X = np.array([0.3, -0.7, 1.1])
PAIR = np.array([[0.4, 0.9, -0.3], [1.2, -0.5, 0.8]])


def nodes(function):
    """``function`` of lazy arrays as one of nodes."""
    return lambda *args: node_of(function(*map(wrap, args)))


def cube(x):
    return tm.fori_loop(0, 3, lambda k, y: np.sin(y * x + k) * y, x)


def triangle(x):
    return tm.fori_loop(0, 3, lambda i, y: tm.fori_loop(0, i + 1, lambda j, z: np.sin(z) * x + j, y), x)


def pyramid(x):
    def inner(i):
        return lambda j, z: tm.fori_loop(0, j + 1, lambda k, w: w * x + i * np.cos(w), z)

    return tm.fori_loop(0, 3, lambda i, y: tm.fori_loop(0, i + 1, inner(i), y), x)


def growing(x):
    return tm.while_loop(lambda z: (z * z).sum() < 500, lambda z: z * 1.5 + x * np.cos(z), x)


def search_in_loop(x):
    return tm.fori_loop(
        0, 3, lambda _i, y: tm.while_loop(lambda z: (z * z).sum() < 50, lambda z: z * 1.5 + x * x, y) / 7.0, x
    )


def loop_in_search(x):
    return tm.while_loop(
        lambda z: (z * z).sum() < 500, lambda y: tm.fori_loop(0, 2, lambda _i, z: z * 1.5 + x * np.cos(z), y), x
    )


def branch_in_loop(x):
    return tm.fori_loop(
        0, 5, lambda _i, y: tm.cond(y.sum() > 1, lambda y: np.sin(y) * x, lambda y: y * y + np.exp(x), y), x
    )


def loop_in_branch(x):
    return tm.cond(x[0] > 0, lambda y: tm.fori_loop(0, 3, lambda _i, z: np.sin(z) * y, y), lambda y: y * 2, x)


def search_in_branch_in_loop(x):
    def far(y):
        return tm.while_loop(lambda z: (z * z).sum() < 50, lambda z: z * 1.5 + x * x, y) / 30

    return tm.fori_loop(0, 4, lambda _i, y: tm.cond(y.sum() > 1, far, lambda y: y * y + x, y), x)


def stacked(x):
    last, every = tm.scan(lambda c, e: (c * np.sin(e) + e, c * e), 0.5, x)
    return every * last


def rows(x):
    return tm.scan(lambda h, row: (np.tanh(h * row + x[0]), h.sum()), x[1], x)[1]


def mixed(x):
    return tm.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * np.sin(x) + s[0]), (0, x))[1]


def swapped(x):
    return tm.fori_loop(0, 5, lambda _k, s: (s[1], s[0] * x, s[2]), (x, x * 2, x * x))[0]


def unchanged(x):
    a, b, _ = tm.fori_loop(0, 4, lambda _k, s: (s[0], s[1] * s[0], s[2] * x), (np.sin(x), x, x))
    return a * b


def elements(x):
    return tm.fori_loop(0, 3, lambda i, s: s * x[i] + x[2 - i] * np.cos(s), x[1])


def parts(x):
    return tm.fori_loop(0, 3, lambda i, s: s * (x[: i + 1] ** 2).sum() + np.cos(s), x[1])


def parts_of_carry(x):
    return tm.fori_loop(1, 3, lambda i, s: np.sin(s) * (x * s)[:i].sum(), x).sum()


def complex_carry(x):
    return np.abs(tm.fori_loop(0, 3, lambda _k, z: z * z * 0.3 + x, x * 1j))


PROGRAMS = {
    f.__name__: f
    for f in (
        cube,
        triangle,
        pyramid,
        growing,
        search_in_loop,
        loop_in_search,
        branch_in_loop,
        loop_in_branch,
        search_in_branch_in_loop,
        stacked,
        mixed,
        swapped,
        unchanged,
        elements,
        parts,
        parts_of_carry,
        complex_carry,
    )
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_modes_agree_with_differences_twice(name):
    check("reference", nodes(PROGRAMS[name]), [X])


def test_rows_of_a_matrix():
    check("reference", nodes(rows), [PAIR])


def test_the_branch_that_is_not_taken():
    check("reference", nodes(loop_in_branch), [-X])


@pytest.mark.parametrize("name", ["cube", "branch_in_loop", "growing", "elements", "stacked"])
def test_forward_over_reverse_is_reverse_over_reverse(name):
    def total(x):
        return PROGRAMS[name](x).sum()

    v = np.array([0.5, -1.0, 0.25])
    pulled = tm.grad(lambda x: (tm.grad(total)(x) * v).sum())(X)
    np.testing.assert_allclose(tm.hvp(total, X, v), pulled, rtol=1e-12)
    np.testing.assert_allclose(tm.hessian(total)(X) @ v, pulled, rtol=1e-12)
    np.testing.assert_allclose(tm.jacobian(tm.grad(total))(X), tm.hessian(total)(X), rtol=1e-12)


def plain_search(x):
    s = x
    while s < 100:
        s = s * x + 1
    return s


SCALARS = {
    "loop": (lambda x: tm.fori_loop(0, 16, lambda _k, y: y * x, 1.0), lambda x: x**16, 1.1),
    "scan": (lambda x: tm.scan(lambda c, _: (c * x, c), 1.0, None, length=16)[0], lambda x: x**16, 1.1),
    "while": (lambda x: tm.while_loop(lambda s: s < 100.0, lambda s: s * x + 1, x), plain_search, 1.5),
    "cond": (
        lambda x: tm.cond(x > 1, lambda x: x**3 * np.sin(x), lambda x: x * 2, x),
        lambda x: x**3 * mpmath.sin(x),
        1.5,
    ),
    "nested": (
        lambda x: tm.fori_loop(0, 3, lambda i, y: tm.fori_loop(0, i + 1, lambda _j, z: np.sin(z * x), y), x),
        lambda x: nested_sines(x),
        0.8,
    ),
}


def nested_sines(x):
    y = x
    for i in range(3):
        for _ in range(i + 1):
            y = mpmath.sin(y * x)
    return y


@pytest.mark.parametrize("name", SCALARS)
def test_three_orders_against_high_precision(name):
    function, plain, x = SCALARS[name]
    with mpmath.workdps(40):
        expected = [float(mpmath.diff(plain, mpmath.mpf(x), n)) for n in range(1, 4)]
    derivative, found = function, []
    for _ in range(3):
        derivative = tm.grad(derivative)
        found.append(derivative(x))
    np.testing.assert_allclose(found, expected, rtol=1e-11)


# shapes, sizes, masks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("iterations", [0, 1, 2])
def test_few_iterations(iterations):
    def f(x, c):
        return tm.fori_loop(0, iterations, lambda _k, y: np.sin(y) * c, x).sum()

    def plain(x, c):
        for _ in range(iterations):
            x = np.sin(x) * c
        return x.sum()

    found = tm.grad(f, (0, 1))(X, 2 * X)
    for k, gradient in enumerate(found):
        args = [X, 2 * X]
        for i, step in enumerate(1e-6 * np.eye(3)):
            up, down = ([a + s * step if n == k else a for n, a in enumerate(args)] for s in (1, -1))
            np.testing.assert_allclose(gradient[i], (plain(*up) - plain(*down)) / 2e-6, rtol=1e-6, atol=1e-9)


def test_a_loop_that_never_iterations_passes_the_cotangent_on():
    f = tm.grad(lambda x: tm.while_loop(lambda z: (z * z).sum() < 0.0, lambda z: z * x, x).sum())
    np.testing.assert_array_equal(f(X), np.ones(3))


def test_the_number_of_iterations_is_an_argument():
    power = tm.grad(lambda x, n: tm.fori_loop(0, n, lambda _k, y: y * x, 1.0))
    for n in (0, 1, 2, 7):
        np.testing.assert_allclose(power(1.5, n), n * 1.5 ** (n - 1), rtol=1e-14)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_arrays_of_any_length(n):
    xs = np.linspace(0.2, 1.0, n)
    found = tm.grad(lambda xs: tm.scan(lambda c, x: (c * x + np.sin(x), c), 1.0, xs)[0])(xs)
    np.testing.assert_allclose(found, [_forward(xs, k) for k in range(n)], rtol=1e-12)


def _forward(xs, k):
    """The derivative of the last carry with respect to element ``k``, by hand."""
    carry, change = 1.0, 0.0
    for i, x in enumerate(xs):
        change = change * x + (carry + math.cos(x) if i == k else 0.0)
        carry = carry * x + math.sin(x)
    return change


def test_what_is_masked_stays_zero():
    x = np.array([0.0, -1.0, 2.0])

    def f(x):
        return tm.fori_loop(0, 3, lambda _k, s: np.where(x > 0, x * np.log(x) + s, s * 2), x).sum()

    np.testing.assert_allclose(tm.grad(f)(x), [8, 8, 1 + 3 * (1 + np.log(2))], rtol=1e-14)


def test_what_is_computed_for_the_other_branch_stays_zero():
    f = tm.grad(lambda x: tm.cond(x > 0, lambda y: y * np.log(x), lambda y: 0.0 * y, 2.0))
    assert [f(0.0), f(-1.0), f(2.0)] == [0, 0, 1]
    assert tm.grad(f)(0.0) == 0
    assert tm.grad(f)(2.0) == -0.5


def test_float32_stays_float32():
    found = tm.grad(lambda x: tm.while_loop(lambda z: z.sum() < 9, lambda z: z * x, x).sum())(np.float32([1.5, 2.0]))
    assert found.dtype == np.float32


# batches --------------------------------------------------------------------------------------------------------------


def first_above(x):
    return tm.while_loop(lambda s: s < 100.0, lambda s: s * x + 1, x)


def power(x, n):
    return tm.fori_loop(0, n, lambda _k, y: y * x, 1.0)


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_a_batch_of_searches_of_different_lengths(order):
    xs = np.array([1.5, 2.5, 1.1, 120.0])
    f = first_above
    for _ in range(order):
        f = tm.grad(f)
    np.testing.assert_allclose(tm.vmap(f)(xs), [f(x) for x in xs], rtol=1e-14)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_a_batch_of_loops_of_different_lengths(order):
    xs, counts = np.array([1.5, 2.5, 1.1, 3.0]), np.array([0, 1, 5, 3])
    f = power
    for _ in range(order):
        f = tm.grad(f)
    np.testing.assert_allclose(
        tm.vmap(f)(xs, counts), [f(x, int(n)) for x, n in zip(xs, counts, strict=True)], rtol=1e-14
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_batch_of_gradients(name):
    def total(x):
        return PROGRAMS[name](x).sum()

    batch = np.stack([X, -X, X[::-1] / 2, X + 0.2])
    gradient = tm.grad(total)
    np.testing.assert_allclose(tm.vmap(gradient)(batch), np.stack([gradient(x) for x in batch]), rtol=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_a_batch_of_searches_with_loops_inside_whose_lengths_differ(order):
    def f(x):
        def inner(y):
            return tm.fori_loop(0, 2, lambda k, z: tm.fori_loop(0, k + 1, lambda _j, u: np.sin(u) * y, z), x)

        def going(s):
            return (s[0] < 6) & ((s[1] * s[1]).sum() < 4)

        return tm.while_loop(going, lambda s: (s[0] + 1, inner(s[1]) * 1.3 + 0.1), (0, x))[1].sum()

    g = tm.grad(f) if order == 1 else tm.grad(lambda x: (tm.grad(f)(x) * X).sum())
    batch = np.stack([X, 2 * X[::-1], 1.5 * X, -X])
    np.testing.assert_allclose(tm.vmap(g)(batch), np.stack([g(x) for x in batch]), rtol=1e-12)


def test_the_gradient_of_a_batch_of_searches():
    xs = np.array([1.5, 2.5, 1.1, 120.0])
    found = tm.grad(lambda xs: tm.vmap(first_above)(xs).sum())(xs)
    np.testing.assert_allclose(found, [tm.grad(first_above)(x) for x in xs], rtol=1e-14)


# a net over time ------------------------------------------------------------------------------------------------------


def net(w, u, xs):
    def step(h, x):
        h = np.tanh(w @ h + u @ x)
        return h, h.sum()

    last, sums = tm.scan(step, np.zeros(4), xs)
    return (last * last).sum() + (sums * sums).sum()


def plain_net(w, u, xs):
    h, total = np.zeros(4), 0.0
    for x in xs:
        h = np.tanh(w @ h + u @ x)
        total += h.sum() ** 2
    return (h * h).sum() + total


def test_a_recurrent_net_of_200_steps():
    rng = np.random.default_rng(5)
    args = [rng.normal(size=(4, 4)) / 3, rng.normal(size=(4, 2)), rng.normal(size=(200, 2))]
    value, found = tm.value_and_grad(net, (0, 1, 2))(*args)
    np.testing.assert_allclose(value, plain_net(*args), rtol=1e-12)
    for k, gradient in enumerate(found):
        step = rng.normal(size=args[k].shape)
        up, down = ([a + s * 1e-5 * step if n == k else a for n, a in enumerate(args)] for s in (1, -1))
        np.testing.assert_allclose((gradient * step).sum(), (plain_net(*up) - plain_net(*down)) / 2e-5, rtol=1e-6)
    moves = [rng.normal(size=a.shape) for a in args]
    pushed = tm.jvp(net, args, moves)[1]
    np.testing.assert_allclose(sum((g * m).sum() for g, m in zip(found, moves, strict=True)), pushed, rtol=1e-12)


# sizes that are sums of others ----------------------------------------------------------------------------------------


def replaced(u, v, a, s):
    w, a = np.concatenate([v[3:], u[:3]]), a.copy()
    for i in range(3):
        a[:, i] -= a.mean(1)
        if s > 0.5:
            w = np.diff(v, prepend=0.0)
    return w.sum() + np.tanh(a).mean() * s


def replaced_with_roots(u, v, a, s):
    w = np.append(v[2:], u[:2])
    for i in range(3):
        w = w * 0.9
        if w[i] > a[i, 0]:
            w = np.sqrt(np.abs(v)) * w.sum()
    return w.sum() * s


def replaced_inside(u, v, a, s):
    w, z = np.concatenate([u[:2], v[2:]]), v * 0.1
    for _ in range(3):
        for j in range(2):
            if s + j > 1.0:
                w = v / (1.0 + s * s)
            z = z * 0.5 + w
    return w.sum() + (z * z).sum() + a[0, 0]


@pytest.mark.parametrize("s", [0.3, 0.7])
@pytest.mark.parametrize("function", [replaced, replaced_with_roots, replaced_inside])
def test_what_replaces_a_carry_may_have_another_formula_for_its_size(function, s):
    """The size of the carry is told to the loop's graph by two arrays, none of which has it."""
    rng = np.random.default_rng(3)
    for sizes in ((8, 8, (6, 8)), (5, 9, (4, 5))):
        args = [*(rng.normal(size=n) for n in sizes), s]
        found = tm.grad(function, (0, 1, 3))(*args)
        for k, gradient in zip((0, 1, 3), found, strict=True):
            step = rng.normal(size=np.shape(args[k]))
            up, down = ([a + h * step if n == k else np.copy(a) for n, a in enumerate(args)] for h in (1e-6, -1e-6))
            slope = (function(*up) - function(*down)) / 2e-6
            np.testing.assert_allclose((gradient * step).sum(), slope, rtol=1e-5, atol=1e-7)
