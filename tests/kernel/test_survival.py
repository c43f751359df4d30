"""The kernel survives: a short, fixed share of what ``scripts/kernel_endurance.py`` does for long."""

from __future__ import annotations

import pytest

from tests.kernel import endurance
from tests.kernel.running import Running, running


@pytest.fixture(scope="module")
def kernel():
    with running() as started:
        yield started


def test_many_cells_leave_neither_memory_nor_widgets(kernel: Running):
    out = endurance.many_cells(kernel, 4, parts=2)
    assert not out.wrong
    assert out.cells == 60
    assert out.widgets[1] == out.widgets[0]
    assert out.memory[1] - out.memory[0] < 10.0


def test_interrupts_at_random_times(kernel: Running):
    out = endurance.interrupts(kernel, 4, seed=1)
    assert not out.wrong
    assert not out.finished
    assert not out.again
    assert max(max(times) for times in out.seconds.values()) < 5.0


def test_two_frontends_on_one_kernel(kernel: Running):
    assert not endurance.two_frontends(kernel, 5)


def test_restarts_with_live_views_open(kernel: Running):
    assert not endurance.restarts(kernel, 1)
