"""Stores into arrays that the notebook's containers, objects and functions hold: they reach the notebook's arrays, on every way to them."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic import session
from tests.capture.harness import assert_equal, cell

DEFINITIONS = """
class Model:
    def __init__(self):
        self.w = np.ones(3)

    def step(self, g):
        self.w -= g

    def zero(self):
        self.w[:] = 0


def bump():
    H[:] = H + 1


def add(v):
    H[:] += v


def both(v):
    add(v)
    bump()


def peek():
    return H.sum()


def counter():
    count = np.zeros(1)

    def up():
        count[0] += 1
        return count.sum()

    return up
"""


def given() -> dict[str, Any]:
    space: dict[str, Any] = {
        "np": np,
        "x": np.arange(3.0),
        "s": 2.0,
        "d": {"w": np.ones(3), "n": np.array([1, 2])},
        "ws": [np.ones(3), np.zeros(2)],
        "H": np.zeros(3),
        "t": (np.ones(3), 5),
        "nested": {"a": [np.ones(3)]},
        "spare": SimpleNamespace(v=np.ones(3)),
    }
    exec(DEFINITIONS, space)
    space |= {"m": space["Model"](), "alias": space["d"]["w"], "up": space["counter"](), "part": space["H"][1:]}
    return space


PROGRAMS = [
    "d['w'] -= s * np.sin(x)",
    "d['w'][0] = x.sum()",
    "d['w'][1:] = 0\ny = d['w'].sum() + x",
    "ws[0] *= 2\ny = ws[0] + x",
    "for w in ws: w -= s * x.sum()",
    "for k, w in enumerate(ws): ws[k] = w + 1\nws[0][0] = 5",
    "for w, g in zip(ws, [x, x[:2]]): w -= s * g",
    "ws.reverse()\nws[0][:] = s",
    "m.w -= x",
    "m.w[0] = s",
    "m.step(x)",
    "m.step(x)\ny = m.w * 2\nm.zero()",
    "spare.v += x\ny = spare.v * 2",
    "bump()",
    "bump()\ny = H.sum()",
    "add(x)\ny = H * 2",
    "y = H + 1\nadd(x)\nz = H * 2",
    "both(x)",
    "both(x)\nH[0] = 5\nbump()\ny = H + peek()",
    "part += 5\nbump()\ny = H + 0",
    "bump()\ny = part * 2",
    "y = up()\nz = up()",
    "t[0][1] = s",
    "u = t\nu[0][1] = s",
    "nested['a'][0][:] = x",
    "alias[0] = 7\ny = d['w'] + 0",
    "d['w'][0] = 7\ny = alias + 0",
    "d['w'] *= x\ny = alias + 0",
    "v = d['w']\nv += x\n",
    "d['w'] = x + 1\nd['w'][0] = s",
    "d['new'] = d['w']\nd['new'][0] = s",
    "d['n'] += 1\ny = x[d['n'][0]]",
    "np.add(d['w'], x, out=d['w'])",
    "d['w'].fill(s)",
    "d.pop('w')[:] = 3",
]


def value(found: Any) -> Any:
    """What a name holds, with arrays for lazy arrays, in containers and objects too."""
    if isinstance(found, tm.Tensor):
        return found.numpy()
    if isinstance(found, dict):
        return {k: value(v) for k, v in found.items()}
    if isinstance(found, list | tuple):
        return type(found)(value(v) for v in found)
    return value(vars(found)) if type(found).__name__ in {"Model", "SimpleNamespace"} else found


@pytest.mark.parametrize("source", PROGRAMS)
def test_stores_reach_what_holds_the_array(source):
    numpys, ours = given(), given()
    exec(source, numpys)
    arrays = {n: ours[n] for n in ("H", "alias", "x", "part")}
    found = cell(source, ours)
    assert all(ours[n] is a and type(a) is np.ndarray for n, a in arrays.items())
    for buffer, stored in zip(found.stores, session.compute([b.node for b in found.stores]), strict=True):
        buffer.array[...] = stored
    for name, v in numpys.items():
        if name not in {"np", "__builtins__", "w", "g", "k"}:
            assert_equal(value(found.outputs.get(name, ours.get(name))), value(v), name)
    if "new" not in source:
        holders = (ours["m"].w, ours["t"][0], ours["nested"]["a"][0], ours["up"].__closure__[0].cell_contents)
        assert not any(isinstance(v, tm.Tensor) for v in holders)


def test_a_cell_that_fails_puts_the_arrays_back():
    space = given()
    before = space["d"]["w"]
    with pytest.raises(ZeroDivisionError):
        cell("d['w'] -= x\nm.step(x)\n1 / 0", space)
    assert space["d"]["w"] is before
    assert space["m"].w.tolist() == [1, 1, 1]
    assert before.tolist() == [1, 1, 1]
    assert type(space["H"]) is np.ndarray


def test_a_cell_that_only_reads_leaves_containers_alone():
    space = given()
    found = cell("y = x + 1\nkind = type(ws[1]).__name__ if False else 'none'", space)
    assert found.stores == []
    assert type(space["d"]["w"]) is np.ndarray
