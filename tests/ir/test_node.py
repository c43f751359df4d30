"""Nodes are interned, are keyed by bits, live as long as they are used, and are walked without recursion."""

import copy
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

from tensormagic.ir.node import Bits, rebuild, substitute, topological, users
from tensormagic.ops.leaf import constant
from tensormagic.ops.scalars.scalar import add, exp, negative, sin
from tests.ops.harness import place


def test_equal_nodes_are_the_same_object():
    x = place(np.ones(3))
    assert sin(x) + 1 is sin(x) + 1
    assert sin(x) is not sin(place(np.ones(3)))


@pytest.mark.parametrize("form", ["python", "scalar"])
def test_constants_are_keyed_by_bits(form):
    values = [1, 1.0, True, 0.0, -0.0, float("nan"), 1j, 0]
    nodes = [constant(v if form == "python" else np.asarray(v)[()]) for v in values]
    assert len(set(nodes)) == len(values)
    assert [constant(v if form == "python" else np.asarray(v)[()]) for v in values] == nodes


def test_constants_know_their_array():
    value = np.arange(6, dtype=np.int8).reshape(2, 3)
    bits = Bits.of(value)
    np.testing.assert_array_equal(bits.array(), value)
    assert not bits.array().flags.writeable
    assert bits == Bits.of(np.asfortranarray(value))
    assert bits != Bits.of(value.reshape(3, 2))


def test_nodes_go_when_nothing_uses_them():
    x = place(np.ones(3))
    gone = weakref.ref(exp(sin(x)))
    gc.collect()
    assert gone() is None


def test_threads_make_one_node():
    x = place(np.ones(3))
    found, barrier = [], threading.Barrier(8)

    def work():
        barrier.wait()
        node = x
        for _ in range(200):
            node = sin(node)
        found.append(node)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1


def test_walks_have_their_own_stack():
    x = place(np.ones(3))
    node = x
    for _ in range(50_000):
        node = negative(node)
    order = topological([node])
    assert (order[0], order[-1], len(order)) == (x, node, 50_001)
    y = place(np.ones(3))
    (other,) = substitute([node], {x: y})
    assert topological([other])[0] is y


def test_the_order_puts_operands_first_and_each_node_once():
    x, y = place(np.float64(1)), place(np.float64(1))
    a = add(x, y)
    b = add(a, a)
    order = topological([b, a])
    assert order == [x, y, a, b]
    assert topological([b], stop=lambda n: n is a) == [a, b]
    assert users(order)[a] == [b]


def test_rebuilding_with_the_same_operands_is_the_node_itself():
    x = place(np.ones(3))
    node = sin(x)
    assert rebuild(node, [x]) is node
    assert rebuild(node, [node]) is sin(sin(x))


def test_a_node_of_several_results_has_no_one_type():
    from tensormagic.ops.matrices.linalg import eigh

    pair = eigh(place(np.eye(3)))[0].args[0]
    with pytest.raises(TypeError, match="eigh has 2 results"):
        _ = pair.type


def test_nodes_are_not_pickled_or_copied():
    x = place(np.ones(3))
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(x)
    with pytest.raises(TypeError, match="not pickled"):
        copy.copy(x)
