"""Lazy values: what stays lazy, what computes, and that inputs are those of the cell's run."""

import copy
import functools
import gc
import io
import json
import math
import operator
import pickle
from collections import OrderedDict

import numpy as np
import pytest

import tensormagic as tm
from tensormagic import session
from tensormagic.capture.inputs import snapshots
from tests.capture.harness import cell

pytestmark = pytest.mark.usefixtures("by_numpy", "exact")


@pytest.fixture
def x():
    return tm.tensor(np.array([3.0, 1.0, 2.0]))


@pytest.fixture
def y(x):
    return x * 2


def computed(v):
    return session.is_computed(v.node)


def test_attributes_compute_nothing(y):
    assert y.shape == (3,)
    assert y.dtype == np.float64
    assert (y.ndim, y.size, y.nbytes, y.itemsize, len(y)) == (1, 3, 24, 8, 3)
    assert y[None].T.shape == (3, 1)
    assert not computed(y)
    assert type(y) is tm.Tensor
    assert repr(y).startswith("Tensor(float64[3]")
    assert "not computed" in repr(y)
    assert "not computed" in repr({"y": y})
    assert not computed(y)


def test_repr_computes_one_cheap_number(y):
    total = y.sum()
    assert not computed(total)
    assert repr([total, y]).startswith("[np.float64(12.0), Tensor(float64[3]")
    assert computed(total)
    costly = np.linalg.det(np.outer(y, y) + np.eye(3))
    assert "not computed" in repr(costly)


def test_what_computes(y):
    assert np.asarray(y).tolist() == [6, 2, 4]
    assert computed(y)
    assert str(y) == "[6. 2. 4.]"
    assert "6." in repr(y)
    assert y.tolist() == [6, 2, 4]
    assert y[0].item() == 6.0
    assert type(y[0].item()) is float
    assert list(map(float, y)) == [6, 2, 4]
    assert 4.0 in y
    assert np.asarray(y, dtype=np.float32).dtype == np.float32


def test_the_value_is_one_read_only_object(y):
    value = y.numpy()
    assert value is y.numpy()
    assert not value.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        value[0] = 1
    assert np.array(y).flags.writeable
    y2 = np.array(y)
    y2[0] = 100
    assert y.numpy()[0] == 6


def test_numbers(x):
    total = x.sum()
    assert float(total) == 6.0
    assert int(total) == 6
    assert complex(total) == 6 + 0j
    assert bool(total)
    assert not bool(total - 6)
    assert operator.index(x.argmax()) == 0
    assert [10, 20, 30][x.argmin()] == 20
    assert range(int(x.argmax()), 3) == range(3)
    assert math.sqrt(total) == math.sqrt(6)
    assert math.floor(total / 4) == 1
    assert math.ceil(total / 4) == 2
    assert math.trunc(total / 4) == 1
    assert round(total / 4, 1) == 1.5
    assert round(total / 4) == 2
    assert divmod(total, 4)[0] == 1
    assert f"{total:.2f} {total}" == "6.00 6.0"
    assert f"{total:>8.1f}" == "     6.0"
    assert "%.1f" % total == "6.0"  # noqa: UP031 (the old way works too)
    assert f"{total:.3e}" == "6.000e+00"
    assert total > 5
    assert max(total, 3) == 6.0
    assert sum(x) == 6.0
    assert [float(v) for v in sorted([total, total - 5])] == [1.0, 6.0]
    with pytest.raises(ValueError, match="ambiguous"):
        bool(x)
    with pytest.raises(TypeError):
        float(x)
    with pytest.raises(TypeError):
        hash(x)


def test_numpy_functions_stay_lazy(x):
    for value in (
        np.exp(x),
        np.sum(x),
        np.concatenate([x, x]),
        np.where(x > 1, x, 0),
        np.add(x, 1),
        np.add.reduce(x),
        np.linalg.norm(x),
        x @ x,
        np.ones(3) * x,
        np.ones(3) + x,
        2**x,
        np.float64(2) * x,
        np.sort(x),
        np.mean(x),
    ):
        assert isinstance(value, tm.Tensor)
        assert not computed(value)
    assert (np.ones(3) + x).numpy().tolist() == [4, 2, 3]
    assert isinstance(np.ones((2, 3)) @ x, tm.Tensor)
    a = np.ones(3)
    a = a + x
    assert isinstance(a, tm.Tensor)


def test_what_is_not_captured_is_numpys_outside_cells(x):
    assert np.packbits(np.concatenate([x, x]) > 1).tolist() == [0b10110100]
    assert isinstance(np.unique_values(x > 1), np.ndarray)
    assert np.unique_values(x > 1).tolist() == [False, True]
    assert x[x > 1].tolist() == [3, 2]
    assert np.nonzero(x > 1)[0].tolist() == [0, 2]
    assert [v.tolist() for v in np.modf(x / 2)] == [[0.5, 0.5, 0], [1, 0, 1]]
    total = np.zeros(4)
    np.add.at(total, x.astype(int), x)
    assert total.tolist() == [0, 1, 2, 3]
    with pytest.raises(tm.CaptureError, match="unique_values is not captured"):
        tm.tensor(lambda v: np.unique_values(v > 1)).graph(np.ones(3))


def test_attributes_that_are_not_there(x):
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = x.nonsense
    assert not hasattr(x, "nonsense")
    assert "sum" in dir(x)
    assert "argsort" in dir(x)


def test_ufuncs_into_arrays_compute_at_once(x):
    w = np.zeros(3)
    held = w
    w -= 0.5 * x
    assert w is held
    assert w.tolist() == [-1.5, -0.5, -1.0]
    np.multiply(x, 2, out=w)
    assert w.tolist() == [6, 2, 4]
    assert np.exp(x, out=w) is w
    i = np.zeros(3, int)
    with pytest.raises(TypeError, match="same_kind"):
        i += x
    assert i.tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="shape"):
        np.add(x, 1, out=np.zeros(4))
    w = np.ones(3)
    w[:] = x
    assert w.tolist() == [3, 1, 2]
    w[1:] += x[1:]
    assert w.tolist() == [3, 2, 4]
    w[x > 1.5] = 0
    assert w.tolist() == [0, 2, 0]
    assert np.arange(10)[x.astype(int)].tolist() == [3, 1, 2]


def test_lazy_arrays_of_ones_own_can_be_stored_into(x):
    y = x * 2
    z = y + 1
    y[0] = 100
    y += 1
    assert y.tolist() == [101, 3, 5]
    assert z.tolist() == [7, 3, 5]
    v = y[1:]
    v[0] = -1
    assert y.tolist() == [101, -1, 5]


def test_pickling_copying_saving(y, tmp_path):
    again = pickle.loads(pickle.dumps(y))
    assert isinstance(again, tm.Tensor)
    assert again.tolist() == [6, 2, 4]
    for copied in (copy.copy(y), copy.deepcopy(y), y.copy()):
        copied[0] = 0
    assert y.tolist() == [6, 2, 4]
    np.save(tmp_path / "y.npy", y)
    assert np.load(tmp_path / "y.npy").tolist() == [6, 2, 4]
    stream = io.BytesIO()
    np.savez(stream, y=y)
    stream.seek(0)
    assert np.load(stream)["y"].tolist() == [6, 2, 4]
    assert json.dumps({"y": y.tolist(), "s": y.sum().item()}) == '{"y": [6.0, 2.0, 4.0], "s": 12.0}'


def test_pandas(y):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": y, "b": [1.0, 2.0, 3.0]})
    assert frame["a"].tolist() == [6, 2, 4]
    assert pd.Series(y).sum() == 12
    assert isinstance(frame["b"] * y, tm.Tensor), "a Series beside a lazy array stays lazy"
    assert isinstance(y * frame["b"], tm.Tensor)
    assert (frame["b"] + y).tolist() == [7, 4, 7]
    found = cell("z = s * w + s\nz.sum()", {"s": frame["b"], "w": y, "np": np})
    assert float(found.result) == 6 + 4 + 12 + 6


def test_frames_as_inputs():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]})
    found = cell(
        'y = df["a"] * 2\nz = np.asarray(df) @ np.ones(2)\nw = df["b"].to_numpy() + 1', {"df": frame, "np": np}
    )
    assert [np.asarray(found.outputs[n]).tolist() for n in "yzw"] == [[2, 4], [4, 6], [4, 5]]


def test_scikit_learn(x):
    linear_model = pytest.importorskip("sklearn.linear_model")
    features = x[:, None] * np.array([1.0, 2.0])
    model = linear_model.LinearRegression().fit(features, x * 2 + 1)
    assert np.allclose(model.predict(features), [7, 3, 5])


def test_matplotlib(x, y):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots()
    (line,) = axes.plot(x, y)
    axes.scatter(x, y)
    axes.hist(y)
    axes.imshow(x[:, None] * y)
    axes.axhline(y.mean())
    axes.set_title(f"{y.sum():.1f}")
    assert line.get_ydata().tolist() == [6, 2, 4]
    plt.close(figure)


def test_everything_in_one_run(x):
    a, b = x + 1, (x + 1) * 2
    first, second = tm.evaluate(a, b)
    assert first.tolist() == [4, 2, 3]
    assert second.tolist() == [8, 4, 6]
    assert a.numpy() is first


# inputs are those of the cell's run -----------------------------------------------------------------------------------


def test_inputs_that_change_after_the_capture():
    values = {
        "x": np.arange(4.0),
        "i": np.arange(4),
        "s": 2.0,
        "n": 3,
        "rows": [1.0, 2.0],
        "f": np.ones((2, 2), order="F"),
        "b": np.array([True, False]),
    }
    found = cell(
        "y = x * s + n\nz = i + 1\nw = np.array(rows) * 2\nv = f.T + 1\nu = b + 1\nh = x[1:] * 2", {**values, "np": np}
    )
    values["x"][:] = -1
    values["i"] *= 100
    values["f"][0] = 7
    values["b"][:] = False
    values["rows"].append(3.0)
    values["s"] = values["n"] = 0
    expected = {"y": [3, 5, 7, 9], "z": [1, 2, 3, 4], "w": [2, 4], "v": [[2, 2], [2, 2]], "u": [2, 1], "h": [2, 4, 6]}
    assert {n: v.tolist() for n, v in found.outputs.items()} == expected


def test_a_view_whose_base_changes():
    base = np.arange(6.0)
    found = cell("y = x + 1", {"x": base[::2], "np": np})
    base[:] = 0
    assert found.outputs["y"].tolist() == [1, 3, 5]


def test_a_read_only_view_whose_base_changes():
    base = np.arange(6.0)
    view = base[::2]
    view.flags.writeable = False
    found = cell("y = x + 1", {"x": view, "np": np})
    base[:] = 0
    assert found.outputs["y"].tolist() == [1, 3, 5]


def test_lazy_values_across_cells():
    first = cell("z = x * 2\nloss = z.sum()", {"x": np.arange(3.0), "np": np})
    second = cell("q = z + loss\nz[0] = 50\nw = z + 1", {**first.outputs, "np": np})
    assert second.outputs["q"].tolist() == [6, 8, 10]
    assert second.outputs["w"].tolist() == [51, 3, 5]


def test_an_unchanged_array_is_one_input():
    x = np.arange(3.0)
    a = cell("y = x + 1", {"x": x}).outputs["y"]
    b = cell("y = x + 1", {"x": x}).outputs["y"]
    assert a.node is b.node
    x[0] = 9
    c = cell("y = x + 1", {"x": x}).outputs["y"]
    assert c.node is not a.node
    assert a.tolist() == [1, 2, 3]
    assert c.tolist() == [10, 2, 3]


@pytest.fixture
def small_limit(monkeypatch):
    monkeypatch.setattr(snapshots, "COPY_LIMIT", 64)


@pytest.mark.usefixtures("small_limit")
def test_large_inputs_are_fingerprinted():
    x = np.arange(100.0)
    y = cell("y = x + 1", {"x": x}).outputs["y"]
    z = cell("z = x * 2", {"x": x}).outputs["z"]
    assert y.numpy()[5] == 6
    x[0] = 5
    with pytest.raises(tm.GuardError, match="x has changed since the cell that captured it"):
        z.numpy()


@pytest.mark.usefixtures("small_limit")
def test_large_inputs_that_are_secured():
    x = np.arange(100.0)
    y = cell("y = x + 1", {"x": x}).outputs["y"]
    snapshots.secure_all()
    x[:] = 0
    assert y.numpy()[5] == 6
    x[:] = 1
    snapshots.secure_all()
    assert cell("y = x + 1", {"x": x}).outputs["y"].numpy()[0] == 2


def test_chains_do_not_grow():
    x = tm.tensor(np.zeros(4))
    for _ in range(300):
        x = x + 1
        x.numpy()
    closed = session.close_over([(x + 1).node])
    assert len(closed.graph.nodes) < 6
    assert x.tolist() == [300.0] * 4


def test_values_are_freed():
    x = tm.tensor(np.zeros(10))
    y = x + 12345.0
    y.numpy()
    before = len(session.kept.values.here())
    del y
    gc.collect()
    assert len(session.kept.values.here()) < before


def test_errors_at_demand_are_numpys():
    singular = tm.tensor(np.zeros((2, 2)))
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        np.linalg.inv(singular).numpy()
    with pytest.raises(IndexError, match="out of bounds"):
        tm.tensor(np.arange(3))[tm.tensor(np.array([7]))].numpy()


def test_completion_offers_what_is_written_for_people() -> None:
    x = tm.tensor(np.ones(3))
    assert {"T", "shape", "grad", "numpy"} <= set(dir(x))
    assert not {"place", "node", "view_of", "become_own"} & set(dir(x))
    captured = tm.tensor(lambda v: v + 1)
    assert [n for n in dir(captured) if not n.startswith("__")] == ["forget", "graph", "math", "name", "source"]
    made = tm.compile(lambda v: v + 1, "float64[n]")
    offered = ["code", "cost", "export_c", "graph", "kernels", "math", "memory", "origin", "run", "save", "source"]
    assert [n for n in dir(made) if not n.startswith("__")] == offered


def test_programs_that_are_kept_have_a_bound_by_their_size(monkeypatch):
    monkeypatch.setattr(session.programs, "_executables", OrderedDict())
    monkeypatch.setattr(session.programs, "_NODES", 150)
    for k in range(40):

        def long(x, factors=tuple(k + j / 16 for j in range(10))):
            return functools.reduce(lambda y, c: np.sin(y * c), factors, x)

        session.executable(tm.trace(long, np.arange(3.0)))
        kept = [len(graph.nodes) for graph, _ in session.programs._executables]
        assert len(kept) <= session.programs._LAST or sum(kept) <= 150
    assert len(session.programs._executables) == session.programs._LAST
