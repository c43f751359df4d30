"""What stores through the memory of arrays: NumPy's iterators, drawn, and matrices of parts, in cells that store beside them."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.notebook.conftest import Notebook
from tests.notebook.test_sessions import differences

START = "import numpy as np\nx = np.linspace(0.5, 3.0, 6)\nA = np.arange(12.0).reshape(3, 4)\nk = np.arange(6)\nw = 0.5"
OPERANDS = ["x", "A", "A.T", "A[1:]", "A[:, ::2]", "x[::-1]", "v", "B", "k"]
STORES = ["e[...] = 2 * e", "e[...] += w", "e[...] = e - x[0]", "e[...] = np.sqrt(e + 4)", "e *= 2"]
BEFORE = [
    "x[0] = 5.0",
    "A[1] = 0.0",
    "A += 1",
    "B = A * 2",
    "B = np.ones((2, 3)) * w",
    "v = x[1:4]",
    "v = A[0]",
    "A[0], A[1] = A[1].copy(), A[0].copy()",
]
AFTER = ["x[1] = 9.0", "A *= w", "y = A.sum(axis=0) + w", "B[0] = 1", "v += 1", "z = x * 2\nz.mean()"]
READING = [
    "print(*[float(e) for e in np.nditer({a})])",
    "print(*[float(e) for e in np.nditer({a}, order='F')])",
    "total = sum(float(e) * w for e in np.nditer({a}.T.copy(order='C')))",
    "it = np.nditer({a}, flags=['multi_index'])\nplaces = [it.multi_index for e in it]\ndel it",
    "it = np.nditer([{a}, None])\nfor e, f in it: f[...] = e * e\nfound = it.operands[1]\ndel it, e, f",
    "print([(float(e), float(f)) for e, f in np.nditer([{a}, w])])",
]


def program(seed: int) -> list[tuple[str | None, str]]:
    """Cells that iterate over arrays and their parts, store through what they get, and store beside that."""
    draw = random.Random(seed)
    cells: list[tuple[str | None, str]] = [(None, START), ("", "v = x[2:]\nB = A + 0.5")]
    for _ in range(draw.randint(3, 6)):
        lines = draw.sample(BEFORE, draw.randint(0, 2))
        for _ in range(draw.randint(1, 2)):
            operand = draw.choice(OPERANDS)
            if draw.random() < 0.4:
                lines.append(draw.choice(READING).replace("{a}", operand))
                continue
            flags = draw.choice(["", ", flags=['external_loop']", ", flags=['buffered'], casting='unsafe'"])
            way = draw.choice(["['readwrite']", "[['readwrite']]"])
            head = f"np.nditer({operand}{flags}, op_flags={way})"
            store = draw.choice(STORES)
            lines.append(
                f"with {head} as it:\n    for e in it: {store}\ndel it, e"
                if draw.random() < 0.5
                else f"for e in {head}: {store}\ndel e"
            )
        lines += draw.sample(AFTER, draw.randint(0, 2))
        cells.append((draw.choice(["", "", None]), "\n".join(lines)))
    return [*cells, (None, "x[0] = 77.0\nA[0] = 55.0"), (None, "v[0] = 3.0\nB[0] = 2.0\nx, A")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(40))
def test_iterators(notebook: Notebook, seed: int) -> None:
    assert differences(notebook, program(seed)) == []


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("part", ["A", "A[1:]", "A[:, :3]", "A.T", "A[::2, 1:]"])
@pytest.mark.parametrize("before", ["pass", "A[1, 1] = 9.0", "A += 1"])
def test_matrices_of_parts(notebook: Notebook, part: str, before: str) -> None:
    cells = [
        (None, START),
        ("", f"{before}\nm = np.asmatrix({part})\nm[0, 1] = -1\nA[1, 1] += 2\nm += 1\nA, m"),
        ("", "m[1, 1] = 7\nA.sum()"),
    ]
    assert differences(notebook, cells) == []


def test_a_cell_that_fails_has_stored_nothing_through_an_iterator(notebook: Notebook) -> None:
    notebook.ok(START)
    ran = notebook("%%tensor\nx[1] = 4\nfor e in np.nditer(x, op_flags=['readwrite']): e[...] = 0\nA[0] = x[0]\n1 / 0")
    assert isinstance(ran.error, ZeroDivisionError)
    np.testing.assert_array_equal(notebook["x"], np.linspace(0.5, 3.0, 6))
    np.testing.assert_array_equal(notebook["A"], np.arange(12.0).reshape(3, 4))
