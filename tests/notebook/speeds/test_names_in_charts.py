"""The names of points stand free in the chart of what the machine can do, wherever the points lie."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations

import pytest

from tensormagic.backend.planning.costs import Cost
from tensormagic.notebook.pictures.labels import width
from tests.notebook.speeds.test_speed_view import drawn, figures

NAMES = {"NumPy", "tensormagic"}
PLACES = {  # work of NumPy's and of compiled code, and their seconds
    "one beside the other": ((10**6, 2 * 10**6, 10**7), (10**6, 2 * 10**6, 9 * 10**6), (1e-3, 9e-4)),
    "one place": ((10**6, 2 * 10**6, 10**7), (10**6, 2 * 10**6, 10**7), (1e-3, 1e-3)),
    "far apart": ((10**6, 2 * 10**6, 10**8), (10**6, 2 * 10**6, 10**5), (1e-1, 1e-4)),
    "below the limit": ((10**8, 10**8, 10**7), (10**8, 10**8, 10**6), (1e-2, 2.1e-3)),
    "at the right side": ((10**9, 10**10, 10**6), (10**9, 10**10, 10**6), (0.3, 0.25)),
    "one above the other": ((10**6, 2 * 10**6, 10**7), (10**6, 2 * 10**6, 10**7), (1e-3, 7e-4)),
}


@pytest.mark.parametrize("name", PLACES)
def test_names_do_not_stand_over_each_other(name):
    by_numpy, by_plan, seconds = PLACES[name]
    found = replace(figures(seconds, by_plan=Cost(*by_plan)), by_numpy=Cost(*by_numpy))
    page, _ = drawn(found, "\nz")
    chart = next(part for part in re.findall(r"<svg.*?</svg>", page, re.DOTALL) if "flops a byte" in part)
    boxes, texts = [], []
    for x, y, kind, anchor, text in re.findall(
        r'<text x="([\d.-]+)" y="([\d.-]+)" class="([^"]*)"(?: text-anchor="(\w+)")?>([^<]*)<', chart
    ):
        if text in NAMES or text.endswith("flop/s"):
            long = width(text, 12, bold="bold" in kind)
            left = float(x) - (long if anchor == "end" else long / 2 if anchor == "middle" else 0)
            boxes.append((left, float(y) - 11, left + long, float(y) + 3))
            texts.append(text)
    marks = [
        (float(x), float(y) - 5, float(x) + 10, float(y) + 5) for x, y in re.findall(r"M([\d.]+) ([\d.]+)a5 5", chart)
    ]
    assert len(boxes) == 4
    for one, other in [*combinations(boxes, 2), *((box, mark) for box in boxes for mark in marks)]:
        assert not (one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3])
    assert all(box[0] >= 0 and box[2] <= 250 for box in boxes)
    roof = min(
        float(y)
        for _, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", "".join(re.findall(r'd="([^"]*)" class="roof', chart)))
    )
    assert all(box[3] < roof for box, text in zip(boxes, texts, strict=True) if text in NAMES)
