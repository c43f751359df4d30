"""Plain Python over a lazy array, element by element: the array is computed once, and no graph is made for each element."""

import numpy as np
import pytest

from tensormagic.session import demand
from tensormagic.session.programs import executable

START = "%%tensor -q\ny = np.log(1 + x * x) - 0.5\nn = (x * 10).astype(int)\nM = y.reshape(20, 20) * 2"
ASKS = {
    "the largest": "max(y)",
    "the smallest by index": "min(range(400), key=lambda k: y[k])",
    "sorted": "sorted(y)[:5]",
    "a comprehension": "[float(a) for a in y if a > 0]",
    "a count": "sum(1 for a in y if a < 0.25)",
    "a loop": "[k for k in range(400) if y[k] >= y[0]]",
    "negative": "[k for k in range(1, 400) if not y[-k] <= 0.1]",
    "rows": "[float(r[3]) for r in M if r[0] > r[1]]",
    "a chain": "[k for k in range(399) if 0 < y[k] < y[k + 1]]",
    "equal": "[k for k in range(400) if y[k] == y[7] or y[k] != y[k]]",
    "any and all": "(any(a > 2 for a in y), all(a > -1 for a in y))",
    "integers": "[k for k in range(400) if n[k] % 2 == 0]",
}


@pytest.mark.parametrize("name", ASKS)
def test_the_array_is_computed_once(notebook, monkeypatch, name):
    notebook["x"] = x = np.random.default_rng(0).normal(size=400)
    space = {"np": np, "x": x}
    exec(START.partition("\n")[2], space)
    want = eval(ASKS[name], space)
    notebook.ok(START)
    rewritten = []
    monkeypatch.setattr(demand, "executable", lambda *a, **o: rewritten.append(1) or executable(*a, **o))
    found = notebook.ok(f"got = {ASKS[name]}\ngot").value
    np.testing.assert_allclose(np.asarray(found, float), np.asarray(want, float), rtol=1e-14, atol=2e-16)
    assert len(rewritten) < 12
