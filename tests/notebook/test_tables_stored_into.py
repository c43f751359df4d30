"""Cells that store into tables of pandas, and give pandas functions and lazy values, leave what they leave without the magic."""

import numpy as np
import pytest

from tensormagic.ir.errors import CaptureError, ConstantGradientWarning
from tests.notebook.conftest import Notebook
from tests.notebook.sameness import difference, form, names_of

pd = pytest.importorskip("pandas")

START = """
import numpy as np, pandas as pd
x = np.arange(6.0)
df = pd.DataFrame({"a": x, "b": x[::-1]})
mixed = pd.DataFrame({"a": x, "i": np.arange(6), "k": list("xyxyxy")})
s = pd.Series(np.arange(4.0))
t = s
"""
CELLS = {
    "columns": """
%%
m = x.mean()
df["a"] += m
df["b"] = df["b"] * m
df["c"] = x * m
df["c"] -= df["a"]
df.b *= 2
mixed["a"] *= m
mixed["i"] += 1
mixed["i"] /= 2
mixed.a -= mixed["i"]
u = df["a"]
v = u
u += 1
print(df, mixed, u, v)
--
w = df.sum(), mixed.dtypes.astype(str).tolist(), u.tolist(), v.tolist()
df["a"] += 1
%%
df["a"] **= 2
df["d"] = (df["a"] > 3) & (df["b"] > 1)
df["d"] ^= True
for c in ["a", "b"]:
    df[c] -= df[c].mean()
    df[c] /= df[c].std()
""",
    "rows": """
%%
m = x.mean()
df["d"] = df["a"] + df["b"] * m
df.loc[df["a"] > m, "d"] = 0
df.loc[0, "a"] = m
df.iloc[1, 1] = -m
df["e"] = m
df["f"] = np.where(df["a"] > 2, 1, 0)
df["h"] = df["a"].rolling(2).mean().fillna(m)
df.at[2, "b"] = 7
del df["h"]
df.columns = [c.upper() for c in df.columns]
y = df["A"] * 2 + df["B"]
z = (df["A"] * x).sum()
print(df.round(2), df.describe().round(1), z)
--
n = df.dtypes.astype(str).tolist(), y.sum()
""",
    "variables": """
%%
m = 2.0
s += m
df -= 1
df[df > m] = 0
--
n = t is s, t.tolist()
""",
    "functions": """
%%
m = x.mean()
f = lambda v: v * m
def row(r): return r.a * m + r["i"]
u = [mixed["a"].apply(f), mixed["a"].map(lambda v: v + m), mixed.apply(row, axis=1)]
u += [mixed.groupby("k").apply(lambda g: g.a.sum() * m), mixed.groupby("k")["a"].transform(lambda s: s - s.mean() * m)]
u += [mixed.groupby("k")["a"].agg(lambda s: s.max() - m), df.pipe(lambda d: d * m), pd.Series([v * m for v in x])]
mixed["g"] = mixed["a"].apply(f)
u += [pd.DataFrame({"a": [f(v) for v in range(3)], "c": [m, 1, 2]}), pd.Series({"a": m, "b": 1.0})]
print([v.dtypes for v in u])
""",
    "given to functions": """
def scale(d, k=2):
    d["a"] = d["a"] * k
    return d
%%
m = x.mean()
def clean(d):
    d = d.copy()
    d["z"] = d["a"] * m
    d.loc[d["z"] > 10, "z"] = 0
    return d
e = clean(df)
f = scale(df, k=3)
u = clean(d=df).z.sum()
s[0] = m
s.loc[1] = 7
s.iloc[-1] += 1
print(e, f, u, s)
class Held:
    def __init__(self, d): self.d = d
    def add(self, v): self.d["n"] = v
held = Held(mixed)
held.add(x * m)
held.d["o"] = held.d["n"] + m
--
v = f is df, df.a.tolist(), t.tolist(), mixed["o"].tolist(), held.d is mixed
""",
    "plain cells with lazy values": """
%%
m, z, n = x.mean(), x * 2, x.argmax()
--
df["a"] += m
df["b"] *= z
v = df["a"].copy()
v -= m
v /= z + 1
df **= n - 3
c = df[df.a > m], df[df > m], df[(df.a > m) & (df.b < z)], df.a == m, df.loc[df.a >= m, "b"], (df.a != z).sum()
w = pd.Series(z)
w[0] = 5
print(z)
%%
df["a"] += m
w[1] = 7
k = df.a.sum() + w.sum()
--
df[df > m] = 0
""",
}


@pytest.mark.parametrize("name", CELLS)
def test_cells(notebook: Notebook, name: str):
    first = {*notebook.shell.user_ns, "np"}
    found = []
    for magic in ("%%tensor -q\n", ""):
        for own in names_of(notebook.shell.user_ns, first):
            del notebook.shell.user_ns[own]
        notebook.ok(START)
        told = []
        for part in CELLS[name].strip().split("\n--\n"):
            for k, cell in enumerate(part.split("%%\n")):
                told += [notebook.ok(magic * bool(k) + cell).out] if cell else []
        found.append((told, {n: form(v) for n, v in names_of(notebook.shell.user_ns, first).items()}))
    (told, ours), (expected, pandas) = found
    assert told == expected
    assert {*ours} == {*pandas}
    assert [d for n in ours for d in difference(pandas[n], ours[n], n) if not d.startswith("digits")] == []


def test_a_cell_that_fails_leaves_tables_as_they_were(notebook: Notebook):
    notebook.ok(START)
    ran = notebook("%%tensor\ndf['c'] = x * 2\ndf.loc[0, 'a'] = 99\ns += 5\n1 / 0")
    assert isinstance(ran.error, ZeroDivisionError)
    assert list(notebook["df"].columns) == ["a", "b"]
    assert notebook["df"]["a"].tolist() == [0, 1, 2, 3, 4, 5]
    assert notebook["s"].tolist() == [0, 1, 2, 3]


def test_gradients_do_not_go_through_stored_columns_and_say_so(notebook: Notebook):
    notebook.ok(START)
    notebook["w"] = np.arange(6.0)
    for store in ("df['p'] = w * 2", "df.loc[0, 'a'] = w[1]"):
        assert isinstance(notebook(f"%%tensor --grad w\n{store}\n(df['a'] * w).sum()").error, CaptureError)
    assert isinstance(notebook("%%tensor --grad s\ns += 1\n(s ** 2).sum()").error, CaptureError)
    with pytest.warns(ConstantGradientWarning, match="a number that depends on w was read here"):
        notebook.ok("%%tensor --grad w\ndf['a'] += w\n(df['a'] * 2).sum() + w.sum()")
    notebook.ok("%%tensor --grad w\nloss = (df['b'] * w).sum()\ndf['q'] = 3.0\nloss")
    assert notebook["grad_w"].numpy().tolist() == [5, 4, 3, 2, 1, 0]


def test_a_label_that_several_rows_have(notebook):
    notebook.ok("import numpy as np, pandas as pd\ns = pd.Series(np.arange(5.0), index=list('aabcb'))")
    for text in ('s["a"]', 's["b"]', 's["c"]', '(s * 2)["a"]'):
        wanted = notebook.ok(f"r = {text}\nnp.asarray(r).tolist(), list(getattr(r, 'index', ''))").value
        notebook.ok(f"%%tensor\nr = {text}")
        found = notebook.ok("np.asarray(r).tolist(), list(getattr(r, 'index', ''))").value
        assert found == wanted


@pytest.mark.parametrize(
    "text", ["list(s[s > 1].index)", "s[1:3].index.tolist()", "len(s['b'].index)", "(s[s > 1] * 2).index"]
)
def test_the_index_of_chosen_rows(notebook, text):
    notebook.ok("import numpy as np, pandas as pd\ns = pd.Series(np.arange(5.0), index=list('aabcb'))")
    wanted = notebook.ok(text).value
    found = notebook.ok(f"%%tensor\n{text}").value
    assert list(found) == list(wanted) if not isinstance(wanted, int) else found == wanted


def test_a_function_of_the_notebook_may_change_a_table_in_place(notebook):
    notebook(START)
    notebook("def raised(t):\n    t += 1\n")
    ran = notebook("%%tensor\nm = x.mean()\nraised(df)\nw = df['a'] * m\nw.sum()")
    assert ran.error is None
    assert notebook.shell.user_ns["df"]["a"].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert float(ran.value) == 21 * 2.5
