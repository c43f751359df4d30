"""Cells whose graph grows too large while Python runs their iterations are run as plain Python, where a second run is not seen."""

import warnings
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture import limits
from tensormagic.ir.errors import ConstantGradientWarning
from tensormagic.session import demand
from tensormagic.session.programs import executable
from tests.notebook.student_cells import CELLS, START
from tests.notebook.test_student_cells import plain

GROUPS = """
cent = pts[:3].copy()
for it in range(4):
    groups = [[] for _ in range(3)]
    for p in pts:
        d = [np.sum((p - c) ** 2) for c in cent]
        groups[int(np.argmin(d))].append(p)
    cent = np.array([np.mean(g, axis=0) for g in groups])
    print("iteration", it, round(float(cent[0, 0]), 6))
"""
PICKS = "s = 0.0\nfor k in range(400):\n    s = s + v[int({draw} * 4)]\n    {effect}"


@pytest.fixture
def small(notebook, monkeypatch):
    """A notebook in which a graph of 60 operations is large."""
    monkeypatch.setattr("tensormagic.capture.limits.MANY", 60)
    monkeypatch.setattr("tensormagic.capture.limits.LIMIT", 600)
    notebook["pts"] = np.random.default_rng(0).normal(size=(30, 2))
    notebook["v"] = np.array([0.5, 1.5, 2.5, 3.5])
    notebook.ok("import random\ndraws = np.random.default_rng(3)")
    return notebook


def outgrown(notebook, cell):
    """Run a cell that is run as plain Python, and says so."""
    with pytest.warns(tm.PlainRunWarning, match="was run as ordinary Python: it has a loop"):
        return notebook.ok(cell)


def python(notebook, cell, **changed):
    """What Python binds and prints, over copies of the notebook's variables."""
    space = {"__name__": "__main__"} | dict(notebook.shell.user_ns) | changed
    lines: list[str] = []
    space["print"] = lambda *a: lines.append(" ".join(map(str, a)))
    exec(cell, space)
    return space, "".join(line + "\n" for line in lines)


def test_values_and_what_is_printed_are_pythons(small):
    space, printed = python(small, GROUPS)
    ran = outgrown(small, "%%tensor\n" + GROUPS)
    assert small["cent"].tolist() == space["cent"].tolist()
    assert type(small["cent"]) is np.ndarray
    assert [len(g) for g in small["groups"]] == [len(g) for g in space["groups"]]
    assert (small["it"], small["d"]) == (3, space["d"])
    assert ran.out == printed


@pytest.mark.parametrize(
    "asks",
    [
        "int(pick(k))",
        "int(v[k % 4])",
        "sorted(v, key=lambda a: -a)[0]",
        "max(v[k % 4], v[0])",
        "'%s' % v[k % 4]",
        "v.tolist()",
    ],
)
def test_values_that_are_asked_for_count_too(small, monkeypatch, asks):
    monkeypatch.setattr("tensormagic.capture.limits.MANY", 10**5)
    monkeypatch.setattr("tensormagic.capture.limits.LIMIT", 10**5)
    monkeypatch.setattr("tensormagic.capture.limits.SEVERAL", 20)
    monkeypatch.setattr("tensormagic.capture.limits.PATIENCE", 0.0)
    small.ok("def pick(k):\n    return v[k % 4] + shift()\ndef shift():\n    return np.float64(len(pts))")
    cell = (
        f"found = []\nwhile len(found) < 60:\n    k = len(found)\n    found.append(({asks}, str(float(v[k % 4] * k))))"
    )
    space, _ = python(small, cell)
    outgrown(small, "%%tensor\n" + cell)
    assert small["found"] == space["found"]


def test_a_statement_that_was_given_up_is_given_up_sooner(small, monkeypatch):
    """Another statement of the cell may have been edited, or it may stand in another cell."""
    outgrown(small, "%%tensor\n" + GROUPS)
    for name, value in {"MANY": 10**9, "LIMIT": 10**9, "SEVERAL": 8, "PATIENCE": 1e9, "KNOWN": 0.0}.items():
        monkeypatch.setattr(f"tensormagic.capture.limits.{name}", value)
    outgrown(small, "%%tensor\n" + GROUPS)
    outgrown(small, "%%tensor\n# another text\nother = 2\n" + GROUPS)
    with warnings.catch_warnings(action="error", category=tm.PlainRunWarning):
        small.ok("%%tensor\n" + GROUPS.replace("range(4)", "range(3)"))


def test_the_last_expression_is_shown(small):
    ran = outgrown(small, "%%tensor\n" + GROUPS + "cent.shape")
    assert ran.value == (3, 2)


@pytest.mark.parametrize(
    "draw", ["np.random.random()", "random.random()", "draws.random()", "np.random.default_rng(k).random()"]
)
def test_generators_go_back(small, draw):
    cell = PICKS.format(draw=draw, effect="pass") + f"\nafter = {draw}"
    start = "np.random.seed(5)\nrandom.seed(5)\ndraws = np.random.default_rng(5)"
    small.ok(start)
    outgrown(small, "%%tensor\n" + cell)
    found = small["s"], small["after"]
    small.ok(start)
    small.ok(cell)
    assert found == (small["s"], small["after"])


STATE = """
class Best:
    def __init__(self):
        self.seen = []
    def see(self, x):
        self.seen.append(float(x))
best, log, seen, store = Best(), [], {}, np.zeros(4)
def note(x):
    log.append(float(x))
    return x
"""


@pytest.mark.parametrize(
    "effect",
    [
        "best.see(s)",
        "note(s)",
        "seen[k] = float(s)",
        "store[k % 4] += s",
        "log += [k]",
        "v[0] += 1e-3",
        "pts[0] = pts[0] * 0.5",
    ],
)
def test_what_was_changed_is_changed_once(small, effect):
    cell = PICKS.format(draw="(k * 7 % 4 / 4 + 0 * s)", effect=effect)
    start = STATE + "v = np.array([0.5, 1.5, 2.5, 3.5])\npts = np.ones((3, 2))"
    state = "(float(s), best.seen, log, seen, store.tolist(), v.tolist(), pts.tolist())"
    small.ok(start)
    outgrown(small, "%%tensor\n" + cell)
    found = small.ok(state).value
    small.ok(start)
    small.ok(cell)
    assert found == small.ok(state).value


OUTSIDE = """
import functools
file = open(name + "2", "a")
numbers = iter(range(10**6))
write = functools.partial(file.write, "x")
def tell(x):
    file.write("x")
    return x
later = lambda x: tell(x)
class Told:
    def see(self, x):
        file.write("x")
told = Told()
"""


@pytest.mark.parametrize(
    "effect",
    [
        "file.write('x')",
        "with open(name, 'a') as f: f.write('x')",
        "np.save(name, v)",
        "v.tofile(name)",
        "tell(s)",
        "next(numbers)",
        "write()",
        "exec('s')",
        "Told().see(s)",
        "told.see(s)",
        "[f(s) for f in [tell]]",
        "later(s)",
    ],
)
def test_what_others_may_see_happens_once(small, tmp_path, effect):
    """The cell ends in the error that names its lines; nothing is run a second time."""
    small["name"] = str(tmp_path / "file")
    small.ok(OUTSIDE)
    body = PICKS.format(draw="(k * 7 % 4 / 4 + 0 * s)", effect=effect).replace("range(400)", "range(10**5)")
    error = small("%%tensor\n" + body).error
    small["file"].close()
    assert isinstance(error, tm.CaptureError)
    assert "operations" in str(error)


@pytest.mark.parametrize(
    "options", ["--grad v", "objective", "--show kernels", "--math real", "-o s", "--dtype float32", "--check --grad v"]
)
def test_what_needs_the_graph_keeps_it(small, options):
    with warnings.catch_warnings(action="error", category=tm.PlainRunWarning):
        small(f"%%tensor {options}\n" + PICKS.format(draw="(k * 7 % 4 / 4 + 0 * s)", effect="pass") + "\ns")


def test_a_later_gradient_is_told(small):
    small["pts"] = small["pts"].copy()
    outgrown(small, "%%tensor\n" + GROUPS)
    with pytest.warns(
        ConstantGradientWarning, match="cent was computed here as plain Python, with what depends on pts"
    ):
        small.ok("%%tensor -q --grad pts\nnp.sum(cent) + np.sum(pts)")
    assert small["grad_pts"].tolist() == np.ones((30, 2)).tolist()


def test_an_error_of_the_second_run_is_pythons(small):
    error = small("%%tensor\n" + GROUPS + "cent[7]").error
    assert isinstance(error, IndexError)


LIBRARIES = {  # NumPy and libraries raise an error of their own where a value that they ask for is refused
    "solve_ivp": "a = integrate.solve_ivp(lambda t, u: at.append(t) or [u[0] * v[0], -u[1]], (0, 1), [1.0, 2.0]).y",
    "odeint": "a = integrate.odeint(lambda u, t: at.append(t) or [u[0] * v[0], -u[1]], [1.0, 2.0], [0.0, 0.5, 1.0])",
    "quad": "a = integrate.quad(lambda t: at.append(t) or (v * t).sum() + (t > 0.3), 0, 1)[0]",
}


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_library_that_tells_of_another_error(small, monkeypatch, name):
    monkeypatch.setattr("tensormagic.capture.limits.SEVERAL", 8)
    monkeypatch.setattr("tensormagic.capture.limits.PATIENCE", 0.0)
    small.ok("from scipy import integrate\nat = []")
    space, _ = python(small, LIBRARIES[name])
    small.ok("at = []")
    outgrown(small, "%%tensor\n" + LIBRARIES[name])
    assert np.array_equal(small["a"], space["a"])
    assert len(small["at"]) == len(space["at"])


LAZY = {  # what a cell does with arrays of the notebook that are lazy, and that others have, too
    "reads": "s = 0.0\nfor k in range(400):\n    s = s + w[int(w[0])] * k",
    "goes over": "s = 0.0\nfor k in range(100):\n    for a in w:\n        s = s + v[int(a) % 4]",
    "stores": "for k in range(400):\n    w[int(v[(k + 1) % 4])] += 0.5",
    "stores into all": "for k in range(400):\n    w += v[int(w[0]) * 0]",
    "stores by another name": "u = w\nfor k in range(400):\n    u[int(v[k % 4])] = k",
    "stores by a view": "t = w[::-1]\nfor k in range(400):\n    t[int(v[k % 4])] = k",
    "stores by a list": "for k in range(400):\n    pair[0][int(v[k % 4])] = k + w[0] * 0",
    "by a function": "for k in range(400):\n    put(int(v[k % 4]), k)",
    "binds anew": "for k in range(400):\n    w = w + v[int(v[k % 4])]",
    "a number": "s = 0.0\nfor k in range(400):\n    s = s + n * v[int(v[k % 4])]",
    "binds a number": "for k in range(400):\n    n = n * 0.5 + v[int(v[k % 4])]",
    "reads after a store": "for k in range(400):\n    pair[0][int(v[k % 4])] = k\n    s = float(w.sum() + part.sum())",
}


@pytest.mark.parametrize("name", LAZY)
def test_lazy_arrays_of_the_notebook_are_arrays_there(small, name):
    start = "w = {v} * 2.0\nn = {v}.sum()\npart = w[1:]\npair = [w, part]\ndef put(k, a):\n    w[k] = w[k] * 0 + a"
    space = dict(zip("vw", (np.array([0.5, 1.5, 2.5, 3.5]), None), strict=True))
    exec(start.format(v="v"), space)
    exec(LAZY[name], space)
    small.ok("%%tensor\n" + start.format(v="v"))
    assert type(small["w"]) is tm.Tensor
    outgrown(small, "%%tensor\n" + LAZY[name])
    for known in space.keys() & {"v", "w", "n", "part", "s", "u", "t"}:
        assert np.array_equal(np.asarray(small[known]), np.asarray(space[known])), known
    assert [np.asarray(p).tolist() for p in small["pair"]] == [p.tolist() for p in space["pair"]]
    small.ok("w[0] = 77.0")
    assert (float(small["pair"][0][0]) == 77.0) == (name != "binds anew")


HELD = """
class Layer:
    def __init__(self, w):
        self.w, self.scale, self.seen = w, w.sum(), []
    def forward(self, x):
        self.x = x
        return np.tanh(self.w * x)
    def step(self, g):
        self.w -= 0.1 * g * self.x
        self.scale = self.scale * 0.5 + g.sum()
        self.seen.append(self.w.sum())
w = {v} * 2.0
layer = Layer(w)
net = [layer, Layer({v} + 1.0)]
params = {{"w": w, "b": w.sum(), "parts": [w[1:], {v} * 3.0]}}
def total():
    return sum(p.sum() for p in params["parts"]) + params["b"]
"""
HOLDERS = {  # what a cell does with what objects, lists and dictionaries of the notebook hold
    "attributes": "for k in range(400):\n    layer.w[int(v[k % 4])] = k + layer.scale",
    "methods": "for k in range(100):\n    x = v[int(v[k % 4])]\n    for a in net:\n        x = a.forward(x)\n    "
    "for a in net[::-1]:\n        a.step(x)",
    "a list": "for k in range(400):\n    net[k % 2].w = net[k % 2].w + v[int(v[k % 4])]",
    "a dictionary": "for k in range(400):\n    params['w'] = params['w'] * 0.5 + v[int(v[k % 4])]\n    params['b'] += v[int(v[k % 4])]",
    "lists within": "for k in range(400):\n    params['parts'][k % 2][int(v[k % 3])] = k",
    "what a function reads": "s = 0.0\nfor k in range(400):\n    s = s + v[int(v[k % 4])] * total()",
    "a list that grows": "for k in range(400):\n    net[0].seen.append(net[0].w[int(v[k % 4])])",
}


@pytest.mark.parametrize("name", HOLDERS)
def test_lazy_arrays_in_objects_and_lists_are_arrays_there(small, name, monkeypatch):
    space: dict[str, Any] = {"np": np, "v": np.array([0.5, 1.5, 2.5, 3.5])}
    exec(HELD.format(v="v"), space)
    exec(HOLDERS[name], space)
    small.ok("%%tensor\n" + HELD.format(v="v"))
    assert type(small["layer"].w) is tm.Tensor
    assert type(small["params"]["b"]) is tm.Tensor
    outgrown(small, "%%tensor\n" + HOLDERS[name])

    def held(of):
        layers = [[np.asarray(n.w), np.asarray(n.scale), np.asarray(n.seen)] for n in of["net"]]
        found = [
            of["params"]["w"],
            of["params"]["b"],
            *of["params"]["parts"],
            of["w"],
            *(part for layer in layers for part in layer),
        ]
        return [np.asarray(f).tolist() for f in found], of["layer"].w is of["w"], of["params"]["w"] is of["w"]

    assert held(small) == held(space)


def test_lazy_values_that_fail_are_left_alone(small):
    small.ok("%%tensor\nsquare = np.zeros((2, 2))\nnet = {'bad': np.linalg.inv(square), 'good': v * 2.0}")
    outgrown(small, "%%tensor\ns = 0.0\nfor k in range(400):\n    s = s + net['good'][int(v[k % 4])]")
    assert small["s"] == 100 * (1.0 + 3.0 + 5.0 + 7.0)


def test_a_loop_over_lazy_elements_ends_soon(small, monkeypatch):
    small.ok("%%tensor\nw = np.linspace(0, 2, 300)")
    small.ok(
        "def root(a):\n    found = [a]\n    for _ in range(50):\n        a = a - np.sin(a) / np.cos(a)\n        found.append(a)\n"
        "        if abs(np.sin(a)) < 1e-9:\n            break\n    return a, np.array(found)"
    )
    rewritten = []
    monkeypatch.setattr("tensormagic.capture.limits.SEVERAL", 20)
    monkeypatch.setattr("tensormagic.capture.limits.PATIENCE", 0.0)
    monkeypatch.setattr(demand, "executable", lambda *a, **o: rewritten.append(1) or executable(*a, **o))
    outgrown(small, "%%tensor\ns = np.zeros(300)\nfor k, a in enumerate(w):\n    s[k], steps = root(a)")
    assert len(rewritten) < 100


def test_code_that_catches_errors_of_its_own(small):
    cell = (
        "found = []\nfor k in range(400):\n    try:\n        found.append(v[int(v[k % 4] + 0.5) + k // 300])\n"
        "    except Exception:\n        found.append(-1.0)"
    )
    space, _ = python(small, cell)
    outgrown(small, "%%tensor\n" + cell)
    assert small["found"] == space["found"]
    assert -1.0 in space["found"]


TRAINING = {  # with what a student prints and keeps on the way
    "print every hundredth": ("", "if i % 100 == 0:\n        print(i, loss)"),
    "print a number of Python's": ("", "if i % 100 == 0:\n        print(i)"),
    "a formatted text": ("", "if i % 100 == 0:\n        print(f'step {i}: loss {loss:.4f}, w {w}')"),
    "print always": ("", "print(i, '%.3f' % loss)"),
    "a history": ("losses = []", "losses.append(float(loss))\n    if i % 100 == 0:\n        print(i, losses[-1])"),
    "draws": (
        "rng = np.random.default_rng(5)",
        "w = w + 1e-3 * rng.normal(size=2)\n    if i % 100 == 0:\n        print(loss)",
    ),
    "an early end": ("", "if i % 50 == 0:\n        print(i, loss)\n    if i > 250 and loss < 1e3:\n        break"),
    "the best": ("best = np.inf", "if loss < best:\n        best = loss\n        print('better', best)"),
}
STEPS = """{start}
w = np.zeros(2)
for i in range(400):
    r = pts @ w - (pts[:, 0] + 1)
    loss = np.mean(r**2)
    g = 2 * pts.T @ r / len(pts)
    w = w - 0.05 * g
    {each}
"""


@pytest.mark.parametrize("name", TRAINING)
def test_training_that_prints_is_given_up_after_two_iterations(notebook, monkeypatch, name):
    start, each = TRAINING[name]
    cell = STEPS.format(start=start, each=each)
    notebook["pts"] = np.random.default_rng(0).normal(size=(30, 2))
    space, printed = python(notebook, cell)
    counts = []
    refuse = limits.refuse
    monkeypatch.setattr(
        limits, "refuse", lambda capture, *more: counts.append(capture.effort.nodes) or refuse(capture, *more)
    )
    ran = outgrown(notebook, "%%tensor\n" + cell)
    assert ran.out == printed
    assert type(notebook["w"]) is np.ndarray
    assert notebook["w"].tolist() == space["w"].tolist()
    assert notebook["i"] == space["i"]
    assert counts[0] < 300


def test_what_comes_after_the_loop_runs_once(notebook):
    """It may be seen from outside: it had not run when the loop was given up."""
    notebook["pts"] = np.random.default_rng(0).normal(size=(30, 2))
    notebook.ok("import io\nfile = io.StringIO()")
    cell = STEPS.format(start="", each="if i % 100 == 0:\n        print(i)") + "file.write('x')\nfile.getvalue()"
    assert outgrown(notebook, "%%tensor\n" + cell).value == "x"


def test_what_comes_before_the_loop_may_not_be_seen(notebook):
    notebook["pts"] = np.random.default_rng(0).normal(size=(30, 2))
    notebook.ok("import io\nfile = io.StringIO()")
    cell = STEPS.format(start="file.write('x')", each="if i % 100 == 0:\n        print(i)")
    notebook.ok("%%tensor\n" + cell)
    assert notebook["file"].getvalue() == "x"


@pytest.mark.parametrize("asks", ["loss.grad(pts)", "w.numpy()", "loss.graph"])
def test_a_cell_that_asks_for_the_graph_keeps_it(notebook, asks):
    notebook["pts"] = np.random.default_rng(0).normal(size=(30, 2))
    cell = STEPS.format(start="", each="if i % 50 == 0:\n        print(i)").replace("400", "60")
    notebook.ok(f"%%tensor\n{cell}found = {asks}")
    assert type(notebook["w"]) is tm.Tensor


@pytest.mark.share(4)
@pytest.mark.parametrize("name", sorted(CELLS))
def test_cells_of_students_leave_what_python_leaves(notebook, name, monkeypatch):
    monkeypatch.setattr("tensormagic.capture.limits.MANY", 40)
    space: dict[str, object] = {}
    exec(START, space)
    exec(CELLS[name], space)
    notebook.ok(START)
    with warnings.catch_warnings(action="ignore", category=tm.PlainRunWarning):
        notebook.ok(f"%%tensor -q\n{CELLS[name]}")
    assert plain(notebook["h"]) == plain(space["h"])


REFUSED = {  # what no graph holds, and what it says
    "a list that grows": (
        "u = v.copy()\ns = [u]\nfor n in range(20):\n    u[1:] = u[:-1] / 2\n    if n % 5 == 0: s.append(u.copy())\nr = s[0] is u",
        "a list that grows",
    ),
    "another dtype": ("i = np.arange(4, dtype=np.int32)\ni.dtype = np.int16\nprint(i.size)", "another dtype"),
    "whether numbers are one": (
        "p = 1.5\nx = p if v[0] > -9 else 2.5\nsame = x is p\nprint(same)",
        "`is` between two numbers",
    ),
    "in a function": ("def f(a):\n    a.dtype = np.int64\n    return a\nprint('once')\nr = f(v * 1)", "another dtype"),
    "after a store": ("v[0] = 7.0\nw = v * 2\nw.dtype = np.uint8\nr = w[:3]", "another dtype"),
    "in a loop": ("for k in range(3):\n    print(k)\n    t = v * k\n    t.dtype = np.int64", "another dtype"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_graph_holds(small, name):
    cell, why = REFUSED[name]
    small.ok("keep = v.copy()")
    space, printed = python(small, cell, v=small["v"].copy())
    with pytest.warns(tm.PlainRunWarning, match=f"was run as ordinary Python: no graph holds what it does: .*{why}"):
        ran = small.ok("%%tensor -q\n" + cell)
    for changed in ("u", "s", "i", "same", "r", "t", "v", "x"):
        if changed in space:
            np.testing.assert_array_equal(np.asarray(small[changed], dtype=None), np.asarray(space[changed]))
    assert printed in ran.out
    assert ran.out.count("once") == printed.count("once")
    small["v"] = small["keep"]
    assert isinstance(small(f"%%tensor -q --grad v\n{cell}\nv.sum()").error, tm.CaptureError)


def test_what_files_see_is_refused(small, tmp_path):
    small["path"] = str(tmp_path / "a.txt")
    error = small("%%tensor\nnp.savetxt(path, v)\nt = v * 1\nt.dtype = np.int64").error
    assert isinstance(error, tm.CaptureError)
