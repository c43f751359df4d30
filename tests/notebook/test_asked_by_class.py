"""What asks a value for its class, and what a generator has beside its draws: in cells as in Python."""

from __future__ import annotations

from typing import Any

import pytest

from tests.notebook.sameness import difference, form, names_of

SETUP = """
import math, copy, pickle
import numpy as np
from dataclasses import dataclass
from functools import singledispatch, singledispatchmethod
@dataclass
class P:
    x: float
    y: float
class Q:
    def __init__(self, a): self.a = a
@singledispatch
def told(o): return "object"
told.register(float, lambda o: f"float {o}")
told.register(np.ndarray, lambda o: "array")
told.register(int, lambda o: "int")
class Teller:
    @singledispatchmethod
    def told(self, o): return "object"
    @told.register(float)
    def _(self, o): return "float"
    @told.register(np.ndarray)
    def _(self, o): return "array"
def matched(v):
    match v:
        case P(x=0.0, y=b): return f"on y {b}"
        case P(a, b) if a == b: return f"diagonal {a}"
        case P() | Q(a=None): return "P"
        case Q(a=[h, *t]): return f"Q {h} {t}"
        case {"k": float() as q, **rest}: return f"map {q} {rest}"
        case {"k": k, "j": (1 | 2) as j}: return f"two keys {k} {j}"
        case np.ndarray(shape=(n, m)): return f"matrix {n} {m}"
        case [float(a), str(b)] | [str(b), float(a)]: return f"pair {a} {b}"
        case (int(a) | [int(a)]) if a > 2: return f"int {a}"
        case [1, *_, 5]: return "from 1 to 5"
        case np.floating() | np.integer(): return "a number of NumPy's"
        case [[a, b], c]: return f"nested {a} {b} {c}"
    return "none"
x = np.arange(3.0)
rng = np.random.default_rng(7)
bits = np.random.PCG64(3)
np.random.seed(4)
"""

CELLS = """
r = [v.__class__.__name__ for v in (x, x[0], x.sum(), x.tolist(), 2, x > 1)], x.__class__ is np.ndarray
---
r = []
for f in (lambda: x[7], lambda: np.linalg.inv(np.zeros((2, 2))), lambda: x + np.ones(2)):
    try: f()
    except Exception as e: r.append((e.__class__.__name__, e.__class__ is type(e), getattr(e, "__class__", None).__mro__[1].__name__))
---
r = [told(v) for v in (x, x[0], 3, "s", x.sum() / 2, len(x))], [Teller().told(v) for v in (x, x[1], "s")], list(map(told, x))
---
given = [P(0.0, 2), P(x[1], 1.0), P(1, 2), Q([1, x[2]]), Q(None), {"k": x[1], "z": 3}, {"k": 3, "j": 2}, {"k": 3, "j": 4}]
given += [[x[1], "a"], ["b", 2.0], 5, [7], 2, [1, 2, 3, 5], [1], np.ones((2, 3)), x[2], x.astype(int)[1], [[1, 2], 3], "q"]
r = [matched(v) for v in given]
---
total = 0.0
for v in x - 1:
    match v:
        case 1.0: total += 10
        case float() if v < 0: total -= v
        case np.float64(): total += v + 0.5
---
r = math.prod(x + 1), math.prod(v for v in x)
---
a, b = rng.spawn(2)
r = a.random(2), b.random(2), rng.random(), np.random.default_rng(5).spawn(2)[1].random()
---
state = rng.bit_generator.state
r = rng.random(3)
rng.bit_generator.state = state
s = rng.random(3), rng.bit_generator.random_raw(2), rng.bit_generator.seed_seq.spawn(1)[0].generate_state(2), rng.random()
---
g = np.random.default_rng(bits)
r = g.bit_generator is bits, isinstance(bits, np.random.PCG64), g.random(), g.spawn(1)[0].random(), bits.random_raw()
---
state = np.random.get_state()
r = np.random.rand(2)
np.random.set_state(state)
s = np.random.rand(2)
---
k = np.random.default_rng(np.random.SeedSequence(5))
c, d = copy.deepcopy(k), pickle.loads(pickle.dumps(k))
r = [g.random() for g in (c, d, k, c, d)], c.spawn(1)[0].random()
"""


@pytest.mark.parametrize("cell", CELLS.split("---\n"))
def test_a_cell_asks_for_classes_as_python_does(notebook: Any, cell: str) -> None:
    notebook.ok(SETUP)
    first = {"first"} | set(notebook.shell.user_ns)
    found: list[dict[str, Any]] = []
    for text in (cell, f"%%tensor\n{cell}"):
        notebook.ok(SETUP)
        notebook.ok(text)
        space = notebook.shell.user_ns
        found.append({n: form(v) for n, v in names_of(space, first - {"r", "s", "total"}).items()})
        rest = notebook.ok("rng.random(), bits.random_raw(), np.random.rand(), rng.spawn(1)[0].random()").value
        found[-1]["rest"] = form(rest)
    plain, other = found
    assert plain.keys() == other.keys()
    assert [d for n in plain for d in difference(plain[n], other[n], n)] == []


def test_generators_of_a_cell_are_one_for_all_that_hold_them(notebook: Any) -> None:
    notebook.ok("import numpy as np\nclass S: pass\no = S()")
    notebook.ok("""%%tensor
a = np.random.default_rng(0); b = a; o.rng = a
bits = np.random.PCG64(3); g = np.random.Generator(bits); h = np.random.Generator(bits)
u = g.random()
L = [a, {"r": b}]
""")
    space = notebook.shell.user_ns
    assert all(v is space["a"] for v in (space["b"], space["o"].rng, space["L"][0], space["L"][1]["r"]))
    assert space["g"].bit_generator is space["h"].bit_generator is space["bits"]


def test_classes_in_functions(notebook: Any) -> None:
    notebook.ok(SETUP)
    notebook.ok("""import tensormagic as tm
def f(v):
    if v.sum() > 1: v = v * 2
    return told(v), told(len(v)), kind(v[0]), kind(v), Teller().told(v[0]), v.__class__.__name__, v.sum()
def kind(v):
    match v:
        case float(): return "float"
        case np.ndarray(ndim=n): return n
g = tm.tensor(f)""")
    plain, other = notebook.ok("f(x), g(x)").value
    assert [a == b for a, b in zip(plain, other, strict=True)] == [True] * 7


@pytest.mark.parametrize(
    "code",
    [
        "way = 1 if type(y) is np.ndarray else 2",
        "way = {np.ndarray: 1}.get(type(y), 2)",
        "def f():\n    return 1 if type(y) == np.ndarray else 2\nway = f()",
        "way = type(y).__name__ == 'ndarray'",
        "if type(y) in (list, np.ndarray):\n    way = 1",
    ],
)
def test_a_plain_cell_that_decides_by_type_of_a_lazy_value_is_told(notebook, code):
    notebook.ok("%%tensor --show none\ny = np.arange(3.0) * 2")
    with pytest.warns(UserWarning, match=r"y is lazy: type\(y\) is tm.Tensor here"):
        notebook.ok(code)


@pytest.mark.parametrize(
    "code",
    [
        "type(y)",
        "print(type(y))",
        "type(y) is tm.Tensor",
        "type(x) is np.ndarray",
        "isinstance(y, np.ndarray)",
    ],
)
def test_other_uses_of_type_are_not(notebook, code):
    notebook.ok("import tensormagic as tm\nx = np.arange(3.0)")
    notebook.ok("%%tensor --show none\ny = x * 2")
    notebook.ok(code)


def test_another_function_of_that_name_is_not(notebook):
    notebook.ok("%%tensor --show none\ny = np.arange(3.0) * 2")
    notebook.ok("type = lambda v: v")
    notebook.ok("same = type(y) is y")
