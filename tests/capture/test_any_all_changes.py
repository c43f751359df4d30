"""``any`` and ``all`` of a generator expression ask no more than Python asks, where what they call changes something."""

import functools

import pytest

import tensormagic as tm
from tensormagic.ir.errors import TensorError

pytestmark = pytest.mark.filterwarnings("ignore::tensormagic.ir.errors.PlainRunWarning")


def in_a_list(x, y):
    seen = []

    def test(v):
        seen.append(v)
        return v > 0

    return any(test(v) for v in (x, y)), len(seen)


def in_a_dictionary(x, y):
    seen = {}

    def test(v):
        seen[len(seen)] = v
        return v > 0

    return all(test(v) for v in [x, y]), len(seen)


def in_an_object(x, y):
    class Counter:
        n = 0

        def test(self, v):
            self.n += 1
            return v > 0

    c = Counter()
    return any(c.test(v) for v in [x, y]), c.n


def in_the_expression(x, y):
    seen = []
    return any((seen.append(v), v > 0)[1] for v in (x, y)), len(seen)


def in_a_set(x, y):
    seen = set()

    def test(v):
        seen.add(len(seen))
        return v > 0

    return all(test(v) for v in (x, y)), len(seen)


def by_partial(x, y):
    seen = []

    def test(limit, v):
        seen.append(v)
        return v > limit

    above = functools.partial(test, 0)
    return any(above(v) for v in (x, y)), len(seen)


def in_a_condition(x, y):
    seen, r = [], 0.0

    def test(v):
        seen.append(v)
        return v > 0

    if any(test(v) for v in (x, y)):
        r = x * 2
    return r, len(seen)


def in_a_loop(x, y):
    seen, found = [], []

    def test(v):
        seen.append(v)
        return v > 0

    for k in range(3):
        if any(test(v - k) for v in [y, x]):
            found.append(k)  # noqa: PERF401
    return found, len(seen)


PROGRAMS = (
    in_a_list, in_a_dictionary, in_an_object, in_the_expression, in_a_set, by_partial, in_a_condition, in_a_loop,
)  # fmt: skip
VALUES = ((1.0, 2.0), (-1.0, 2.0), (-1.0, -1.0), (2.0, -1.0))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("tier", ["numpy", "auto"])
def test_as_python(program, tier):
    with tm.config.using(tier=tier):
        captured = tm.tensor(program)
        for values in VALUES:
            assert captured(*values) == program(*values), values


def test_gradients():
    def counted(x, y):
        seen = [0]

        def test(v):
            seen[0] += 1
            return v > 0

        return x * seen[0] if any(test(v) for v in (x, y)) else y * seen[0]

    for values in VALUES:
        count = in_a_list(*values)[1]
        expected = (count, 0.0) if max(values) > 0 else (0.0, count)
        assert tm.grad(counted, (0, 1))(*values) == expected
        assert tm.compile(counted, 1.0, 2.0)(*values) == counted(*values)


def test_lists_that_grow_are_refused_by_derivatives():
    with pytest.raises(TensorError, match="grows"):
        tm.grad(lambda x, y: x * in_a_list(x, y)[1])(1.0, 2.0)
