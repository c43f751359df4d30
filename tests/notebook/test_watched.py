"""Lists that are elements of lists of a data-dependent length: what the code changes in them is not lost."""

import numpy as np
import pytest

from tests.notebook.conftest import Notebook

CELLS = {
    "run lengths": "for v in k:\n    if not h or v != h[-1][0]: h.append([v, 1])\n    else: h[-1][1] += 1",
    "marks": "for v in k:\n    h.append([v, 1])\n    if v > 3: h[-1][1] = 7",
    "changed behind the loop": "for v in k:\n    if v > 3: h.append([v, 1])\nh[0][1] = 5",
    "a name": "for v in k:\n    if v > 3:\n        pair = [v, 1]\n        h.append(pair)\n        pair[1] = 7",
    "a dictionary": "for v in k:\n    if v > 3: h.append({'v': v, 'n': 1})\n    if h: h[-1]['n'] += 1",
    "a list that grows": "for v in k:\n    if not h or v > 5: h.append([v])\n    else: h[-1].append(v)",
    "gone over": "for v in k:\n    if v > 3: h.append([v, 1])\n    for p in h: p[1] += 1",
}


def numbers(value):
    """Whole numbers in lists and dictionaries."""
    if isinstance(value, dict):
        return {key: numbers(v) for key, v in value.items()}
    return [numbers(v) for v in value] if isinstance(value, list) else int(value)


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
@pytest.mark.parametrize("name", CELLS)
def test_nothing_is_lost(notebook: Notebook, name: str):
    data = np.random.default_rng(1).integers(0, 8, size=40)
    space = {"k": data, "h": []}
    exec(CELLS[name], space)
    want = numbers(space["h"])
    notebook["k"], notebook["h"] = data, []
    notebook.ok("%%tensor -q\nh = []\n" + CELLS[name])
    assert numbers(notebook["h"]) == want
    lines = "".join(f"    {line}\n" for line in ("h = []", *CELLS[name].splitlines(), "return h"))
    notebook.ok(f"def f(k):\n{lines}\ng = tm.tensor(f)")
    assert numbers(notebook["g"](data)) == want
