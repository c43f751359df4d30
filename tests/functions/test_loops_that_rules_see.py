"""What the texts of loops tell of the rules for accuracy: of branches in them, and of slices up to their index or the other way round."""

from __future__ import annotations

import numpy as np
import pytest

from tensormagic.functions.calls import first_call
from tests.functions.test_first_looks import of
from tests.functions.test_what_rules_see import told
from tests.programs.test_programs import PROGRAMS

LEVEL = (
    "m = len(x)\n    for k in range(m):\n        if k == 0:\n            c[0] = x[0] / 3.1\n        elif k < m - 1:\n"
)
NOTHING = {
    "a branch in a recurrence, read by another loop": LEVEL
    + "            c[k] = (x[k] - c[k - 1]) / 3.1\n    for k in range(m):\n        c[k] -= x[k] * c[k - 1]\n    return c",
    "and read as a whole": LEVEL + "            c[k] = (x[k] - c[k - 1]) / 3.1\n    return c - x",
    "a branch before a loop": "if x[0] > 0:\n        c[:] = x / 3.1\n"
    "    for k in range(1, n):\n        c[k] = c[k - 1] - x[k] / 3.1\n    return c",
    "a slice up to the index": "for k in range(1, n):\n        c[:k] += x[k] * x[:k] - c[k] / 3.1\n        c[k] = x[k]\n    return c",
    "a slice that is flipped": "for k in range(1, n):\n        c[:k] += x[k] * np.flip(c[:k]) - x[:k] / 3.1\n    return c",
    "a product of vectors": "a = 0.5\n    for k in range(1, n):\n"
    "        a = x[k] / 3.1 - np.dot(np.flip(x[:k]), x[1 : k + 1]) / a\n    return a",
    "a product by an operator": "a = 0.5\n    for k in range(1, n):\n        a = x[k] / 3.1 - x[:k] @ x[1 : k + 1] / a\n    return a",
}
SEEN = {
    "an iteration that reads what it stores": "for k in range(n):\n        c[k] = c[k] + np.sqrt(x[k] + 1)\n    return c - np.sqrt(x)",
    "and does so in a branch": "for k in range(n):\n        if x[k] > 0.5:\n            c[k] = c[k] + np.sqrt(x[k] + 1)\n        else:\n"
    "            c[k] = np.sqrt(x[k] + 1)\n    return c - np.sqrt(x)",
    "a branch in iterations of their own": "for k in range(n):\n        if x[k] > 0.5:\n"
    "            c[k] = np.sqrt(x[k] + 1)\n    return c - np.sqrt(x)",
    "a slice up to an index that is known": "for k in range(1, n + 1):\n        c[:k] = np.sqrt(x[:k] + 1)\n"
    "    c[:k] = np.sqrt(x[:k] + 1)\n    return c - np.sqrt(x)",
    "a slice in a loop of one iteration": "for k in range(n, n + 1):\n        c[:k] = np.sqrt(x[:k] + 1)\n    return c - np.sqrt(x)",
    "one slice flipped twice": "return np.sqrt(np.flip(np.flip(x)) + 1) - np.sqrt(x)",
    "flipped in two ways": "return np.sqrt(np.flip(x) + 1) - np.sqrt(x[::-1])",
    "flipped along an axis that is named": "return np.sqrt(np.flip(x, 0) + 1) - np.sqrt(np.flip(x))",
    "an element of what is flipped": "return np.sqrt(np.flip(x[1:])[0] + 1) - np.sqrt(x[-1])",
    "a slice that ends at a slice flipped": "return np.sqrt(np.flip(x[1:]) + 1) - np.sqrt(np.flip(x)[:-1])",
    "two products of the same vectors": "return np.sqrt(x @ x + 1) - np.sqrt(np.dot(x, x))",
}  # fmt: skip


def _text(body: str) -> str:
    return f"import numpy as np\ndef f(x, n):\n    c = np.zeros_like(x)\n    {body}\n"


@pytest.mark.parametrize("name", NOTHING)
def test_rules_see_nothing_in_a_loop(name, tmp_path, monkeypatch):
    assert told(_text(NOTHING[name]), (np.linspace(0.1, 0.9, 5), 5), tmp_path, monkeypatch) == (True, [])


@pytest.mark.parametrize("name", SEEN)
def test_rules_may_see_something(name, tmp_path, monkeypatch):
    found = told(_text(SEEN[name]), (np.linspace(0.1, 0.9, 5), 5), tmp_path, monkeypatch)
    assert found is not None
    assert not found[0]


@pytest.mark.parametrize("name", ["durbin", "vertical_advection"])
def test_python_runs_programs_that_lose_digits_which_no_rule_keeps(name):
    program = PROGRAMS[name]
    with np.errstate(all="ignore"):
        expected = program.function(*program.make(program.large))
    np.testing.assert_array_equal(first_call.result_of(program.function, tuple(program.make(program.large))), expected)


def test_the_first_result_of_a_loop_that_reads_what_it_stores_has_the_digits_of_later_ones(tmp_path):
    function = of(_text(SEEN["an iteration that reads what it stores"]), tmp_path / "given.py")
    assert first_call.result_of(function, (np.full(4, 1e18), 4)) is first_call.NOT
