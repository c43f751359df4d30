"""Cells of which Python runs the iterations are run as plain Python whatever they define and use, at the first run and at later ones."""

import io
from contextlib import nullcontext

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture import limits

LOOP = "\nx = np.ones(2)\nfor step in range(90):\n    x = x + 0.01 * {use}\n    if step % 30 == 0:\n        print(step, x.sum()){more}\n"
DEFINED = {
    "a dataclass": (
        """
from dataclasses import dataclass, field
@dataclass
class P:
    k: float = 1.0
    a: list = field(default_factory=lambda: [])
p = P()
""",
        "np.sin(x * p.k)",
    ),
    "one that is frozen": (
        """
from dataclasses import dataclass
@dataclass(frozen=True)
class P:
    k: float = 1.0
p = P(2.0)
""",
        "np.sin(x * p.k)",
    ),
    "one with slots": (
        """
from dataclasses import dataclass
@dataclass(slots=True)
class P:
    k: float = 1.0
p = P(2.0)
""",
        "np.sin(x * p.k)",
    ),
    "a named tuple": (
        """
from collections import namedtuple
P = namedtuple('P', 'k b')
p = P(2.0, 1.0)
""",
        "np.sin(x * p.k)",
    ),
    "a class of named tuples": (
        """
from typing import NamedTuple
class P(NamedTuple):
    k: float
p = P(2.0)
""",
        "np.sin(x * p.k)",
    ),
    "an enumeration": (
        """
from enum import Enum
class C(Enum):
    A = 1
    B = 2
c = C.A
""",
        "np.sin(x * c.value)",
    ),
    "an abstract class": (
        """
from abc import ABC, abstractmethod
class S(ABC):
    @abstractmethod
    def f(self, x): ...
class T(S):
    def f(self, x): return np.sin(x)
t = T()
""",
        "t.f(x)",
    ),
    "super": (
        """
class A:
    def __init__(self, k): self.k = k
class B(A):
    def __init__(self, k, b):
        super().__init__(k)
        self.b = b
    def f(self, x): return np.sin(x * self.k) + self.b
b = B(1.0, 2.0)
""",
        "b.f(x)",
    ),
    "its class's name": (
        """
class A:
    def __repr__(self): return f'{self.__class__.__name__}({self.k})'
    def __init__(self): self.k = 2.0
a = A()
""",
        "np.sin(x * a.k)",
    ),
    "operators": (
        """
class V:
    def __init__(self, a): self.a = np.asarray(a)
    def __add__(self, o): return V(self.a + o.a)
    def __mul__(self, k): return V(self.a * k)
    __rmul__ = __mul__
v = V([1.0, 2.0])
""",
        "(v + 2 * v).a",
    ),
    "slots": (
        """
class A:
    __slots__ = ('k',)
    def __init__(self): self.k = 2.0
a = A()
""",
        "np.sin(x * a.k)",
    ),
    "a cached property": (
        """
from functools import cached_property
class A:
    @cached_property
    def k(self): return 2.0
a = A()
""",
        "np.sin(x) * a.k",
    ),
    "a cached function": (
        """
from functools import lru_cache
@lru_cache(maxsize=None)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
""",
        "np.sin(x) * fib(5)",
    ),
    "a decorator": (
        """
import functools
def twice(f):
    @functools.wraps(f)
    def w(*a, **k): return 2 * f(*a, **k)
    return w
@twice
def g(x): return np.sin(x)
""",
        "g(x)",
    ),
    "np.vectorize": ("f = np.vectorize(lambda a: a if a > 0 else 0.0)\nw = f(np.ones(2))", "np.sin(x) * w"),
    "annotations": (
        """
from typing import Generic, Optional, TypeVar
T = TypeVar('T')
class Box(Generic[T]):
    def __init__(self, v: T): self.v: T = v
b = Box(2.0)
def f(x: np.ndarray, k: Optional[float] = None): return x * b.v
""",
        "f(x)",
    ),
    "an exception": (
        """
class Bad(ValueError):
    def __init__(self, text):
        super().__init__(text)
        self.text = text
""",
        "np.sin(x)",
    ),
    "pandas": ("import pandas as pd\nd = pd.DataFrame({'a': [1.0, 2.0]})\nm = d['a'].mean()", "np.sin(x) * m"),
    "a module that is not used": (
        """
import os, threading, subprocess
import matplotlib.pyplot as plt
""",
        "np.sin(x)",
    ),
    "a function that is not called": ("def save(x):\n    with open('a', 'w') as f: f.write(str(x))", "np.sin(x)"),
    "settings": (
        """
np.set_printoptions(precision=4)
import warnings
warnings.filterwarnings('default')
""",
        "np.sin(x)",
    ),
    "names of what was there": ("def later(f): return f\nout = later(3.0)", "np.sin(x) * out"),
}


@pytest.fixture
def small(notebook, monkeypatch):
    """A notebook in which a graph of 60 operations is large."""
    monkeypatch.setattr(limits, "MANY", 60)
    notebook.ok("import io\nf = out = io.StringIO()")
    return notebook


@pytest.mark.parametrize("name", DEFINED)
def test_whatever_a_cell_defines(small, name):
    """What stood behind its names before does not matter; classes and objects of other cells are looked at."""
    define, use = DEFINED[name]
    cell = define + LOOP.format(use=use, more="")
    for _ in range(2):
        with pytest.warns(tm.PlainRunWarning, match="was run as ordinary Python: it has a loop"):
            assert small.ok("%%tensor -q\n" + cell).out.count("30 ") == 1
    if "cached" not in name:
        small.ok(define)
        with pytest.warns(tm.PlainRunWarning, match="was run as ordinary Python: it has a loop"):
            small.ok("%%tensor -q\n" + LOOP.format(use=use, more=""))
    found = np.array(small["x"])
    space = {"__name__": "__main__", "np": np, "print": lambda *a: None}
    exec(cell, space)
    np.testing.assert_array_equal(found, space["x"])


@pytest.mark.parametrize(
    "first",
    [
        "import os\nos.environ['A_NAME'] = os.environ.get('A_NAME', '') + 'x'",
        "out.write('x')",
        "import warnings\nif len(numbers_seen) > 5: warnings.warn('once', stacklevel=1)",
        "old = np.seterr(all='ignore')",
        "def tell(): out.write('x')\ntell()",
        "def tell(): out.write('x')\nclass A:\n    def __init__(self): tell()\na = A()",
        "from os import getcwd\nhere = getcwd()",
        "import pandas as pd\npd.Series([1.0]).to_csv(out)",
        "t['a'] = 3.0",
        "list(numbers)",
        "class A:\n    file = out\nA.file.write('x')",
        "k = cached()",
    ],
)
def test_what_would_be_seen_twice_is_done_once(small, first):
    """The cell keeps its graph, however large."""
    small.ok(
        "import functools, pandas as pd\nt = pd.DataFrame({'a': [1.0, 2.0]})\nnumbers, numbers_seen = iter(range(3)), []\n"
        "@functools.lru_cache\ndef cached():\n    return 1.0"
    )
    small.ok("%%tensor -q\n" + first + LOOP.format(use="np.sin(x)", more=""))  # where a warning is an error
    assert isinstance(small["x"], tm.Tensor)
    assert small["out"].getvalue().count("x") <= 1
    assert isinstance(small["out"], io.StringIO)


@pytest.mark.parametrize("before", [False, True])
def test_figures_are_drawn_once(small, before):
    """Those of the cell go with what it has done, where there were none before it."""
    small.ok("import matplotlib\nmatplotlib.use('agg')\nimport matplotlib.pyplot as plt\nplt.close('all')")
    if before:
        small.ok("plt.figure()")
    draw = "plt.figure()\nplt.title('x')\n" + LOOP.format(use="np.sin(x)", more="\n    plt.plot([step], [step])")
    cell = "%%tensor -q\n" + draw.replace("range(90)", "range(40)" if before else "range(90)")
    with nullcontext() if before else pytest.warns(tm.PlainRunWarning):
        small.ok(cell)
    plt = small["plt"]
    assert len(plt.get_fignums()) == 1 + before
    assert len(plt.gca().lines) == (40 if before else 90)
    plt.close("all")


@pytest.mark.parametrize(
    ("backend", "twice"),
    [
        ("agg", True),
        ("module://matplotlib_inline.backend_inline", True),
        ("module://ipympl.backend_nbagg", False),
        ("QtAgg", False),
    ],
)
def test_figures_that_are_seen_at_once_stay(small, monkeypatch, backend, twice):
    small.ok(
        "import matplotlib\nmatplotlib.use('agg')\nimport matplotlib.pyplot as plt\nplt.figure()\nplt.close('all')"
    )
    monkeypatch.setattr(small["plt"], "get_backend", lambda: backend)
    with pytest.warns(tm.PlainRunWarning) if twice else nullcontext():
        small.ok(
            "%%tensor -q\nplt.figure()" + LOOP.format(use="np.sin(x)", more="").replace("90", "90" if twice else "40")
        )
    assert len(small["plt"].get_fignums()) == 1
    small["plt"].close("all")


def test_tables_that_are_read_only(small):
    small.ok("import pandas as pd\nt = pd.DataFrame({'a': [1.0, 2.0], 'b': [3.0, 4.0]})")
    with pytest.warns(tm.PlainRunWarning):
        small.ok("%%tensor -q\nm = t['a'].values" + LOOP.format(use="np.sin(x) * m", more=""))
    assert type(small["t"]).__name__ == "DataFrame"


def test_many_values_that_are_asked_for_take_no_longer_than_a_second(notebook, monkeypatch):
    """As the nodes of a decision tree ask; few that take long do not count, since a second run would do their work again."""
    monkeypatch.setattr(limits, "PATIENCE", 0.001)
    asked = "said = ''\nfor k in range(200):\n    t = np.sin(v * k).sum()\n    said += 'ab'[int(t > 0)]\n"
    notebook.ok("v = np.array([0.5, 1.5, 2.5, 3.5])")
    with pytest.warns(tm.PlainRunWarning):
        notebook.ok("%%tensor -q\n" + asked)
    monkeypatch.setattr(limits, "EACH", 0.0)
    notebook.ok("%%tensor -q\n" + asked.replace("200", "60"))
