"""Programs as books on numerical methods have them: in a cell they give what plain Python gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensormagic.capture.limits import LIMIT
from tests.notebook.sameness import difference, form

CELLS = {
    "warnings of constants": """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    y = np.log(np.array([-1.0, 0.0]))
found = [str(w.message) for w in caught]
with np.errstate(all="raise"):
    try:
        np.log10(np.array([0.0]))
    except FloatingPointError as error:
        found.append(str(error))
""",
    "a sum over no rows at first": """
V = np.array([[1.0, 1, 0], [1, 0, 1], [0, 1, 1]])
Q = np.zeros_like(V)
for j, column in enumerate(V.T):
    u = column - sum((q @ column) * q for q in Q.T[:j])
    Q[:, j] = u / np.linalg.norm(u)
found = Q.round(12)
""",
    "objects that numpy reads": """
from collections import UserList, deque
import array
class Vector:
    __slots__ = ("v",)
    def __init__(self, v): self.v = np.asarray(v, float)
    def __array__(self, dtype=None, copy=None): return self.v
class Scaled(Vector):
    def __rmul__(self, k): return Scaled(k * self.v)
class Rows:
    def __init__(self, v): self.v = v
    def __len__(self): return len(self.v)
    def __getitem__(self, k): return self.v[k]
last = deque(maxlen=3)
for v in x:
    last.append(v)
found = [np.sum(Vector(x)), x + Vector(x), np.asarray(Scaled(x * 2)), np.array(last), np.mean(last), np.array(Rows(x * 2)),
         np.array(UserList([1, 2])), np.array(array.array("d", [1, 2]))]
""",
    "a distribution with computed parameters": """
from scipy import stats
rv = stats.norm(x.mean(), x.std())
found = [rv.interval(0.95), rv.mean(), rv.rvs(3, random_state=0), rv.cdf(x), stats.norm.interval(0.9, loc=x.mean())]
""",
    "distributions under names": """
from scipy import stats
found = [stats.poisson(3.5), stats.norm(), stats.norm, type(stats.norm(1, 2)).__name__]
""",
    "copies that lie in an order": """
import copy
m = np.arange(6).reshape(2, 3)
found = [np.array(m, order="F").strides, np.asfortranarray(m).flags.f_contiguous, m.copy("F").strides, m.T.copy().strides,
         np.array(m.T).strides, np.array(m.T, order="C").strides, np.copy(m.T).strides, copy.copy(m.T).strides, m.T.strides,
         np.ascontiguousarray(m.T).T.strides, np.array([[1, 2], [3, 4]], order="F").strides]
""",
    "draws by both": """
from scipy import stats
np.random.seed(0)
rng = np.random.default_rng(3)
found = [np.random.rand(2), stats.norm.rvs(size=2), np.random.rand(2), rng.normal(), stats.norm.rvs(random_state=rng), rng.normal()]
""",
}


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_a_cell_gives_what_python_gives(notebook: Any, cell: str):
    x = np.array([0.5, 1.0, 2.5, 4.0])
    space: dict[str, Any] = {"np": np, "x": x.copy()}
    exec(cell, space)
    notebook.shell.push({"np": np, "x": x})
    ran = notebook(f"%%tensor\n{cell}")
    assert ran.error is None, ran.error
    assert [*difference(form(space["found"]), form(notebook.shell.user_ns["found"]))] == []


def test_a_distribution_of_a_cell_is_one_in_plain_python(notebook: Any):
    notebook("%%tensor\nfrom scipy import stats\nimport numpy as np\nrv = stats.norm(np.arange(3.0).mean(), 2.0)")
    ran = notebook("float(rv.interval(0.5)[0]), float(rv.mean())")
    assert ran.value == pytest.approx((1.0 - 2.0 * 0.6744897501960817, 1.0))


@pytest.mark.parametrize(
    "test",
    ["it < 20_000", "change > 1e-12 and it < 20_000"],
    ids=["a count", "data, which are known at first"],
)
def test_a_long_loop_whose_test_is_known_at_first_is_no_long_graph(notebook: Any, test: str):
    cell = f"""
u, it, change = np.zeros(9), 0, 1.0
u[0] = 1.0
while {test}:
    old = u.copy()
    u[1:-1] = 0.5 * (old[2:] + old[:-2])
    change = np.abs(u - old).max()
    it += 1
found = u, it
"""
    assert LIMIT < 20_000 * 6
    space: dict[str, Any] = {"np": np}
    exec(cell, space)
    notebook.shell.push({"np": np})
    ran = notebook(f"%%tensor\n{cell}")
    assert ran.error is None, ran.error
    u, it = notebook.shell.user_ns["found"]
    np.testing.assert_allclose(np.asarray(u), space["found"][0], atol=1e-12)
    assert int(it) == space["found"][1]


def test_a_while_over_pythons_own_numbers_stays_pythons(notebook: Any):
    notebook("%%tensor\nk, text = 0, ''\nwhile k < 100:\n    text += str(k % 10)\n    k += 1")
    assert notebook.shell.user_ns["k"] == 100
    assert type(notebook.shell.user_ns["k"]) is int
    assert notebook.shell.user_ns["text"] == "0123456789" * 10


def test_numbers_asked_for_at_each_iteration_start_from_where_the_last_one_was(
    notebook: Any, monkeypatch: pytest.MonkeyPatch
):
    from tensormagic import session

    sizes: list[int] = []
    closing = session.close_over

    def close_over(*args: Any, **options: Any) -> Any:
        found = closing(*args, **options)
        sizes.append(len(found.graph.nodes))
        return found

    for module in (session, session.demand):
        monkeypatch.setattr(module, "close_over", close_over)
    ran = notebook("""%%tensor
import numpy as np
class Perceptron:
    def fit(self, X, y):
        self.w, self.errors = np.zeros(3), 0
        for xi, t in zip(X, y):
            update = 0.1 * (t - np.where(xi @ self.w[1:] + self.w[0] >= 0.0, 1, -1))
            self.w[1:] += update * xi
            self.w[0] += update
            self.errors += int(update != 0.0)
        return self
X = np.random.default_rng(0).normal(size=(40, 2))
p = Perceptron().fit(X, np.where(X[:, 0] > X[:, 1], 1, -1))
""")
    assert ran.error is None, ran.error
    assert max(sizes) < 200
