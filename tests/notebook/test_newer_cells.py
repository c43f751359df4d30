"""Cells in the syntax of each Python: run again as plain Python where their graph grows too large, and captured where it does not."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture import limits

LOOP = "\nx = np.ones(2)\nfor step in range({times}):\n    x = x + 0.01 * ({use})\n    if step % 30 == 0:\n        print(step, x.sum())\n"
CELLS = {  # the first minor version of Python that knows it, the definitions, and their use
    "generic class": (
        12,
        """
class Box[T]:
    def __init__(self, v: T): self.v: T = v
    def f[S](self, x: S) -> S: return x * self.v
b = Box(2.0)
""",
        "b.f(x)",
    ),
    "generic base": (
        12,
        """
class A[T]:
    k: T = 2.0
class B[T](A[T]):
    def f(self, x): return x * self.k
b = B()
""",
        "b.f(x)",
    ),
    "generic function": (
        12,
        """
def f[T: (int, np.ndarray)](x: T, k: T = 2.0) -> T: return np.sin(x) * k
""",
        "f(x)",
    ),
    "generic dataclass": (
        12,
        """
from dataclasses import dataclass
@dataclass
class P[T]:
    k: T
    def g(self): return self.k
p = P(2.0)
""",
        "x * p.g()",
    ),
    "alias": (
        12,
        """
type X = np.ndarray | float
type Y[T] = list[T]
def f(x: X) -> Y[X]: return x * 2
""",
        "f(x)",
    ),
    "bound with names": (
        12,
        """
K = 2.0
def f[*Ts, **P](x, *a: *Ts): return x * K + len(a)
""",
        "f(x, 1, 2)",
    ),
    "typevar default": (
        13,
        """
class A[T = float]:
    k = 2.0
a = A()
""",
        "x * a.k",
    ),
    "fstrings": (
        12,
        """
d = {'a': 2.0}
s = f'{d['a']:.{1 + 1}f} {', '.join([f'{k}' for k in d])}'
""",
        "x * len(s)",
    ),
    "except*": (
        11,
        """
k = 0.0
try:
    raise ExceptionGroup('a', [ValueError('b'), TypeError('c')])
except* ValueError as e:
    k += len(e.exceptions)
except* TypeError:
    k += 1
""",
        "x * k",
    ),
    "except two": (
        14,
        """
try:
    int('a')
except ValueError, TypeError:
    k = 2.0
""",
        "x * k",
    ),
    "match": (
        11,
        """
from dataclasses import dataclass
@dataclass
class P:
    a: float
    b: float = 1.0
def f(p, x):
    match p:
        case P(a=0.0): return x
        case P(a, b) if a > b: return x * a
        case [a, *_] | {'a': a}: return x + a
        case _: return x
""",
        "f(P(2.0), x) + f({'a': 1.0}, x) + f([3.0, 1], x)",
    ),
    "class comprehension": (
        11,
        """
K = 3
class A:
    n = 4
    ks = [k * 2.0 for k in range(n)]
    d = {k: [j for j in range(k)] for k in range(n)}
    g = sum(k for k in range(n))
    h = [(lambda: k) for k in range(K)]
    w = {k for k in 'ab'}
""",
        "x * A.ks[2] * A.g * len(A.d[2]) * A.h[0]()",
    ),
    "generic class comprehension": (
        12,
        """
K = 3.0
class A[T]:
    n = 4
    ks = [K * k for k in range(n)]
    def f[S](self): return [K * k for k in self.ks]
""",
        "x * A.ks[2] + A().f()[1]",
    ),
    "cell comprehension": (
        11,
        """
k = 5.0
ls = [k * 1.0 for k in range(4)]
m = {k: v for k, v in zip('ab', ls)}
fs = [lambda y, k=k: y * k for k in ls]
gs = [lambda y: y * j for j in ls]
n = [y := q + 1.0 for q in ls]
""",
        "fs[2](x) * k + gs[0](x) + y",
    ),
    "lambda closures": (
        11,
        """
def outer(a):
    b = [a * i for i in range(3)]
    def inner(y):
        nonlocal a
        a = a * 0.99
        return y * a + sum(c for c in b)
    return inner
f = outer(2.0)
""",
        "f(x)",
    ),
    "nested class": (
        11,
        """
def make(k):
    class A:
        j = k * 2
        def f(self, x): return __class__.j * x + k
    return A()
a = make(2.0)
""",
        "a.f(x)",
    ),
    "closure of class in generic": (
        12,
        """
def make[T](k: T):
    class A:
        j = k * 2
        v: T = k
        def f(self, x): return __class__.j * x + k
    return A()
a = make(2.0)
""",
        "a.f(x)",
    ),
    "super": (
        11,
        """
class A:
    def f(self, x): return x * 2
    @property
    def p(self): return 1.0
    @classmethod
    def m(cls): return cls()
class B(A):
    def f(self, x): return super().f(x) + super(B, self).p
b = B.m()
""",
        "b.f(x)",
    ),
    "annotations": (
        11,
        """
import typing as t
from collections.abc import Callable
class A:
    a: int
    b: 'B' = 2.0
    c: t.ClassVar[float] = 3.0
u: dict[str, Callable[[int], float]] = {}
def f(x: np.ndarray, g: Callable = np.sin, *a: int, **k: t.Any) -> 'B': return g(x) * A.b
""",
        "f(x)",
    ),
    "forward annotations": (
        14,
        """
def f(x: Later, k: nothing.at.all = 2.0) -> Later: return x * k
class A:
    v: Later = 2.0
    w: nowhere
z: Later = 1.0
""",
        "f(x) * A.v * z",
    ),
    "dataclass forward": (
        14,
        """
from dataclasses import dataclass
@dataclass
class P:
    v: float
    w: Later = None
p = P(2.0)
""",
        "x * p.v",
    ),
    "protocol": (
        11,
        """
from typing import Protocol, runtime_checkable
@runtime_checkable
class H(Protocol):
    def f(self, x): ...
class A:
    def f(self, x): return x * 2.0
a = A()
ok = isinstance(a, H)
""",
        "a.f(x)",
    ),
    "metaclass": (
        11,
        """
class M(type):
    def __new__(m, name, bases, space, **k):
        return super().__new__(m, name, bases, space)
class A(metaclass=M):
    k = 2.0
""",
        "x * A.k",
    ),
    "aliases of an earlier Python": (
        11,
        """
from collections.abc import Callable
Vector = list[float]
Maybe = float | None
u: dict[str, Callable[[int], float]] = {}
def f(x: Vector, k: Maybe = None) -> Vector: return x * 2.0
""",
        "f(x)",
    ),
}
KNOWN = [name for name, (first, _, _) in CELLS.items() if sys.version_info[1] >= first]


@pytest.fixture
def small(notebook, monkeypatch):
    """A notebook in which a graph of 60 operations is large."""
    monkeypatch.setattr(limits, "MANY", 60)
    return notebook


def python(cell: str) -> np.ndarray:
    """What Python leaves in ``x``."""
    space: dict[str, object] = {"__name__": "__main__", "np": np, "print": lambda *a: None}
    exec(cell, space)
    return np.asarray(space["x"])


@pytest.mark.parametrize("name", KNOWN)
def test_a_cell_is_run_again(small, name):
    """At its first run, at its second, and where an earlier cell has the definitions."""
    _, define, use = CELLS[name]
    loop = LOOP.format(times=90, use=use)
    expected = python(define + loop)
    for cell in (define + loop, define + loop, loop):
        if cell == loop:
            small.ok(define)
        with pytest.warns(tm.PlainRunWarning, match="was run as ordinary Python: it has a loop"):
            assert small.ok("%%tensor -q\n" + cell).out.count("30 ") == 1
        np.testing.assert_array_equal(np.array(small["x"]), expected)


@pytest.mark.parametrize("name", KNOWN)
def test_a_short_cell_is_captured(notebook, name):
    _, define, use = CELLS[name]
    cell = define + LOOP.format(times=4, use=use)
    with warnings.catch_warnings(action="error", category=tm.PlainRunWarning):
        notebook.ok("%%tensor -q\n" + cell)
    np.testing.assert_allclose(np.array(notebook["x"]), python(cell), rtol=1e-13)


@pytest.mark.parametrize(
    "name", [name for name in KNOWN if name != "except*"]
)  # a function with which is run as Python
def test_what_a_function_defines_within(notebook, name):
    """With a branch on data in its loop."""
    _, define, use = CELLS[name]
    lines = [
        *define.strip().splitlines(),
        "for step in range(4):",
        "    if x.sum() > -1:",
        f"        x = x + 0.01 * ({use})",
        "return x",
    ]
    text = "def whole(x):\n    " + "\n    ".join(lines)
    notebook.ok(f"import numpy as np, tensormagic as tm\n{text}\nx = tm.tensor(whole)(np.ones(2))")
    np.testing.assert_allclose(np.array(notebook["x"]), python(f"{text}\nx = whole(np.ones(2))"), rtol=1e-13)


def test_annotations_that_write_are_not_written_twice(small, tmp_path):
    """Whoever asks for them: from Python 3.14 on they are computed then, before in the cell of the class."""
    small["name"] = str(tmp_path / "a")
    define = "def told():\n    with open(name, 'a') as f: f.write('x')\nclass A:\n    k: told() = 2.0"
    small.ok(define)
    small("%%tensor -q\nsaid = A.__annotations__" + LOOP.format(times=90, use="x * A.k"))
    assert Path(small["name"]).read_text() == "x"
