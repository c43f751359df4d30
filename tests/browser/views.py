"""A notebook that shows every view, and the functions whose live views it has."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

SCRIPT = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>\"'&"
LONG = "long" * 25_000
HEBREW = "\N{HEBREW LETTER SHIN}\N{HEBREW LETTER LAMED}"
TURNED = "\N{GRINNING FACE}\N{RIGHT-TO-LEFT OVERRIDE}"


def plane(u: Any, v: Any) -> Any:
    return u**2 + u * v + v**2


def columns(w: Any, c: Any = 1.0) -> Any:
    return c * np.sum(w**2) + w[0] * w[1]


def cells(m: Any) -> Any:
    return np.sum(m**3) + m[0, 1]


def line(a: Any) -> Any:
    return a * np.arange(8.0)


def heat(a: Any) -> Any:
    return a * np.arange(12.0).reshape(3, 4)


FUNCTIONS: tuple[Callable[..., Any], ...] = (plane, columns, cells, line, heat)
START = f"""%load_ext tensormagic
import numpy as np, tensormagic as tm
from typing import Any
tm.config.tier = "numpy"
X, w, b, y = np.arange(12.0).reshape(4, 3), np.zeros(3), 0.0, np.array([1.0, -1.0, 1.0, 1.0])
script = {SCRIPT!r}
hostile = {{script: np.ones(3), "{TURNED}": np.ones(3)}}
{LONG} = 2.0
""" + "\n".join(inspect.getsource(function) for function in FUNCTIONS)
VIEWS = [
    START,
    (
        "%%tensor objective --grad w,b --show graph,rewrites,code,annotate,profile,speed\n"
        "z = X @ w + b\nloss = np.mean(np.log(1 + np.exp(-y * z)))\nloss"
    ),
    "%%tensor --live a=0:10\nslow = np.sin(a) * 2.0",
    "%%tensor --grad w --show backprop\nsquares = np.sum((X @ w + b - y) ** 2)\nsquares",
    (
        "%%tensor --grad hostile --show graph,annotate,profile\n"
        f"{HEBREW} = hostile[script] * {LONG}  # {SCRIPT}\n"
        f"total = np.sum({HEBREW} ** 2) + np.sum(hostile['{TURNED}'])\ntotal"
    ),
    f"%%tensor --live {LONG}=0:3 --grad w\nnp.sum(np.exp(w)) * {LONG}",
    "%tensor_profile",
    "%tensor_rules",
    "%tensor_formula squares",
    (
        "display(tm.live(plane, u=(-1, 1), v=(-1, 1)), tm.live(columns, w=(-np.ones(3), np.ones(3)), c=(0, 2)),\n"
        "    tm.live(cells, m=(-np.ones((2, 3)), np.ones((2, 3)))), tm.live(line, a=(0, 1)), tm.live(heat, a=(0, 1)))"
    ),
    "%tensor_default on",
    "%%tensor\nmisfit = X @ y",  # the last, for no cell runs after an error
]
GRAPHS, LIVE, BACKPROPS, FORMULAS = 2, 7, 1, 1  # of them in the notebook
