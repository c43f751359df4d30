"""Calls that are given tables of pandas: what they give and leave is what pandas makes, in value, class and labels."""

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tensormagic as tm

pd = pytest.importorskip("pandas")

pytestmark = pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")


def _table(seed: int) -> Any:
    random = np.random.default_rng(seed)
    rows = int(random.integers(3, 7))
    labels = [pd.RangeIndex(rows), pd.Index(list("uvwxyz")[:rows]), pd.date_range("2024-01-01", periods=rows)][seed % 3]
    return pd.DataFrame(random.normal(size=(rows, 2)).round(2), labels, ["a", "b"])


def _new_column(d: Any, k: float) -> Any:
    d["c"] = d["a"] * k
    return d["c"].sum()


def _loop(d: Any, k: float) -> Any:
    total = d["a"] * 0
    for _ in range(3):
        total = total + k * d["b"]
    return total


def _branch(d: Any, k: float) -> Any:
    return d["a"] - k if d["a"].mean() > 0 else d["b"]


def _kept(d: Any, k: float) -> Any:
    found = {"scaled": d * k, "history": [d["a"], k]}
    found["history"].append(d["b"].max())
    return found


OF_TABLES = {
    "itself": lambda d, k: d,
    "a column": lambda d, k: d["a"],
    "arithmetic": lambda d, k: (d * k + 1, d["a"] * k, d.b / k),
    "a ufunc": lambda d, k: (np.exp(d["a"]), np.abs(d)),
    "by column": lambda d, k: (d.mean(), np.mean(d, axis=0), d.sum(axis=1), np.std(d, axis=0)),
    "numbers alone": lambda d, k: (d["a"].mean() * k, d["b"].std(), len(d), float(d["a"].max())),
    "scaled": lambda d, k: (d - d.mean()) / d.std(),
    "a mask": lambda d, k: d["a"][d["a"] > 0],
    "rows": lambda d, k: d[d["a"] > 0]["b"].sum() + k,
    "by place": lambda d, k: (d["a"].iloc[0] * k, d.iloc[-1], d.iloc[1, 1]),
    "by label": lambda d, k: (d.loc[d.index[0], "a"], d.loc[d["a"] > 0, "b"].mean()),
    "a product": lambda d, k: (d @ np.array([k, 1.0]), d.to_numpy() @ np.array([k, 1.0])),
    "windows": lambda d, k: d["a"].rolling(2).mean(),
    "differences": lambda d, k: (d["a"].diff(), d["a"].shift(1), d.cumsum()),
    "rows gone over": lambda d, k: [r["a"] * k + r["b"] for _, r in d.iterrows()],
    "items": lambda d, k: {str(label): v * k for label, v in d["a"].items()},
    "groups": lambda d, k: d.groupby(d["a"] > 0)["b"].sum(),
    "a table made": lambda d, k: pd.DataFrame({"x": d["a"] * k, "y": d["b"]}),
    "sorted": lambda d, k: d.sort_values("b")["a"].tolist(),
    "a new column": _new_column,
    "a loop": _loop,
    "a branch": _branch,
    "in containers": _kept,
}


def _same(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, list | tuple):
        return type(found) is type(wanted) and all(_same(f, w) for f, w in zip(found, wanted, strict=True))
    if isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(_same(found[k], v) for k, v in wanted.items())
    if isinstance(wanted, pd.Series | pd.DataFrame):
        if type(found) is not type(wanted):
            return False
        assert_equal = (
            pd.testing.assert_series_equal if isinstance(wanted, pd.Series) else pd.testing.assert_frame_equal
        )
        assert_equal(found, wanted, rtol=1e-12)
        return True
    return found is wanted or (
        type(found) is type(wanted) and bool(np.allclose(found, wanted, rtol=1e-12, equal_nan=True))
    )


@pytest.mark.parametrize("name", OF_TABLES)
def test_what_calls_give(name: str) -> None:
    function = OF_TABLES[name]
    captured = tm.tensor(function)
    for seed in range(6):
        own, other = _table(seed), _table(seed)
        for k in (0.5, -2.0):
            assert _same(captured(own, k), function(other, k)), (seed, k)
            assert own.equals(other)


def _scales(o: Any, k: float) -> None:
    o.w = o.w * k


def _in_place(o: Any, k: float) -> Any:
    o.w *= k
    return o.w.sum()


def _by_label(o: Any, k: float) -> Any:
    o.w["a"] = k
    return o.w.sum()


def _appends(o: Any, k: float) -> int:
    o.log.append(o.w + k)
    return len(o.log)


@pytest.mark.parametrize("function", [_scales, _in_place, _by_label, _appends])
def test_what_calls_leave_in_objects(function: Any) -> None:
    own, other = [SimpleNamespace(w=pd.Series({"a": 0.5, "b": 1.5}), log=[]) for _ in range(2)]
    captured = tm.tensor(function)
    for k in (2.0, 3.0, 0.25):
        assert _same(captured(own, k), function(other, k))
        assert _same([own.w, own.log], [other.w, other.log])


def test_a_function_of_a_table_that_gives_numbers_is_captured() -> None:
    table = _table(0)
    with warnings.catch_warnings(action="error"):
        captured = tm.tensor(lambda w, d: ((d @ w - d["b"]) ** 2).mean())
        w = np.array([0.5, -1.0])
        assert captured(w, table) == pytest.approx(((table @ w - table["b"]) ** 2).mean(), rel=1e-14)
    slope = tm.grad(lambda w, d: ((d @ w - d["b"]) ** 2).mean())(w, table)
    values = table.to_numpy()
    np.testing.assert_allclose(slope, 2 * values.T @ (values @ w - values[:, 1]) / len(values), rtol=1e-12)
