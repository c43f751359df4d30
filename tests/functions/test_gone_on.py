"""Calls that Python goes on with, since no graph holds what they are given, bind or compute: drawn, against Python."""

from __future__ import annotations

import random

import pytest

import tensormagic as tm
from tests.functions import object_programs as programs

NUMBERS = {
    "round(v)": (2.5, 1e20, -3.5e30, 7.0, -0.5),
    "int(v) + 1": (2.5, 1e20, -9.3e18, 9.3e18, 3),
    "math.floor(v) * 2": (2.5, 1e19, -1e25, -0.5, 4),
    "math.ceil(v), math.trunc(v)": (2.5, 1e19, -1e25, 0.5, 4),
    "v ** 0.5": (2.5, -2.0, 4, -4, 0.0),
    "v ** (1 / 3) + 1": (8.0, -8.0, 27, -1, 0),
    "(v - 1) ** v": (2.5, 0.5, 0.25, 1.5, 3.5),
    "v ** 40": (2, 3, -5, 2.0, True),
    "v // 1e-20": (2.5, 1e5, -3.0, 1, 0.0),
    "divmod(int(v), 7)": (2.5, 1e20, -1e21, 30.0, 1),
    "max(int(v), 3) % 10": (2.5, 1e20, 1e21, 5.5, 1),
    "f'{int(v)}'": (2.5, 1e20, -1e21, 5.5, 1),
}
AROUND = (
    "    return {}",
    "    if v > 1:\n        v = v + 0\n    return {}",
    "    try:\n        return {}\n    except OverflowError:\n        return -1",
    "    out = []\n    for _ in range(2):\n        out.append({})\n    return out",
    "    x[0] += 1\n    return {}, x",
    "    D['r'] = {}\n    return D['r']",
)


@pytest.mark.parametrize("tier", ["auto", "numpy"])
@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_that_no_graph_holds(text, tier, monkeypatch):
    monkeypatch.setattr(tm.config, "tier", tier)
    around = [*random.Random(text + tier).sample(AROUND[:-1], 2), AROUND[-1]]
    for body in around:
        program = f"import math\nx, D = np.zeros(2), {{}}\n@T\ndef f(v, x):\n{body.format(text)}\n"
        program += "".join(f"attempt(f, {v}, x)\n" for v in (NUMBERS[text][0], *NUMBERS[text], NUMBERS[text][1]))
        fault = programs.fault("import numpy as np\n" + program)
        assert not fault or fault.startswith("refused"), program


NAMES = {
    "global": ("N = 0.0\n@T\ndef f(x):\n    global N\nBODY", "N"),
    "nonlocal": ("def make():\n    N = 0.0\n    def f(x):\n        nonlocal N\nBODY\n    return f\nf = T(make())", "N"),
    "class": ("class H: N = 0.0\n@T\ndef f(x):\nBODY", "H.N"),
    "helper": ("N = 0.0\ndef h(x):\n    global N\nBODY\n@T\ndef f(x): return h(x) + 1", "N"),
}
CHANGES = (
    "@ = @ + 1\nreturn x * @",
    "@ += x\nreturn @",
    "if x > @: @ = x\nreturn @",
    "for k in range(3): @ = @ * 0.5 + x\nreturn @ - x",
    "@ = max(@, x)\nif @ > 2: @ = 0.0\nreturn x, @",
    "y = np.ones(3) * x\n@ = y.sum()\nreturn y + @",
    "try:\n    @ = 1 / (x - 1)\nexcept ZeroDivisionError: @ = -1.0\nreturn @",
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("change", CHANGES)
def test_names_that_are_bound_outside(name, change):
    text, held = NAMES[name]
    indent = "        " if name == "nonlocal" else "    "
    body = "".join(f"{indent}{line}\n" for line in change.replace("@", held).splitlines())
    text = "import numpy as np\n" + text.replace("BODY", body) + "\n"
    again = {"global": "N = 5.0\n", "class": "H.N = 5.0\n", "helper": "N = 5.0\n"}.get(name, "")
    text += "".join(f"attempt(f, {x})\n" for x in (0.5, 0.5, 1.0, 3)) + again + "attempt(f, 2.0)\nattempt(f, 1.0)\n"
    assert not programs.fault(text), text
