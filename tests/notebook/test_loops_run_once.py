"""A loop of a cell runs once: for its value, the state of a generator, other names, and the pictures of its graph."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ops.regions.loops import Repeat

DRAWS = """%%tensor
rng = np.random.default_rng(3)
hits = 0
for i in range(200):
    x = rng.random()
    y = rng.random()
    if x * x + y * y < 1:
        hits += 1
4 * hits / 200"""

TWO = """%%tensor
total, largest = 0.0, 0.0
for v in data:
    total += np.sin(v)
    largest = np.maximum(largest, total)
total"""


@pytest.fixture
def runs(monkeypatch):
    """The iterations of loops that NumPy ran."""
    found: list[int] = []
    own = Repeat.consume

    def consume(self, node, values, size):
        found.append(int(values[0]) if self.counted else 0)
        return own(self, node, values, size)

    monkeypatch.setattr(Repeat, "consume", consume)
    monkeypatch.setattr(tm.config, "tier", "numpy")
    return found


@pytest.mark.parametrize("cell", [DRAWS, TWO], ids=["draws", "two results"])
def test_once_for_all_that_a_cell_has(cell, runs, notebook):
    notebook["data"] = np.linspace(0, 3, 200)
    notebook.ok(cell)
    names = ("hits", "x", "y") if "hits" in cell else ("largest",)
    values = [float(notebook[name]) for name in names]
    assert runs == [200]
    plain = cell.partition("\n")[2]
    notebook.ok(plain)
    assert [float(notebook[name]) for name in names] == values


def test_pictures_run_no_loop(runs, notebook):
    shown = notebook.ok(DRAWS.replace("rng(3)", "rng(4)")).displays  # values of the other one may be there
    assert runs == [200]
    text = "".join(str(data) for data in shown)
    assert "4 * hits / 200" in text  # the line of the cell that the graph shows
    assert "item" not in shown[-1]["text/plain"]
    assert "·" in shown[-1]["text/plain"]
