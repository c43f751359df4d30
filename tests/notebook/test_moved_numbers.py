"""Loops that move numbers of arrays about are run on numbers: values and classes are Python's, derivatives those of the captured loop."""

import numpy as np
import pytest

from tensormagic.capture import limits
from tensormagic.capture.staging.loops import repeating
from tests.notebook.moving_programs import START, program
from tests.notebook.test_student_cells import plain


def gradients(notebook, cell):
    notebook.ok(f"%%tensor -q --grad x,w\n{cell}")
    return [np.asarray(notebook[name]) for name in ("grad_x", "grad_w")]


@pytest.mark.share(8)
@pytest.mark.parametrize("seed", range(200))
def test_drawn_programs(notebook, monkeypatch, seed):
    start, cell = START.format(seed=seed), program(seed)
    space: dict[str, object] = {}
    exec(start, space)
    try:
        exec(cell, space)
    except (IndexError, KeyError):
        pytest.skip("no program")
    monkeypatch.setattr(limits, "MANY", limits.LIMIT)  # a cell that could do without a graph gets one, however large
    notebook.ok(start)
    notebook.ok(f"%%tensor -q\n{cell}")
    assert plain(notebook["h"]) == plain(space["h"])
    assert type(notebook["x"]) is np.ndarray
    if not isinstance(space["s"], np.floating):
        return
    notebook.ok(start)
    found = gradients(notebook, cell)
    assert plain(notebook["h"]) == plain(space["h"])
    monkeypatch.setattr(repeating, "moved", lambda *_: None)
    notebook.ok(start)
    for ours, wanted in zip(found, gradients(notebook, cell), strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-13)
