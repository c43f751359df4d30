"""Programs in which data decide what a name means: an array or another one, a value or None, a number of one class or another."""

import copy
import linecache
import math
import warnings

import numpy as np
import pytest

import tensormagic as tm


def swapped_or_one(x):
    a, b = np.zeros(3), np.ones(3)
    if x > 1:
        a, b = b, a
    else:
        a = b
    a[0] = 9
    return b, a


def swapped_or_other(x):
    a, b = np.zeros(3), np.ones(3)
    if x > 1:
        a, b = b, a
    else:
        b = a
    b += 5
    return b, a


def turned_or_one(x):
    a, b, c = np.zeros(3), np.ones(3), np.arange(3.0)
    if x > 1:
        a, b, c = b, c, a
    else:
        a, b, c = b, b, a  # noqa: PLW0127
    b[1] = 7
    return a, b, c


def turned_and_read_first(x):
    a, b, c = np.zeros(3), np.ones(3), np.arange(3.0)
    if x > 1:
        c, a, b = a, b, c
    else:
        c, b = b, b  # noqa: PLW0127
    b *= 3
    c -= 1
    return a, b, c


def stored_in_a_loop(x):
    a, b = np.zeros(3), np.ones(3)
    if x > 1:
        a, b = b, a
    else:
        a = b
    for i in range(3):
        a[i] += i
    return b.sum(), a.sum()


def kept_in_a_tuple(x):
    a, b = np.zeros(3), np.ones(3)
    p = (b, a) if x > 1 else (b, b)
    p[0][0] = 4
    return p[1], p[0]


def nested(x):
    a, b = np.zeros(3), np.ones(3)
    if x > 0:
        if x > 1:
            a, b = b, a
        else:
            a = b
    a[2] = x
    return b, a


def is_one(x):
    a, b = np.zeros(3), np.ones(3)
    if x > 1:
        a, b = b, a
    else:
        a = b
    return a is b


SHARED = [swapped_or_one, swapped_or_other, turned_or_one, turned_and_read_first, stored_in_a_loop, kept_in_a_tuple]
SHARED += [nested, is_one]


def same(found, expected):
    assert type(found) is type(expected)
    if isinstance(expected, tuple | list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    elif isinstance(expected, np.ndarray | np.generic):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
    else:
        assert found == expected


def outcome(f, args):
    try:
        return f(*args), args
    except (AttributeError, TypeError) as error:
        return (AttributeError if isinstance(error, AttributeError) else TypeError), str(error)


def check(f, *several):
    made = tm.tensor(f)
    with tm.config.using(tier="numpy"), warnings.catch_warnings(action="ignore"):
        for args in several * 2:
            same(outcome(made, copy.deepcopy(args)), outcome(f, copy.deepcopy(args)))


@pytest.mark.parametrize("f", SHARED, ids=lambda f: f.__name__)
def test_a_store_reaches_all_names_of_an_array_that_a_branch_has_exchanged(f):
    check(f, (2.0,), (0.5,), (-1.0,))


def test_gradients_go_through_stores_into_exchanged_arrays():
    def f(x):
        a, b = x * 2, x * 3
        if x[0] > 1:
            a, b = b, a
        else:
            a = b
        a[0] = x[1] ** 2
        return (a * b).sum()

    with tm.config.using(tier="numpy"):
        for x in (np.array([2.0, 3.0]), np.array([0.5, 3.0])):
            steps = np.eye(2) * 1e-6
            expected = [(f(x + h) - f(x - h)) / 2e-6 for h in steps]
            np.testing.assert_allclose(tm.grad(f)(x), expected, rtol=1e-6)


# a value or None ------------------------------------------------------------------------------------------------------


def dimensions(x, y):
    v = None if x < 0 else y
    return v.ndim


def shape(x, y):
    v = y * 2 if x > 0 else None
    return v.shape


def dtype_of_item(x, y):
    v = None if x < 0 else y[0]
    return v.dtype


def length(x, y):
    v = None if x < 0 else y
    return len(v)


def has_a_shape(x, y):
    v = None if x < 0 else y
    return hasattr(v, "shape"), hasattr(v, "nothing"), hasattr(v, "__eq__")


def has_a_shape_in_a_branch(x, y):
    v = None if x < 0 else y
    return v.sum() if hasattr(v, "shape") else -1.0


def truth(x, y):
    v = None if x < 0 else y[:1]
    return 1 if v else 2


def truth_of_several(x, y):
    v = None if x < 0 else y
    return 1 if x < 0 and v else 2


def asked_after(x, y):
    v = None if x < 0 else y
    return len(v) + v.ndim if v is not None else 0


NONE = [dimensions, shape, dtype_of_item, length, has_a_shape, has_a_shape_in_a_branch, truth, truth_of_several]


@pytest.mark.parametrize("f", [*NONE, asked_after], ids=lambda f: f.__name__)
def test_what_is_none_has_what_none_has(f):
    check(f, (1.0, np.ones(2)), (-1.0, np.ones(2)), (2.0, np.arange(3.0)))


# a number of one class or another -------------------------------------------------------------------------------------


def dtype(x):
    k = np.uint8(7) if x > 0 else np.int16(3)
    return k.dtype, k.dtype.name, k.itemsize


def dtype_of_floats(x):
    k = np.float32(1.5) if x > 0 else np.float64(2.5)
    return np.zeros(2, k.dtype), k.dtype == np.float32, k.nbytes


def largest(x):
    k = np.int8(100) if x > 0 else np.int32(100)
    return np.iinfo(k.dtype).max


def dtype_after_a_loop(x):
    k = np.float32(1)
    while x > 1:
        x = x / 2
        k = np.float64(2)
    return k.dtype


def has_a_dtype(x):
    k = np.float64(1.5) if x > 0 else 2.5
    return hasattr(k, "dtype"), hasattr(k, "real"), getattr(k, "dtype", None)


def is_true(x):
    return (x > 0) is np.True_, (x > 0) is True, (x > 0) is np.False_, (x > 0) is not np.True_


@pytest.mark.parametrize(
    "f", [dtype, dtype_of_floats, largest, dtype_after_a_loop, has_a_dtype, is_true], ids=lambda f: f.__name__
)
def test_a_number_has_the_class_that_data_give_it(f):
    check(f, (2.0,), (-2.0,), (np.float64(3.0),), (np.float64(-3.0),))


# an array without axes, or a number -----------------------------------------------------------------------------------


def added(x, a):
    v = a if x > 0 else 3.5
    v += 1
    return v


def added_to_another_name(x, a):
    v = a if x > 0 else 3.5
    w = v
    w *= 2
    return v, w


def given_back(x, a):
    v = 3.5
    if x > 0:
        v = a
    return v


def stored_whole(x, a):
    v = 2.0 if x < 0 else a
    if x > 0:
        v[...] = x
    return v


def a_part(x, a):
    v = a.reshape(()) if x > 0 else 1
    v -= 1
    return v


@pytest.mark.parametrize(
    "f", [added, added_to_another_name, given_back, stored_whole, a_part], ids=lambda f: f.__name__
)
def test_an_array_without_axes_stays_one_where_data_choose_it(f):
    check(f, (2.0, np.array(2.5)), (-2.0, np.array(2.5)), (1.0, np.array(7.0)))


# a list or another one ------------------------------------------------------------------------------------------------


def chosen_list(x, p, q):
    v = p if x > 0 else q
    return v is p, v is q, v is v  # noqa: PLR0124


def chosen_local(x, p, q):
    one, other = [p[0]], [q[0]]
    v = one if x > 0 else other
    return v is one, v is not one


def chosen_dictionary(x, p, q):
    d, e = {"a": p}, {"a": q}
    v = e
    if x > 0:
        v = d
    return v is d, v is e


def chosen_in_a_loop(x, p, q):
    v = p
    while x > 1:
        x = x / 2
        v = q
    return v is p


def chosen_in_a_list(x, p, q):
    v = p if x > 0 else q
    return [w is v for w in (p, q)]


@pytest.mark.parametrize(
    "f", [chosen_list, chosen_local, chosen_dictionary, chosen_in_a_loop, chosen_in_a_list], ids=lambda f: f.__name__
)
def test_is_knows_the_list_that_data_choose(f):
    check(f, (2.0, [1.0], [2.0]), (-2.0, [1.0], [2.0]), (0.5, [3.0], [4.0]))


# early returns --------------------------------------------------------------------------------------------------------


def first_negative(x):
    for i in range(len(x)):
        if x[i] < 0:
            return x[i] * 2
    return x[0]


def until_large(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i] ** (i + 1)
        if total > 20:
            return total / x[0]
    return total


def halved(x):
    k = 0
    while k < 5:
        x = x * 0.7
        k += 1
        if (x * x).sum() < 1:
            return (x**2).sum()
    return x.sum()


def tree(x):
    if x[0] > 1:
        if x[1] > 1:
            return x[0] * x[1]
        z = x[0] - x[1]
        if z > 2:
            return z**2
    else:
        z = x[0] + x[1]
    return z * 3


def stored(x):
    y = x.copy()
    for i in range(len(x) - 1):
        y[i + 1] += y[i] ** 2
        if y[i + 1] > 4:
            return y.sum() * y[i]
    return y[-1]


def rooted(x):
    n = np.sqrt((x**2).sum())
    return np.where(n > 0, np.log(np.where(n > 0, n, 1.0)), 0.0) + (x / n if n > 0 else x).sum()


@pytest.mark.parametrize("tier", ["numpy", "auto"])
@pytest.mark.parametrize("f", [first_negative, until_large, halved, tree, stored, rooted], ids=lambda f: f.__name__)
def test_gradients_of_early_returns_are_computed(f, tier):
    with tm.config.using(tier=tier):
        for x in (np.array([1.5, 2.0, 0.5]), np.array([1.5, -2.0, 0.5]), np.array([0.5, 0.7, 5.0])):
            steps = np.eye(3) * 1e-6
            expected = [(f(x + h) - f(x - h)) / 2e-6 for h in steps]
            np.testing.assert_allclose(tm.grad(f)(x), expected, rtol=1e-5, atol=1e-6)
            assert math.isclose(tm.value_and_grad(f)(x)[0], f(x))


ASKED = (
    "np.ndim(v)",
    "np.shape(v)",
    "np.size(v)",
    "np.isscalar(v)",
    "np.isscalar(w)",
    "np.ndim(w)",
    "np.shape(v) == (3,)",
)


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
@pytest.mark.parametrize("question", ASKED)
def test_what_numpy_answers_of_none(question):
    text = (
        f"def f(x):\n    v = x if x.sum() > 2 else None\n    w = x[0] if x.sum() > 2 else None\n    return {question}\n"
    )
    names = {"np": np}
    exec(compile(text, "<asked of none>", "exec"), names)
    linecache.cache["<asked of none>"] = len(text), None, text.splitlines(keepends=True), "<asked of none>"
    function, x = tm.tensor(names["f"]), np.arange(3.0)
    for value in (x, x, x * 0, x * 0, x):
        assert function(value) == names["f"](value)
