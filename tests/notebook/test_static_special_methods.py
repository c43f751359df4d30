"""Special methods that are static or class methods, or no functions of the user's, are called as Python calls them."""

import pytest

from tests.notebook.conftest import Notebook
from tests.notebook.sameness import difference, form

START = """
import functools
import numpy as np
x = np.arange(3.0)
def scaled(a, k=2): return a * k if k > 1 else a
class Static: __call__ = staticmethod(scaled)
class Below(Static): pass
class Ofclass:
    base = 10
    @classmethod
    def __call__(cls, a): return a + cls.base
class Numpys: __call__ = np.sin
class Usual:
    def __call__(self, a, *rest): return a + len(rest)
class Partial: __call__ = functools.partial(scaled, k=5)
class Seq:
    __getitem__ = staticmethod(lambda k: k * 2)
    __len__ = staticmethod(lambda: 3)
    __add__ = staticmethod(lambda other: other + 100)
    __iter__ = staticmethod(lambda: iter([1.0, 2.0]))
    __contains__ = staticmethod(lambda other: True)
    __bool__ = staticmethod(lambda: False)
    __float__ = staticmethod(lambda: 2.5)
    __index__ = staticmethod(lambda: 1)
    __abs__ = staticmethod(lambda: 7)
    __enter__ = staticmethod(lambda: 5)
    __exit__ = staticmethod(lambda *error: None)
s = Seq()
def entered():
    with s as v: return v
"""
ASKED = """Static()(x), Static()(x, k=3), Static()(3.0)
Below()(x), list(map(Below(), x))
Ofclass()(x), Numpys()(x), Usual()(x, 1), Partial()(x)
[Static()(v) for v in x if v > 0]
np.vectorize(Static())(x)
s[x], len(s), s + x, list(s), 3 in s
bool(s), "t" if s else "f", not s, s and 1
float(s), int(s), abs(s), [5, 6][s], entered()
sorted([2, 1], key=Static())"""


@pytest.mark.parametrize("question", ASKED.splitlines())
def test_as_in_python(notebook: Notebook, question: str):
    notebook.ok(START)
    wanted = form(notebook.ok(question).value)
    notebook.ok(f"%%tensor\nfound = {question}")
    assert list(difference(wanted, form(notebook["found"]))) == []
