"""What a function raises, its derivatives raise, also where they do not read the value that waits for the check."""

import numpy as np
import pytest

import tensormagic as tm

X = np.arange(6.0)


def raised(v):
    s = 0.0
    if v[2] > 1:
        raise ValueError("two")
    return s


def in_a_loop(v):
    s = 0.0
    for i in range(3):
        if v[i] > 1:
            s = s + v.no_such_attribute()
    return s


def in_a_helper(v):
    def inner(u):
        if u >= 0:
            raise ArithmeticError("two")
        return 1.0

    return v.sum() + inner(v[1])


def in_a_list(v):
    return sum([1.0 if u < 4 else [1.0].index(3.0) for u in v])


MADE = {
    "grad": tm.grad,
    "value_and_grad": tm.value_and_grad,
    "jacobian": tm.jacobian,
    "hessian": tm.hessian,
    "twice": lambda f: tm.grad(lambda v: tm.grad(f)(v).sum()),
    "hvp": lambda f: lambda v: tm.hvp(f, (v,), (v,)),
    "jvp": lambda f: lambda v: tm.jvp(f, (v,), (v,)),
    "vjp": lambda f: lambda v: tm.vjp(f, v)[1](1.0),
    "vmap": lambda f: lambda v: tm.vmap(tm.grad(f))(np.stack([v, v])),
}


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("function", [raised, in_a_loop, in_a_helper, in_a_list])
@pytest.mark.filterwarnings("ignore::tensormagic.ir.errors.ConstantGradientWarning")
def test_derivatives_raise_what_the_function_raises(function, made):
    with pytest.raises(Exception) as plain:  # noqa: PT011 (compared below)
        function(X)
    with pytest.raises(type(plain.value)) as ours:
        MADE[made](function)(X)
    assert str(ours.value) == str(plain.value)


@pytest.mark.filterwarnings("ignore::tensormagic.ir.errors.ConstantGradientWarning")
def test_and_nothing_where_it_does_not():
    np.testing.assert_array_equal(tm.grad(raised)(X - 3), np.zeros(6))
    np.testing.assert_array_equal(tm.grad(in_a_helper)(X - 3), np.ones(6))
