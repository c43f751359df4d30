"""Random programs of stores, views, indexing and arithmetic, each held against plain NumPy or refused by name."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tensormagic.ir.errors import CaptureError
from tests.capture.harness import KINDS, assert_equal, captured, plain

ROWS, COLUMNS = (st.integers(0, 5) for _ in range(2))
DTYPES = st.sampled_from([bool, np.int8, np.uint8, np.int32, np.int64, np.float32, np.float64, np.complex128])
BOUND = st.sampled_from(
    ["", "", "0", "1", "2", "-1", "-2", "k", "-k", "k - 1", "len(a) // 2", "a.shape[0] - 1", "9", "-9"]
)
STEP = st.sampled_from(["", "", "", "1", "2", "-1", "-2", "3"])
NUMBER = st.sampled_from(
    ["1", "2", "-3", "0", "2.5", "0.5", "True", "k", "s", "1j", "100", "np.float32(1.5)", "np.int8(3)"]
)
ARRAY = st.sampled_from(["a", "b", "c", "d"])
AXIS = st.sampled_from(["None", "0", "-1", "1"])


@st.composite
def entry(draw: st.DrawFn) -> str:
    kind = draw(st.integers(0, 9))
    if kind < 5:
        step = draw(STEP)
        return f"{draw(BOUND)}:{draw(BOUND)}" + (f":{step}" if step else "")
    return draw(
        st.sampled_from(
            ["...", "None", "0", "-1", "1", "[0, -1]", "[1, 0, 0]", "k - 1", "np.array([[0], [1]])"][
                : 9 if kind > 7 else 5
            ]
        )
    )


@st.composite
def index(draw: st.DrawFn) -> str:
    return ", ".join(draw(st.lists(entry(), min_size=1, max_size=2)))


@st.composite
def operand(draw: st.DrawFn) -> str:
    return draw(st.one_of(ARRAY, ARRAY, NUMBER, st.builds("{}[{}]".format, ARRAY, index())))


@st.composite
def expression(draw: st.DrawFn) -> str:
    x, y = draw(operand()), draw(operand())
    axis = draw(AXIS)
    return draw(
        st.sampled_from(
            [
                f"{x} + {y}",
                f"{x} - {y}",
                f"{x} * {y}",
                f"{x} / 4",
                f"{x} // {y}",
                f"{x} % 3",
                f"-{x}",
                f"abs({x})",
                f"{x} < {y}",
                f"{x} == {y}",
                f"{x}",
                f"{x}",
                f"np.asarray({x})",
                f"np.where({x} == 1, {x}, {y})",
                f"np.maximum({x}, {y})",
                f"np.minimum({x}, 1)",
                f"np.sum({x}, axis={axis})",
                f"np.max({x}, axis={axis}, keepdims=True)",
                f"np.argmin({x}, axis={axis})",
                f"np.cumsum({x}, axis={axis})",
                f"np.any({x}, axis={axis})",
                f"np.copy({x})",
                f"np.reshape({x}, (-1,))",
                f"np.reshape({x}, (-1, 1))",
                f"np.ravel({x})",
                f"np.transpose({x})",
                f"np.flip({x}, axis={axis})",
                f"np.sort({x}, axis={axis})",
                f"np.roll({x}, k, axis={axis})",
                f"np.repeat({x}, 2, axis={axis})",
                f"np.tile({x}, 2)",
                f"np.expand_dims({x}, 0)",
                f"np.squeeze({x})",
                f"np.diff({x})",
                f"np.concatenate([{x}, {y}])",
                f"np.stack([{x}, {x}], axis=-1)",
                f"np.hstack([{x}, {y}])",
                f"np.atleast_2d({x})",
                f"np.broadcast_to({x}, (2, *np.shape({x})))",
                f"np.zeros(np.shape({x}))",
                f"np.ones_like({x})",
                f"np.full_like({x}, 2)",
                f"np.arange(len({x}))",
                f"np.add.outer({x}, {y})",
                f"np.tril({x})",
                f"np.clip({x}, 0, 3)",
                f"np.take({x}, [0, -1], axis={axis})",
                f"np.astype(np.real({x}), np.int16)",
                f"np.count_nonzero({x}, axis={axis})",
                f"np.array([{x}, {x}])",
                f"({x}).real",
                f"np.dot({x}, {y})",
                f"{x} @ {y}",
                f"np.outer({x}, {y})",
                f"np.median({x}, axis={axis})",
            ]
        )
    )


@st.composite
def statement(draw: st.DrawFn) -> str:
    target = draw(ARRAY)
    return draw(
        st.one_of(
            st.builds("{} = {}".format, st.just(target), expression()),
            st.builds("{} = {}".format, st.just(target), expression()),
            st.builds("{}[{}] = {}".format, st.just(target), index(), expression()),
            st.builds("{} = {}[{}]".format, ARRAY, st.just(target), index()),
            st.builds("{}[{}] {} {}".format, st.just(target), index(), st.sampled_from(["+=", "*=", "-="]), operand()),
            st.builds("{} {} {}".format, st.just(target), st.sampled_from(["+=", "*=", "-="]), operand()),
            st.builds(
                "for i in range(len({})):\n    {}[i] = {}".format,
                st.just(target),
                st.just(target),
                st.sampled_from([f"{target}[i - 1] + i", f"{target}[i].sum()", "i"]),
            ),
        )
    )


@st.composite
def array(draw: st.DrawFn, shape: tuple[int, ...]) -> np.ndarray:
    dtype = np.dtype(draw(DTYPES))
    values = np.arange(int(np.prod(shape)) * 2) % 7
    x = (values if dtype.kind in "bu" else values - 3).astype(dtype)
    x = x[: x.size // 2] if draw(st.booleans()) else x[::2]
    x = x.reshape(shape)
    return np.asfortranarray(x) if draw(st.booleans()) and draw(st.booleans()) else x


@settings(max_examples=75)
@given(data=st.data(), rows=ROWS, columns=COLUMNS, program=st.lists(statement(), min_size=1, max_size=5))
def test_random_program(data: st.DataObject, rows: int, columns: int, program: list[str]):
    shapes = st.sampled_from([(rows, columns), (columns,), (rows, 1), (rows,), (2, rows, columns)])
    names = {name: data.draw(array(data.draw(shapes)), label=name) for name in "abcd"} | {"k": 2, "s": 1.5}
    source = "\n".join(program)
    expected, ours = plain(source, names), captured(source, names)
    if isinstance(ours.error, CaptureError) or isinstance(expected.error, Warning):
        return  # refused by name; NumPy warns
    if expected.error is not None:
        assert isinstance(ours.error, KINDS), (
            ours.error,
            expected.error,
        )  # of several errors NumPy may see another first
        return
    if ours.error is not None:
        raise ours.error
    close = 1e-6 if any(word in source for word in ("@", "dot", "sum", "median")) else 0.0
    for name, value in ours.names.items():
        assert_equal(value, expected.names[name], name, close)
    for name, value in ours.inputs.items():
        assert_equal(value, expected.inputs[name], f"input {name}", close)
