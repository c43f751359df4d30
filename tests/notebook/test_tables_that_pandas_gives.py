"""Tables that pandas gives in a cell belong to that cell: it stores into them, and what they were made of stays as it was."""

import numpy as np
import pytest

from tests.notebook.sameness import difference, form

pd = pytest.importorskip("pandas")

START = """
import numpy as np, pandas as pd
ts = pd.Series(np.arange(6.0) ** 1.5, index=pd.date_range("2024-01-01", periods=6))
df = pd.DataFrame({"a": np.arange(6.0), "b": np.arange(6.0)[::-1]})
k = 0.5
"""
STORES = {
    "to_frame": """s = ts * k
f = s.to_frame("v")
f["w"] = s + 1
r = f.sum(), s.sum()""",
    "a mask": """d = df * k
f = d[d.a > 1]
f["c"] = f.a + f.b
f.loc[f.c > 2, "b"] = 0.0
r = f, d""",
    "sort_values": """d = df * k
f = d.sort_values("b")
f.iloc[0, 0] = -1.0
f["c"] = f["a"].cumsum()
r = f, d""",
    "rename": """d = df * k
f = d.rename(columns={"a": "A"})
f["A"] += 1
r = f, d""",
    "assign and drop": """f = (df * k).assign(c=2.0)
f["c"] *= f["a"]
g = f.drop(columns="b")
g.loc[0, "a"] = 9.0
r = f, g""",
    "rows by labels": """s = ts * k
f = s.loc["2024-01-02":"2024-01-04"]
f.iloc[0] = -1.0
r = f, s""",
    "in a loop": """f = (df * k).copy()
for name in ["a", "b"]:
    g = f.sort_values(name)
    g[name] = g[name] - g[name].mean()
    f[name] = g[name]
r = f""",
    "in a function": """def widened(d):
    f = d.dropna()
    f["c"] = f["a"] * f["b"]
    return f
r = widened(df * k), df""",
    "a branch on data": """f = (df * k).reset_index(drop=True)
if f["a"].sum() > 1:
    f["c"] = 1.0
else:
    f["d"] = 1.0
r = f""",
    "a concatenation": """f = pd.concat([df * k, df], ignore_index=True)
f["c"] = f.a - f.b
f.at[0, "c"] = 7.0
r = f""",
}
PLACES = {
    "a number": "(ts * k).searchsorted(2.0)",
    "a list": "(ts * k).searchsorted([0.1, 2.0, 99.0])",
    "an array": "(ts * k).searchsorted(np.array([0.1, 2.0]))",
    "the right side": "(ts * k).searchsorted([0.5, 1.0], side='right')",
    "another Series": "(ts * k).searchsorted(ts[:3])",
    "in an expression": "ts.iloc[int((ts * k).searchsorted(2.0))]",
    "repeat": "(ts * k).repeat(2)",
    "repeat by counts": "(df.a * k).repeat([0, 1, 2, 0, 1, 1])",
}


def _both(notebook, text: str):
    notebook.ok(START)
    notebook.ok(text)
    wanted = form(notebook["r"]), form(notebook["df"]), form(notebook["ts"])
    notebook.ok(START)
    notebook.ok(f"%%tensor\n{text}")
    return wanted, (form(notebook["r"]), form(notebook["df"]), form(notebook["ts"]))


@pytest.mark.parametrize("text", STORES.values(), ids=STORES)
def test_a_store_into_what_pandas_gave(notebook, text):
    wanted, found = _both(notebook, text)
    for left, right, name in zip(wanted, found, ("r", "df", "ts"), strict=True):
        assert [*difference(left, right, name)] == []


@pytest.mark.parametrize("text", PLACES.values(), ids=PLACES)
def test_places_have_no_labels(notebook, text):
    wanted, found = _both(notebook, f"r = {text}")
    for left, right, name in zip(wanted, found, ("r", "df", "ts"), strict=True):
        assert [*difference(left, right, name)] == []


def test_a_gradient_past_a_store_says_that_it_is_a_constant(notebook):
    """What pandas has made of a table is a constant of the graph, as before."""
    notebook.ok(START)
    notebook.ok("%%tensor\nf = (df * k).sort_values('b')\nf['a'] = 1.0\ntotal = f.sum().sum()")
    assert float(notebook["total"]) == pytest.approx(6.0 + 0.5 * np.arange(6.0).sum())
