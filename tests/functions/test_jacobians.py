"""``tm.jacobian`` and ``tm.hessian`` against finite differences and closed forms; shapes, modes, containers."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import DifferentiationError
from tensormagic.ops.op import registry

RNG = np.random.default_rng(5)


def differences(f, x, step=1e-6):
    """The Jacobian by central differences."""
    columns = []
    for k in range(x.size):
        shift = np.zeros(x.size)
        shift[k] = step
        shift = shift.reshape(x.shape)
        columns.append((np.asarray(f(x + shift)) - np.asarray(f(x - shift))) / (2 * step))
    return np.stack(columns, axis=-1).reshape((*np.shape(f(x)), *x.shape))


A, B = RNG.normal(size=(4, 3)), RNG.normal(size=(3, 2))
FUNCTIONS = {
    "wide": (lambda x: np.sin(A @ x) * np.exp(x[0]), (3,)),
    "tall": (lambda x: (A[:2] @ x) ** 2, (3,)),
    "matrix": (lambda x: np.tanh(x @ B), (2, 3)),
    "scalar": (lambda x: np.log(1 + np.exp(x)).sum(), (4,)),
    "of a scalar": (lambda x: np.stack([x, x * x, np.cos(x)]), ()),
    "scalar to scalar": (lambda x: x**3, ()),
    "softmax": (lambda x: np.exp(x) / np.exp(x).sum(), (5,)),
    "cumulative": (lambda x: np.cumsum(x * x) * np.cumprod(x), (4,)),
    "solve": (lambda x: np.linalg.solve(4 * np.eye(3) + np.outer(x, x), x), (3,)),
    "moves": (lambda x: np.concatenate([x[::-2], x[1:] * x[:-1]]).reshape(2, -1), (6,)),
}


def stored(x):
    acc = np.zeros(5)
    acc[1:] += x * x
    acc[::2] *= x[0]
    return acc


FUNCTIONS["stores"] = (stored, (4,))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_against_finite_differences(name):
    f, shape = FUNCTIONS[name]
    x = RNG.normal(size=shape)
    found = tm.jacobian(f)(x)
    assert np.shape(found) == (*np.shape(f(x)), *shape)
    np.testing.assert_allclose(found, differences(f, x), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_second_order_against_finite_differences(name):
    f, shape = FUNCTIONS[name]
    x = RNG.normal(size=shape)
    found = tm.hessian(f)(x)
    assert np.shape(found) == (*np.shape(f(x)), *shape, *shape)
    np.testing.assert_allclose(found, differences(tm.jacobian(f), x), rtol=1e-6, atol=1e-7)


def basis_sizes(graph):
    return {s for n in graph.nodes if n.op is registry["iota"] for s in n.type.shape}


def test_the_mode_follows_the_shapes():
    more_outputs = tm.jacobian(lambda x: np.exp(A @ x)).graph(np.ones(3))
    assert basis_sizes(more_outputs) == {more_outputs.parameters[0].type.shape[0]}
    more_inputs = tm.jacobian(lambda x: np.exp(A.T @ x)).graph(np.ones(4))
    assert basis_sizes(more_inputs) == {more_inputs.results[0].type.shape[0]}
    assert more_inputs.results[0].type.shape[0] != more_inputs.parameters[0].type.shape[0]
    assert not basis_sizes(tm.jacobian(lambda x: np.exp(x).sum()).graph(np.ones(4)))


def test_containers_nest():
    def f(p, c):
        return {"sum": p["w"].sum() * c, "out": (p["w"] * p["b"], c**2 * p["w"])}

    p = {"w": np.array([1.0, 2.0]), "b": 3.0}
    found = tm.jacobian(f)(p, 5.0)
    assert set(found) == {"sum", "out"}
    np.testing.assert_allclose(found["sum"]["w"], [5, 5])
    np.testing.assert_allclose(found["sum"]["b"], 0)
    np.testing.assert_allclose(found["out"][0]["w"], 3 * np.eye(2))
    np.testing.assert_allclose(found["out"][0]["b"], [1, 2])
    np.testing.assert_allclose(found["out"][1]["w"], 25 * np.eye(2))
    both = tm.jacobian(f, (0, "c"))(p, 5.0)
    np.testing.assert_allclose(both["out"][1][1], [10, 20])
    np.testing.assert_allclose(both["sum"][0]["w"], [5, 5])


def logistic_data():
    x, w = RNG.normal(size=(569, 30)), RNG.normal(size=30) * 0.1
    return x, np.sign(RNG.normal(size=569)), w, 0.3


def closed_form(x, y, w, b):
    s = 1 / (1 + np.exp(-y * (x @ w + b)))
    d = s * (1 - s) / len(y)
    return x.T @ (d[:, None] * x), x.T @ d, d.sum()


def test_hessian_of_the_logistic_loss():
    x, y, w, b = logistic_data()

    def loss(w, b):
        return np.mean(np.log(1 + np.exp(-y * (x @ w + b))))

    ww, wb, bb = closed_form(x, y, w, b)
    found = tm.hessian(loss)(w, b)
    np.testing.assert_allclose(found, ww, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(found, found.T, rtol=1e-10, atol=1e-14)
    blocks = tm.hessian(loss, argnums=(0, 1))(w, b)
    np.testing.assert_allclose(blocks[0][0], ww, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(blocks[0][1], wb, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(blocks[1][0], wb, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(blocks[1][1], bb, rtol=1e-10)


def test_hessian_is_a_few_contractions():
    x, y, w, b = logistic_data()
    graph = tm.hessian(lambda w, b: np.mean(np.log(1 + np.exp(-y * (x @ w + b))))).graph(w, b)
    assert sum(n.op.name == "contract" for n in graph.nodes) <= 4
    assert len(graph.nodes) < 80


def test_newton_finds_the_minimum():
    x, y, w, _ = logistic_data()

    def loss(w):
        return np.mean(np.log(1 + np.exp(-y * (x @ w)))) + 0.01 * w @ w

    gradient, curvature = tm.grad(loss), tm.hessian(loss)
    for _ in range(8):
        w = w - np.linalg.solve(curvature(w), gradient(w))
    np.testing.assert_allclose(gradient(w), 0, atol=1e-14)


def test_closed_forms():
    q = RNG.normal(size=(4, 4))
    np.testing.assert_allclose(tm.hessian(lambda x: x @ q @ x)(np.ones(4)), q + q.T)
    x = np.array([0.5, 1.5, 2.0])
    np.testing.assert_allclose(tm.hessian(np.prod)(x), np.prod(x) * (1 - np.eye(3)) / np.outer(x, x))
    np.testing.assert_allclose(
        tm.jacobian(np.linalg.inv)(2 * np.eye(2)), -np.einsum("ik,lj->ijkl", np.eye(2), np.eye(2)) / 4
    )
    np.testing.assert_allclose(
        tm.hessian(lambda x: np.linalg.slogdet(x)[1])(2 * np.eye(2)),
        -np.einsum("il,jk->ijkl", np.eye(2), np.eye(2)) / 4,
    )


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def test_against_scipy():
    from scipy.optimize import rosen, rosen_der, rosen_hess

    x = RNG.normal(size=6)
    np.testing.assert_allclose(rosenbrock(x), rosen(x))
    np.testing.assert_allclose(tm.jacobian(rosenbrock)(x), rosen_der(x))
    np.testing.assert_allclose(tm.hessian(rosenbrock)(x), rosen_hess(x), atol=1e-9)


def test_third_derivatives():
    x = RNG.normal(size=3)
    cubes = tm.jacobian(tm.hessian(lambda x: (x**3).sum() * x[0]))(x)
    expected = np.zeros((3, 3, 3))
    for i in range(3):
        expected[i, i, i] = 6 * x[0]
        for p in ((0, i, i), (i, 0, i), (i, i, 0)):
            expected[p] += 6 * x[i]
    np.testing.assert_allclose(cubes, expected, atol=1e-12)
    np.testing.assert_allclose(tm.hessian(tm.grad(lambda x: (x**3).sum() * x[0]))(x), expected, atol=1e-12)


def test_in_a_batch_and_of_a_batch():
    x = RNG.normal(size=(4, 3))
    found = tm.vmap(tm.hessian(rosenbrock))(x)
    np.testing.assert_allclose(found, [tm.hessian(rosenbrock)(row) for row in x])
    blocks = tm.jacobian(tm.vmap(lambda r: np.sin(r).sum()))(x)
    np.testing.assert_allclose(blocks, np.eye(4)[:, :, None] * np.cos(x))
    np.testing.assert_allclose(
        tm.grad(lambda x: np.trace(tm.hessian(rosenbrock)(x)))(x[0]),
        differences(lambda x: np.trace(tm.hessian(rosenbrock)(x)), x[0]),
        rtol=1e-5,
    )


def test_the_product_with_a_vector():
    x, v = RNG.normal(size=5), RNG.normal(size=5)
    np.testing.assert_allclose(tm.hvp(rosenbrock, x, v), tm.hessian(rosenbrock)(x) @ v)


def test_one_graph_for_all_sizes():
    f = tm.hessian(rosenbrock)
    for size in (3, 5, 9):
        assert f(np.ones(size)).shape == (size, size)
    assert sum(len(programs) for programs in f._kinds.values()) == 1
    assert f(np.zeros(1)).shape == (1, 1)
    assert tm.jacobian(lambda x: x * 2)(np.zeros(0)).shape == (0, 0)


def test_dtypes():
    single = tm.jacobian(lambda x: x * x)(np.ones(3, np.float32))
    assert single.dtype == np.float32
    turned = tm.jacobian(lambda x: np.exp(1j * x))(np.array([0.0, 1.0]))
    np.testing.assert_allclose(turned, np.diag(1j * np.exp(1j * np.array([0.0, 1.0]))))


def test_lazy_values():
    x = tm.tensor(np.array([1.0, 2.0]))
    found = tm.jacobian(lambda x: x**2)(x)
    assert isinstance(found, tm.Tensor)
    np.testing.assert_allclose(found, [[2, 0], [0, 4]])


def test_what_a_result_does_not_depend_on():
    np.testing.assert_array_equal(tm.jacobian(lambda x: np.ones(2))(np.ones(3)), np.zeros((2, 3)))
    np.testing.assert_array_equal(tm.hessian(lambda x: x.sum())(np.ones(3)), np.zeros((3, 3)))


def test_errors_say_what_to_do():
    with pytest.raises(DifferentiationError, match="real floats, but an argument of <lambda> is complex128"):
        tm.jacobian(lambda x: x**2)(np.ones(3, complex))
    with pytest.raises(DifferentiationError, match="which has no derivative"):
        tm.jacobian(np.argmax)(np.ones(3))
    with pytest.raises(DifferentiationError, match="no derivative with respect to integers"):
        tm.jacobian(lambda x: x * 2)(np.arange(3))
    with pytest.raises(DifferentiationError, match="there is no argument number 2"):
        tm.jacobian(lambda x: x * 2, argnums=2)(np.ones(3))
