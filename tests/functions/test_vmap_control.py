"""``tm.vmap`` of loops, branches and checks: each example takes its own way, and none is harmed by another's."""

import copy
import itertools

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError, ShapeError
from tensormagic.ops.op import registry

RNG = np.random.default_rng(3)
X = RNG.normal(size=(6, 4))
MATRICES = np.stack([np.eye(2) * 4 + 1, -np.eye(2), np.eye(2) * 9])


def newton(x):
    y, k = x, 0
    while abs(y * y - x) > 1e-12 and k < 50:
        y = 0.5 * (y + x / y)
        k += 1
    return y


def collatz(n):
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


def early(x):
    for i in range(x.shape[0]):
        if x[i] > 0.5:
            return x[i] * 10
    return x.sum()


def broken(x):
    total = 0.0
    for i in range(x.shape[0]):
        if x[i] < 0:
            break
        total += np.sqrt(x[i])
    return total


def continued(x):
    total = 0.0
    for i in range(x.shape[0]):
        if x[i] < 0:
            continue
        total += np.sqrt(x[i])
    return total


def logarithms(x):
    while x > 1.0:
        x = np.log(x)
    return x


def roots(x):
    while x > 0.5:
        x = np.sqrt(x) - 0.4
    return np.exp(x)


def recorded(x):
    out, k = np.zeros(6), 0
    while x.sum() < 10 and k < 6:
        x = x * 1.7
        out[k] = x.max()
        k += 1
    return out


def counted(n, x):
    for i in range(n):
        x = np.sin(x) + i
    return x


def chosen(x):
    if x.sum() > 0:
        return np.log(x.sum())
    return -(x.sum() ** 2)


def nested(x):
    total, k = 0.0, 0
    while total < 5 and k < 10:
        j = 0
        while j < k:
            total = total + x * 0.3
            j += 1
        total = total + x
        k += 1
    return total


def checked(x):
    if x.sum() > 0:
        if x[0] > 100:
            raise ValueError("too large")
        if x.sum() <= 0:
            raise AssertionError("of another example")
        return x * 2
    return x


def guarded_while(n):
    count = 0
    if n > 0:
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            count += 1
    return count


def guarded_call(a):
    return np.linalg.cholesky(a).sum() if a[0, 0] > 0 else 0.0


def guarded_loop(x):
    if x > 0:
        y = x
        for _ in range(3):
            y = np.sqrt(y)
    else:
        y = 0 * x
    return y


def guarded_product(x):
    return (np.log(x) @ np.arange(4.0)) if (x > 0).all() else x.sum()


def guarded_index(x, k):
    return x[k] if k < x.shape[0] else -1.0


def descending(n):
    total = 0
    while n > 0:
        m = n
        while m != 1:
            m = m // 2 if m % 2 == 0 else 3 * m + 1
            total += 1
        n -= 1
    return total


def doubled(x, n):
    return x if n <= 0 else doubled(x * 2, n - 1)


CASES = {
    "newton": (newton, (np.array([1.0, 2.0, 9.0, 100.0, 1e-3]),)),
    "collatz": (collatz, (np.array([1, 2, 7, 27, 6]),)),
    "early": (early, (X,)),
    "broken": (broken, (X,)),
    "broken nowhere": (broken, (abs(X),)),
    "continued": (continued, (X,)),
    "logarithms": (logarithms, (np.array([0.5, 2.0, 30.0, 1e5]),)),
    "roots": (roots, (np.array([0.3, 0.0, -2.0, 30.0, 0.6]),)),
    "recorded": (recorded, (abs(X),)),
    "counted": (counted, (np.array([0, 3, 1]), RNG.normal(size=(3, 2)))),
    "chosen": (chosen, (X,)),
    "nested": (nested, (np.array([1.0, 2.0, 0.3]),)),
    "checked": (checked, (X,)),
    "guarded while": (guarded_while, (np.array([3, 0, -2, 7]),)),
    "guarded call": (guarded_call, (MATRICES,)),
    "guarded loop": (guarded_loop, (np.array([1.0, -2.0, 3.0, 0.0]),)),
    "guarded product": (guarded_product, (np.concatenate([X, abs(X[:2]), 0 * X[:1]]),)),
    "guarded index": (guarded_index, (X, np.array([0, 9, 2, 3, 4, 1]))),
    "descending": (descending, (np.array([3, 0, 5]),)),
}


def calls(function, arguments):
    return np.stack([function(*(copy.copy(a[k]) for a in arguments)) for k in range(len(arguments[0]))])


COMPILED = ["broken", "recorded", "checked", "guarded while", "guarded call", "guarded index"]


@pytest.mark.parametrize(("name", "tier"), [*((n, "numpy") for n in CASES), *((n, "numba") for n in COMPILED)])
def test_the_stack_of_single_calls(name, tier, monkeypatch):
    monkeypatch.setattr(tm.config, "tier", tier)
    function, arguments = CASES[name]
    expected = calls(function, arguments)
    found = tm.vmap(function)(*arguments)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_stacks_of_stacks(name, monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    function, arguments = CASES[name]
    expected = calls(function, arguments)
    twice = [np.stack([a, a[::-1]], axis=1) for a in arguments]
    found = tm.vmap(tm.vmap(function), in_axes=1, out_axes=-1)(*twice)
    np.testing.assert_allclose(found, np.stack([expected, expected[::-1]], axis=-1), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::tensormagic.ir.errors.ConstantGradientWarning")  # one counts its iterations
@pytest.mark.parametrize("name", [n for n, (_, a) in CASES.items() if any(v.dtype.kind == "f" for v in a)])
def test_gradients_of_each_and_of_all(name, monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    function, arguments = CASES[name]
    position = next(k for k, a in enumerate(arguments) if a.dtype.kind == "f")

    def total(*args):
        return np.sum(function(*args))

    single = tm.grad(total, argnums=position)
    integers = [[int(v) for v in a] if a.dtype.kind == "i" else a for a in arguments]
    expected = np.stack([single(*(a[k] for a in integers)) for k in range(len(arguments[0]))])
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(tm.vmap(single)(*arguments), expected, rtol=1e-10, atol=1e-12)
    whole = tm.grad(lambda *args: tm.vmap(total)(*args).sum(), argnums=position)(*arguments)
    np.testing.assert_allclose(whole, expected, rtol=1e-10, atol=1e-12)
    if name in {"guarded call", "checked"}:
        return  # large graphs
    curved = tm.vmap(tm.jacobian(single, argnums=position))(*arguments)
    whole = tm.hessian(lambda *args: tm.vmap(total)(*args).sum(), argnums=position)(*arguments)
    blocks = np.moveaxis(whole, arguments[position].ndim, 1)
    np.testing.assert_allclose([blocks[k, k] for k in range(len(curved))], curved, rtol=1e-9, atol=1e-12)


def test_gradients_of_a_stack_that_records_iterations_are_compiled(monkeypatch):
    stack = abs(X)
    monkeypatch.setattr(tm.config, "tier", "numpy")
    expected = np.stack([tm.grad(lambda x: recorded(x).sum())(row) for row in stack])
    monkeypatch.setattr(tm.config, "tier", "numba")
    found = tm.grad(lambda x: tm.vmap(recorded)(x).sum())(stack)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_recursion():
    x = RNG.normal(size=(3, 2))
    np.testing.assert_array_equal(tm.vmap(lambda v: doubled(v, 3))(x), 8 * x)


def test_what_one_example_raises_is_raised():
    x = X.copy()
    x[2, 0] = 1000.0
    with pytest.raises(ValueError, match="too large"):
        tm.vmap(checked)(x)
    with pytest.raises(np.linalg.LinAlgError):
        tm.vmap(lambda a: np.linalg.cholesky(a))(MATRICES)


def test_a_branch_stays_one_where_all_examples_agree():
    def either(x, flag):
        return np.sin(x) if flag > 0 else np.cos(x)

    def conds(axes, *args):
        return [n for n in tm.vmap(either, in_axes=axes).graph(*args).nodes if n.op is registry["cond"]]

    assert len(conds((0, None), X, 1.0)) == 1
    assert not conds((0, 0), X, X[:, 0])
    np.testing.assert_allclose(tm.vmap(either, in_axes=(0, None))(X, -1.0), np.cos(X))


def test_a_branch_that_no_example_takes_is_not_run():
    def costly(x):
        if x > 0:
            while x > 0:  # for ever
                x = x + 1
        return x

    np.testing.assert_array_equal(tm.vmap(costly)(np.array([-1.0, -2.0])), [-1.0, -2.0])


def test_empty_stacks():
    for function, arguments in CASES.values():
        expected = calls(function, arguments)
        found = tm.vmap(function)(*(a[:0] for a in arguments))
        assert (found.dtype, found.shape) == (expected.dtype, (0, *expected.shape[1:]))


# stores and draws -----------------------------------------------------------------------------------------------------


def test_stores_into_examples_are_stores_into_the_stack():
    def shifted(x, y):
        x[1:] = x[:-1] + y[0]
        y *= 2
        return x.sum()

    x, y = X.T.copy(), RNG.normal(size=(6, 1))
    ours, theirs = (x.copy(), y.copy()), (x.copy(), y.copy())
    expected = [shifted(theirs[0][:, k], theirs[1][k]) for k in range(6)]
    found = tm.vmap(shifted, in_axes=(1, 0))(*ours)
    np.testing.assert_allclose(found, expected)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


def test_stores_into_what_all_examples_share():
    def kept(x, log):
        log[0] = 7.0
        return x + log[1]

    log = np.arange(2.0)
    np.testing.assert_array_equal(tm.vmap(kept, in_axes=(0, None))(np.arange(3.0), log), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(log, [7.0, 1.0])

    def summed(x, log):
        log += x
        return x

    with pytest.raises(CaptureError, match="summed stores into log, which all examples share, a value that differs"):
        tm.vmap(summed, in_axes=(0, None))(np.arange(3.0), log)
    np.testing.assert_array_equal(log, [7.0, 1.0])


@pytest.mark.parametrize("select", [lambda x: x[x > 0], lambda x: np.unique(x), lambda x: np.flatnonzero(x > 0)])
def test_sizes_that_differ_are_refused_by_name(select):
    with pytest.raises(ShapeError, match="differs within the batch"):
        tm.vmap(select)(X)
    np.testing.assert_allclose(tm.vmap(lambda x: np.where(x > 0, x, 0).sum())(X), np.where(X > 0, X, 0).sum(1))


def test_how_many_different_values_there_are():
    x = RNG.integers(3, size=(5, 4))
    np.testing.assert_array_equal(tm.vmap(lambda r: len(np.unique(r)))(x), [len(np.unique(r)) for r in x])
    x = np.array([[np.nan, 0.0, np.nan, -0.0], [1.0, 2.0, 3.0, np.nan]])
    np.testing.assert_array_equal(tm.vmap(lambda r: np.unique(r).size)(x), [2, 4])


def test_draws_come_in_the_order_of_the_examples():
    def noisy(x, rng):
        y = x
        while y < 2.0:
            y = y + rng.random()
        return y

    x = np.array([0.0, 1.5, 3.0, 1.0])
    rng = np.random.default_rng(5)
    expected = [noisy(v, rng) for v in x]
    found = tm.vmap(noisy, in_axes=(0, None))(x, np.random.default_rng(5))
    np.testing.assert_allclose(found, expected, rtol=1e-15)


# derivatives of the user, and orders of composition -------------------------------------------------------------------


@tm.custom_gradient
def clipped(x):
    return np.sin(x), lambda cotangent: np.clip(x, -1, 1) * cotangent


def test_custom_gradients_and_checkpoints():
    def f(x):
        return (clipped(x) * x).sum()

    expected = np.clip(X, -1, 1) * X + np.sin(X)
    np.testing.assert_allclose(tm.vmap(tm.grad(f))(X), expected)
    np.testing.assert_allclose(tm.grad(lambda x: tm.vmap(f)(x).sum())(X), expected)
    inner = tm.checkpoint(lambda x: np.exp(np.sin(x)))
    found = tm.vmap(tm.grad(lambda x: inner(x).sum()))(X)
    np.testing.assert_allclose(found, np.exp(np.sin(X)) * np.cos(X))
    np.testing.assert_allclose(tm.grad(lambda x: tm.vmap(inner)(x).sum())(X), found)


def smooth(x):
    y = np.zeros(3)
    for i in range(3):
        y[i] = np.sin(x[i]) * x[(i + 1) % 3]
    return np.stack([(y * y).sum(), y.prod()])


def test_orders_of_composition_agree():
    x = RNG.normal(size=(2, 4, 3))
    single = np.stack([[tm.jacobian(smooth)(v) for v in row] for row in x])
    np.testing.assert_allclose(tm.vmap(tm.vmap(tm.jacobian(smooth)))(x), single, rtol=1e-12)
    flat = x.reshape(8, 3)
    whole = tm.jacobian(tm.vmap(smooth))(flat)
    assert whole.shape == (8, 2, 8, 3)
    for i, k in itertools.product(range(8), range(8)):
        block = single.reshape(8, 2, 3)[i] if i == k else np.zeros((2, 3))
        np.testing.assert_allclose(whole[i, :, k], block, rtol=1e-12, atol=1e-15)
    curved = np.stack([[tm.hessian(smooth)(v) for v in row] for row in x])
    np.testing.assert_allclose(tm.vmap(tm.vmap(tm.hessian(smooth)), in_axes=1)(x), np.swapaxes(curved, 0, 1))
    total = tm.hessian(lambda z: tm.vmap(smooth)(z).sum())(flat)
    for k in range(8):
        np.testing.assert_allclose(total[k, :, k], curved.reshape(8, 2, 3, 3)[k].sum(0), rtol=1e-11, atol=1e-14)
    weights = RNG.normal(size=(8, 2))
    pulled = tm.vmap(lambda v, w: tm.vjp(smooth, v)[1](w)[0])(flat, weights)
    np.testing.assert_allclose(pulled, np.einsum("nij,ni->nj", single.reshape(8, 2, 3), weights), rtol=1e-12)


def _kept_in_a_list(x, v):
    rows = [x, 1.0]
    y = v * 1.0
    if y[2] > x:
        return y.sum()
    y[::-1] += sum(rows) - y[1]
    rows.append(v[-1] * x)
    return y.sum()


def _counted(x, v):
    total = x
    if v[0] < x:
        for k in range(3):
            total = total * v[1] + k
    return total + v.sum()


def _stored(x, v):
    y = v.copy()
    if x > 1:
        y[0] = x * y[1]
        y[1:] += y[0]
    return (y * v).sum()


@pytest.mark.parametrize("function", [_kept_in_a_list, _counted, _stored])
@pytest.mark.parametrize("argnums", [0, 1, (0, 1)])
def test_gradients_through_branches_that_only_a_tape_leaves(function, argnums):
    """Backwards, a branch may read nothing of the batch but what it has recorded: that does not say how large the batch is."""
    x, v = np.array([0.3, 1.5, 2.5]), np.arange(9.0).reshape(3, 3) - 2
    slope = tm.grad(function, argnums)
    found = tm.vmap(slope)(x, v)
    rows = [slope(a, b) for a, b in zip(x, v, strict=True)]
    for k in range(2 if isinstance(argnums, tuple) else 1):
        one = found[k] if isinstance(argnums, tuple) else found
        np.testing.assert_allclose(one, np.stack([r[k] if isinstance(argnums, tuple) else r for r in rows]), rtol=1e-13)
