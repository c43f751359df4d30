"""Results that data choose among parts of arrays, and among computed arrays: which object each is, and what shares memory, as in Python."""

import contextlib
import warnings

import numpy as np
import pytest

import tensormagic as tm

pytestmark = pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")


def a_part_or_an_array(a, b, t):
    m = b.T
    return [a if t > 0 else m, m]


def a_part_of_a_computed_one(a, b, t):
    y = a * 2
    m = y.T
    return {"a": y if t > 0 else m, "b": [m, y]}


def two_that_are_one_part(a, b, t):
    m = a.T
    return (a if t > 0 else m), (b if t > 0 else m)


def one_of_several_parts(a, b, t):
    rows = [a[0], a[1]]
    return (rows[0] if t > 0 else rows[1]), rows


def a_part_of_one_of_two(a, b, t):
    m, n = a[0], b[0]
    k = m if t > 0 else n
    return k[1:], k, m, n


def a_part_of_what_was_chosen_before(a, b, t):
    y = b
    if t <= 0:
        y = a
    return b if t > 0.7 else y[::-1]


def in_a_loop(a, b, t):
    m, k = a.T, a
    for i in range(2):
        if t > i:
            k = m
    return k, m


def in_a_while_loop(a, b, t):
    m = a.T
    k, i = m, 0
    while i < t:
        k = b.T if i == 1 else m
        i += 1
    return k, m, a


def two_of_one_computed(a, b, t):
    y, z = a * 2, b + 1
    return (y if t > 0 else z), (y if t > -0.7 else z)


def exchanged(a, b, t):
    y, z = a * 2, b + 1
    low, high = (y, z) if t > 0 else (z, y)
    return low, high, low[0]


def results_of_two_forms(a, b, t):
    y = a + 1
    if t > 0:
        return y, y, b
    return y + 1


def leaves_a_try(a, b, t):
    y = a * 2
    try:
        if t > 0:
            return y, y[1:]
        z = y + 1
        return z, z[:1]
    finally:
        b[0] += 1


def leaves_a_try_with_other_results(a, b, t):
    y = a
    try:
        if t > 0:
            return b, y[0:2]
        y = y[::-1]
    finally:
        pass
    return y[0:2]


def leaves_a_try_with_one_twice(a, b, t):
    y = z = a * 2
    try:
        if t > 0:
            return y + 1
        return (y if t > -0.7 else z), y
    finally:
        b[0, 0] += 1


def leaves_a_loop_in_a_try(a, b, t):
    try:
        for i in range(3):
            y = a * i
            if y[1, 1] > t:
                return y, y.T
    finally:
        b[0] += 1
    return b, b


def leaves_a_with(a, b, t):
    z = a.T[::-1]
    with contextlib.ExitStack():
        if t > 0:
            return b.T, a.T
        if t > -0.7:
            return a[:, ::-1], a[0:2]
    return a.copy(), z[::-1]


def what_is_stored_into_meanwhile(a, b, t):
    y = b[::-1]
    z = y
    try:
        if t > 0:
            z = y * 2
            return y.reshape(2, 2), (y[1:] if t > 0 else z[:1])
        return y.copy(), (y.T if t > 0 else b)
    finally:
        b[0, 0] += 1


PROGRAMS = [
    a_part_or_an_array, a_part_of_a_computed_one, two_that_are_one_part, one_of_several_parts, a_part_of_one_of_two,
    a_part_of_what_was_chosen_before, in_a_loop, in_a_while_loop, two_of_one_computed, exchanged, results_of_two_forms, leaves_a_try,
    leaves_a_try_with_other_results, leaves_a_try_with_one_twice, leaves_a_loop_in_a_try, leaves_a_with, what_is_stored_into_meanwhile,
]  # fmt: skip


def arrays_in(value):
    if isinstance(value, np.ndarray):
        return [value]
    parts = value.values() if isinstance(value, dict) else value
    return [array for part in parts for array in arrays_in(part)]


def related(args, result):
    """For each two arrays of arguments and results whether they are one, and whether they share memory; and the values."""
    every = arrays_in(args) + arrays_in(result)
    pairs = [(every[i] is every[j], np.shares_memory(every[i], every[j])) for i in range(len(every)) for j in range(i)]
    return pairs, [v.tolist() for v in every]


def given():
    return np.arange(4.0).reshape(2, 2), np.ones((2, 2)) * 2


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_in_python(program):
    function = tm.tensor(program)
    for t in (1.0, -1.0, 0.5, 2.5, -0.5, -1.0):
        for _ in range(2):
            one, other = given(), given()
            assert related(other, function(*other, t)) == related(one, program(*one, t)), t


@pytest.mark.parametrize(
    "program",
    [a_part_or_an_array, a_part_of_a_computed_one, two_of_one_computed, exchanged, in_a_loop],
    ids=lambda p: p.__name__,
)
@pytest.mark.parametrize("t", [1.0, -1.0])
def test_values_of_gradients_and_compiled_code(program, t):
    a, b = given()
    compiled = tm.compile(program, a, b, t)
    found, expected = arrays_in(compiled(a, b, t)), arrays_in(program(a, b, t))
    assert all(map(np.array_equal, found, expected))
    slope = tm.grad(lambda a: sum((v**2).sum() for v in arrays_of(program(a, b, t))))(a)
    step = 1e-6
    for k in range(4):
        moved = np.zeros(4)
        moved[k] = step
        ends = [sum((v**2).sum() for v in arrays_in(program(a + s * moved.reshape(2, 2), b, t))) for s in (1, -1)]
        assert slope.ravel()[k] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5, abs=1e-5)


def arrays_of(value):
    parts = value.values() if isinstance(value, dict) else value
    found = []
    for part in parts:
        if isinstance(part, list | tuple):
            found += list(part)
        else:
            found.append(part)
    return found


def test_what_is_exchanged_by_data_is_captured():
    function = tm.tensor(exchanged)
    with warnings.catch_warnings(action="error", category=tm.PlainRunWarning):
        for t in (1.0, -1.0, 1.0):
            function(*given(), t)
