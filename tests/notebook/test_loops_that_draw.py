"""Loops of cells that draw one number at a time: what NumPy draws, bit for bit, and the state that is left."""

import numpy as np
import pytest

from tests.notebook.test_outgrown import python

DRAWS = {
    "normal": "np.random.normal()",
    "normal of parameters": "np.random.normal(1.0, 0.5 + k / 100)",
    "two kinds": "np.random.normal() + np.random.uniform(-1, 1)",
    "rand and randn": "np.random.rand() * np.random.randn()",
    "integers": "float(np.random.randint(0, 10)) + np.random.random()",
    "exponential and gamma": "np.random.exponential(2.0) + np.random.gamma(0.7)",
    "arrays": "np.random.normal(size=3).sum() + np.random.rand(2)[1]",
    "a generator": "rng.normal() + rng.random() * rng.integers(5)",
    "a generator's arrays": "rng.normal(size=(2, 2))[1, 0] - rng.exponential()",
    "a seeded RandomState": "old.normal() * old.uniform()",
}
START = "rng = np.random.default_rng(4)\nold = np.random.RandomState(6)\nnp.random.seed(3)\nnp.random.normal()"
LOOPS = {
    "sum": "s = 0.0\nfor k in range(60):\n    s += {}\n",
    "stores": "s = np.zeros(60)\nfor k in range(60):\n    s[k] = {}\n",
    "branch": "s = 0.0\nfor k in range(60):\n    v = {}\n    if v > 0.2:\n        s += v * 2\n    else:\n        s -= {}\n",
}
AFTER = "after = [np.random.normal(), np.random.rand(), rng.normal(), old.normal(), old.randint(9)]"


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("draw", DRAWS)
def test_loops_draw_what_numpy_draws(notebook, draw, loop):
    cell = LOOPS[loop].replace("{}", DRAWS[draw])
    notebook.ok("import numpy as np\n" + START)
    space, _ = python(notebook, START + "\n" + cell + AFTER)
    notebook.ok(START)
    notebook.ok("%%tensor --math exact\n" + cell + "s")
    notebook.ok(AFTER)
    np.testing.assert_array_equal(np.asarray(notebook["s"]), space["s"])
    assert notebook["after"] == space["after"]
