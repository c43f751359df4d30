"""Streams of a device: copies beside computing, ordered by events, in any order that these allow."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.cuda import device as devices
from tensormagic.backend.cuda import transfers
from tensormagic.backend.cuda.arrivals import ordered
from tensormagic.ops.interpret import by_rank
from tests.backend.cuda.emulated import compiles
from tests.backend.cuda.orders import Traced
from tests.backend.cuda.streamed import PROGRAMS, traced


@pytest.fixture
def own_device():
    """No device is left behind, and no copy is said to be told already."""
    transfers.forget()
    yield
    devices.use(None)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_order_that_the_events_allow_gives_the_same_values(own_device: None, name: str):
    device = traced(PROGRAMS[name])
    assert not device.races()
    assert all(device.orders(20, seed=1))


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_wait_that_is_left_out_is_reported(own_device: None, name: str):
    device = traced(PROGRAMS[name])
    waits = device.waits()
    assert {w.stream for w in waits} == {"in", "compute", "out"}
    for one in waits:
        assert device.races(one), f"{one} is not needed"
    assert not device.races()


@compiles
@pytest.mark.parametrize("name", ["inputs one by one", "a gradient", "one run behind another"])
def test_kernels_wait_for_what_they_read(own_device: None, name: str):
    device = traced(PROGRAMS[name], "numba")
    assert device.copied.launches
    assert not device.races()
    assert all(device.orders(3, seed=4))
    for one in device.waits():
        assert device.races(one), f"{one} is not needed"


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_wait_that_is_left_out_gives_other_values_in_some_orders(own_device: None, name: str):
    device = traced(PROGRAMS[name])
    for one in device.waits():
        assert not all(device.orders(40, seed=2, without=one)), str(one)


def test_the_first_step_waits_for_what_it_reads_alone(own_device: None):
    """Inputs come in the order of their use, and the last one is on its way while the first are computed with."""
    device = traced(PROGRAMS["inputs one by one"])
    steps = [s for s in device.steps if s.stream == "compute"]
    names = [s.name for s in steps]
    second = [k for k, n in enumerate(names) if n == "wait"][1]
    assert {"free", "record", "wait", "empty"}.issuperset(names[: names.index("wait")])
    assert set(names[names.index("wait") + 1 : second]) & {"exp", "add", "multiply", "sum", "negative", "launch"}


def test_what_most_depends_on_comes_first(own_device: None):
    """The long chain is computed while the large input is copied, which is read first in the text."""
    device = traced(PROGRAMS["a critical path"])
    names = [s.name for s in device.steps if s.stream == "compute"]
    first, second = [k for k, n in enumerate(names) if n == "wait"][:2]
    assert names[first:second].count("tanh") == 6
    assert "exp" not in names[:second]
    assert names[second:].count("exp") == 1


@compiles
def test_kernels_of_what_most_depends_on_come_first(own_device: None):
    """The same of a plan of kernels: the chain is launched while the large input is copied."""
    device = traced(PROGRAMS["a critical path"], tier="numba")
    names = [s.name for s in device.steps if s.stream == "compute"]
    first, second = [k for k, n in enumerate(names) if n == "wait"][:2]
    assert names[first:second].count("launch") > 0
    assert names[second:].count("launch") > 0
    assert all(device.orders(20, seed=3))


CHAIN = 8


@pytest.mark.parametrize(
    ("program", "order"),
    [
        (lambda a, b: np.sum(np.exp(a)) * np.sum(chain(b)), (1, 0)),  # the chain is computed while the other is copied
        (lambda a, b: np.sum(chain(a)) * np.sum(np.exp(b)), (0, 1)),  # as in the text
        (lambda a, b: chain(np.exp(a) + b.sum()), (0, 1)),  # nothing can begin before both are there
        (
            lambda a, b: np.sum(np.exp(a)) + np.linalg.solve(np.eye(4), chain(b)[:4])[0],
            (0, 1),
        ),  # the first error is the text's
    ],
)
def test_another_order_than_that_of_the_text_is_for_a_gain(program, order: tuple[int, ...]):
    graph = tm.trace(program, "float64[n]", "float64[m]")
    found = ordered(graph, [0, 1], [(100_000,), (1000,)])
    assert found.parameters == order
    assert bool(found.ranks) is (order != (0, 1))
    nodes = by_rank(graph.nodes, graph.parameters, found.ranks or (0, 0))
    place = {n: k for k, n in enumerate(nodes)}
    assert all(place[a] < place[n] for n in nodes for a in n.needs)


def chain(x):
    for _ in range(CHAIN):
        x = np.tanh(x) + 1
    return x


def test_a_value_is_copied_out_without_what_is_computed_behind_it(own_device: None):
    device = Traced()
    devices.use(device)
    with transfers.asked_for(), tm.config.using(device="gpu", tier="numpy"):
        first = np.exp(tm.tensor(np.arange(5.0)))
        tm.session.have([first.node])
        second = np.sin(tm.tensor(np.arange(6.0)))
        tm.session.have([second.node])
        first.numpy()
    assert not device.races()
    clock = next(s for s in device.steps if s.name == "fetch").clock
    later = next(s for s in device.steps if s.name == "sin")
    assert clock["compute"] < later.clock["compute"]


def test_planted_faults_are_found(own_device: None):
    """Memory that is stored into while it is copied out, and an input that is computed with before it is there."""
    device = Traced()
    x = device.library.arange(4.0)
    with device.on("out"):
        device.fetch(x)
    assert [r for r in device.races() if "fetch on out" in r]
    other = Traced()
    y = other.library.empty((3,), np.float64)
    there = other.record()
    with other.on("in"):
        other.wait(there)
        other.fill(y, np.ones(3))
    other.read(other.library.sum(y))
    assert [r for r in other.races() if "sum on compute uses what fill on in uses" in r]
    assert not all(other.orders(20, seed=3))
