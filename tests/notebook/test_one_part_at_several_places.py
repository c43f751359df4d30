"""A part of an array that a cell puts at several places is one object there, as in Python; and what is not one object is not."""

import itertools
import random
from types import SimpleNamespace

import numpy as np
import pytest

PARTS = ("x[1:]", "x[::-1]", "A.T", "A[0]", "x.reshape(2, 2)", "x", "x * 2", "(x * 2)[1:]", "(x[1:], x)", "[x[1:]]")
PLACES = ("a", "b", "L[0]", "L[1]", "D['p']", "D['q']", "o.u", "o.v", "M[0]['k']", "M[1]")


def _cell(rng: random.Random) -> tuple[str, list[str]]:
    made: list[str] = []
    lines: list[str] = []
    for place in rng.sample(PLACES, rng.randint(3, len(PLACES))):
        what = rng.choice(made) if made and rng.random() < 0.6 else rng.choice(PARTS)
        lines.append(f"{place} = {what}")
        made.append(place)
    if rng.random() < 0.5:
        lines.append(f"t = ({', '.join(rng.sample(made, 2))})")
        made += ["t[0]", "t[1]", "t"]
    return "\n".join(lines), made


def _space() -> dict[str, object]:
    x, a = np.arange(4.0), np.arange(6.0).reshape(2, 3)
    return {"x": x, "A": a, "L": [0, 0], "D": {}, "M": [{}, 0], "o": SimpleNamespace(), "np": np}


def _same(made: list[str], space: dict[str, object]) -> list[bool]:
    values = [eval(place, space) for place in made]
    return [one is other for one, other in itertools.combinations(values, 2)]


@pytest.mark.parametrize("seed", range(40))
def test_what_is_one_object_in_python_is_one_after_a_cell(notebook, seed):
    text, made = _cell(random.Random(seed))
    expected = _space()
    exec(text, expected)
    notebook.shell.push(_space())
    notebook.ok(f"%%tensor -q\n{text}")
    assert _same(made, notebook.shell.user_ns) == _same(made, expected), text


def test_a_part_is_followed_from_every_place(notebook):
    notebook.shell.push(_space())
    notebook.ok("%%tensor -q\nv = x[1:]\nL[0] = v\no.u = (v, v)\nD['p'] = [v]")
    space = notebook.shell.user_ns
    space["L"][0][0] = 7
    assert space["x"][1] == space["o"].u[1][0] == space["D"]["p"][0][0] == 7
