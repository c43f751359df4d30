"""Captured functions: sizes without retracing, guards, names from outside, containers, errors, threads."""

import sys
import threading
import traceback
import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError

scale = 2.0
table = np.arange(3.0)


pytestmark = pytest.mark.usefixtures("by_numpy", "exact")


def count_specialisations(f):
    return sum(len(programs) for programs in f._kinds.values())


BODIES = {
    "softmax": lambda x: (
        np.exp(x - x.max(axis=1, keepdims=True)) / np.exp(x - x.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True)
    ),
    "centred": lambda x: (x - x.mean(0)) / (x.std(0) + 1),
    "differences": lambda x: x[1:] - x[:-1],
    "windows": lambda x: x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2],
    "halves": lambda x: x[: len(x) // 2].sum() - x[len(x) // 2 :].sum(),
    "reversed": lambda x: x[::-1, ::-2],
    "reshaped": lambda x: x.reshape(-1)[::3],
    "ramp": lambda x: np.arange(x.shape[0])[:, None] * x + np.linspace(0, 1, x.shape[1]),
    "identity": lambda x: np.eye(x.shape[1]) + x.T @ x,
    "joined": lambda x: np.concatenate([x, x[::-1], np.zeros((2, x.shape[1]))]),
    "stored": lambda x: _stored(x),
    "tiled": lambda x: np.tile(x, (2, 1)) + np.repeat(x, 2, axis=0),
    "scaled": lambda x: x * x.shape[0] / x.size,
    "rolled": lambda x: np.roll(x, 2, axis=0) + np.diff(x, axis=1, n=1).sum(),
    "shortened": lambda x: x[: x.shape[0] - 1] @ x[1].T,
    "triangle": lambda x: np.tril(x) - np.triu(x, 1),
    "first five": lambda x: x[:5] * 2,
    "last three": lambda x: x[-3:] + 1,
    "every": lambda x: x[1 : x.shape[0] - 1 : 2],
}


def _stored(x):
    y = np.zeros(x.shape)
    y[1:] = x[:-1]
    y[0] += x[-1]
    return y


@pytest.mark.parametrize("name", BODIES)
def test_every_size(name: str):
    """Sizes 0 and 1 and sizes that guards exclude are traced anew; whatever is run, the values are NumPy's."""
    f = tm.tensor(BODIES[name])
    rng = np.random.default_rng(0)
    for shape in [(7, 5), (9, 4), (5, 7), (3, 3), (2, 2), (8, 6), (1, 4), (4, 1), (1, 1), (2, 5), (6, 3), (20, 31)]:
        x = rng.normal(size=shape)
        expected = _outcome(BODIES[name], x)
        ours = _outcome(f, x)
        if isinstance(expected, type):
            assert isinstance(ours, type), shape
            assert issubclass(ours, expected), shape
        else:
            assert type(ours) is type(expected), shape
            assert np.shape(ours) == np.shape(expected), shape
            assert np.allclose(ours, expected, rtol=1e-13, atol=1e-13), shape


def _outcome(f, x):
    try:
        with np.errstate(all="ignore"):
            return f(x)
    except (ValueError, IndexError, TypeError) as error:
        return next(kind for kind in (IndexError, ValueError, TypeError) if isinstance(error, kind))


@pytest.mark.parametrize(
    "name",
    [
        "softmax",
        "centred",
        "differences",
        "reversed",
        "ramp",
        "identity",
        "joined",
        "stored",
        "tiled",
        "scaled",
        "triangle",
    ],
)
def test_a_new_size_does_not_trace(name: str):
    f = tm.tensor(BODIES[name])
    for shape in [(7, 5), (9, 4), (5, 7), (30, 20), (3, 3)]:
        f(np.ones(shape))
    assert count_specialisations(f) == 1


def test_guards():
    f = tm.tensor(lambda x: x[:5].sum())
    for n in (9, 5, 20, 3, 4, 2, 1, 0, 7):
        assert f(np.arange(float(n))) == np.arange(float(n))[:5].sum()
    assert count_specialisations(f) <= 4


def test_a_shape_that_the_code_fixes():
    f = tm.tensor(lambda x: x + np.ones(3))
    assert f(np.zeros(3)).tolist() == [1, 1, 1]
    assert f(np.zeros((2, 3))).shape == (2, 3)
    assert f(np.zeros(1)).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match=r"\(4,\) \(3,\)"):
        f(np.zeros(4))
    assert f(np.zeros(3)).tolist() == [1, 1, 1]


def test_two_arguments_of_one_size():
    f = tm.tensor(lambda x, y: x * y)
    assert f(np.ones(3), np.ones(3)).shape == (3,)
    assert f(np.ones(4), np.ones(4)).shape == (4,)
    assert f(np.ones((4, 1)), np.ones(3)).shape == (4, 3)
    assert f(np.ones(1), np.ones(3)).shape == (3,)
    with pytest.raises(ValueError, match="could not be broadcast"):
        f(np.ones(3), np.ones(4))


def test_dtypes_and_forms():
    f = tm.tensor(lambda x, y: x + y)
    for x, y in [
        (1.0, 2.0),
        (np.float32(1), 2.0),
        (np.ones(2, np.float32), 2.0),
        (np.ones(2, int), 2.5),
        (np.ones(2, np.float32), np.float64(1)),
        (np.array(1.0), 1.0),
        (1j, 2.0),
    ]:
        ours, numpys = f(x, y), x + y
        assert type(ours) is type(numpys), (x, y)
        assert np.asarray(ours).dtype == np.asarray(numpys).dtype
        assert np.array_equal(ours, numpys)


def test_integers_and_strings_are_taken_for_their_value():
    f = tm.tensor(lambda x, axis, how="sum": getattr(x, how)(axis))
    x = np.arange(6.0).reshape(2, 3)
    assert f(x, 0).tolist() == [3, 5, 7]
    assert f(x, 1).tolist() == [3, 12]
    assert f(x, None) == 15
    assert f(x, 1, "max").tolist() == [2, 5]
    assert f(x, 1, how="max").tolist() == [2, 5]
    assert f(x, axis=0, how="mean").tolist() == [1.5, 2.5, 3.5]


def test_defaults_and_keywords():
    @tm.tensor
    def f(x, y=2.0, *rest, k=1, **more):
        return x * y + k + sum(rest) + sum(more.values())

    assert f(3.0) == 7.0
    assert f(3.0, 1.0) == 4.0
    assert f(x=3.0, k=0.5) == 6.5
    assert f(3.0, 1.0, 10.0, 20.0, k=2.0, z=100.0) == 135.0
    with pytest.raises(TypeError):
        f()
    assert f.__name__ == "f"


class Pair(NamedTuple):
    first: np.ndarray
    second: float


@dataclass
class Layer:
    weight: np.ndarray
    bias: np.ndarray


def test_containers():
    @tm.tensor
    def f(layers, extra):
        x = extra["x"]
        for layer in layers:
            x = np.tanh(x @ layer.weight + layer.bias)
        return {"out": x, "sums": (x.sum(), [x.max()]), "nothing": None, "pair": Pair(x[0], extra["k"] * 2)}

    layers = [Layer(np.ones((3, 2)), np.zeros(2)), Layer(np.ones((2, 4)), np.zeros(4))]
    found = f(layers, {"x": np.ones((5, 3)), "k": 1.5})
    assert found["out"].shape == (5, 4)
    assert isinstance(found["pair"], Pair)
    assert found["pair"].second == 3.0
    assert found["nothing"] is None
    assert isinstance(found["sums"], tuple)
    assert np.allclose(found["out"], np.tanh(np.tanh(3) * 2))


def test_names_from_outside_are_read_at_each_call():
    global scale, table
    f = tm.tensor(lambda x: x * scale + table.sum() + helper(x))
    scale, table = 2.0, np.arange(3.0)
    assert f(1.0) == 2 + 3 + 10
    scale = 5.0
    assert f(1.0) == 5 + 3 + 10
    table = np.arange(4.0)
    assert f(1.0) == 5 + 6 + 10
    table[0] = 100.0
    assert f(1.0) == 5 + 106 + 10


def helper(x):
    return x * 10


def other_helper(x):
    return x * 20


def test_a_helper_that_is_redefined():
    global helper
    f = tm.tensor(lambda x: helper(x) + 1)
    old = helper
    try:
        assert f(1.0) == 11.0
        helper = other_helper
        assert f(1.0) == 21.0
    finally:
        helper = old


def test_closures():
    def make():
        k = 1.0

        def f(x):
            return x * k

        def change(value):
            nonlocal k
            k = value

        return tm.tensor(f), change

    f, change = make()
    assert f(3.0) == 3.0
    change(7.0)
    assert f(3.0) == 21.0
    change(2)
    assert f(3.0) == 6.0


def test_graphs_of_functions_that_bind_names_outside_are_refused():
    def make():
        k = 0.0

        def counted(x):
            nonlocal k
            k = k + 1
            return x * k

        def of_helper(x):
            return counted(x) + 1

        class Holder:
            n = 0.0

        def in_a_class(x):
            Holder.n = Holder.n + x[1]
            return x + Holder.n

        return counted, of_helper, in_a_class

    for function in (*make(), _binds_a_global):
        with pytest.raises(CaptureError, match="outside of itself"):
            tm.tensor(function).graph(np.ones(3))
        with pytest.raises(CaptureError, match="outside of itself"):
            tm.grad(function)(np.ones(3))
    assert "bound_by_a_function" not in globals()


def _binds_a_global(x):
    global bound_by_a_function
    bound_by_a_function = x.sum()
    return x + bound_by_a_function


def test_arguments_that_are_given_back_are_themselves():
    """As Python has it; parts of arguments are NumPy's views of them."""
    f = tm.tensor(lambda x, y: (x, x, x[1:], y.T, x + 0))
    x, y = np.arange(3.0), np.ones((2, 2))
    for _ in range(3):
        results = f(x, y)
        assert results[0] is x
        assert results[1] is x
        assert results[2].base is x
        assert results[3].base is y
        assert not any(np.shares_memory(results[4], b) for b in (x, y))
        results[2][:] = 7
    assert x.tolist() == [0, 7, 7]
    read = np.ones(2)
    assert tm.tensor(lambda x: (x * 2, read))(x)[1] is read
    assert type(tm.tensor(lambda x: x)(2.0)) is float


def test_what_needs_a_value_is_refused():
    for body in (
        lambda x: len(str(x)),
        lambda x: x.numpy() + 1,
    ):
        with pytest.raises(CaptureError):
            tm.tensor(body).graph(np.ones(3))


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ((np.array(["a"]),), TypeError),
        ((np.array([None]),), TypeError),
        (("text",), TypeError),
        ((None,), TypeError),
        ((), TypeError),
        ((1.0, 2.0), TypeError),
    ],
)
def test_wrong_arguments(args, error):
    f = tm.tensor(lambda x: x + 1.0)
    with pytest.raises(error):
        f(*args)


def test_lazy_arguments_give_lazy_results():
    f = tm.tensor(lambda x: (x * 2).sum())
    assert isinstance(f(tm.tensor(np.ones(3))), tm.Tensor)
    assert f(tm.tensor(np.ones(3))).numpy() == 6.0


def test_series_and_lists():
    pd = pytest.importorskip("pandas")
    f = tm.tensor(lambda x: x * 2)
    assert f(pd.Series([1.0, 2.0]).to_numpy()).tolist() == [2.0, 4.0]
    assert tm.tensor(lambda rows: rows[0] + rows[1])([1.0, 2.0]) == 3.0


@pytest.fixture
def eager_threads():
    """Threads that take turns a thousand times as often as usual."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(interval / 1000)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("eager_threads")
def test_in_threads():
    f = tm.tensor(lambda x, y: np.exp(-x @ y).sum() + x.shape[0])
    found, errors = {}, []

    def work(n):
        try:
            for k in range(2, 12):
                found[n, k] = f(np.ones((k + n, k)), np.ones(k))
        except Exception as error:  # noqa: BLE001 (it is asserted on in the main thread)
            errors.append("".join(traceback.format_exception(error)))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, "\n".join(errors)
    assert all(np.isclose(v, (k + n) * np.exp(-k) + k + n) for (n, k), v in found.items())


def test_methods_and_callables():
    class Model:
        def __init__(self):
            self.w = np.ones(3)

        def __call__(self, x):
            return x @ self.w

        def twice(self, x):
            return self(x) * 2

    model = Model()
    f, g = tm.tensor(model), tm.tensor(model.twice)
    assert f(np.ones(3)) == 3.0
    assert g(np.ones(3)) == 6.0
    model.w = np.full(3, 2.0)
    assert f(np.ones(3)) == 6.0
    assert g(np.ones(3)) == 12.0


def test_on_what_is_no_function():
    assert isinstance(tm.tensor([1.0, 2.0]), tm.Tensor)
    assert tm.tensor(3).numpy() == 3
    with pytest.raises(TypeError):
        tm.tensor("text")


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (lambda x: np.var(x, ddof=3), np.array([0.0, 2.0])),
        (lambda x: np.var(x, ddof=2), np.zeros(1)),
        (lambda x: np.std(x, axis=-1, ddof=1), np.zeros((3, 0))),
        (lambda x: np.log(np.sum(np.exp(x), axis=-1)), np.zeros((3, 0))),
        (lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True), np.zeros((3, 0))),
    ],
)
def test_nothing_to_divide_by_or_to_take_the_largest_of(function, x):
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        expected = function(x)
    np.testing.assert_array_equal(tm.tensor(function)(x), expected)


@tm.tensor
def halved_or_grown(w):
    for _ in range(3):
        w = w * 1.5
    if w.sum() > 0:
        return w * 2
    while w.min() < -1:
        w = w / 2
    return w - 1


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_control_flow_on_lazy_values_outside_cells(sign):
    x = sign * np.array([1.0, 2.0, 3.0])
    found = halved_or_grown(tm.tensor(x))
    assert isinstance(found, tm.Tensor)
    np.testing.assert_array_equal(found, halved_or_grown(x))
    np.testing.assert_allclose(found, 6.75 * x if sign > 0 else x * 1.5**3 / 16 - 1)


def test_defaults_that_are_set_on_a_captured_function():
    def f(x, k=2.0, *, s=1.0):
        return x * k + s

    captured = tm.tensor(f)
    assert captured(1.0) == 3
    captured.__defaults__ = (5.0,)
    captured.__kwdefaults__ = {"s": 2.0}
    assert captured(1.0) == f(1.0) == 7
    f.__defaults__ = (6.0,)
    assert captured(1.0) == f(1.0) == 8
