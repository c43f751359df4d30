"""A loop of a cell runs once: for its value, the state of a generator, other names, and the pictures of its graph."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ops.op import registry
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


@pytest.fixture
def costly(monkeypatch):
    """The operations of NumPy's that take long, as often as they were run."""
    found: list[str] = []

    def counted(op):
        own = type(op).evaluate

        def evaluate(self, node, values, size):
            if node.op.name in {"svd", "sort", "contract", "inv", "eigh", "qr"}:
                found.append(node.op.name)
            return own(self, node, values, size)

        return evaluate

    for kind in {type(op) for op in registry.values() if op.name in {"svd", "sort", "contract", "inv"}}:
        if "evaluate" in vars(kind):
            monkeypatch.setattr(kind, "evaluate", counted(next(o for o in registry.values() if type(o) is kind)))
    monkeypatch.setattr(tm.config, "tier", "numpy")
    return found


ONCE_OR_TWICE = {
    "svd": ("U, s, V = np.linalg.svd(A)\nprint(s[0])\nprint(abs(U[0, 0]))\nprint(abs(V).sum())", 1),
    "qr": ("Q, R = np.linalg.qr(A)\nprint(abs(R[0, 0]))\nprint(abs(Q).sum())\nprint(np.allclose(Q @ R, A))", 2),
    "eigh": ("w, v = np.linalg.eigh(A @ A.T)\nprint(w[0])\nprint(abs(v).sum())\nprint(w.max())", 1),
    "contract": ("C = A @ B\nprint(C[0, 0])\nprint(C.max())\nprint(C.std())\nprint(np.abs(C).sum())", 2),
    "sort": ("s = np.sort(A.ravel())\nprint(s[0])\nprint(s.mean())\nprint(s[5:9])\nprint(s[::-1][:3])", 2),
}


@pytest.mark.parametrize("name", ONCE_OR_TWICE)
def test_what_takes_long_is_not_run_for_each_value(name, costly, notebook):
    cell, most = ONCE_OR_TWICE[name]
    rng = np.random.default_rng(0)
    notebook["A"], notebook["B"] = rng.normal(size=(120, 120)), rng.normal(size=(120, 120))
    plain = notebook.ok(cell).out
    assert notebook.ok("%%tensor\n" + cell).out.startswith(plain[:6])
    assert 0 < costly.count(name) <= most


FILLED = "for i in range(300):\n    s = 0.5 * s + np.sin(i)\n    out.append(s)\n"
LISTS = {
    "mean and spread": "print(np.mean(out))\nprint(np.std(out))",
    "an array of it": "a = np.array(out)\nprint(a.max())\nprint(a.min())",
    "its numbers": "print(max(out))\nprint(min(out))\nprint(out[7])",
}


@pytest.mark.parametrize("cell", LISTS.values(), ids=list(LISTS))
def test_a_loop_that_fills_a_list_does_not_run_for_each_value(cell, runs, notebook):
    notebook.ok("s, out = 0.0, []")
    plain = notebook.ok(FILLED + cell).out
    runs.clear()
    notebook.ok("s, out = 0.0, []")
    assert notebook.ok("%%tensor\n" + FILLED + cell).out.startswith(plain)
    assert len(runs) <= 2
