"""What functions keep beside the notebook's variables goes back where a cell is taken back and run again: once is what Python does."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture import limits

LOOP = "\nx = np.ones(2)\nfor step in range({times}):\n    x = x + 0.001 * {use}\n    if step % 30 == 0:\n        print(step, x.sum())\n"
KEPT = {
    "a variable of a closure": (
        """
def outer(a):
    def inner(y):
        nonlocal a
        a = a + 1
        return y * a
    return inner
f = outer(0.0)
""",
        "f(x)",
        "f(1.0)",
    ),
    "one that a method binds": (
        """
def outer(a):
    class C:
        def inner(self, y):
            nonlocal a
            a = a + 1
            return y * a
    return C()
f = outer(0.0)
""",
        "f.inner(x)",
        "f.inner(1.0)",
    ),
    "one of two functions": (
        """
def outer():
    n = 0
    def step():
        nonlocal n
        n += 1
        return n
    def f(y): return y * step()
    return f, (lambda: n)
f, g = outer()
""",
        "f(x)",
        "g()",
    ),
    "one that is not there at first": (
        """
def outer():
    def f(y):
        nonlocal n
        try:
            n = n + 1
        except NameError:
            n = 1
        return y * n
    if False:
        n = 0
    return f
f = outer()
""",
        "f(x)",
        "f(1.0)",
    ),
    "one that goes away": (
        """
def outer(a):
    def inner(y):
        nonlocal a
        k = a
        del a
        a = k + 1
        return y * a
    return inner
f = outer(0.0)
""",
        "f(x)",
        "f(1.0)",
    ),
    "one of a generator": (
        """
def outer(a):
    def inner(y):
        nonlocal a
        a = a + 1
        yield y * a
    return inner
f = outer(0.0)
""",
        "next(f(x))",
        "next(f(1.0))",
    ),
    "one behind arguments that are given before": (
        """
import functools
def outer(a):
    def inner(k, y):
        nonlocal a
        a = a + k
        return y * a
    return functools.partial(inner, 1)
f = outer(0.0)
""",
        "f(x)",
        "f(1.0)",
    ),
    "an array": (
        """
def outer(a):
    def inner(y):
        nonlocal a
        a = a + np.ones(2)
        return y * a
    return inner
f = outer(np.zeros(2))
""",
        "f(x)",
        "f(1.0)",
    ),
    "an attribute": ("def f(y):\n    f.n += 1\n    return y * f.n\nf.n = 0", "f(x)", "f.n"),
    "an attribute that comes": (
        """
def f(y):
    f.n = getattr(f, "n", 0) + 1
    return y * f.n
""",
        "f(x)",
        "f.n",
    ),
    "a default": ("def f(y, s=[0]):\n    s[0] += 1\n    return y * s[0]", "f(x)", "f(1.0)"),
}


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("times", [12, 90])
def test_what_a_function_keeps_is_changed_once(notebook, monkeypatch, name, times):
    """In a cell that is captured, and in one that is run again."""
    monkeypatch.setattr(limits, "MANY", 60)
    define, use, after = KEPT[name]
    loop = LOOP.format(times=times, use=use)
    space: dict[str, object] = {"np": np, "print": lambda *a: None, "__name__": "__main__"}
    exec(define + loop, space)
    notebook.ok(define)
    if times == 90:
        with pytest.warns(tm.PlainRunWarning, match="was run as ordinary Python"):
            notebook.ok("%%tensor -q\n" + loop)
    else:
        notebook.ok("%%tensor -q\n" + loop)
    np.testing.assert_allclose(np.array(notebook["x"]), np.asarray(space["x"]), rtol=1e-13)
    np.testing.assert_allclose(np.array(notebook.ok(after).value), eval(after, space))


@pytest.mark.parametrize("name", KEPT)
def test_a_cell_that_fails_leaves_it_as_it_was(notebook, name):
    define, use, after = KEPT[name]
    space: dict[str, object] = {"np": np, "__name__": "__main__"}
    exec(define, space)
    notebook.ok(define)
    ran = notebook(f"%%tensor -q\nx = np.ones(2)\nfor k in range(3):\n    x = x * {use}\n{{}}['none']")
    assert isinstance(ran.error, KeyError)
    if "comes" in name:
        assert not hasattr(notebook["f"], "n")
    else:
        np.testing.assert_allclose(np.array(notebook.ok(after).value), eval(after, space))
