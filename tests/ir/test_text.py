"""Graphs as text: what is printed is what is read, and what is no graph is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensormagic.ir.errors import ParseError
from tensormagic.ir.text import parse
from tensormagic.ops.contract import einsum
from tensormagic.ops.fft import rfft
from tensormagic.ops.fold import MAX, fold, reduce_sum
from tensormagic.ops.leaf import constant, size_node
from tensormagic.ops.matrices.linalg import svd
from tensormagic.ops.move import concatenate, flip, reshape, transpose
from tensormagic.ops.op import registry
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars.scalar import add, exp, maximum, multiply, where
from tests.ops.harness import BACKENDS, closed, place

STEPS = [
    add,
    lambda x, y: multiply(exp(x), -0.0),
    lambda x, y: maximum(x, y * 2) + 1,
    lambda x, y: where(x > y, x, float("nan")),
    lambda x, y: transpose(x),
    lambda x, y: flip(x, (1,)),
    lambda x, y: concatenate([x, y], 0),
    lambda x, y: reshape(reshape(x, (x.type.size,)), x.type.shape),
    lambda x, y: einsum("ij,kj->ik", x, y),
    lambda x, y: x - reduce_sum(y, (0, 1)),
    lambda x, y: x / fold(MAX, y, (1,), keepdims=True),
    lambda x, y: astype(astype(x, np.complex64), np.float64) * size_node(x.type.shape[0]),
    lambda x, y: svd(x)[0],
    lambda x, y: rfft(astype(x, np.float32), 5),
]


@given(st.lists(st.tuples(st.integers(0, len(STEPS) - 1), st.integers(0, 9), st.integers(0, 9)), max_size=8))
def test_random_graphs_round_trip(steps):
    inputs = [place(np.ones((3, 3))), place(np.ones((3, 3)))]
    nodes = list(inputs)
    for step, left, right in steps:
        x, y = (nodes[k % len(nodes)] for k in (left, right))
        try:
            node = STEPS[step](x, y)
        except (ValueError, TypeError):
            continue  # shapes or dtypes that do not fit
        nodes += [node] if node.type.ndim == 2 and node.type.dtype == np.float64 else []
    graph = closed(nodes, inputs)  # parses the text, and compares
    assert parse(graph.text, registry).text == graph.text


def test_constants_keep_their_bits():
    values = [
        0.0,
        -0.0,
        float("nan"),
        1,
        True,
        2j,
        np.bool_(True),
        np.float32(1e-45),
        np.arange(3, dtype=np.int8),
        np.array(5.0),
        np.zeros((0, 2)),
    ]
    graph = closed([constant(v) for v in values], [])
    again = parse(graph.text, registry)
    assert again.results == graph.results


def test_the_text_can_be_run():
    text = """
    graph(%0: float64[n0], %1: float64[n0]) {
      %2 = multiply(%0, %1) : float64[n0]
      %3 = sum(%2) axes=(0,) : float64
      guard n0 >= 2
      return %3, %2
    }
    """
    graph = parse(text, registry)
    total, parts = BACKENDS["reference"](graph)([np.arange(3.0), np.arange(3.0)])
    assert total == 5
    assert parts.tolist() == [0, 1, 4]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no closed graph"),
        ("graph(%0: float64[n0]) {", "no closed graph"),
        ("grph() {\n}", "not the head of a graph"),
        ("graph() {\n %0 = nonsense() : float64\n return %0\n}", "not a node"),
        ("graph() {\n hello\n return %0\n}", "not a node"),
        ("graph(%0: float64[n0]) {\n %1 = sum(%0) axes=open('x') : float64\n return %1\n}", "not a parameter"),
        ("graph(%0: float64[n0/2]) {\n return %0\n}", "sums and products"),
        ("graph() {\n return %7\n}", "%7"),
        ("graph(%0: float99[n0]) {\n return %0\n}", "float99"),
        ("graph(%0: float64[n0) {\n return %0\n}", "float64"),
        ("graph(%0: float64[n0]) {\n %1 = call(%0) graph=@3 : float64[n0]\n return %1\n}", "@3"),
    ],
)
def test_what_is_no_graph_is_refused(text, message):
    with pytest.raises(ParseError, match=message):
        parse(text, registry)


def test_a_number_is_written_as_python_writes_it_where_that_gives_its_bits_again():
    written = {v: closed([constant(v)], []).text for v in (2.0, -0.0, 1e-300, 3)}
    assert all(f"bits={v!r} :" in text for v, text in written.items())
    others = [np.float32(1.5), float("inf"), float("nan"), 1 + 2j, np.int8(3)]
    assert all("bits=bits(" in closed([constant(v)], []).text for v in others)
