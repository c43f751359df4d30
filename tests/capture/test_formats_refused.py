"""A format that Python refuses for a value's class is its error where the text is made, whether or not anybody reads the text."""

import numpy as np
import pytest

import tensormagic as tm

pytestmark = pytest.mark.filterwarnings("ignore::tensormagic.ir.errors.PlainRunWarning")


def f_string(x):
    s = f"{x:.2f}"  # noqa: F841
    return x


def percent(x):
    s = "%d" % x  # noqa: F841, UP031
    return x


def method(x):
    s = "{:5.1f}".format(x)  # noqa: F841, UP032
    return x


def function(x):
    s = format(x, "e")  # noqa: F841
    return x


def in_an_exception(x):
    class BadError(Exception):
        def __init__(self, v):
            super().__init__(f"{v:.2f}")
            self.v = v

    try:
        raise BadError(x)  # noqa: TRY301
    except BadError as e:
        return e.v * 2


def caught(x):
    try:
        raise ValueError(f"{x:.2f}")  # noqa: TRY301
    except ValueError:
        return x
    except TypeError:
        return -x


def in_a_branch(x):
    if np.sum(x) > 100:
        s = f"{x:d}"  # noqa: F841
    return x


def of_integers(x):
    s = f"{x:d}"  # noqa: F841
    return x


def in_a_loop(x):
    for _ in range(2):
        s = f"{x:,}"  # noqa: F841
    return x


def converted(x):
    return x, len(f"{x!s:>10}") > 0


PROGRAMS = (
    f_string, percent, method, function, in_an_exception, caught, in_a_branch, of_integers, in_a_loop, converted,
)  # fmt: skip
VALUES = (
    np.array([1.0]), np.array([1.0, 2.0]), np.array(1.0), np.float64(1), 1.0, 3, np.int64(3), 1j, np.array([[1]]), np.array([]),
)  # fmt: skip


def outcome(call, x):
    try:
        return repr(call(x))
    except (TypeError, ValueError, DeprecationWarning) as error:  # NumPy before 2.4 warns, which is an error here
        return isinstance(error, TypeError), str(error)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("tier", ["numpy", "auto"])
def test_as_python(program, tier):
    with tm.config.using(tier=tier):
        captured = tm.tensor(program)
        for x in VALUES:
            assert outcome(captured, x) == outcome(program, x), x


def test_compiled_and_gradients():
    with pytest.raises(TypeError, match="unsupported format string"):
        tm.compile(f_string, "float64[n]")(np.ones(3))
    with pytest.raises(TypeError, match="unsupported format string"):
        tm.grad(lambda x: f_string(x).sum())(np.ones(3))
