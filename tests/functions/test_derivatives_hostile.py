"""Derivatives of functions as users write them: shared and ignored arguments, stores, dtypes, names from outside."""

import dataclasses
import functools
import gc
import weakref

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.cell import compile_cell
from tensormagic.functions.cells import of_cell
from tensormagic.ir.errors import ConstantGradientWarning, DifferentiationError

RNG = np.random.default_rng(3)
X = RNG.normal(size=(20, 3))
Y = np.sign(RNG.normal(size=20))
W = RNG.normal(size=3)
V = np.array([1.0, 2.0, 3.0])
SCALE = 2.0
POWER = 2
TABLE = {"rate": 2.0, "data": X}


def loss(w):
    return np.mean(np.log(1 + np.exp(-Y * (X @ w))))


@tm.tensor
def captured_loss(w):
    return np.mean(np.log(1 + np.exp(-Y * (X @ w))))


def gradient_of_loss(w):
    s = 1 / (1 + np.exp(Y * (X @ w)))
    return -(X * (s * Y)[:, None]).mean(0)


def hessian_of_loss(w):
    s = 1 / (1 + np.exp(Y * (X @ w)))
    return X.T @ ((s * (1 - s) / len(Y))[:, None] * X)


def same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-14)
    assert np.asarray(found).dtype == np.asarray(expected).dtype


# names from outside ---------------------------------------------------------------------------------------------------


def test_every_derivative_reads_globals():
    g, h = gradient_of_loss(W), hessian_of_loss(W)
    same(tm.grad(loss)(W), g)
    same(tm.jvp(loss, (W,), (V,))[1], g @ V)
    same(tm.vjp(loss, W)[1](1.0)[0], g)
    same(tm.linearize(loss, W)[1](V), g @ V)
    same(tm.hvp(loss, W, V), h @ V)
    same(tm.hessian(loss)(W), h)
    same(tm.vmap(tm.grad(loss))(np.stack([W, V])), np.stack([g, gradient_of_loss(V)]))


def helper(w):
    return loss(w) + w @ w


def with_captured_helper(w):
    return captured_loss(w) + w @ w


@pytest.mark.parametrize("function", [helper, with_captured_helper, tm.tensor(helper), tm.tensor(with_captured_helper)])
def test_helpers_read_globals_too(function):
    same(tm.grad(function)(W), gradient_of_loss(W) + 2 * W)


def test_functions_made_by_functions():
    def outside(scale):
        data = X * scale

        def inner(w):
            return (data @ w).sum()

        return lambda w: inner(w) * 2

    same(tm.grad(outside(3.0))(W), 6 * X.sum(0))
    step = tm.value_and_grad(loss)
    same(tm.grad(lambda w: step(w)[0])(W), gradient_of_loss(W))
    same(tm.grad(lambda w: step(w)[1] @ V)(W), hessian_of_loss(W) @ V)


class Model:
    def __init__(self):
        self.data = X
        self.rate = 2.0

    def cost(self, w):
        return self.rate * ((self.data @ w) ** 2).sum()


def test_methods_partials_and_containers_are_read_at_every_call():
    model = Model()
    gradient = tm.grad(model.cost)
    same(gradient(W), 4 * X.T @ (X @ W))
    model.rate, model.data = 3.0, 2 * X
    same(gradient(W), 24 * X.T @ (X @ W))
    same(tm.grad(functools.partial(lambda a, w: (a @ w).sum(), X))(W), X.sum(0))
    table = dict(TABLE)
    gradient = tm.grad(lambda w: table["rate"] * (table["data"] @ w).sum())
    same(gradient(W), 2 * X.sum(0))
    table["rate"] = 5.0
    table["data"] = -X
    same(gradient(W), -5 * X.sum(0))


def scaled(x):
    return SCALE * (x**POWER).sum()


@tm.tensor
def captured_scaled(x):
    return SCALE * (x**POWER).sum()


@pytest.mark.parametrize("function", [scaled, captured_scaled, lambda x: captured_scaled(x), lambda x: scaled(x)])
def test_names_that_are_bound_again(function, monkeypatch):
    gradient = tm.grad(function)
    same(gradient(V), 4 * V)
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    same(gradient(V), 10 * V)
    monkeypatch.setitem(globals(), "POWER", 3)
    same(gradient(V), 15 * V**2)
    monkeypatch.setitem(globals(), "SCALE", V)
    same(tm.jacobian(function)(V), np.outer(V, 3 * V**2))


def test_two_names_of_one_array(monkeypatch):
    monkeypatch.setitem(globals(), "Z", X)
    gradient = tm.grad(lambda w: ((X @ w) * (Z @ w)).sum())  # noqa: F821 (bound by the test)
    same(gradient(W), 2 * X.T @ (X @ W))
    monkeypatch.setitem(globals(), "Z", 2 * X)
    same(gradient(W), 4 * X.T @ (X @ W))


def test_an_array_from_outside_is_no_argument():
    same(tm.grad(lambda x: (x * X).sum())(X), X)
    same(tm.grad(lambda x, y: (x * y).sum())(V, V), V)
    same(tm.grad(lambda x, y: (x * y * y).sum(), (0, 1))(V, V), (V**2, 2 * V**2))


def test_counters_do_not_pile_up(monkeypatch):
    monkeypatch.setitem(globals(), "POWER", 1)
    gradient = tm.grad(scaled)
    for k in range(150):
        monkeypatch.setitem(globals(), "POWER", k % 3 + 1000 * (k // 3))
        gradient(np.ones(2))
    assert len(gradient._kinds) <= 128
    assert len(gradient._exact) <= 128


def test_cells_as_functions():
    notebook = {"np": np, "X": X, "y": Y, "w": W, "b": 0.3}
    text = "z = X @ w + b\nnp.mean(np.log(1 + np.exp(-y * z)))\n"
    cell = of_cell(compile_cell(text, "In[1]", 1, "<cell as function>"), "objective", ("X", "w", "b", "y"), notebook)

    def expected(w, b):
        return np.mean(np.log(1 + np.exp(-Y * (notebook["X"] @ w + b))))

    same(cell(), expected(W, 0.3))
    step, twice = tm.value_and_grad(cell, ("w", "b")), tm.tensor(lambda w: cell(w=w) * 2)
    value, (_, slope) = step(w=W, b=0.3)
    same(value, expected(W, 0.3))
    assert type(slope) is float
    for name, new in (("b", 2.0), ("X", -X)):
        notebook[name] = new
        same(step(w=V)[0], expected(V, notebook["b"]))
        same(twice(V), 2 * expected(V, notebook["b"]))
    assert tm.hessian(cell, "w")().shape == (3, 3)


# arguments ------------------------------------------------------------------------------------------------------------


def test_nested_derivatives_do_not_mix():
    same(tm.grad(lambda x: x * tm.grad(lambda z: x + z)(1.0))(1.0), 1.0)
    same(tm.grad(lambda x: x * tm.grad(lambda z: x * z * z)(x))(3.0), 54.0)
    same(tm.jvp(lambda x: x * tm.jvp(lambda z: x + z, (1.0,), (1.0,))[1], (1.0,), (1.0,))[1], 1.0)
    same(tm.grad(lambda x: tm.grad(lambda z: tm.grad(lambda u: x * z * u * u)(x) * z)(x))(2.0), 12 * 2.0**2)


def test_arguments_that_come_back():
    assert tm.value_and_grad(lambda x: x)(2.0) == (2.0, 1.0)
    same(tm.jacobian(lambda x: x)(V), np.eye(3))
    same(tm.vmap(lambda x: x)(V), V)
    value, change = tm.jvp(lambda x, y: (y, x), (1.0, 2.0), (3.0, 4.0))
    assert value == (2.0, 1.0)
    assert change == (4.0, 3.0)


def test_ignored_arguments_give_zeros_and_a_warning_that_says_why():
    def ignoring(x, z):
        return z * 2.0

    def stepped(x):
        return (np.floor(x) * 2.0).sum()

    with pytest.warns(ConstantGradientWarning, match="ignoring does not depend on x: its gradient is zero") as told:
        same(tm.grad(ignoring)(V, 3.0), np.zeros(3))
    assert told[0].filename == __file__
    with pytest.warns(ConstantGradientWarning, match="does not depend on x"):
        same(tm.grad(lambda x: 3.0)(V), np.zeros(3))
    line = stepped.__code__.co_firstlineno + 1
    with pytest.warns(
        ConstantGradientWarning, match=rf"only through floor \(.*hostile.py line {line}\), whose derivative is"
    ):
        same(tm.grad(stepped)(V), np.zeros(3))
    with pytest.warns(ConstantGradientWarning, match="only through stop_gradient"):
        same(tm.grad(lambda x: tm.stop_gradient(x))(3.0), 0.0)
    same(tm.vjp(ignoring, V, 3.0)[1](1.0)[0], np.zeros(3))
    same(tm.grad(tm.grad(lambda x: x * 2.0))(3.0), 0.0)  # a derivative that is constant is no mistake


def test_arguments_by_name_and_default():
    def f(x, a=2.0, *, b=1.0):
        return a * b * x * x

    same(tm.grad(f)(3.0), 12.0)
    same(tm.grad(f)(3.0, a=5.0, b=2.0), 60.0)
    same(tm.grad(f, "a")(3.0, a=5.0), 9.0)
    same(tm.grad(f, "a")(x=3.0, a=5.0), 9.0)
    same(tm.grad(f, -1)(3.0, 5.0), 9.0)
    with pytest.raises(DifferentiationError, match="a of f was not given"):
        tm.grad(f, "a")(3.0)
    with pytest.raises(DifferentiationError, match="name an argument of f twice"):
        tm.grad(f, (0, 0))(3.0)
    with pytest.raises(DifferentiationError, match="has no argument 'c'"):
        tm.grad(f, "c")(3.0)


def test_integers_have_no_derivative():
    for value in (3, True, np.arange(3), np.int32(2)):
        with pytest.raises(DifferentiationError, match="no derivative with respect to integers"):
            tm.grad(lambda x: (x * 2.0).sum())(value)
    same(tm.grad(lambda x, n: x**n)(2.0, 3), 12.0)


def test_containers():
    @dataclasses.dataclass
    class Parameters:
        w: np.ndarray
        b: float

    same(tm.grad(lambda p: (p["w"] * p["b"]).sum())({"w": V, "b": 2.0})["b"], 6.0)
    found = tm.grad(lambda p: (p.w * p.b).sum())(Parameters(V, 2.0))
    assert isinstance(found, Parameters)
    same(found.w, np.full(3, 2.0))
    pair, number = tm.grad(lambda p, c: (p[0] * p[1][0]).sum() * c, (0, 1))((V, [2.0]), 3.0)
    same(pair[1][0], 18.0)
    same(number, 12.0)


def test_what_goes_along():
    gradient, extra = tm.grad(lambda x: ((x * x).sum(), {"triple": 3 * x, "n": 5}), has_aux=True)(V)
    same(gradient, 2 * V)
    same(extra["triple"], 3 * V)
    assert extra["n"] == 5
    (value, top), gradient = tm.value_and_grad(lambda x: ((x * x).sum(), x.max()), has_aux=True)(V)
    assert (value, top) == (14.0, 3.0)
    same(gradient, 2 * V)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2,
        lambda x: x[:1],
        lambda x: (x.sum(), x.sum()),
        lambda _x: None,
        lambda x: (x * 1j).sum(),
        lambda _x: 3,
    ],
)
def test_what_is_no_scalar(function):
    with pytest.raises(DifferentiationError):
        tm.grad(function)(V)


TWO = np.ones(2)
MISUSED = {
    "primals in no tuple": (lambda: tm.jvp(np.sin, V, V), "takes the primals in a tuple, not as ndarray"),
    "tangents in no tuple": (lambda: tm.jvp(np.sin, (V,), V), "takes the tangents in a tuple, not as ndarray"),
    "a tangent of another shape": (
        lambda: tm.jvp(np.sin, (V,), (TWO,)),
        r"has shape \(2,\), but belongs to shape \(3,\)",
    ),
    "a cotangent of another shape": (
        lambda: tm.vjp(np.sin, V)[1](TWO),
        r"has shape \(2,\), but belongs to shape \(3,\)",
    ),
    "a cotangent for two results": (
        lambda: tm.vjp(lambda x: (x, x.sum()), V)[1](V),
        "1 arrays or numbers are given for 2",
    ),
    "too few tangents": (lambda: tm.linearize(np.multiply, V, V)[1](V), "1 arrays or numbers are given for 2"),
    "too many tangents": (lambda: tm.linearize(np.sin, V)[1](V, V), "2 were given for 1"),
    "a vector of another shape": (lambda: tm.hvp(lambda x: (x * x).sum(), V, TWO), "has shape"),
}


@pytest.mark.parametrize("name", MISUSED)
def test_what_does_not_fit_is_told_by_what_it_is(name):
    call, message = MISUSED[name]
    with pytest.raises((DifferentiationError, tm.ShapeError), match=message):
        call()


# stores and views -----------------------------------------------------------------------------------------------------


def test_through_stores_and_views():
    def stores(x):
        acc = np.zeros(5)
        acc[1:] += x
        acc[::2] *= 2
        return (acc**2).sum()

    x = np.arange(1.0, 5)
    same(tm.grad(stores)(x), 2 * x * np.array([1.0, 4, 1, 4]))

    def views(x):
        a = x * 1.0
        part = a[1:3]
        part[:] = part * part
        a.reshape(2, 2)[0, 0] = 7.0
        return (a * np.arange(4.0)).sum()

    same(tm.grad(views)(x), np.array([0.0, 4, 12, 3]))

    def turned(x):
        a = np.zeros((2, 3))
        a.T[:, 1] = x
        a[0] += x**2
        return (a * a).sum()

    same(tm.grad(turned)(V), 2 * V + 4 * V**3)
    same(tm.vmap(tm.grad(turned))(np.stack([V, W])), np.stack([2 * v + 4 * v**3 for v in (V, W)]))


@pytest.mark.parametrize("derive", [tm.grad, tm.jacobian, tm.tensor])
def test_derivatives_store_into_arguments_as_the_function_does(derive):
    def f(x):
        total = x.sum()
        x[...] = 1.0
        return total + (x * 3).sum()

    x = np.full((3, 2), 2.0)
    same(derive(f)(x), 30.0 if derive is tm.tensor else np.ones((3, 2)))  # of the value at entry
    same(x, np.ones((3, 2)))


def test_stores_into_rows_of_a_batch_are_those_of_single_calls():
    def f(x):
        before = x.sum()
        x[1:] = x[:-1] * 2.0
        return before + (x * x).sum()

    x = RNG.normal(size=(3, 2))
    rows, stack, slopes = x.copy(), x.copy(), x.copy()
    expected = np.stack([f(row) for row in rows])
    same(tm.vmap(f)(stack), expected)
    same(stack, rows)
    same(tm.vmap(tm.grad(f))(slopes), np.stack([tm.grad(f)(row.copy()) for row in x]))
    same(slopes, rows)


# dtypes and forms -----------------------------------------------------------------------------------------------------


def test_gradients_have_the_dtype_of_their_argument():
    single = np.ones(3, np.float32)
    same(tm.grad(lambda x: (x * x).sum())(single), 2 * single)
    same(tm.grad(lambda x: (x * X).sum())(single), X.sum(0).astype(np.float32))
    same(tm.grad(lambda x: (x.astype(np.float32) ** 2).sum())(V), 2 * V)
    same(tm.grad(lambda x: (x * x).sum())(np.ones(3, np.float16)), 2 * np.ones(3, np.float16))
    same(tm.grad(lambda x: x * x)(np.float32(2)), np.float32(4))


def test_gradients_have_the_form_of_their_argument():
    for value, kind in (
        (2.0, float),
        (np.float64(2), np.float64),
        (np.float32(2), np.float32),
        (np.array(2.0), np.ndarray),
    ):
        assert type(tm.grad(lambda x: np.sum(x * x * 1.5))(value)) is kind
    with pytest.warns(ConstantGradientWarning):
        assert type(tm.grad(lambda _x, y: y)(2.0, 3.0)) is float


def test_training_in_single_precision_stays_there():
    x, w, b = X.astype(np.float32), np.zeros(3, np.float32), 0.1
    step = tm.grad(lambda w, b: ((x @ w + b) ** 2).mean(), (0, 1))
    for _ in range(3):
        gw, gb = step(w, b)
        w = w - 0.1 * gw
        b = b - 0.1 * gb
    assert w.dtype == np.float32
    assert (x @ w + b).dtype == np.float32
    assert sum(map(len, step._kinds.values())) == 1


def test_through_complex_numbers():
    same(tm.grad(lambda x: ((x + 2j) ** 2).real.sum())(V), 2 * V)
    same(tm.grad(lambda x: np.abs(np.exp(1j * x) * x).sum())(V), np.ones(3))
    z = np.array([1 + 2j, 3 - 1j])
    same(tm.grad(lambda z: (z * np.conj(z)).real.sum())(z), 2 * np.conj(z))


# places where formulas fail -------------------------------------------------------------------------------------------


def test_where_formulas_have_no_value():
    same(tm.grad(lambda x: np.where(x > 0, np.sqrt(x), 0.0).sum())(np.array([0.0, 4.0])), np.array([0, 0.25]))
    same(tm.grad(lambda x: np.log(1 + np.exp(x)))(1000.0), 1.0)
    same(tm.grad(lambda x: x.max())(np.array([1.0, 3.0, 3.0])), np.array([0, 0.5, 0.5]))
    same(tm.grad(np.prod)(np.array([0.0, 2.0, 0.0])), np.zeros(3))
    for order, expected in ((1, 0.0), (2, 0.0), (3, 6.0), (4, 0.0)):
        function = lambda x: x**3  # noqa: E731
        for _ in range(order):
            function = tm.grad(function)
        same(function(0.0), expected)
    same(tm.grad(lambda x: x**0)(0.0), 0.0)
    same(tm.grad(lambda x, n: x**n, (0, 1))(0.0, 3.0), (0.0, 0.0))
    same(tm.grad(lambda x: np.floor(x) * x)(3.7), 3.0)
    same(tm.grad(lambda x: tm.stop_gradient(x) * x)(3.0), 3.0)


@pytest.mark.parametrize("value", [np.zeros(0), np.zeros((0, 3)), np.ones(1), np.ones((1, 1))])
def test_small_shapes(value):
    same(tm.grad(lambda x: (x * x * 3).sum())(value), 6 * value)


# lazy values ----------------------------------------------------------------------------------------------------------


def test_of_lazy_values():
    x = tm.tensor(V)
    middle = x * 2
    same(np.asarray((middle**2).sum().grad(middle)), 4 * V)
    same(np.asarray((x**2).sum().grad(V)), 2 * V)
    same(np.asarray((x**2).sum().grad(tm.tensor(W))), np.zeros(3))
    same(np.asarray(tm.grad(loss)(tm.tensor(W))), gradient_of_loss(W))


def test_functions_that_read_lazy_values():
    lazy = tm.tensor(X) * 2.0
    gradient = tm.grad(lambda w: (lazy @ w).sum())
    same(gradient(W), 2 * X.sum(0))
    lazy = tm.tensor(X) * 3.0
    same(gradient(W), 3 * X.sum(0))


def test_old_arrays_are_let_go(monkeypatch):
    gradient = tm.grad(scaled)
    first = np.ones(3)
    alive = weakref.ref(first)
    monkeypatch.setitem(globals(), "SCALE", 1.0)  # which undoes what follows
    globals()["SCALE"] = first
    same(tm.jacobian(scaled)(V), np.outer(first, 2 * V))
    globals()["SCALE"] = 2.0
    del first
    same(gradient(V), 4 * V)
    gc.collect()
    assert alive() is None
