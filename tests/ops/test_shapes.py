"""Broadcasting, slices and reshapes against NumPy, values and errors, for whatever shapes come."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tensormagic.ops.move import broadcast, flip, reshape, slice_
from tensormagic.ops.scalars.scalar import add, where
from tensormagic.ops.update import set_at
from tests.ops.harness import assert_same

SHAPES = st.lists(st.integers(0, 3), max_size=4).map(tuple)


def ramp(shape):
    return np.arange(np.prod(shape, dtype=int), dtype=float).reshape(shape) + 1


@given(SHAPES, SHAPES)
def test_operands_broadcast_as_in_numpy(left, right):
    assert_same("reference", add, np.add, [ramp(left), ramp(right)])


@given(SHAPES, SHAPES, SHAPES)
def test_three_operands_broadcast_as_in_numpy(first, second, third):
    assert_same("reference", where, np.where, [ramp(first) % 2 == 0, ramp(second), ramp(third)])


@given(SHAPES, SHAPES)
def test_broadcast_to(source, target):
    assert_same("reference", lambda x: broadcast(x, target), lambda x: np.broadcast_to(x, target)[()], [ramp(source)])


@given(SHAPES, st.lists(st.integers(-1, 6), max_size=4).map(tuple))
def test_reshape(source, target):
    assert_same("reference", lambda x: reshape(x, target), lambda x: np.reshape(x, target)[()], [ramp(source)])


@st.composite
def parts(draw):
    """A shape, and a slice of each of its axes as Python writes it."""
    shape = draw(st.lists(st.integers(0, 6), min_size=1, max_size=3).map(tuple))
    bounds = st.one_of(st.none(), st.integers(-8, 8))
    steps = st.one_of(st.none(), st.integers(-3, 3).filter(bool))
    return shape, tuple(slice(draw(bounds), draw(bounds), draw(steps)) for _ in shape)


def triples(shape, index):
    """Start, length and step of each slice."""
    ranges = [range(*s.indices(n)) for s, n in zip(index, shape, strict=True)]
    return tuple((r.start if len(r) else 0, len(r), r.step if len(r) else 1) for r in ranges)


@given(parts())
def test_slices(part):
    shape, index = part
    assert_same("reference", lambda x: slice_(x, triples(shape, index)), lambda x: x[index], [ramp(shape)])


@given(parts())
def test_stores_into_slices(part):
    shape, index = part
    value = -ramp(np.zeros(shape)[index].shape)

    def store(x, v):
        result = x.copy()
        result[index] = v
        return result

    assert_same("reference", lambda x, v: set_at(x, v, triples(shape, index)), store, [ramp(shape), value])


@given(SHAPES, st.sets(st.integers(0, 3)))
def test_flip(shape, axes):
    axes = tuple(sorted(a for a in axes if a < len(shape)))
    assert_same("reference", lambda x: flip(x, axes), lambda x: np.flip(x, axes)[()], [ramp(shape)])
