"""Python's integers that are divided by zero: an error when the graph runs, on either tier; NumPy's numbers divide as NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tests.capture.harness import check


@pytest.mark.parametrize(
    "divide", [lambda a, b: a // b, lambda a, b: a % b, lambda a, b: a / b, lambda a, b: divmod(a, b)[0]]
)
@pytest.mark.usefixtures("tier")
def test_by_the_number_of_a_iteration(divide: Any):
    def folded(k):
        v = 0
        for i in range(k[0]):
            v = v + divide(7, i - 1)
        return v

    captured = tm.tensor(folded)
    for iterations in (0, 1, 2, 3):
        given = np.array([iterations])
        try:
            expected: Any = folded(given)
        except ZeroDivisionError as error:
            with pytest.raises(ZeroDivisionError, match=str(error)):
                captured(given)
        else:
            assert captured(given) == expected


def test_in_cells():
    check("a = 7 // int(k[0])", k=np.array([0]))
    check("a = sum([7 // i for i in range(k[0])])", k=np.array([2]))
    check("a = 7 // int(k[0])\nb = int(k[0]) % 2", k=np.array([3]))
    with np.errstate(divide="ignore"):
        check("a = k[0] // 0\nb = 7 // k[0]", k=np.array([0]))


def test_what_is_no_zero_is_not_checked():
    def halves(x):
        y = x.copy()
        for i in range(len(x)):
            y[i // 2] = x[i] + 7 // (i + 1) + i % len(x)
        return y

    def checked(x):
        y = x.copy()
        for i in range(len(x)):
            y[i] = 7 // (i - 9)
        return y

    x = np.arange(4.0)
    assert "require" not in tm.tensor(halves).graph(x).text
    assert "require" in tm.tensor(checked).graph(x).text
