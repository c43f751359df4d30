"""Conditions that say what names are bound to are computed with what a cell shows: a product that both need is run once."""

import numpy as np
import pytest

from tensormagic.session import demand

CELLS = {
    "an array or another one": "C = A @ B\nif C.sum() > 0:\n    D = C * 2\nelse:\n    D = C\nD.max()",
    "a part of an array": "C = A @ B\nif C.max() > 2:\n    D = C[::-1]\nelse:\n    D = C\nD.sum()",
    "branches in one another": "C = A @ B\nif C.sum() > 0:\n    if C.max() > 100:\n        D = C\n    else:\n        D = -C\n"
    "else:\n    D = C + 1\nD.min()",
    "three cases": "C = A @ B\nt = C.mean()\nif t > 5:\n    D = C\nelif t > 1:\n    D = C.T\nelse:\n    D = C * 2\nD.sum()",
    "a name that may not be bound": "C = A @ B\nif C.sum() > 0:\n    D = C\n    E = C * 3\nC.max()",
    "a branch in a loop": "C = A @ B\nfor k in range(4):\n    if C.sum() > 20:\n        C = C * 0.5\nC.max()",
    "nothing is shown": "C = A @ B\nif C.sum() > 0:\n    D = C * 2\nelse:\n    D = C\nE = D if C.max() > 3 else C;",
    "the notebook's array": "C = A @ B\nif C.sum() > 0:\n    D = F\nelse:\n    D = C\nD[0, 0] + C.max()",
}


@pytest.fixture
def runs(notebook, monkeypatch):
    """How many nodes each run is asked for; the notebook has three tables."""
    found = list[int]()
    own = demand._run

    def run(pending, there):
        found.append(len(pending))
        return own(pending, there)

    monkeypatch.setattr(demand, "_run", run)
    draw = np.random.default_rng(3)
    notebook["A"], notebook["B"], notebook["F"] = draw.random((40, 50)), draw.random((50, 40)), draw.random((40, 40))
    return found


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("sign", [1, -1])
def test_one_run_has_all(name, sign, notebook, runs):
    notebook["A"] = notebook["A"] * sign
    space = {n: notebook[n].copy() for n in "ABF"}
    exec(CELLS[name], space)
    notebook.ok("%%tensor\n" + CELLS[name])
    assert len(runs) == 1
    for bound in ("C", "D", "E"):
        assert (bound in space) == (bound in notebook)
        if bound in space:
            np.testing.assert_allclose(np.asarray(notebook[bound]), space[bound])


def test_an_error_of_what_is_shown_binds_nothing(notebook, runs):
    cell = "C = A @ B\nif C.sum() > 0:\n    D = C\nelse:\n    D = C * 2\nif C.max() > 0:\n    raise ValueError('too large')\nD.sum()"
    assert isinstance(notebook("%%tensor\n" + cell).error, ValueError)
    assert "D" not in notebook


def test_a_gradient_goes_through_the_branch(notebook, runs):
    notebook.ok("%%tensor --grad A\nC = A @ B\nif C.sum() > 0:\n    D = C * 2\nelse:\n    D = C\nD.sum()")
    np.testing.assert_allclose(np.asarray(notebook["grad_A"]), np.broadcast_to(2 * notebook["B"].sum(1), (40, 50)))
