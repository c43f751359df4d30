"""Derivatives with respect to objects of the user's classes: values, what is put back, what is followed between calls, and refusals."""

import copy
import threading
import warnings
from collections import deque
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import DifferentiationError, ShapeError

X = np.array([[0.3, -1.0], [1.2, 0.4], [-0.7, 0.9]])


class Plain:
    def __init__(self, name: str = "tanh") -> None:
        self.w, self.b, self.n, self.name, self.act, self.none, self.on = (
            np.array([0.5, -0.25]),
            0.75,
            2,
            name,
            np.tanh,
            None,
            True,
        )

    def __call__(self, x: Any) -> Any:
        return (self.act(x @ self.w) + self.b) ** self.n if self.on else x


class Derived(Plain):
    factor = 2.0

    @property
    def size(self) -> Any:
        return self.w @ self.w

    def __call__(self, x: Any) -> Any:
        return super().__call__(x) * self.factor * self.size

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = object.__hash__


class Forwarding(Plain):
    def __getattr__(self, name: str) -> Any:
        if name == "scale":
            return self.b * 2
        raise AttributeError(name)

    def __call__(self, x: Any) -> Any:
        return super().__call__(x) * self.scale


class Slots:
    __slots__ = ("b", "n", "name", "w")

    def __init__(self) -> None:
        self.w, self.b, self.n, self.name = np.array([0.5, -0.25]), 0.75, 2, "slots"

    def __call__(self, x: Any) -> Any:
        return (np.sin(x @ self.w) + self.b) ** self.n


class Nested:
    def __init__(self) -> None:
        self.layers, self.scale = [Plain(), Slots()], 1.5
        self.options = {"rate": 0.5, "kind": "ridge", "inner": {"w": np.array([1.0, 2.0])}}
        self.pairs = [(np.array([1.0, 2.0]), 0.5, "relu"), (np.array([3.0, 1.0]), 2.0, "id")]
        self.queue = deque([2.0, np.array([1.0, 3.0])])
        self.layers[0].parent = self  # type: ignore[attr-defined]
        self.bound = self.layers[0].__call__

    def __call__(self, x: Any) -> Any:
        total = sum(layer(x) for layer in self.layers) + self.bound(x)
        for w, b, kind in self.pairs:
            total = total + (w @ w) * b * (2 if kind == "relu" else 1)
        return (
            self.scale * total
            + self.options["rate"] * self.options["inner"]["w"].sum()
            + self.queue[0] * self.queue[1].sum()
        )


class Tied:
    def __init__(self) -> None:
        self.inner, self.outer = SimpleNamespace(w=np.array([0.5, -0.25])), 2.0
        self.again, self.same = self.inner.w, self.inner
        self.c = self.outer  # one number, and two variables

    def __call__(self, x: Any) -> Any:
        return np.sin(x @ self.inner.w) * self.outer + self.c * (x @ (3 * self.again)) * self.same.w[0]


class Remembering(Plain):
    def __call__(self, x: Any) -> Any:
        self.h = x @ self.w
        self.kept = self.w
        return (self.h + self.b) ** 2


@dataclass
class Data:
    w: Any = field(default_factory=lambda: np.array([0.5, -0.25]))
    b: float = 0.75
    n: int = 2
    name: str = "data"
    act: Any = np.tanh

    def __call__(self, x: Any) -> Any:
        return (self.act(x @ self.w) + self.b) ** self.n


@dataclass(frozen=True, slots=True)
class Frozen:
    w: Any
    b: float = 0.75
    name: str = "frozen"

    def __call__(self, x: Any) -> Any:
        return (x @ self.w + self.b) ** 2


class Named(NamedTuple):
    w: Any
    b: float = 0.75
    n: int = 3
    name: str = "named"

    def __call__(self, x: Any) -> Any:
        return (x @ self.w) ** self.n * self.b


class Locked(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


W = np.array([0.5, -0.25])
KINDS: dict[str, tuple[Any, list[str]]] = {  # what makes one, and the places of its variables
    "an object": (Plain, ["w", "b"]),
    "a derived class": (Derived, ["w", "b"]),
    "attributes by __getattr__": (Forwarding, ["w", "b"]),
    "slots": (Slots, ["w", "b"]),
    "objects in containers": (
        Nested,
        [
            "layers[0].w",
            "layers[0].b",
            "layers[1].w",
            "scale",
            "options['rate']",
            "options['inner']['w']",
            "queue[0]",
            "queue[1]",
        ],
    ),
    "one that keeps what it computes": (Remembering, ["w", "b"]),
    "a lock beside": (Locked, ["w", "b"]),
    "a namespace": (lambda: SimpleNamespace(w=W.copy(), b=0.75, of=lambda o, x: (x @ o.w + o.b) ** 3), ["w", "b"]),
    "a dataclass": (Data, ["w", "b"]),
    "a list of objects": (lambda: [Plain(), Plain("other")], ["[0].w", "[1].b"]),
    "a dictionary": (lambda: {"net": Plain(), "w": W.copy(), "name": "x", "f": np.sin}, ["['net'].w", "['w']"]),
}


def loss(m: Any, x: Any) -> Any:
    parts = m if isinstance(m, list) else [m]
    if isinstance(m, dict):
        return (m["net"](x) * m["f"](x @ m["w"])).sum()
    return sum((p.of(p, x) if isinstance(p, SimpleNamespace) else p(x)).sum() for p in parts)


def at(root: Any, place: str) -> Any:
    return eval(f"root{'' if place[0] == '[' else '.'}{place}", {"root": root})


def put(root: Any, place: str, value: Any) -> None:
    exec(f"root{'' if place[0] == '[' else '.'}{place} = value", {"root": root, "value": value})


def differences(root: Any, place: str, value: Any = loss) -> Any:
    """Central differences of the value, by Python, of what is at a place."""
    old = at(root, place)
    found = np.zeros(np.shape(old))
    for index in np.ndindex(found.shape):
        ends = []
        for step in (1e-6, -1e-6):
            new = np.array(old, copy=True)
            new[index] += step
            put(root, place, new if new.ndim else float(new))
            ends.append(value(root, X))
        found[index] = (ends[0] - ends[1]) / 2e-6
    put(root, place, old)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_differences(kind):
    make, places = KINDS[kind]
    root, both = make(), tm.value_and_grad(loss)
    for _ in range(3):  # with other values, by the same function
        before = [at(root, p) for p in places]
        value, gradient = both(root, X)
        assert all(at(root, p) is old for p, old in zip(places, before, strict=True))
        np.testing.assert_allclose(value, loss(root, X), rtol=1e-12)
        for place in places:
            slope = at(gradient, place)
            assert type(slope) is type(at(root, place))
            np.testing.assert_allclose(slope, differences(root, place), rtol=1e-5, atol=1e-7)
        for place in places:
            put(root, place, at(root, place) - 0.05 * at(gradient, place))


@pytest.mark.parametrize("make", [Frozen, Named])
def test_what_cannot_be_changed_is_made_anew(make):
    found = tm.grad(loss)(make(W), X)
    assert type(found) is make
    assert found.name is None
    np.testing.assert_allclose(found.b, (loss(make(W, 0.75 + 1e-6), X) - loss(make(W), X)) / 1e-6, rtol=1e-4)


def test_a_gradient_has_what_has_one():
    found = tm.grad(loss)(Nested(), X)
    assert sorted(vars(found)) == ["layers", "options", "pairs", "queue", "scale"]
    assert [type(p) for p in found.pairs] == [tuple, tuple]
    assert [p[2] for p in found.pairs] == [None, None]
    np.testing.assert_allclose(found.pairs[0][0], 1.5 * 3 * 2 * 2 * 0.5 * np.array([1.0, 2.0]))
    assert sorted(found.options) == ["inner", "rate"]
    with pytest.raises(AttributeError, match="there is no gradient with respect to bound; there is layers, scale"):
        _ = found.bound
    plain = tm.grad(loss)(Data(), X)
    assert (plain.n, plain.name, plain.act) == (None, None, None)


def test_an_array_that_is_held_twice_is_one_variable():
    tied, gradient = Tied(), tm.grad(loss)
    for _ in range(2):
        found = gradient(tied, X)
        expected = differences(tied, "inner.w") + differences(tied, "again")
        for slope in (found.inner.w, found.again, found.same.w):
            np.testing.assert_allclose(slope, expected, rtol=1e-5)
        np.testing.assert_allclose(found.c, differences(tied, "c"), rtol=1e-5)
        apart = Tied()
        apart.again = apart.again.copy()
        found = gradient(apart, X)
        np.testing.assert_allclose(found.again, differences(apart, "again"), rtol=1e-5)
        np.testing.assert_allclose(found.inner.w, differences(apart, "inner.w"), rtol=1e-5)
    with pytest.raises(DifferentiationError, match=r"m.inner.w of <lambda> is held twice: there is one variable"):
        tm.jvp(lambda m: loss(m, X), (tied,), (tied,))


def test_a_call_follows_what_changes_between_calls():
    net, both = Nested(), tm.value_and_grad(loss)

    def check(place):
        value, gradient = both(net, X)
        np.testing.assert_allclose(value, loss(net, X), rtol=1e-12)
        np.testing.assert_allclose(at(gradient, place), differences(net, place), rtol=1e-5, atol=1e-8)
        return gradient

    check("layers[0].w")
    net.layers[0].n = 3
    check("layers[0].w")
    net.layers[0].act = np.sin
    check("layers[0].b")
    net.layers.append(Plain())
    check("layers[2].w")
    net.pairs[0] = (*net.pairs[0][:2], "id")
    check("layers[2].b")
    net.layers[1] = Derived()
    check("layers[1].w")
    net.layers[0].w = np.array([0.5, -0.25], np.float32).astype(float)
    net.layers[0].w[1] = 3.0
    check("layers[0].w")
    net.extra = np.ones(2)  # type: ignore[attr-defined]
    assert "extra" in vars(check("scale"))
    net.extra = "a text"  # type: ignore[attr-defined]
    assert "extra" not in vars(check("scale"))
    del net.layers[1:]
    check("layers[0].w")


def test_every_derivative_takes_objects():
    m, d = Plain(), SimpleNamespace(w=np.array([0.2, 0.7]), b=-0.3)
    value, gradient = tm.value_and_grad(loss)(m, X)
    along = gradient.w @ d.w + gradient.b * d.b
    np.testing.assert_allclose(tm.jvp(lambda m: loss(m, X), (m,), (d,)), (value, along))
    np.testing.assert_allclose(tm.linearize(lambda m: loss(m, X), m)[1](d), along)
    pulled, _ = tm.vjp(loss, m, X)[1](2.0)
    np.testing.assert_allclose(pulled.w, 2 * gradient.w)
    matrix = tm.hessian(loss)(m, X)
    product = tm.hvp(lambda m: loss(m, X), m, d)
    np.testing.assert_allclose(product.w, matrix.w.w @ d.w + matrix.w.b * d.b)
    np.testing.assert_allclose(product.b, matrix.b.w @ d.w + matrix.b.b * d.b)
    rows = tm.jacobian(lambda m: m(X))(m)
    np.testing.assert_allclose(rows.w.sum(0), gradient.w)
    each = tm.vmap(tm.grad(lambda m, x: m(x)), in_axes=(None, 0))(m, X)
    np.testing.assert_allclose(each.w, rows.w)
    np.testing.assert_allclose(tm.compile(tm.grad(loss), m, "float64[k, 2]").run(m, X).w, gradient.w)
    np.testing.assert_allclose(tm.grad(lambda m: tm.grad(loss)(m, X).b)(m).w, matrix.b.w)
    first, second = tm.grad(lambda a, b: loss(a, X) * loss(b, X), (0, 1))(m, Plain())
    np.testing.assert_allclose(first.w, second.w)
    tm.check_grads(loss, (m, X), order=2)
    tm.check_grads(loss, (Nested(), X), modes="reverse")


def test_a_captured_step_moves_the_object():
    one, other = Plain(), Plain()

    @tm.tensor
    def step(m, x):
        value, gradient = tm.value_and_grad(loss)(m, x)
        m.w = m.w - 0.05 * gradient.w
        m.b -= 0.05 * gradient.b
        return value

    for _ in range(4):
        value, gradient = tm.value_and_grad(loss)(other, X)
        np.testing.assert_allclose(step(one, X), value)
        for name, slope in vars(gradient).items():
            setattr(other, name, getattr(other, name) - 0.05 * slope)
        np.testing.assert_allclose(one.w, other.w)
        assert type(one.b) is float


def test_what_a_call_leaves_in_the_object():
    m = Remembering()
    tm.grad(loss)(m, X)
    np.testing.assert_allclose(m.h, X @ m.w)
    assert m.kept is m.w
    tm.grad(lambda w: ((m.__setattr__("last", w)) or 0) + w @ w)(W)
    assert m.last is W  # type: ignore[attr-defined]


def in_place(m):
    m.w *= 2
    m.w = m.w + 1
    return m.w.sum()


def an_element(m):
    m.w[0] = 3.0
    m.z = m.w[::-1]
    m.w = m.w * m.b
    return m.w.sum()


def by_a_copy(m):
    other = copy.copy(m)
    other.w += 1
    m.z = other.w[:1]
    return (m.w**2).sum()


@pytest.mark.parametrize("body", [in_place, an_element, by_a_copy])
def test_stores_and_views_in_the_object(body):
    one, other = Plain(), Plain()
    held, own = one.w, other.w
    for _ in range(2):
        value, gradient = tm.value_and_grad(body)(one)
        np.testing.assert_allclose(value, body(other))
        assert np.all(np.isfinite(gradient.w))
        for name in ("w", "z"):
            if hasattr(other, name):
                np.testing.assert_allclose(getattr(one, name), getattr(other, name))
                assert np.shares_memory(getattr(one, name), held) == np.shares_memory(getattr(other, name), own)
        np.testing.assert_allclose(held, own)
        for o in (one, other):
            vars(o).pop("z", None)  # a variable over the memory of another one is refused where that is stored into


def test_an_error_leaves_the_object_as_it_was():
    m = Plain()
    before = dict(vars(m))
    with pytest.raises(ShapeError):
        tm.grad(lambda m: (m.w + np.ones(5)).sum())(m)
    assert all(vars(m)[name] is value for name, value in before.items())
    assert vars(m).keys() == before.keys()


class Whole:
    def __init__(self) -> None:
        self.n, self.name = 3, "whole"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: tm.grad(lambda m: 1.0 * m.n)(Whole()),
            "m of <lambda> is Whole, which holds no float and no array of floats",
        ),
        (lambda: tm.grad(lambda m: 1.0)([Whole()]), "m of <lambda> is list, which holds no float"),
        (
            lambda: tm.grad(lambda m: m["a"])({"a": 1, "b": 2.0}),
            "m of <lambda> is int: there is no derivative with respect to integers",
        ),
        (lambda: tm.hessian(loss, sparse=True)(Plain(), X), r"sparse=True\) is with respect to arrays"),
        (lambda: tm.vmap(loss)(Plain(), X), r"vmap\(loss\): m is Plain, an object, which has no axis of examples"),
        (
            lambda: tm.grad(loss)(SimpleNamespace(w=[0.0] * 3000), X),
            "m holds more than 2000 numbers, arrays and objects",
        ),
    ],
)
def test_what_is_refused(call, said):
    with pytest.raises((DifferentiationError, ShapeError), match=said):
        call()


def test_a_step_is_not_captured_again():
    net, both = Nested(), tm.value_and_grad(loss)
    for _ in range(5):
        gradient = both(net, X)[1]
        net.layers[0].w = net.layers[0].w - 0.01 * gradient.layers[0].w
        net.options["rate"] -= 0.01 * gradient.options["rate"]
    assert [len(found) for found in both._kinds.values()] == [1]


def test_nothing_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for make, _ in KINDS.values():
            tm.grad(loss)(make(), X)


class Counting:
    def __init__(self) -> None:
        self.h, self.k = [], 0

    def __getattribute__(self, name: str):
        if name == "h":
            object.__setattr__(self, "k", object.__getattribute__(self, "k") + 1)
        return object.__getattribute__(self, name)


def test_what_a_branch_keeps_for_the_way_back_is_left_nowhere():
    def keeping(x, o):
        if x[0] > 0:
            o.h.append(x[0])
        return (x**2).sum()

    with pytest.raises(tm.CaptureError, match="stores a value in an object in a branch or loop"):
        tm.grad(keeping)(np.ones(2), Counting())
