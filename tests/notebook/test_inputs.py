"""What is an input: lists of numbers, Series, DataFrames, attributes and items, with gradients; never another value than Python's."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError, DifferentiationError, DTypeError
from tensormagic.ir.node import topological
from tensormagic.ops.leaf import INPUT

pandas = pytest.importorskip("pandas")


class Point(NamedTuple):
    x: float
    y: Any


@dataclass
class Model:
    weights: np.ndarray
    bias: float


@pytest.fixture
def data(notebook):
    random = np.random.default_rng(1)
    a, b = random.normal(size=5), random.normal(size=5)
    notebook.shell.push(
        {
            "data": SimpleNamespace(target=random.normal(size=5), rate=0.5, names=["x", "y"], n=5),
            "df": pandas.DataFrame({"a": a, "b": b}),
            "mixed": pandas.DataFrame({"a": a, "n": range(5), "s": list("uvwxy")}, index=list("efghi")),
            "s": pandas.Series(a, name="col"),
            "xs": [1.0, 2.0, 4.0],
            "rows": ((1.0, 2), (3.0, 4)),
            "params": {"w": random.normal(size=3), "deep": [np.ones(2), 0.5]},
            "model": Model(np.arange(3.0), 2.0),
            "point": Point(1.5, np.ones(2)),
        }
    )
    return notebook


def names_of(tensor) -> set[str]:
    return {node["source"].name for node in topological([tensor.node]) if node.op is INPUT}


VALUES = {
    "an attribute": ("np.sum(data.target ** 2) * data.rate", {"data.target", "data.rate"}),
    "an item": ("np.sum(np.exp(params['w']))", {"params['w']"}),
    "an item of an item": ("np.sum(params['deep'][0]) * params['deep'][1]", {"params['deep'][0]", "params['deep'][1]"}),
    "an attribute of a dataclass": ("np.sum(model.weights * model.bias)", {"model.weights", "model.bias"}),
    "a tuple with names": ("np.sum(point.y) * point.x", {"point.y", "point.x"}),
    "a column": ("np.mean(np.log(df['a'] ** 2 + 1))", {"df"}),
    "a column of a mixed table": ("np.sum(mixed['a'] * mixed['n'])", {"mixed['a']", "mixed['n']"}),
    "a column as an attribute": ("(df.a * df.b).sum()", {"df"}),
    "a table": ("np.sum(np.asarray(df) ** 2)", {"df"}),
    "a product with a table": ("np.sum(df @ np.ones(2))", {"df"}),
    "columns of a table": ("np.sum(df[['b', 'a']] @ np.array([1.0, 2.0]))", {"df"}),
    "a Series": ("np.sum(s * 2 + np.sqrt(np.abs(s)))", {"s"}),
    "a standard deviation of pandas": ("(s * 2).std() + s.var()", {"s"}),
    "a standard deviation of NumPy": ("np.std(s)", {"s"}),
    "standardised columns": ("np.sum(((df - df.mean()) / df.std()) ** 3)", {"df"}),
    "an extremum of columns": ("np.sum(df.max() - df.min())", {"df"}),
    "a mean over columns": ("np.sum(df.mean(axis=1) ** 2)", {"df"}),
    "a deviation of a part": ("s[1:4].std() + s[s > -9].var() + (s[s > -9] * df['a'][s > -9]).std()", {"s", "df"}),
    "rows by a mask": ("df[df['a'] > -9]['b'].sum() + df[df['a'] > -9].mean()['b']", {"df"}),
    "a deviation of what was cast": (
        "s.astype(np.float32).std() + s.cumsum().std() + (df @ np.ones(2)).std()",
        {"s", "df"},
    ),
    "a deviation across": ("np.sum(df.T.std())", {"df"}),
    "what pandas gives": (
        "np.sum((mixed.drop(columns='s')['a'] - s.rank().to_numpy()) ** 2) + np.sum(df.iloc[:, :1].to_numpy())",
        None,
    ),
    "an element by its place": ("s[2] * s[:3].sum()", {"s"}),
    "values": ("np.sum(s.values ** 2) + s.to_numpy()[-1] + df.to_numpy()[0, 1]", {"s", "df"}),
    "a list": ("np.sum(w * xs)", {"w", "xs"}),
    "a mean of a list": ("np.mean(xs) + w[0]", {"w", "xs"}),
    "an array of a list": ("np.sum(np.asarray(xs) ** 2)", {"xs"}),
    "an element of a list": ("xs[1] * w[0] + xs[-1]", {"w", "xs[1]", "xs[-1]"}),
    "nested tuples": ("np.sum(np.array(rows) @ np.ones(2))", {"rows"}),
}


@pytest.mark.parametrize("what", VALUES)
def test_what_is_read_is_an_input(data, what):
    text, names = VALUES[what]
    expected = eval(text, dict(data.shell.user_ns))
    ran = data.ok(f"%%tensor\n{text}")
    assert isinstance(ran.value, tm.Tensor)
    assert names is None or names_of(ran.value) == names
    tolerance = 1e-6 if "float32" in text else 1e-13
    assert float(ran.value) == pytest.approx(float(expected), rel=tolerance)
    assert ran.value.dtype == np.asarray(expected).dtype


KEPT = {
    "repetition of a list": ("xs * 2", [1.0, 2.0, 4.0, 1.0, 2.0, 4.0]),
    "a sum by Python": ("sum(xs) + len(xs) + xs.index(2.0)", 11.0),
    "names and sizes": ("(data.names, data.n, len(df), list(df.columns), [c for c in df])", None),
    "what pandas alone does": (
        "float(s.median()) + float(df.iloc[1, 0]) + float(mixed.groupby('s')['a'].sum().iloc[0])",
        None,
    ),
    "text in columns": ("(mixed['s'] == 'u').tolist()", [True, False, False, False, False]),
    "gaps, which pandas skips": ("float(gaps.mean()) + float(np.sum(holes['a']))", 6.0),
}


@pytest.mark.parametrize("what", KEPT)
def test_python_and_pandas_stay_what_they_are(data, what):
    text, expected = KEPT[what]
    data["gaps"] = pandas.Series([1.0, np.nan, 3.0])
    data["holes"] = pandas.DataFrame({"a": [1.0, np.nan, 3.0]})
    plain = eval(text, dict(data.shell.user_ns))
    data.ok(f"%%tensor -q\nr = {text}")
    assert data["r"] == plain
    assert expected is None or plain == expected


def difference(function, at, step=1e-6):
    """The gradient by central differences."""
    at = np.asarray(at, float)
    found = np.zeros_like(at)
    for index in np.ndindex(at.shape):
        up, down = at.copy(), at.copy()
        up[index] += step
        down[index] -= step
        found[index] = (function(up) - function(down)) / (2 * step)
    return found


def test_gradients_with_respect_to_tables_and_lists(data):
    data.ok(
        "%%tensor objective --grad s,df,xs\nnp.sum(np.exp(s) * df['a'] * df['b']) * np.sum(np.asarray(xs) ** 2) * xs[1]"
    )

    def value(s, df, xs):
        return np.sum(np.exp(s) * df[:, 0] * df[:, 1]) * np.sum(xs**2) * xs[1]

    at = {name: np.asarray(data[name], float) for name in ("s", "df", "xs")}
    expected = {n: difference(lambda v, n=n: value(**{**at, n: v}), at[n]) for n in at}
    for name, gradient in expected.items():
        assert data[f"grad_{name}"].numpy() == pytest.approx(gradient, rel=1e-6)
    called = tm.grad(data["objective"], ("s", "df", "xs"))()
    for found, name in zip(called, expected, strict=True):
        assert np.asarray(found) == pytest.approx(expected[name], rel=1e-6)
    again = data["objective"](s=data["s"] + 1, xs=[2.0, 3.0])
    assert again == pytest.approx(value(at["s"] + 1, at["df"], np.array([2.0, 3.0])))


def test_gradients_with_respect_to_containers(data):
    ran = data.ok(
        "%%tensor cost --grad params,model\nnp.sum(params['w'] ** 2) * params['deep'][1] + np.sum(model.weights) * model.bias"
    )
    grads, model = data["grad_params"], data["grad_model"]
    assert grads["w"].numpy() == pytest.approx(2 * data["params"]["w"] * 0.5)
    assert grads["deep"][0].tolist() == [0, 0]
    assert float(grads["deep"][1]) == pytest.approx(np.sum(data["params"]["w"] ** 2))
    assert model.weights.tolist() == [2, 2, 2]
    assert float(model.bias) == 3.0
    assert "grad_params['w'] = [" in ran.data["text/plain"]
    found = tm.grad(data["cost"], "params")()
    assert found["w"] == pytest.approx(grads["w"].numpy())
    assert data["cost"](params={"w": np.ones(3), "deep": [np.ones(2), 2.0]}) == pytest.approx(6.0 + 6.0)


def test_what_the_function_of_a_cell_changes_is_no_argument(data):
    data["log"] = [1.0]
    data.ok("%%tensor note\nlog.append(2.0)\nnp.sum(X) * len(log)")
    assert data["note"].parameters == ("X",)
    data["note"]()
    assert data["log"] == [1.0, 2.0, 2.0]
    data.ok("def change(p): p['w'] = np.zeros(3)")
    data.ok("%%tensor made -q\nr = params['w'].sum()")
    with pytest.raises(CaptureError, match="changes a container"):
        data.ok("%%tensor other -q\nchange(params)\nr = params['w'].sum()").value or data["other"]()


def test_numbers_as_objects_are_pandas_own_and_their_errors_name_the_line(data):
    data["bad"] = pandas.DataFrame({"ok": [1.0, 2.0], "price": [1, None]}, dtype=object)
    assert data("%%tensor\nz = 1\nnp.sum(bad['price'])").result.result == np.sum(data["bad"]["price"])
    ran = data("%%tensor\nz = 1\nnp.sum(np.asarray(bad))")
    assert str(ran.error).startswith("unsupported operand type(s) for +: 'float' and 'NoneType'")
    assert "line 3" in ran.out.splitlines()[0]


def test_series_of_other_labels_are_added_by_pandas(data):
    data["other"] = pandas.Series([1.0, 2.0, 3.0, 4.0, 5.0], index=[5, 6, 7, 8, 9])
    kept = data["data"].target.copy(), data["df"].copy()
    ran = data.ok("%%tensor\ns + other")
    pandas.testing.assert_series_equal(ran.value, data["s"] + data["other"])
    assert np.array_equal(data["data"].target, kept[0])
    assert data["df"].equals(kept[1])


def test_labels_and_stores_into_columns_are_pandas_own(data):
    data["other"] = pandas.Series([1.0, 2.0, 3.0, 4.0, 5.0], index=[5, 6, 7, 8, 9])
    assert data.ok("%%tensor\nmixed['n']['g'] + other[7]").value == 5.0
    assert isinstance(data("%%tensor\nmixed['n'][2] + other[7]").error, KeyError)  # a position is no label
    kept = data["df"].copy()
    data.ok("%%tensor -q\nc = df['a']\nc[0] = 1.0")
    assert data["c"].tolist() == [1.0, *kept["a"][1:]]
    assert data["df"].equals(kept)


def test_a_gradient_that_pandas_hides_is_refused(data):
    ran = data("%%tensor --grad s\ns.sum() * float(s.median())")
    assert isinstance(ran.error, DifferentiationError)
    assert "pandas methods" in ran.out
    ran = data("%%tensor --grad xs\nxs.append(1.0)\nnp.sum(xs)")
    assert isinstance(ran.error, CaptureError)
    assert data["xs"] == [1.0, 2.0, 4.0]


def test_stores_by_items_reach_the_notebook_in_order(data):
    data.ok("%%tensor -q\nt = data.target\nt[0] = 1.0\nbefore_commit = data.target[0] + 1")
    assert data["data"].target[0] == 1.0
    assert float(data["before_commit"]) == 2.0
    data.ok(
        "%%tensor -q\nbefore = params['w'].sum() * 1\nparams['w'][0] = 7.0\nparams['w'] += 1\nafter = params['w'].sum() * 1"
    )
    w = data["params"]["w"]
    assert w[0] == 8.0
    assert float(data["after"]) == pytest.approx(w.sum())
    assert float(data["after"]) - float(data["before"]) != 0


def test_one_array_is_one_input_whatever_leads_to_it(data):
    data["X"] = data["data"].target
    ran = data.ok("%%tensor\nnp.sum(X * data.target)")
    assert len(names_of(ran.value)) == 1
    data.ok("%%tensor --grad X\nnp.sum(X * data.target)")
    assert data["grad_X"].numpy() == pytest.approx(2 * data["X"])


def test_what_changes_between_two_readings_is_read_anew(data):
    data.ok("def double(): data.target[:] *= 2")
    total = data["data"].target.sum()
    data.ok("%%tensor -q\nfirst = np.sum(data.target)\ndouble()\nsecond = np.sum(data.target)")
    assert float(data["first"]) == pytest.approx(total)
    assert float(data["second"]) == pytest.approx(2 * total)


def test_tables_are_cast(data):
    assert data.ok("%%tensor --dtype float32\nnp.sum(s * mixed['a'].to_numpy())").value.dtype == np.float32
    data.ok("%%tensor part --dtype float32 --grad s\nnp.sum(s * df['b'])")
    assert data["grad_s"].dtype == np.float32
    assert data["part"]().dtype == np.float32
    assert data["s"].dtype == np.float64


def test_gradients_of_tables_and_lists_are_checked(data):
    ran = data.ok(
        "%%tensor --grad s,df,xs,params --check --show none\n"
        "np.sum(s * df['a']) * np.sum(np.asarray(xs) ** 2) * xs[0] + np.sum(params['w'])"
    )
    assert ran.data["text/plain"].count("agrees") == 4
    assert "a part of a container" in ran.data["text/plain"]


def test_the_function_of_a_cell_takes_no_gaps(data):
    data.ok("%%tensor average -q\nm = s.mean()")
    assert data["average"]() == pytest.approx(data["s"].mean())
    with pytest.raises(DTypeError, match="s has gaps"):
        data["average"](pandas.Series([1.0, np.nan]))
