"""Lazy tables and numbers that pandas meets in plain cells, and what captured cells ask of a table, are as without the magic."""

import random
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tests.notebook.conftest import Notebook
from tests.notebook.sameness import difference, form, names_of

pd = pytest.importorskip("pandas")

START = """
import numpy as np, pandas as pd
x = np.array([0.0, 3.0, 1.0, 2.0])
df = pd.DataFrame({"a": x + 1, "b": [4.0, 1, 2, 8], "k": list("ppqq")}, index=[3, 1, 2, 0])
gaps = pd.DataFrame({"a": [1.0, np.nan, 3, 4], "i": [1, 2, 3, 4]})
t = pd.Series([10.0, 20.0, 30.0, 40.0])
out = []
"""
LAZY = ["m, sd, n = x.mean(), x.std(), x.argmax()", "z = (df.a - m) / sd", "q = df[['a', 'b']] * x[1]", "u = t * x"]
USES = [
    "df['z'] = z",
    "df['v'] = (df.a - m) / sd",
    "df.insert(0, f'c{len(df.columns)}', z)",
    "df = df.assign(w=z, y=lambda d: d.w * m)",
    "df.loc[df.a > m, 'o'] = z",
    "out.append(pd.concat([z, df.b], axis=1).values.tolist())",
    "out.append(pd.DataFrame({'z': z, 't': t}).sort_index().values.tolist())",
    "out.append((t.add(z).to_dict(), t.where(z > 0, 0).to_dict(), t.fillna(z).to_dict()))",
    "out.append((z + t).sort_index().tolist())",
    "out.append((t * q.a - u).sort_index().tolist())",
    "out.append((u > t).tolist())",
    "out.append(np.maximum(z, t).sort_index().tolist())",
    "out.append((df.b.corr(z), z.corr(df.b), z.cov(u)))",
    "out.append(q.merge(df[['b']], left_index=True, right_index=True).shape)",
    "out.append(df[['b']].join(q[['a']]).values.tolist())",
    "out.append(z.groupby(df.k).mean().to_dict())",
    "out.append(df.groupby('k')['b'].sum().mul(m).to_dict())",
    "out.append((gaps.a - m).tolist())",
    "out.append((gaps * m).values.tolist())",
    "out.append((m / gaps.i).tolist())",
    "gaps['s'] = gaps.a.fillna(m) * n",
    "out.append((list(z), sorted(u), sum(q.a), max(z), [v for v in u], tuple(zip(z, t)), [*enumerate(u)]))",
    "out.append([isinstance(v, np.generic) for v in z] + [isinstance(v, int) for v in gaps.i])",
    "a, b, *c = u",
    "out.append({k: v for k, v in u.items()})",
    "out.append([isinstance(v, c) for v in (z, q, df, df.a, x) for c in (pd.Series, pd.DataFrame, np.ndarray)])",
    "out.append([hasattr(v, n) for v in (z, q, df, df.b, x) for n in ('iloc', 'columns', 'values', 'a', 'index')])",
    "out.append(getattr(df, 'columns', None) is None or getattr(z, 'index', None) is None)",
    "out.append(pd.isna(z).any() or z.is_unique)",
    "out.append(pd.cut(z, 3).astype(str).tolist())",
]


@pytest.mark.parametrize("seed", range(24))
def test_sessions(notebook: Notebook, seed: int):
    """Cells of random lines, of which some are captured, against the same without the magic."""
    draw = random.Random(seed)
    lines = draw.sample(USES, 7)
    cells = ["\n".join(LAZY)] + ["\n".join(lines[k : k + 2]) for k in range(0, 7, 2)]
    magic = [True, *(draw.random() < 0.4 for _ in cells[1:])]
    first = {*notebook.shell.user_ns, "np", "pd"}
    found: list[dict[str, Any]] = []
    for captured in (True, False):
        for own in names_of(notebook.shell.user_ns, first):
            del notebook.shell.user_ns[own]
        notebook.ok(START)
        for cell, wanted in zip(cells, magic, strict=True):
            notebook.ok("%%tensor -q\n" * (wanted and captured) + cell)
        found.append({n: form(v) for n, v in names_of(notebook.shell.user_ns, first).items()})
    ours, pandas = found
    assert {*ours} == {*pandas}
    assert [d for n in ours for d in difference(pandas[n], ours[n], n) if not d.startswith("digits")] == []


def test_what_a_table_is_asked_in_a_cell(notebook: Notebook):
    notebook.ok(START)
    asked = "[type(v).__name__ for v in (df, df.a, df.a * 2, df[['a']] * 2, gaps, gaps.a, df.a.values, x)]"
    wanted = notebook.ok(asked).value
    assert notebook.ok(f"%%tensor\n{asked}").value == wanted


@pytest.mark.parametrize("magic", ["", "%%tensor\n"])
def test_columns_with_names_that_lazy_arrays_have(notebook: Notebook, magic: str):
    notebook.ok("import numpy as np, pandas as pd")
    notebook.ok(
        "d = pd.DataFrame({n: [1.0, 2.0] for n in ('labels', 'graph', 'level', 'type', 'node', 'grad', 'sum')})"
    )
    notebook.ok("%%tensor\ne = d * np.float64(3)")
    asked = "[float(sum(v)) for v in (e.labels, e.graph, e.level, e.type, e.node, e.grad)], float(e.sum().sum())"
    assert notebook.ok(magic + asked).value == ([9.0] * 6, 63.0)


def test_a_plot_of_a_lazy_series_has_its_parts(notebook: Notebook):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.close("all")  # pandas draws into the figure that is there
    notebook.ok(START)
    notebook.ok("%%tensor\n" + "\n".join(LAZY))
    assert len(notebook.ok("z.plot.bar().patches").value) == 4
    assert len(notebook.ok("%%tensor\nax = u.plot.barh()\nlen(ax.patches)").out) > 0
    plt.close("all")


def test_gradients_go_through_what_a_plain_cell_makes_of_a_column(notebook: Notebook):
    notebook.ok(START)
    notebook["w"] = np.float64(2.0)
    notebook.ok("%%tensor\nv = w * 3")
    notebook.ok("y = ((df.a - v) ** 2).sum()")
    assert notebook.ok("float(y.grad(w))").value == pytest.approx(-6 * (notebook["df"].a - 6.0).sum())


DIVIDED = """
try:
    found = [1 / v for v in {}]
except ZeroDivisionError as error:
    found = str(error)
"""


@pytest.mark.parametrize("series", ["df.a - 1", "u", "(t - 10)", "gaps.i - 1"])
def test_numbers_of_a_series_are_pythons(notebook: Notebook, series: str):
    notebook.ok(START)
    notebook.ok("%%tensor\nu = t * x")
    notebook.ok(f"%%tensor\n{DIVIDED.format(series)}")
    assert str(notebook["found"]).startswith("float division by zero") or "division by zero" in str(notebook["found"])


def test_a_loop_over_a_series_is_one_loop(notebook: Notebook):
    notebook.ok("import numpy as np, pandas as pd\ns = pd.Series(np.arange(300.0))")
    notebook.ok("%%tensor --grad s\ntotal = 0.0\nfor v in s:\n    total += v * v\ntotal")
    assert notebook["grad_s"].numpy().tolist() == (2 * np.arange(300.0)).tolist()
    assert "loop" in notebook.ok("str(total.graph)").value


@pytest.mark.parametrize("magic", ["", "%%tensor -q\n"])
@pytest.mark.parametrize("value", ["z", "1 - z ** 2", "u", "t * x"])
def test_a_class_of_the_users_that_is_a_series_keeps_the_labels(notebook: Notebook, value: str, magic: str):
    made = (
        "class Own(pd.Series):\n    def __init__(self, *args, **options):\n        super().__init__(*args, **options)"
    )
    notebook.ok(f"{START}\n{made}\n" + "\n".join(LAZY))
    wanted = notebook.ok(f"s = Own({value})\ns.to_dict()").value
    notebook.ok(f"{START}\n{made}")
    notebook.ok("%%tensor -q\n" + "\n".join(LAZY))
    notebook.ok(f"{magic}s = Own({value})")
    assert notebook.ok("s.to_dict(), type(s).__name__").value == (pytest.approx(wanted), "Own")


def test_a_comprehension_over_a_series_has_a_derivative():
    found = tm.grad(lambda s: sum([v * v for v in s]) + max(s))(pd.Series([1.0, 5.0, 2.0]))
    assert np.asarray(found).tolist() == [2.0, 11.0, 4.0]
