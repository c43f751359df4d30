"""Scenes that look like real ones, for the tests of pictures and widgets."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field, replace

import numpy as np

from tensormagic.notebook.pictures.details import Details, Rewrite, Step
from tensormagic.notebook.pictures.measure import summary
from tensormagic.notebook.pictures.scene import Edge, Scene, Vertex, View

LOGISTIC = """z = X @ w + b
loss = np.mean(np.log(1 + np.exp(-y * z)))
loss"""
_FOLDS = {"sum", "mean", "max", "logsumexp"}
_MOVES = {"transpose", "broadcast", "slice", "reshape"}


@dataclass
class Builder:
    """Writes a view one vertex at a time."""

    cell: str = "In[3]"
    vertices: list[Vertex] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)

    def add(self, label: str, *operands: str, kind: str = "", type: str = "float64[n]", **more: object) -> str:
        """Add a vertex with operands and return its id."""
        kind = kind or (
            "fold"
            if label in _FOLDS
            else "move"
            if label in _MOVES
            else "contract"
            if label in {"matmul", "outer"}
            else "pointwise"
        )
        name = str(more.pop("id", f"{label}{len(self.vertices)}"))
        actual = re.sub(r"\bn\b", "569", re.sub(r"\bp\b", "30", type))
        vertex = Vertex(name, label, kind, actual, type, cell=self.cell, **more)  # type: ignore[arg-type]
        self.vertices.append(vertex)
        self.edges += [Edge(operand, name, port) for port, operand in enumerate(operands)]
        return name

    def view(self, name: str, *outputs: str) -> View:
        """Return what was added as a view."""
        return View(name, tuple(self.vertices), tuple(self.edges), outputs)


def _forward(build: Builder) -> dict[str, str]:
    made = {
        name: build.add(name, kind="input", type=type, id=name, preview="[0.12, -1.4, …]")
        for name, type in (("X", "float64[n, p]"), ("w", "float64[p]"), ("b", "float64"), ("y", "float64[n]"))
    }
    made["m"] = build.add("matmul", made["X"], made["w"], line=1, id="m")
    made["z"] = build.add("add", made["m"], made["b"], line=1, id="z")
    made["neg"] = build.add("negative", made["y"], line=2, id="neg")
    made["u"] = build.add("multiply", made["neg"], made["z"], line=2, id="u")
    return made


def logistic() -> Scene:
    """Logistic regression: captured, rewritten, its gradient, and its kernels."""
    captured = Builder()
    made = _forward(captured)
    one = captured.add("1", kind="constant", type="int64", id="one", line=2)
    e = captured.add("exp", made["u"], line=2, id="e")
    s = captured.add("add", one, e, line=2, id="s")
    log = captured.add("log", s, line=2, id="log")
    captured.add("mean", log, line=2, id="mean", type="float64")
    captured.add("loss", "mean", kind="output", type="float64", id="out:loss")

    rewritten = Builder()
    made = _forward(rewritten)
    rules = ("softplus",)
    zero = rewritten.add("0", kind="constant", type="float64", id="zero", line=2)
    soft = rewritten.add("logaddexp", zero, made["u"], line=2, id="log", role="rewritten by softplus", rules=rules)
    rewritten.add("mean", soft, line=2, id="mean", type="float64")
    rewritten.add("loss", "mean", kind="output", type="float64", id="out:loss")

    gradient = _gradient()
    kernels = _with_kernels(gradient)
    return Scene(
        "In[3]",
        LOGISTIC,
        (
            captured.view("captured", "mean"),
            rewritten.view("rewritten", "mean"),
            gradient,
            kernels,
        ),
    )


def _gradient() -> View:
    build = Builder()
    made = _forward(build)
    zero = build.add("0", kind="constant", type="float64", id="zero", line=2)
    soft = build.add("logaddexp", zero, made["u"], line=2, id="log", role="rewritten by softplus", rules=("softplus",))
    build.add("mean", soft, line=2, id="mean", type="float64")
    build.add("loss", "mean", kind="output", type="float64", id="out:loss")
    adjoint = {"role": "adjoint"}
    count = build.add("569", kind="constant", type="int64", id="count", line=2)
    one = build.add("1.0", kind="constant", type="float64", id="one.", line=2)
    share = build.add("divide", one, count, line=2, id="share", type="float64", **adjoint)
    sigma = build.add("sigmoid", made["u"], line=2, id="sigma", rules=("sigmoid",), **adjoint)
    spread = build.add("broadcast", share, line=2, id="spread", **adjoint)
    d_u = build.add("multiply", spread, sigma, line=2, id="d_u", **adjoint)
    d_z = build.add("multiply", made["neg"], d_u, line=2, id="d_z", **adjoint)
    d_b = build.add("sum", d_z, line=1, id="d_b", type="float64", **adjoint)
    turned = build.add("transpose", made["X"], line=1, id="turned", type="float64[p, n]", **adjoint)
    d_w = build.add("matmul", turned, d_z, line=1, id="d_w", type="float64[p]", **adjoint)
    build.add("grad_w", d_w, kind="output", type="float64[p]", id="out:grad_w")
    build.add("grad_b", d_b, kind="output", type="float64", id="out:grad_b")
    return build.view("gradient", "mean", d_w, d_b)


def _with_kernels(view: View) -> View:
    kernel = {"m": 1, "turned": None, "d_w": 3, "share": 2, "zero": None}
    vertices = tuple(
        replace(vertex, kernel=kernel.get(vertex.id, 2), yellow=vertex.id == "turned") if vertex.is_op else vertex
        for vertex in view.vertices
    )
    return View("kernels", vertices, view.edges, view.outputs)


def softmax() -> Scene:
    """Softmax over rows, one kernel."""
    build = Builder("In[7]")
    type = "float64[n, p]"
    x = build.add("scores", kind="input", type=type, id="x")
    high = build.add("max", x, line=1, type="float64[n, 1]", kernel=1)
    wide = build.add("broadcast", high, line=1, type=type, kernel=1)
    shifted = build.add("subtract", x, wide, line=1, type=type, kernel=1)
    e = build.add("exp", shifted, line=2, type=type, kernel=1)
    total = build.add("sum", e, line=2, type="float64[n, 1]", kernel=1)
    again = build.add("broadcast", total, line=2, type=type, kernel=1)
    p = build.add("divide", e, again, line=2, type=type, kernel=1)
    build.add("p", p, kind="output", type=type, id="out")
    text = "e = scores - scores.max(axis=1, keepdims=True)\np = np.exp(e) / np.exp(e).sum(axis=1, keepdims=True)"
    return Scene("In[7]", text, (build.view("kernels", p),))


def chain(length: int = 300, lines: int = 3) -> Scene:
    """A chain of pointwise ops over a few lines that feed each other in a circle, as an unrolled loop does."""
    build = Builder("In[9]")
    last = build.add("x", kind="input", id="x")
    for step in range(length):
        last = build.add(("sin", "exp", "tanh")[step % 3], last, line=2 + step % lines, id=f"v{step}")
    build.add("x", last, kind="output", id="out")
    text = "for k in range(100):\n" + "\n".join(f"    x = np.{name}(x)" for name in ("sin", "exp", "tanh"))
    return Scene("In[9]", text, (build.view("captured", last),))


def random_graph(count: int = 1000, seed: int = 1, lines: int = 25) -> Scene:
    """A random graph of `count` ops over `lines` source lines."""
    pick = random.Random(seed)
    build = Builder("In[11]")
    names = [build.add(f"a{k}", kind="input", type="float64[n, p]", id=f"a{k}") for k in range(8)]
    labels = ["add", "multiply", "exp", "subtract", "sum", "matmul", "transpose", "where"]
    for step in range(count):
        label = pick.choice(labels)
        operands = [pick.choice(names[-40:]) for _ in range(1 if label in {"exp", "sum", "transpose"} else 2)]
        names.append(build.add(label, *operands, line=1 + step * lines // count, id=f"n{step}", type="float64[n, p]"))
    build.add("result", names[-1], kind="output", id="out")
    text = "\n".join(f"t{k} = f{k}(t{k - 1})" for k in range(1, lines + 1))
    return Scene("In[11]", text, (build.view("captured", names[-1]),))


def measured() -> Scene:
    """Logistic regression with the steps of its rewriting and with values: a matrix, a histogram, a nan."""
    scene = logistic()
    captured = scene.views[0]
    numbers = {vertex.id: k for k, vertex in enumerate(captured.vertices, 1)}
    views = tuple(
        replace(view, vertices=tuple(replace(v, number=numbers.get(v.id, 0)) for v in view.vertices))
        for view in scene.views
    )
    half = tuple(replace(v, label="log1p") if v.id == "log" else v for v in views[0].vertices if v.id != "s")
    edges = (*(e for e in captured.edges if "s" not in {e.source, e.target}), Edge("e", "log"))
    rewrites = [
        Rewrite(rule, "stable", "In[3] line 2", f"explog.py:{line}")
        for rule, line in (("log(1 + x) -> log1p(x)", 31), ("log1p(exp(x)) -> softplus(x)", 44))
    ]
    steps = (
        Step((), views[0], ()),
        Step((rewrites[0],), View("captured", half, edges, captured.outputs), ("log",)),
        Step((rewrites[1],), views[1], ("log",)),
    )
    values = np.arange(12.0).reshape(3, 4)
    values[1, 2] = np.nan
    told = {numbers["X"]: summary(values), numbers["log"]: {**summary(np.linspace(0, 1, 569)), "seconds": 1.25e-5}}
    return replace(scene, views=views, later=lambda: Details(told, {"rewritten": steps}, "One value is missing."))


def nested() -> Scene:
    """A loop that holds a branch of two graphs, and a function in the cell's text."""

    def branch(name: str, op: str) -> View:
        build = Builder("In[5]")
        v = build.add("operand 1", kind="input", id=f"loop/cond/{name}/v")
        found = build.add(op, v, line=4, id=f"loop/cond/{name}/op", number=1 + (name == "else"))
        build.add("result", found, kind="output", id=f"loop/cond/{name}/out")
        return build.view(name)

    body = Builder("In[5]")
    carry = body.add("carry 1", kind="input", id="loop/v")
    test = body.add("greater", carry, line=3, type="bool", id="loop/test")
    cond = body.add("cond", test, carry, kind="region", line=3, id="loop/cond")
    body.add("next", cond, kind="output", id="loop/out")
    inside = View("body", *_parts_of(body), (), {"loop/cond": (branch("then", "exp"), branch("else", "log"))})
    build = Builder("In[5]")
    x = build.add("x", kind="input", id="x")
    first = build.add("sin", x, line=1, id="first", function="wave")
    second = build.add("cos", first, line=1, id="second", function="wave")
    loop = build.add("loop × 3", second, kind="region", line=2, id="loop")
    build.add("y", build.add("sum", loop, line=5, id="total", type="float64"), kind="output", id="out")
    view = View("captured", *_parts_of(build), ("total",), {"loop": (inside,)})
    text = "def wave(x): return np.cos(np.sin(x))\nfor k in range(3):\n    if v[0] > 0:\n        v = np.exp(v)\nv.sum()"
    return Scene("In[5]", text, (view,))


def turning() -> Scene:
    """The same, with what is told of the iterations: one way ran in two of three iterations, the other one never."""
    squares = [summary(np.arange(6.0).reshape(2, 3) ** power) for power in (1, 2)]
    told = {"seconds": 3e-6, "ran": "2 of 3 times", "over": "min 0, max 25"}
    told["iterations"] = [["iteration 1 of 3", squares[0]], ["iteration 3 of 3", squares[1]]]
    return replace(nested(), later=lambda: Details({1: told, 2: {"ran": "did not run"}}))


def _parts_of(build: Builder) -> tuple[tuple[Vertex, ...], tuple[Edge, ...]]:
    return tuple(build.vertices), tuple(build.edges)


def hostile() -> Scene:
    """Names that would break a page or a picture that trusted them."""
    build = Builder('"><img src=x onerror=alert(1)>')
    names = [
        "<script>alert(1)</script>",
        "</title></svg><script>alert(2)</script>",
        "\"'&amp;--><!--",
        "x" * 100_000,
        "שלום עולם\u202egnorw",
        "🧪👩‍🔬 数据 переменная",
        "a\x00\x1b[31m\ud800b",
        "]]>",
        "line\nbreak",
    ]
    made = [
        build.add(name, kind="input", id=f"i{k}", type=name[:50], preview=name[:50]) for k, name in enumerate(names)
    ]
    total = made[0]
    for other in made[1:]:
        total = build.add("add", total, other, line=1, role=f"rewritten by {names[0]}", rules=(names[1],))
    build.add(names[1], total, kind="output", id="out")
    return Scene(names[1], "\n".join(names), (build.view("captured", total), build.view(names[0], total)))
