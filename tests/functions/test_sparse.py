"""``sparse=True``: the dense matrices as ``csr_array``, in as many passes as their structure asks for."""

import numpy as np
import pytest
import scipy

import tensormagic as tm
from tensormagic.ir.errors import CaptureError, DifferentiationError

pytestmark = pytest.mark.usefixtures("by_numpy")
RNG = np.random.default_rng(1)
X, U, GRID = RNG.normal(size=6), RNG.normal(size=40), RNG.normal(size=(8, 9))


def assert_equal(ours, dense):
    """Sparse matrices in the containers of dense arrays."""
    if isinstance(dense, dict):
        assert ours.keys() == dense.keys()
        for k in dense:
            assert_equal(ours[k], dense[k])
    elif isinstance(dense, tuple | list):
        assert type(ours) is type(dense)
        for a, b in zip(ours, dense, strict=True):
            assert_equal(a, b)
    else:
        assert isinstance(ours, scipy.sparse.csr_array)
        dense = np.asarray(dense)
        assert ours.dtype == dense.dtype
        np.testing.assert_allclose(ours.toarray(), dense.reshape(ours.shape), rtol=1e-10, atol=1e-12)


def laplace(u):
    v = u.copy()
    v[1:-1] = u[2:] - 2 * u[1:-1] ** 2 + u[:-2]
    return v


def heat(u, steps):
    for _ in range(steps):
        v = u.copy()
        v[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        u = v
    return u


def five_points(u):
    return (4 * u[1:-1, 1:-1] - u[2:, 1:-1] - u[:-2, 1:-1] - u[1:-1, 2:] - u[1:-1, :-2]) ** 2


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def recurrence(u):
    out = [u[0]]
    for i in range(1, u.shape[0]):
        out.append(u[i] * 0.5 + out[-1] ** 2 * 0.1)
    return np.stack(out)


def products(u):
    v = np.zeros(u.shape[0])
    for i in range(1, u.shape[0]):
        v[i] = u[i] * u[i - 1]
    return v


def grown(u):
    while (u**2).sum() < 1000:
        u = u * 1.5
    return u


def spread(u):
    while (u**2).sum() < 1000:
        u = np.concatenate([u[1:] * 1.5 + u[:-1], u[-1:]])
    return u


def either(u):
    return u * 2 if u.sum() > 0 else u[::-1] * 3


def stored(u):
    u[0] = u[1] * 2
    return u * u[0]


def accumulated(u):
    total = np.zeros(4)
    np.add.at(total, np.array([0, 1, 1, 3, 0]), u[:5] ** 2)
    return total


# a function, its argument, and how many passes
JACOBIANS = {
    "diagonal": (lambda u: np.sin(u) * u, U, 1),
    "tridiagonal": (laplace, U, 3),
    "wider with each step": (lambda u: heat(u, 3), U, 7),
    "in the plane": (five_points, GRID, 7),
    "blocks": (lambda u: (u.reshape(-1, 4).prod(1, keepdims=True) * u.reshape(-1, 4)).ravel(), U, 4),
    "blocks solved": (
        tm.vmap(lambda r: np.linalg.solve(np.eye(2) * 3 + np.outer(r, r), r)),
        U.reshape(20, 2),
        2,
    ),
    "one dense row": (lambda u: np.concatenate([u**2, [u.sum()]]), U, 2),
    "one dense column": (lambda u: u * u[3], U, 2),
    "dense": (lambda u: np.exp(u) / np.exp(u).sum(), X, 6),
    "lower triangle": (np.cumsum, X, 6),
    "sorted": (lambda u: np.sort(u) * u, X, 6),
    "taken": (lambda u: u[np.array([0, 0, 3, 5])] ** 2, X, 1),
    "rolled": (lambda u: np.roll(u, 1) * u, U, 2),
    "differences": (lambda u: np.diff(u, n=2), U, 3),
    "convolved": (lambda u: np.convolve(u, [1.0, 2.0, 3.0], mode="same") ** 2, U, 3),
    "a loop of stores": (products, U, 2),
    "a loop that goes on from itself": (recurrence, X, 6),
    "a while of one element each": (grown, U, 1),
    "a while that spreads": (spread, X, 6),
    "branches": (either, U, 2),
    "stores into the argument": (stored, U, 2),
    "added at indices": (accumulated, U, 2),
    "by a matrix with zeros": (lambda u: np.diag(np.arange(6.0)) @ np.sin(u), X, 1),
    "a number": (lambda t: t**3, 2.0, 1),
    "constant": (lambda u: np.zeros(3), X, 1),
    "without elements": (lambda u: u * 2, np.zeros(0), 0),
    "complex": (lambda u: np.exp(1j * u), X, 1),
    "single precision": (lambda u: u * u, X.astype(np.float32), 1),
}


@pytest.mark.parametrize("name", JACOBIANS)
def test_jacobians(name):
    function, x, count = JACOBIANS[name]
    sparse = tm.jacobian(function, sparse=True)
    dense = tm.jacobian(function)(np.array(x) if np.ndim(x) else x)
    for _ in range(2):  # planned, and from the plan
        assert_equal(sparse(np.array(x) if np.ndim(x) else x), dense)
    assert sparse.colours(x) == count
    inside = sparse.pattern(x).toarray()
    np.testing.assert_array_equal((np.reshape(dense, inside.shape) != 0) & ~inside, False)


HESSIANS = {
    "tridiagonal": (rosenbrock, U, 3),
    "an arrow": (lambda u: (u**2).sum() + u[-1] * (u[:-1] ** 3).sum(), U, 2),
    "blocks": (lambda u: (u.reshape(-1, 4).prod(1) ** 2).sum(), U, 4),
    "in the plane": (lambda u: five_points(u).sum(), GRID, 15),
    "steps": (lambda u: (heat(u, 2) ** 4).sum(), U, 9),
    "a loop of stores": (lambda u: (products(u) ** 2).sum(), U, 5),
    "dense": (lambda u: np.exp(u.sum()), X, 6),
    "linear": (lambda u: u.sum(), X, 1),
}


@pytest.mark.parametrize("name", HESSIANS)
def test_hessians(name):
    function, x, count = HESSIANS[name]
    sparse = tm.hessian(function, sparse=True)
    dense = tm.hessian(function)(x)
    for _ in range(2):
        assert_equal(sparse(x), dense)
    assert sparse.colours(x) <= count


def test_containers_and_several_arguments():
    def f(p, c):
        return {"a": p["w"] * c, "b": (p["w"][::-1] ** 2 + p["b"], np.cumsum(p["w"]))}

    given = ({"w": X, "b": 2.0}, 3.0)
    for argnums in (0, 1, "c", (0, 1)):
        assert_equal(tm.jacobian(f, argnums, sparse=True)(*given), tm.jacobian(f, argnums)(*given))

    def g(a, b):
        return (a @ b).sum() + (a**3).sum() * b[0]

    arguments = (X, X[::-1].copy())
    assert_equal(tm.hessian(g, (0, 1), sparse=True)(*arguments), tm.hessian(g, (0, 1))(*arguments))
    assert_equal(tm.jacobian(g, "b", sparse=True)(b=X, a=arguments[1]), tm.jacobian(g, "b")(b=X, a=arguments[1]))


def test_a_structure_that_indices_decide_follows_them():
    def taken(u, i):
        return u[i] ** 2

    sparse, dense = tm.jacobian(taken, sparse=True), tm.jacobian(taken)
    for i in ([0, 0, 3], [1, 2, 5], [0, 0, 3]):
        assert_equal(sparse(X, np.array(i)), dense(X, np.array(i)))


MATRIX = np.zeros((6, 6))


def test_a_structure_that_a_matrix_decides_follows_it():
    def product(u):
        return MATRIX @ np.sin(u)

    sparse = tm.jacobian(product, sparse=True)
    MATRIX[0, 1] = MATRIX[3, 2] = 1.0
    assert sparse(X).nnz == 2
    MATRIX[4, 4] = 5.0
    assert sparse(X).nnz == 3
    assert_equal(sparse(X), tm.jacobian(product)(X))


def test_sizes_that_a_number_decides():
    sparse = tm.jacobian(heat, sparse=True)
    for steps in (1, 3, 0):
        assert_equal(sparse(U, steps), tm.jacobian(heat)(U, steps))
        assert sparse.colours(U, steps) == 2 * steps + 1


def test_derivatives_of_the_user_need_not_be_symmetric():
    @tm.custom_gradient
    def odd(x):
        return x**2, lambda cotangent: cotangent * np.cumsum(x)

    @tm.custom_gradient
    def rounded(x):
        return np.round(x), lambda cotangent: cotangent

    assert_equal(tm.jacobian(lambda x: odd(x), sparse=True)(X), tm.jacobian(lambda x: odd(x))(X))
    assert_equal(tm.hessian(lambda x: (odd(x) * x).sum(), sparse=True)(X), tm.hessian(lambda x: (odd(x) * x).sum())(X))
    straight = tm.jacobian(lambda x: rounded(x) * x[::-1], sparse=True)
    assert_equal(straight(X), tm.jacobian(lambda x: rounded(x) * x[::-1])(X))


def test_a_large_matrix_takes_three_passes(monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "auto")
    n = 100_000
    x = RNG.normal(size=n)
    sparse = tm.jacobian(laplace, sparse=True)
    found = sparse(x)
    assert sparse.colours(x) == 3
    assert found.shape == (n, n)
    assert found.nnz <= 3 * n
    ones = np.ones(n)
    np.testing.assert_allclose(found @ ones, tm.jvp(laplace, (x,), (ones,))[1])
    inner = np.arange(1, n - 1)
    np.testing.assert_allclose(found[inner, inner], -4 * x[1:-1])
    curved = tm.hessian(rosenbrock, sparse=True)
    assert curved.colours(x) == 3
    np.testing.assert_allclose(curved(x) @ ones, tm.hvp(rosenbrock, x, ones), rtol=1e-9)


def test_newton_steps_by_a_sparse_solver():
    from scipy.sparse.linalg import spsolve

    n = 200
    residual = tm.tensor(
        lambda u: np.concatenate([u[:1], 2 * u[1:-1] - u[2:] - u[:-2] + u[1:-1] ** 3 - 0.1, u[-1:] - 1])
    )
    slope = tm.jacobian(residual, sparse=True)
    u = np.linspace(0, 1, n)
    for _ in range(12):
        u = u - spsolve(slope(u).tocsc(), residual(u))
    np.testing.assert_allclose(residual(u), 0, atol=1e-12)


def test_what_is_refused():
    with pytest.raises(DifferentiationError, match="whose sizes depend on the argument"):
        tm.jacobian(lambda x: x[x > 0], sparse=True)(X)
    with pytest.raises(CaptureError, match="returns SciPy arrays, which captured code cannot hold"):
        tm.vmap(tm.jacobian(np.sin, sparse=True))(GRID)
    with pytest.raises(DifferentiationError, match="which has no derivative"):
        tm.jacobian(np.argmax, sparse=True)(X)
    with pytest.raises(DifferentiationError, match="no derivative with respect to integers"):
        tm.jacobian(lambda x: x * 2, sparse=True)(np.arange(3))
    with pytest.raises(DifferentiationError, match="a gradient is of one number"):
        tm.hessian(lambda x: x * 2, sparse=True)(X)


def test_lazy_values_are_computed():
    assert_equal(tm.jacobian(np.sin, sparse=True)(tm.tensor(X)), np.diag(np.cos(X)))


def test_the_result_belongs_to_the_caller():
    sparse = tm.jacobian(laplace, sparse=True)
    first = sparse(U)
    first.data[:] = 0
    first.indices[:] = 0
    assert_equal(sparse(U), tm.jacobian(laplace)(U))
