"""Batches of none and one in functions compiled for sizes of at least two: NumPy's values and errors, and nothing is compiled."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.compiling import native
from tensormagic.session import tiers

FUNCTIONS = {
    "loss": lambda x: np.mean(np.log(1 + np.exp(-(x @ np.arange(3.0))))),
    "softmax": lambda x: (
        np.exp(x - x.max(1, keepdims=True)) / np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True)
    ),
    "squeeze": lambda x: x.squeeze(),
    "branch": lambda x: x * 10 if len(x) == 1 else x,
    "roll": lambda x: np.roll(x, 1, 0),
    "largest": lambda x: x.max(0),
    "first": lambda x: x[0],
    "deviation": lambda x: x.std(0, ddof=1),
    "median": lambda x: np.median(x, 0),
}


def outcome(function, x):
    with np.errstate(all="ignore"):
        try:
            return function(x)
        except (ValueError, IndexError, tm.GuardError) as error:
            return error


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_none_and_one_are_as_in_numpy(name, tmp_path, monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "auto")
    monkeypatch.setattr(native, "start", lambda plan: native.Handle(plan))  # never ready
    monkeypatch.setattr(native.Handle, "wait", lambda _self, _timeout=None: False)
    monkeypatch.setattr(native, "codes", lambda _sources: {})
    plain = FUNCTIONS[name]
    function = tm.compile(plain, "float64[n, 3]")
    asked = []
    monkeypatch.setattr(native, "start", asked.append)
    function.save(tmp_path / "f.tm")
    monkeypatch.setattr(tm.config, "tier", "numpy")
    again = tm.load(tmp_path / "f.tm")
    for rows in (1, 0, 4, 1):
        x = np.arange(3.0 * rows).reshape(rows, 3)
        expected = outcome(plain, x)
        for ours, others in ((outcome(function, x), ()), (outcome(again, x), (tm.GuardError,))):
            if isinstance(expected, Exception):  # which no file holds
                assert isinstance(ours, (type(expected), *others)), ours
                continue
            np.testing.assert_allclose(ours, expected, rtol=1e-13)
            assert (np.shape(ours), np.asarray(ours).dtype) == (np.shape(expected), np.asarray(expected).dtype)
    assert asked == []


def test_one_row_into_an_array(monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    function = tm.compile(lambda x, w: x @ w, "float64[n, k]", "float64[k]")
    out = np.zeros(1)
    assert function(np.ones((1, 4)), np.ones(4), out=out) is out
    assert function(np.ones((3, 1)), np.ones(1)).tolist() == [1, 1, 1]
    assert function(np.ones((1, 1)), np.ones(1)).tolist() == [1]
    assert function(np.ones((1, 0)), np.ones(0)).tolist() == [0]
    assert out.tolist() == [4]
    with pytest.raises(tm.GuardError, match="where"):
        function(np.ones((3, 4)), np.ones(1))


def test_d2_sizes_are_known_all_some_or_none_and_new_ones_compile_nothing(monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numba")
    rng = np.random.default_rng(0)

    def plain(x):  # whose graph the tests above have not kept from compiling
        return np.exp(x - x.max(1, keepdims=True)) * 1.25

    made = {kind: tm.compile(plain, kind) for kind in ("float64[n, m]", "float64[n, 3]", "float64[5, 3]")}
    x = rng.normal(size=(5, 3))
    for function in made.values():
        np.testing.assert_allclose(function(x), plain(x), rtol=1e-14)
    with pytest.raises(tm.GuardError):
        made["float64[5, 3]"](x[:4])
    asked = []
    monkeypatch.setattr(native, "start", asked.append)
    for rows, columns in ((7, 3), (2, 11), (1000, 2)):
        x = rng.normal(size=(rows, columns))
        np.testing.assert_allclose(made["float64[n, m]"](x), plain(x), rtol=1e-14)
    monkeypatch.setattr(tm.config, "tier", "auto")
    monkeypatch.setattr(tiers, "WORTH_COMPILING", float("inf"))  # on a busy machine even this little takes long
    for rows in (1, 0, 4):
        x = rng.normal(size=(rows, 3))
        np.testing.assert_allclose(made["float64[n, 3]"](x), plain(x), rtol=1e-14)
    assert asked == []
