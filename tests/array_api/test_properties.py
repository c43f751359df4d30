"""Random shapes, types and arguments: the namespace and NumPy agree."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import tensormagic.numpy as xp
from tests.array_api.oracle import DTYPES, agree
from tests.array_api.test_elementwise import ONE, TWO

REAL = [d for d in DTYPES if d.kind != "c"]
shapes = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
some = settings(max_examples=60)


@st.composite
def array(draw: st.DrawFn, dtypes: list[np.dtype] = DTYPES, shape: st.SearchStrategy = shapes) -> np.ndarray:
    return draw(arrays.arrays(draw(st.sampled_from(dtypes)), shape))


@st.composite
def axes(draw: st.DrawFn, x: np.ndarray) -> int | tuple[int, ...] | None:
    several = st.lists(st.integers(-x.ndim, max(x.ndim - 1, 0)), max_size=x.ndim).map(tuple)
    return draw(st.none() | st.integers(-x.ndim - 1, x.ndim) | several)


@given(st.sampled_from(ONE), array())
@some
def test_one_operand(name: str, x: np.ndarray):
    agree(name, x)


@given(st.data(), st.sampled_from([n for n in TWO if "shift" not in n]))
@some
def test_two_operands(draws: st.DataObject, name: str):
    left, right = draws.draw(arrays.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3)).input_shapes
    x, y = (draws.draw(array(shape=st.just(s))) for s in (left, right))
    agree(name, x, y)


@given(st.data(), st.sampled_from(["sum", "prod", "max", "min", "all", "any", "count_nonzero"]), array(REAL))
@some
def test_reductions(draws: st.DataObject, name: str, x: np.ndarray):
    agree(name, x, axis=draws.draw(axes(x)), keepdims=draws.draw(st.booleans()))


@given(st.data(), array())
@some
def test_indexing(draws: st.DataObject, x: np.ndarray):
    index = draws.draw(arrays.basic_indices(x.shape, allow_newaxis=True))
    got = np.asarray(xp.asarray(x)[index])
    np.testing.assert_array_equal(got, x[index])
    assert got.dtype == x.dtype


@given(st.data(), st.sampled_from(["concat", "stack"]), shapes.filter(len), st.integers(1, 3))
@some
def test_joining(draws: st.DataObject, name: str, shape: tuple[int, ...], number: int):
    agree(name, [draws.draw(array(shape=st.just(shape))) for _ in range(number)], axis=draws.draw(st.integers(-4, 4)))


@given(st.data(), array())
@some
def test_flip_and_roll(draws: st.DataObject, x: np.ndarray):
    agree("flip", x, axis=draws.draw(axes(x)))
    agree("roll", x, draws.draw(st.integers(-5, 5)), axis=draws.draw(st.none() | st.integers(-x.ndim - 1, x.ndim)))


@given(st.data(), st.sampled_from(["sort", "argsort"]), array(REAL))
@some
def test_sorting(draws: st.DataObject, name: str, x: np.ndarray):
    agree(name, x, axis=draws.draw(st.integers(-x.ndim - 1, x.ndim)), stable=True)


@given(
    st.sampled_from(["unique_all", "unique_counts", "unique_inverse"]), array([d for d in DTYPES if d.kind in "biu"])
)
@some
def test_sets(name: str, x: np.ndarray):
    agree(name, x)


@given(st.integers(-20, 20), st.integers(-20, 20), st.integers(-5, 5).filter(bool))
@some
def test_arange(start: int, stop: int, step: int):
    agree("arange", start, stop, step)
    agree("arange", start / 4, stop / 4, step / 4)


@given(array(REAL), st.sampled_from(DTYPES))
@some
def test_astype(x: np.ndarray, dtype: np.dtype):
    inside = (
        x.dtype.kind != "f"
        or dtype.kind in "fcb"
        or bool(np.all(np.abs(x) < 100) and np.all((x >= 0) | (dtype.kind == "i")))
    )
    if inside:  # what casts out of range give is not defined
        agree("astype", x, dtype)
