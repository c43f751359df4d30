"""What is known of nodes in plans for a GPU is known there alone: plans are the same, whichever was made first."""

import weakref
from collections.abc import Callable
from typing import Any

import pytest

from tensormagic.backend.cuda.kernels.listing import device_source
from tensormagic.backend.cuda.loops.loop_plan import _planned_loop
from tensormagic.backend.cuda.loops.small_loops import alone
from tensormagic.backend.cuda.planned import planned
from tensormagic.backend.planning import kinds
from tensormagic.backend.planning.plan import plan_graph
from tensormagic.ir.graph import Graph
from tests.backend.cuda import test_loops, test_nested, test_training
from tests.backend.cuda.test_loops import graph_of

PROGRAMS = test_loops.PROGRAMS | test_nested.PROGRAMS | test_training.PROGRAMS


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known of any node, and nothing is planned."""
    monkeypatch.setattr(kinds, "_kinds", {key: weakref.WeakKeyDictionary() for key in kinds._kinds})
    for known in (planned, _planned_loop, alone, kinds._expanded):
        known.cache_clear()


def for_a_processor(graph: Graph) -> str:
    plan = plan_graph(graph)
    return "\n".join([*plan.sources, *(n.op.name for n in plan.library_steps)])


@pytest.mark.share(6)
@pytest.mark.parametrize("name", PROGRAMS)
def test_plans_do_not_depend_on_each_other(name: str, monkeypatch: pytest.MonkeyPatch):
    function, args = PROGRAMS[name][:2]
    _, graph = graph_of(function, args)
    found: dict[Callable[[Graph], str], list[Any]] = {for_a_processor: [], device_source: []}
    for first, second in ((for_a_processor, device_source), (device_source, for_a_processor)):
        forget(monkeypatch)
        for make in (first, second):
            found[make].append(make(graph))
    for texts in found.values():
        assert texts[0] == texts[1]
