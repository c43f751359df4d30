"""A function that stores into an array, and reads the same memory where no input stands for it."""

from __future__ import annotations

import array
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import tensormagic as tm


def stores_and_reads(o, v):
    o.x += v
    return o.parts[0].sum()


def stores_in_both(o, v):
    o.x += v
    o.parts[0][0] = 9.0
    return o.x.sum()


def puts_nothing(o, v):
    o.x[:] = v
    o.parts[0] *= 0
    return o.x.sum()


PARTS = {"a part": lambda x: x[:1], "the same": lambda x: x, "turned": lambda x: x[::-1], "another": lambda x: x.copy()}


@pytest.mark.parametrize("later", PARTS)
@pytest.mark.parametrize("first", ["the same", "another"])
@pytest.mark.parametrize("function", [stores_and_reads, stores_in_both, puts_nothing])
def test_a_container_that_holds_a_part_after_some_calls(function, first, later):
    captured = tm.tensor(function)
    ours, plain = (SimpleNamespace(x=np.ones(2)) for _ in range(2))
    for k in range(4):
        if k in {0, 2}:
            for o in (ours, plain):
                o.parts = [PARTS[first if k == 0 else later](o.x)]
        assert captured(ours, 2.0) == function(plain, 2.0)
        assert ours.x.tolist() == plain.x.tolist()
        assert ours.parts[0].tolist() == plain.parts[0].tolist()


@pytest.mark.parametrize("kind", ["array", "memoryview", "bytearray"])
def test_memory_of_pythons_own(kind):
    own = array.array("d", [1.0, 2.0, 3.0])
    held = {"array": own, "memoryview": memoryview(own), "bytearray": bytearray(own.tobytes())}[kind]
    x = np.frombuffer(held)

    @tm.tensor
    def f(x, v):
        x += v
        return held[0]

    before = np.frombuffer(held).copy()
    try:
        found = f(x, 2.0)
    except tm.TensorError:
        assert x.tolist() == before.tolist()
    else:
        assert x.tolist() == (before + 2).tolist()
        assert found == held[0]


def test_a_table_over_an_argument():
    pd = pytest.importorskip("pandas")
    x = np.ones(3)
    table = pd.Series(x, copy=False)

    @tm.tensor
    def f(x, v):
        x += v
        return table.sum()

    assert [f(x, 2.0) for _ in range(3)] == [9.0, 15.0, 21.0]


@pytest.mark.parametrize("held", ["part", "many"])
def test_beside_what_cannot_be_looked_into(held):
    x = np.ones(3)
    o = SimpleNamespace(lock=threading.Lock(), parts=[x[:2]] + [0.0] * (2000 if held == "many" else 0))

    @tm.tensor
    def f(o, x, v):
        x += v
        return o.lock.locked() + o.parts[0].sum()

    with pytest.raises(tm.TensorError, match="shares memory with an array that an object holds"):
        f(o, x, 2.0)
    assert x.tolist() == [1.0, 1.0, 1.0]
