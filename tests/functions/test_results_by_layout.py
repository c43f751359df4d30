"""Whether a result is a part of an argument or a copy is decided by how each call's argument lies in memory, as in NumPy."""

import itertools

import numpy as np
import pytest

import tensormagic as tm

pytestmark = pytest.mark.filterwarnings("ignore::tensormagic.ir.errors.PlainRunWarning")


class Holder:
    def __init__(self, x):
        self.x = x

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.x, dtype=dtype)


def ravelled(x):
    return x.ravel()


def beside(x):
    return x.T, x.ravel()


def listed(x):
    return [x.reshape(-1)]


def contiguous(x):
    return np.ascontiguousarray(x)


def fortran(x):
    return np.asfortranarray(x), x


def turned(x):
    return x.T.reshape(-1)


def narrowed(x):
    return x[:, :1].ravel()


def computed(x):
    y = x * 2
    return y[:, :1].reshape(-1), y


def chosen(x):
    return x.ravel() if x.sum() > 0 else x.reshape(-1)


def copies(x):
    return x.copy(), x.flatten()


def held(x):
    return np.asarray(Holder(x))


def held_copy(x):
    return np.array(Holder(x)), np.array(Holder(x[1:]), copy=False)


def stored(x):
    y = np.asarray(Holder(x))
    y[0] = 5
    return y


ARRAYS = (
    lambda: np.arange(8.0).reshape(4, 2)[::2],
    lambda: np.arange(4.0).reshape(2, 2),
    lambda: np.arange(8.0).reshape(2, 4)[:, ::2],
    lambda: np.arange(4.0).reshape(2, 2).T,
    lambda: np.arange(4.0).reshape(2, 2)[:, ::-1],
    lambda: np.arange(4.0).reshape(2, 2),
)
PROGRAMS = (
    ravelled, beside, listed, contiguous, fortran, turned, narrowed, computed, chosen, copies, held, held_copy, stored,
)  # fmt: skip


def shared(result, x):
    found = result if isinstance(result, tuple | list) else [result]
    return [(a is b, np.shares_memory(a, b)) for a, b in itertools.combinations([*found, x], 2)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("tier", ["numpy", "auto"])
@pytest.mark.parametrize("step", [1, -1])
def test_as_numpy(program, tier, step):
    with tm.config.using(tier=tier):
        captured = tm.tensor(program)
        for make in ARRAYS[::step]:
            expected, x = program(own := make()), make()
            found = captured(x)
            assert shared(found, x) == shared(expected, own)
            np.testing.assert_array_equal(x, own)


def test_lines_of_one_axis():
    captured = tm.tensor(ravelled)
    with tm.config.using(tier="numpy"):
        for x in (np.arange(8.0)[::2], np.arange(4.0), np.arange(8.0)[::-2], np.arange(4.0)):
            assert np.shares_memory(captured(x), x) == np.shares_memory(x.ravel(), x)
