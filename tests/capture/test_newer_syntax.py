"""What Python 3.12, 3.13 and 3.14 have that 3.11 has not, and what their interpreters do otherwise, in captured functions."""

from __future__ import annotations

import importlib.util
import itertools
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tensormagic as tm

_count = itertools.count()

ALIAS = """
def f(x):
    type X = int
    for i in range(3):
        type Y = float
        if x.sum() > 0:
            x = x * 2
    return x + len(str(X)), str(Y) == "Y"
"""
GENERIC = """
def f[T: np.ndarray](x: T) -> T:
    def scaled[S](a: S, b: S = 2.0) -> S:
        return a * b
    class Held[V]:
        def __init__(self, v: V): self.v = v
        def twice(self) -> V: return self.v * 2
    for i in range(3):
        if x.sum() > i:
            x = scaled(x) + len(T.__name__)
    return Held(x).twice(), len(f.__type_params__)
"""
TEXTS = """
def f(x):
    d = {"a": 2.0}
    s = f"{d["a"]:.{1 + 1}f} {'\\n'.join(["a", "b"])}"
    return x * len(s)
"""
TEMPLATES = """
def f(x):
    k = 3
    t = t"{k!r:>5} and {k + 1}{x * 2}"
    n = sum(len(s) for s in t.strings) + t.interpolations[0].value
    for i in range(3):
        if x.sum() > i:
            n = n + t"{i} {k}".values[0]
    return t.interpolations[2].value * n
"""
EXCEPT = """
def f(x):
    try:
        y = x[10]
    except IndexError, ValueError:
        y = x[0]
    return y * 2
"""
ANNOTATIONS = """
def f(x: nothing_yet, y: nothing_yet = 2.0) -> nothing_yet:
    a: nothing_yet = x * y
    for i in range(3):
        c: nothing_yet = i
        if a.sum() > c:
            a = a * 2
    return a
"""
SCOPES = """
HELD = {"h": np.zeros(3)}
def f(x):
    k = 10
    v = [x[k] * k for k in range(3)]
    w = {k: x[k] for k in range(3)}
    k += 1
    HELD["h"][1:] = (x * k)[1:]
    return sum(v) + k, w[2], HELD["h"] * 1
"""
LOCALS = """
def f(x):
    k = 10
    before = locals()
    k += 1
    v = [x[k] for k in range(3)]
    return before["k"] + k, sorted(before), len(locals())
"""


def _module(text: str, folder: Path) -> ModuleType:
    name = f"newer_syntax_{next(_count)}"
    path = folder / f"{name}.py"
    path.write_text(f"import numpy as np\n{text}", encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _told(result: Any) -> Any:
    return [_told(r) for r in result] if isinstance(result, tuple | list) else np.asarray(result)


@pytest.mark.parametrize(
    ("since", "text"),
    [
        (11, SCOPES),
        (11, LOCALS),
        (12, ALIAS),
        (12, GENERIC),
        (12, TEXTS),
        (14, TEMPLATES),
        (14, EXCEPT),
        (14, ANNOTATIONS),
    ],
    ids=["scopes", "locals", "type aliases", "generics", "texts", "templates", "except", "annotations"],
)
def test_functions_do_what_python_does(since, text, tmp_path):
    if sys.version_info < (3, since):
        pytest.skip(f"the syntax is that of Python 3.{since}")
    function = _module(text, tmp_path).f
    for x in (np.array([1.0, 2, 3]), np.array([-1.0, 2, -3])):
        np.testing.assert_equal(_told(tm.tensor(function)(x.copy())), _told(function(x.copy())))


def test_what_python_says_of_syntax_is_said_once(tmp_path):
    text = "def f(x):\n    for i in range(2):\n        if x.sum() > i:\n            x = x + (1 if i is 'a' else len('\\d'))\n    return x\n"
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        function = _module(text, tmp_path).f
    assert len(said) == 2
    with warnings.catch_warnings(action="error"):
        np.testing.assert_equal(tm.tensor(function)(np.ones(2)), np.full(2, 5.0))
