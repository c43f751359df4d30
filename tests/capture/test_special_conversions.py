"""What special methods of users' classes give, and get: as in Python and NumPy, of the class that these name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensormagic as tm

X = np.arange(3.0)
GIVES = {
    "bool": lambda x: bool(x.sum() > 0),
    "numpy bool": lambda x: x.any(),
    "known bool": lambda x: np.bool_(True),
    "int": lambda x: len(x),
    "numpy int": lambda x: x.argmax(),
    "known int": lambda x: np.int64(2),
    "float": lambda x: float(x.sum()),
    "numpy float": lambda x: x.sum(),
    "array": lambda x: x[:1],
    "complex": lambda x: complex(x.sum(), 1.0),
    "none": lambda x: None,
}
USES = {
    "__bool__": lambda o: (1 if o else 0, not o, bool(o)),
    "__int__": lambda o: int(o),
    "__float__": lambda o: float(o),
    "__complex__": lambda o: complex(o),
    "__len__": lambda o: (len(o), 1 if o else 0, bool(o)),
}


def _seen(call: Any) -> str:
    try:
        return repr(call())
    except TypeError as error:
        return f"TypeError: {error}"


@pytest.mark.parametrize("gives", GIVES)
@pytest.mark.parametrize("name", USES)
@pytest.mark.filterwarnings("ignore:.*strict subclass:DeprecationWarning")
def test_conversions_take_what_python_takes(name: str, gives: str):
    kind: Any = type("Kind", (), {})
    give, use = GIVES[gives], USES[name]

    def method(self: Any) -> Any:
        return give(self.x)

    setattr(kind, name, method)

    def f(o: Any, x: Any) -> Any:
        o.x = x
        return use(o)

    captured = tm.tensor(f)
    for k in range(2):
        assert _seen(lambda: captured(kind(), X + k)) == _seen(lambda: f(kind(), X + k))  # noqa: B023


def test_a_length_of_data_is_not_negative():
    class Short:
        def __init__(self, n: Any) -> None:
            self.n = n

        def __len__(self) -> int:
            return self.n

    def f(x: Any) -> Any:
        return len(Short(x.argmax() - 1))

    captured = tm.tensor(f)
    assert captured(X) == 1
    assert captured(X) == 1
    with pytest.raises(ValueError, match="should return >= 0"):
        captured(-X)


class Other:
    """An operand that NumPy makes an array of objects of."""

    def __radd__(self, other: Any) -> Any:
        return "radd", type(other), other

    def __rmul__(self, other: Any) -> Any:
        return "rmul", type(other), other

    def __rpow__(self, other: Any) -> Any:
        return "rpow", type(other), other

    def __lt__(self, other: Any) -> Any:
        return "lt", type(other), other

    def __eq__(self, other: object) -> Any:
        return "eq", type(other), other

    def __add__(self, other: Any) -> Any:
        return "add", type(other), other

    __hash__ = None  # type: ignore[assignment]


class First(Other):
    """One that asks for the operator."""

    __array_priority__ = 10.0


class Unknown:
    """One that has no operators."""


NUMBERS = {
    "float64": lambda x: x.sum(),
    "float32": lambda x: x.astype(np.float32).sum(),
    "int": lambda x: x.argmax(),
    "bool": lambda x: x.any(),
    "complex": lambda x: (x + 1j).sum(),
    "python": lambda x: float(x.sum()),
}
OPERATORS = {
    "add": lambda n, o: n + o,
    "mul": lambda n, o: n * o,
    "pow": lambda n, o: n**o,
    "greater": lambda n, o: n > o,
    "equal": lambda n, o: n == o,
    "behind": lambda n, o: o + n,
}


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")  # what is refused gives what Python does
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("kind", [Other, First, Unknown])
def test_objects_get_numbers_of_the_class_that_numpy_gives_them(number: str, operator: str, kind: Any):
    make, apply = NUMBERS[number], OPERATORS[operator]

    def f(x: Any) -> Any:
        return apply(make(x), kind())

    captured = tm.tensor(f)
    for k in range(2):
        want, got = _seen(lambda: f(X + k)), _seen(lambda: captured(X + k))  # noqa: B023
        assert got == want or (kind is Unknown and got[:9] == want[:9] == "TypeError")


def test_whole_arrays_go_to_objects_that_ask_for_them():
    def f(x: Any) -> Any:
        return x + First(), x > First()

    want, got = f(X), tm.tensor(f)(X)
    for a, b in zip(want, got, strict=True):
        assert a[:2] == b[:2]
        np.testing.assert_array_equal(a[2], b[2])


@pytest.mark.parametrize("use", [lambda x: x + Other(), lambda x: x > Other(), lambda x: x * Unknown()])
def test_arrays_of_objects_are_refused(use: Any):
    with pytest.raises(tm.CaptureError, match="array of objects"):
        tm.tensor(lambda x: use(x)).graph(X)


@pytest.mark.parametrize("use", [range, lambda n: [1, 2][n], lambda n: "a" * n, lambda n: [0] * n])
@pytest.mark.parametrize("number", ["float64", "bool", "complex"])
def test_what_is_no_integer_is_no_index(use: Any, number: str):
    def f(x: Any) -> Any:
        return use(NUMBERS[number](x))

    with pytest.raises(TypeError):
        f(X)
    with pytest.raises(
        TypeError,
        match=f"{number.removesuffix('64')}.*integer|integers or slices, not numpy.{number}|non-int of type 'numpy.{number}",
    ):
        tm.tensor(f)(X)
