"""Made functions in classes: they bind where a function of Python's would, and stay what they are where it would not."""

import functools

import numpy as np
import pytest

import tensormagic as tm

X = np.arange(3.0)


class Base:
    factor = 3.0

    def __init__(self, scale):
        self.scale = scale

    @tm.tensor
    def method(self, x):
        return x * self.scale + Base.factor

    @classmethod
    @tm.tensor
    def of_class(cls, x):
        return x * cls.factor

    @staticmethod
    @tm.tensor
    def static(x):
        return x * 2

    @tm.tensor
    @classmethod
    def of_class_outside(cls, x):
        return x * cls.factor

    @tm.tensor
    @staticmethod
    def static_outside(x):
        return x * 2

    @property
    @tm.tensor
    def shown(self):
        return np.ones(2) * self.scale

    @tm.tensor(math="exact")
    def with_options(self, x, power=2):
        return x**power * self.scale

    @tm.tensor
    def __call__(self, x):
        return x + self.scale

    @tm.tensor
    def halved(self, x, n):
        return x if n == 0 else self.halved(x / 2, n - 1)

    of_numpy = tm.tensor(np.tanh)
    bent = tm.vmap(lambda self, row: row.sum() * self.scale, in_axes=(None, 0))
    partial = functools.partialmethod(method, X)


class Derived(Base):
    factor = 4.0

    @tm.tensor
    def method(self, x):
        return super().method(x) + 1


CALLS = {
    "method": (lambda o: o.method(X), lambda o: X * o.scale + 3.0 + isinstance(o, Derived)),
    "by the class": (lambda o: type(o).method(o, X), lambda o: X * o.scale + 3.0 + isinstance(o, Derived)),
    "class method": (lambda o: o.of_class(X), lambda o: X * o.factor),
    "class method of the class": (lambda o: type(o).of_class(X), lambda o: X * o.factor),
    "static method": (lambda o: o.static(X), lambda o: X * 2),
    "class method inside": (lambda o: o.of_class_outside(X), lambda o: X * o.factor),
    "static method inside": (lambda o: o.static_outside(X) + type(o).static_outside(X), lambda o: X * 4),
    "property": (lambda o: o.shown, lambda o: np.ones(2) * o.scale),
    "options": (lambda o: o.with_options(X, power=3), lambda o: X**3 * o.scale),
    "default": (lambda o: o.with_options(X), lambda o: X**2 * o.scale),
    "call": (lambda o: o(X), lambda o: X + o.scale),
    "recursion": (lambda o: o.halved(X, 3), lambda o: X / 8),
    "no function": (lambda o: o.of_numpy(X), lambda o: np.tanh(X)),
    "partial": (lambda o: o.partial(), lambda o: X * o.scale + 3.0),
    "held by the instance": (
        lambda o: vars(o).setdefault("own", tm.tensor(lambda x: x + 1)) and o.own(X),
        lambda o: X + 1,
    ),
    "gradient": (lambda o: tm.grad(lambda x: (o.method(x) ** 2).sum())(X), lambda o: 2 * o.method(X) * o.scale),
    "gradient of the bound": (lambda o: tm.jacobian(o.method)(X), lambda o: np.eye(3) * o.scale),
    "batch": (lambda o: tm.vmap(o.method)(np.stack([X, X])), lambda o: np.stack([o.method(X)] * 2)),
    "in captured code": (lambda o: tm.tensor(lambda x: o.method(x) * 2)(X), lambda o: o.method(X) * 2),
}


@pytest.mark.parametrize("name", CALLS)
def test_methods(name):
    ours, numpys = CALLS[name]
    for made in (Base(2.0), Base(5.0), Derived(7.0)):
        np.testing.assert_allclose(ours(made), numpys(made), rtol=1e-15)


def test_a_bound_method_is_pythons():
    made = Base(2.0)
    assert made.method.__self__ is made
    assert made.method.__func__ is Base.method
    assert made.method == made.method
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'x'"):
        made.method()


def test_of_what_is_vectorised_the_instance_is_the_first_argument():
    np.testing.assert_array_equal(Base(3.0).bent(np.ones((2, 4))), [12.0, 12.0])
