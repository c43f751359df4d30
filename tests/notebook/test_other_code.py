"""What other code gets of a cell, and what a cell leaves: values, iterators of values and objects of NumPy, SciPy and pandas, drawn."""

from __future__ import annotations

import random

import pytest

from tests.notebook.conftest import Notebook
from tests.notebook.test_sessions import differences

DISTRIBUTIONS = """from scipy import stats
import numpy as np
x = np.linspace(0.0, 1.0, 5)
d0 = stats.norm(1.0, 2.0)
class H: pass
h = H(); held = []"""
PARAMETERS = [
    "stats.norm(x.mean(), 2)",
    "stats.expon(scale=x.sum())",
    "stats.gamma(x[1] + 2, scale=2.0)",
    "stats.uniform(x[0], x[3])",
]
PLACES = ["d = {d}", "h.d = {d}", "held.append({d})", "e = [{d}, 1]", "k = {'a': ({d}, 2)}", "d = e2 = {d}"]
READS = [
    "type(h.d).__name__ if hasattr(h, 'd') else None",
    "[type(v).__name__ for v in held]",
    "[v.mean() for v in held]",
    "d0.pdf(x), repr(d0)[:30], d0.args",
    "d0 is held, d0 == d0",
    "d0.random_state = 3\nd0.rvs(2)",
    "[v.rvs(2, random_state=1) for v in held]",
    "h.d.cdf(x) if hasattr(h, 'd') else 0",
]


def distributions(seed: int) -> list[tuple[str | None, str]]:
    draw = random.Random(seed)
    cells: list[tuple[str | None, str]] = [(None, DISTRIBUTIONS)]
    for _ in range(draw.randint(2, 4)):
        lines = [draw.choice(PLACES).replace("{d}", draw.choice(PARAMETERS)) for _ in range(draw.randint(1, 2))]
        cells.append((draw.choice(["", ""]), "\n".join(lines)))
        cells.append((draw.choice(["", None]), draw.choice(READS)))
    return cells


@pytest.mark.parametrize("seed", range(12))
def test_distributions(notebook: Notebook, seed: int) -> None:
    assert differences(notebook, distributions(seed)) == []


LABELS = ["[2, 1, 0]", "[0, 1, 2]", "[10, 20, 30]", "list('abc')", "[0.5, 1.5, 2.5]", "None"]
INDICES = [
    "i", "i + 0", "np.array([1, 0])", "[0, 2]", "k", "i[0]", "0", "2", "'a'", "['a', 'c']", "0.5", "slice(1, None)", "s > 1.5", "t > 1",
    "(s > 1.5).to_numpy()", "np.array([True, False, True])", "x[:3] > 1", "x[:2] > 0", "slice('a', 'b')", "slice(0.5, 1.5)",
]  # fmt: skip
ROWS = [
    "s[{i}]",
    "(s * 2)[{i}]",
    "np.sqrt(s)[{i}]",
    "df['a'][{i}]",
    "df[{i}]",
    "s.loc[{i}]",
    "s[{i}].sum()",
    "[s[{i}] for _ in range(2)]",
]


def tables(seed: int) -> list[tuple[str | None, str]]:
    draw = random.Random(seed)
    labels = draw.choice(LABELS)
    start = (
        "import numpy as np\nimport pandas as pd\nx = np.arange(4.0)\ni = np.array([0, 2])\nk = 1\n"
        f"s = pd.Series([1.0, 2.0, 3.0], index={labels})\nt = s[::-1]\n"
        f"df = pd.DataFrame({{'a': [1.0, 2, 3], 'b': [4.0, 5, 6]}}, index={labels})"
    )
    cells: list[tuple[str | None, str]] = [(None, start)]
    for _ in range(5):
        read = draw.choice(ROWS).replace("{i}", draw.choice(INDICES))
        cells.append(
            (
                "",
                f"try: found = {read}\nexcept (KeyError, IndexError, TypeError, ValueError) as e: found = type(e).__name__\nfound",
            )
        )
    return [*cells, ("", "for j in i: print(j, s.get(j))")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(40))
def test_reads_by_labels(notebook: Notebook, seed: int) -> None:
    assert differences(notebook, tables(seed)) == []


def test_a_lazy_number_is_a_label(notebook: Notebook) -> None:
    cells = [
        (
            None,
            "import numpy as np\nimport pandas as pd\ns = pd.Series([1.0, 2.0, 3.0], index=[2, 1, 0])\ni = np.array([0, 2])",
        ),
        ("", "for k in i: print(s[k])"),
        ("", "[s[k] for k in i], {k: s[k] for k in i}"),
    ]
    assert differences(notebook, cells) == []


OTHERS = """import numpy as np, pandas as pd, statistics, csv, io, json, math, ctypes, itertools
x = np.array([3.0, 1.0, 2.0]); n = np.array([1, 2, 3]); y = 2.5"""
USES = [
    "a = pd.Series(v * 2 for v in x); b = pd.DataFrame(zip(x, n), columns=['a', 'b']); c = pd.Series(map(lambda v: v + 1, x))",
    "a = pd.DataFrame(enumerate(x)); b = pd.Series(filter(lambda v: v > 1, x)); c = pd.Series(itertools.chain(x, n))",
    "a = pd.DataFrame({'a': x, 'b': (v for v in n)}); b = pd.Index(set(x)).sort_values()",
    "statistics.mean(v for v in x), statistics.median(map(float, x)), list(itertools.islice(x, 2))",
    "w = io.StringIO(); csv.writer(w).writerows(zip(x, n)); w.getvalue()",
    "json.dumps({y: 1, 'a': [y, 2]})",
    "math.comb(n[2], n[0]), ctypes.c_double(y).value, (ctypes.c_double * 3)(*x)[1]",
    "a = np.array(map(float, x)); a.shape, a.dtype",
    "np.sum(v for v in x)",
    "np.concatenate(x[:k] for k in n)",
    "np.stack(x * k for k in n)",
    "math.ldexp(y, n[0])",
    "from numpy import c_, r_, mgrid, s_\nc_[x, n], type(c_).__name__, r_ is np.r_, [mgrid], mgrid[0:2]",
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("use", USES)
def test_iterators_and_objects_that_other_code_gets(notebook: Notebook, use: str) -> None:
    names = "{n: type(v).__name__ for n, v in sorted(globals().items()) if n in ('a', 'b', 'c', 'c_', 'r_', 'mgrid')}"
    assert differences(notebook, [(None, OTHERS), ("", use), (None, names)]) == []
