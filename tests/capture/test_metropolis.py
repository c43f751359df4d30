"""Draws inside data-dependent expressions: steps of Metropolis in a rolled loop, and in one that Python runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic import session
from tests.capture.harness import cell

STEP = """
    i, j = rng.integers(0, len(s), 2)
    around = s[(i + 1) % 4, j] + s[(i - 1) % 4, j] + s[i, (j + 1) % 4] + s[i, (j - 1) % 4]
    change = 2 * s[i, j] * around
    if change <= 0 or rng.random() < np.exp(-0.5 * change):
        s[i, j] *= -1
"""


def ising(s: Any, seed: Any) -> Any:
    rng = np.random.default_rng(seed)
    s, accepted = s.copy(), 0
    for _ in range(60):
        i, j = rng.integers(0, 4, 2)
        around = s[(i + 1) % 4, j] + s[(i - 1) % 4, j] + s[i, (j + 1) % 4] + s[i, (j - 1) % 4]
        change = 2 * s[i, j] * around
        if change <= 0 or rng.random() < np.exp(-0.5 * change):
            s[i, j] *= -1
            accepted += 1
    return s, accepted, rng.random()


def spins() -> np.ndarray[Any, Any]:
    return np.where(np.arange(16).reshape(4, 4) % 3 == 0, -1, 1)


def test_a_step_of_metropolis_in_a_function_is_a_rolled_loop():
    found = tm.tensor(ising)
    result, wanted = found(spins(), 3), ising(spins(), 3)
    assert np.array_equal(result[0], wanted[0])
    assert result[1:] == wanted[1:]
    assert 0 < wanted[1] < 60  # both ways are taken
    assert len(tm.trace(ising, spins(), 3).nodes) < 60


@pytest.mark.parametrize("taken", ["", "\n        log.append(int(change))"])
def test_a_step_of_metropolis_in_a_cell_draws_as_numpy_does(taken: str):
    code = f"rng = np.random.default_rng(3)\nlog = []\nfor _ in range(40):{STEP}{taken}\nleft = rng.random()\n"
    spaces: list[dict[str, Any]] = [{"np": np, "s": spins()} for _ in range(2)]
    exec(code, spaces[0])
    found = cell(code, spaces[1])
    for buffer, value in zip(found.stores, session.compute([b.node for b in found.stores]), strict=True):
        buffer.array[...] = value
    assert np.array_equal(spaces[1]["s"], spaces[0]["s"])
    assert float(found.outputs["left"]) == spaces[0]["left"]
    assert list(map(int, found.outputs["log"])) == spaces[0]["log"]


def test_what_a_cell_asks_for_at_each_iteration_begins_where_the_last_answer_ended(run_sizes: list[int]):
    code = f"rng = np.random.default_rng(3)\nlog = []\nfor _ in range(40):{STEP}\n        log.append(change.tolist())\n"
    cell(code, {"np": np, "s": spins()})
    assert len(run_sizes) > 40
    assert max(run_sizes) < 200  # an iteration has some thirty operations


def test_a_store_inside_an_expression_happens_where_data_say():
    def counted(x: Any) -> Any:
        def raised(k: Any) -> Any:
            x[k] += 1
            return x[k] > 0

        count = 0
        for k in range(len(x)):
            if x[k] > 0.5 or raised(k):
                count += 1
        return x, count

    x = np.array([0.7, -0.5, -3.0, 0.2, 0.6])
    ours, numpys = x.copy(), x.copy()
    result, wanted = tm.tensor(counted)(ours), counted(numpys)
    assert np.array_equal(ours, numpys)
    assert result[1] == wanted[1]


def test_a_draw_in_a_conditional_expression():
    def thinned(x: Any, seed: Any) -> Any:
        rng = np.random.default_rng(seed)
        return np.array([rng.normal() if v > 0 else 0.0 for v in x]), rng.random()

    x = np.array([1.0, -1.0, 2.0, 0.0, 3.0])
    (values, after), (wanted, left) = tm.tensor(thinned)(x, 5), thinned(x, 5)
    assert np.array_equal(values, wanted)
    assert after == left
