"""Lists to which loops append steps, beside a start and other items: arrays are made of them by a few parts."""

import numpy as np
import pytest

from tensormagic.ir.node import topological

START = "import numpy as np\ns = np.array([1.0, 0.0]); z = 1.0; h = 0.01; w = np.array([[2.0, 1.0], [0.5, 3.0]])"
LOOP = "for i in range(120):\n    s = s + h * np.array([s[1], -s[0]])\n    states.append(s)"
NUMBERS = "for i in range(120):\n    z = z - h * np.sin(z)\n    zs.append(z)"
CELLS = {
    "a start": f"states = [s]\n{LOOP}\nfound = np.array(states)",
    "a start and an end": f"states = [s]\n{LOOP}\nstates.append(2 * s)\nfound = np.array(states)",
    "two loops": f"states = [s]\n{LOOP}\nstates.append(np.zeros(2))\n{LOOP}\nfound = np.array(states)",
    "a part": f"states = [s]\n{LOOP}\nfound = np.array(states[1:50])",
    "without its first": f"states = []\n{LOOP}\nfound = np.array(states[1:])",
    "stacked": f"states = [s]\n{LOOP}\nfound = np.stack(states)",
    "stacked along the last axis": f"states = [s]\n{LOOP}\nfound = np.stack(states, axis=1)",
    "rows": f"states = [s]\n{LOOP}\nfound = np.vstack(states)",
    "columns": f"states = [s]\n{LOOP}\nfound = np.column_stack(states)",
    "an operand": f"states = [s]\n{LOOP}\nfound = np.mean(states, axis=0) + np.max(states)",
    "numbers": f"zs = [z]\n{NUMBERS}\nfound = np.array(zs)",
    "numbers behind integers": f"zs = [0, 1, 2]\n{NUMBERS}\nfound = np.array(zs)",
    "differences of numbers": f"zs = [z]\n{NUMBERS}\nfound = np.diff(zs)",
    "a step that was stored into": f"states = [s]\n{LOOP}\nstates[7][0] = 5.0\nfound = np.array(states)",
}
IN_ORDER = {
    "reversed": f"states = [s]\n{LOOP}\nfound = np.array(states[::-1])",
    "every other one": f"zs = [z]\n{NUMBERS}\nfound = np.array(zs[::2])",
    "one of another class": f"zs = [z]\n{NUMBERS}\nzs[5] = 7\nfound = np.array(zs)",
    "one twice": f"states = [s]\n{LOOP}\nfound = np.array(states + states[3:5])",
}


def _both(notebook, cell):
    notebook.ok(START)
    notebook.ok(cell)
    plain = notebook["found"]
    notebook.ok(START)
    notebook.ok(f"%%tensor\n{cell}")
    found = notebook["found"]
    np.testing.assert_allclose(found.numpy(), plain, rtol=1e-13)
    assert (found.dtype, found.shape) == (plain.dtype, plain.shape)
    return found


@pytest.mark.parametrize("cell", CELLS.values(), ids=list(CELLS))
def test_an_array_of_steps_is_a_few_parts(notebook, cell):
    assert len(topological([_both(notebook, cell).node])) < 80


@pytest.mark.parametrize("cell", IN_ORDER.values(), ids=list(IN_ORDER))
def test_steps_in_another_order_are_those_that_the_list_has(notebook, cell):
    _both(notebook, cell)


@pytest.mark.parametrize(
    ("cell", "of"),
    [
        (f"z0 = z; zs = [z0]\n{NUMBERS.replace('z ', 'z0 ').replace('(z)', '(z0)')}\n(np.array(zs) ** 2).sum()", "z"),
        (f"states = [s]\n{LOOP}\n(np.array(states)[:, 0] ** 2).sum()", "s"),
        (f"states = [s, 3 * s]\n{LOOP}\nnp.sin(np.stack(states)).sum()", "h"),
    ],
)
def test_gradients_through_an_array_of_steps(notebook, cell, of):
    notebook.ok(START)
    start = np.asarray(notebook[of], float)
    notebook.ok(f"%%tensor --grad {of}\n{cell}")
    slope = np.asarray(notebook[f"grad_{of}"].numpy())
    code = cell.rpartition("\n")
    moved = np.zeros_like(start)
    for place in np.ndindex(start.shape):
        ends = []
        for step in (1e-6, -1e-6):
            space = {}
            exec(START, space)
            value = start.copy()
            value[place] += step
            space[of] = value if value.shape else float(value)
            exec(f"{code[0]}\nend = {code[2]}", space)
            ends.append(space["end"])
        moved[place] = (ends[0] - ends[1]) / 2e-6
    np.testing.assert_allclose(slope, moved, rtol=1e-6)


def test_a_step_of_another_shape_is_numpys_error(notebook):
    notebook.ok(START)
    ran = notebook(f"%%tensor\nstates = [np.zeros(3)]\n{LOOP}\nfound = np.array(states)")
    assert "inhomogeneous shape" in str(ran.error)


def test_a_number_is_that_of_its_cells_level(notebook):
    text = "zs = []\nfor i in range(120):\n    zs.append(np.log(1 + q * (i + 1)))"
    notebook.ok("import numpy as np\nq = np.float64(3e-17)")
    notebook.ok(text)
    plain = [float(z) for z in notebook["zs"]]
    notebook.ok(f"%%tensor --math exact\n{text}\nexact = zs\nprint(np.array(zs).sum())")
    exact = notebook["exact"]
    notebook.ok(f"%%tensor\n{text}\nprint(np.array(zs).sum(), max(zs))")
    stable = [float(z) for z in notebook["zs"]]
    assert plain[0] == 0.0 < stable[0]
    assert [float(z.numpy()) for z in exact] == plain
