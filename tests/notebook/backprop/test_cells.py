"""Arrays as strips of squares."""

from __future__ import annotations

import re

import numpy as np

from tensormagic.notebook.backprop.cells import extent, strip
from tensormagic.notebook.backprop.frame import described


def squares(value: np.ndarray) -> list[tuple[str, float, float]]:
    """The kind, the width and the fullness of each square."""
    quantity = described(value)
    drawn = strip(quantity, quantity.pack(value), 0.0, 0.0, "value")
    found = re.findall(
        r'class="(above|below)" x="[^"]*" y="[^"]*" width="([^"]*)" height="[^"]*" fill-opacity="([^"]*)"', drawn
    )
    return [(kind, float(side), float(fullness)) for kind, side, fullness in found]


def test_negative_elements_are_smaller_and_of_another_kind():
    assert squares(np.array([2.0, -2.0, 1.0, 0.0])) == [
        ("above", 6.0, 1.0),
        ("below", 3.5, 1.0),
        ("above", 6.0, 0.56),
        ("above", 6.0, 0.12),
    ]


def test_what_is_no_number_is_empty():
    assert squares(np.array([np.nan, np.inf, -1.0, 0.0]))[:3] == [
        ("above", 6.0, 0.0),
        ("above", 6.0, 0.0),
        ("below", 3.5, 1.0),
    ]


def test_numbers_and_short_vectors_have_no_strip():
    assert extent(described(1.0)) == extent(described(np.ones(3))) == (0.0, 0.0)
    assert extent(described(np.ones((3, 2)))) == (14.0, 21.0)
    assert extent(described(np.ones((100, 100)))) == (84.0, 42.0)
