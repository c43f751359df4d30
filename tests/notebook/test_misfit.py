"""Errors of shapes, drawn: aligned as NumPy aligns them, the axis that does not fit marked, under the operands' names."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from tensormagic.notebook.errors.shape_pictures import found_in, rows, sheet

DRAWN = {
    "broadcasting": (
        "z = X @ w\nz + np.ones(7)",
        ["z           40", "np.ones(7)   7", "            ^^  40 and 7 do not fit"],
    ),
    "fewer axes": ("X + y", ["X  40 ×  3", "y       40", "        ^^  3 and 40 do not fit"]),
    "three operands": (
        "np.where(X > 0, w, y)",
        ["X > 0  40 ×  3", "w            3", "y           40", "            ^^  3 and 40 do not fit"],
    ),
    "a product": ("X @ y", ["X  40 ×  3", "y       40", "        ^^  3 and 40 do not fit"]),
    "a product of matrices": ("X @ X", ["X  40 ×  3", "X       40 × 3", "        ^^  3 and 40 do not fit"]),
    "a method": ("X.T.dot(w)", ["X.T  3 × 40", "w         3", "         ^^  40 and 3 do not fit"]),
    "a store": (
        "a = np.zeros((4, 5))\na[1:3] = np.ones(4)",
        ["np.ones(4)      4", "a[1:3]      2 × 5", "                ^  4 and 5 do not fit"],
    ),
    "an operator with a store": (
        "a = np.zeros((4, 5))\na += w",
        ["a  4 × 5", "w      3", "       ^  5 and 3 do not fit"],
    ),
    "joined": ("np.concatenate([X, X.T])", ["X    40 ×  3", "X.T   3 × 40", "          ^^  3 and 40 do not fit"]),
    "einsum": ("np.einsum('ij,jk->ik', X, X)", ["X  40 ×  3", "X       40 × 3", "        ^^  3 and 40 do not fit"]),
}


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_in_the_traceback(notebook, name):
    text, drawing = DRAWN[name]
    ran = notebook(f"%%tensor\n{text}")
    assert isinstance(ran.error, ValueError)
    lines = ran.out.rstrip().splitlines()
    assert len(lines) <= 12
    drawn = [line for line in lines if not line.startswith("Hint: ")]
    assert [line.removeprefix("    ") for line in drawn[-len(drawing) :]] == drawing


def test_what_numpy_raises_is_drawn_too(notebook):
    ran = notebook("%%tensor --plain\nX + y")
    assert type(ran.error) is ValueError
    assert "    y       40" in ran.out


def test_beside_the_traceback_there_is_a_picture(notebook):
    ran = notebook("%%tensor\nX @ y")
    (shown,) = ran.displays
    assert set(shown) == {"image/svg+xml", "text/html", "text/plain"}
    root = ET.fromstring(shown["image/svg+xml"])
    words = "".join(root.itertext())
    assert "3 and 40 do not fit" in words
    assert "3 and 40 do not fit" in "".join(ET.fromstring(shown["text/html"]).itertext())
    assert "X @ y: 3 and 40 do not fit" in words
    assert "X (40, 3)" in words
    assert "a product sums along the last axis of X and the only axis of y, which must be equally long" in words
    assert "y @ X fits" in words
    assert [e.text for e in root.iter() if e.get("class") == "warn bold"] == ["≠"]
    assert shown["text/plain"] in ran.out
    assert "In[" not in shown["image/svg+xml"]  # it is the same whenever it runs


@pytest.mark.parametrize(
    "cell", ["%%tensor -q\nX @ y", "%%tensor\n1 / 0", "%%tensor\nX.reshape(7, 7)", "%%tensor\nX[99]"]
)
def test_where_there_is_no_picture(notebook, cell):
    ran = notebook(cell)
    assert ran.error is not None
    assert ran.displays == []


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("z = X * y", ["X * y: 3 and 40", "the last axis of X and the only axis of y: compared from the right", "y[:, None]"]),
        ("X @ X", ["X @ X: 3 and 40", "the last axis of X and the first axis of X", "X @ X.T fits"]),
        ("X.T.dot(w)", ["X.T.dot(w): 40 and 3", "the last axis of X.T and the only axis of w", "which must be equally long"]),
        ("for k in range(9):\n    v = X[:, k] + w", ["X[:, k] + w: 40 and 3", "the only axis of X[:, k] and the only axis of w"]),
        ("if y.sum() > 1e9:\n    v = y\nelse:\n    v = X - y", ["X - y: 3 and 40", "y[:, None]"]),
        ("np.concatenate([X, X.T])", ["3 and 40", "the last axis of X and the last axis of X.T: all sizes must be equal"]),
        ("def f(a):\n    return a @ np.eye(2)\nf(X)", ["a @ np.eye(2): 3 and 2", "the last axis of a and the first axis of np.eye(2)"]),
    ],
    ids=["element by element", "matrices", "a method", "in a loop", "in a branch", "joined", "in a function"],
)  # fmt: skip
def test_a_picture_says_which_operation_axes_and_way_out(notebook, cell, said):
    (shown,) = notebook(f"%%tensor\n{cell}").displays
    for form in ("image/svg+xml", "text/html"):
        words = "".join(ET.fromstring(shown[form]).itertext())
        assert [part for part in said if part not in words] == []


def test_a_quiet_cell_still_says_it_in_text(notebook):
    assert "3 and 40 do not fit" in notebook("%%tensor -q\nX @ y").out


def test_an_extent_of_one_is_not_to_blame():
    error = ValueError("operands could not be broadcast together with shapes (40,3) (2,1,1) (5,) ")
    found = found_in(error, ["f(a, b, c)"], {})
    assert rows(found)[:3] == ["    a      40 × 3", "    b  2 ×  1 × 1", "    c           5"]
    root = ET.fromstring(sheet(found).picture("shapes", "shapes"))
    assert len([e for e in root.iter() if e.get("class") == "warn-line thick"]) == 2
    into = found_in(ValueError("could not broadcast input array from shape (3,) into shape (1,)"), ["x[0]"], {})
    assert rows(into)[-1].endswith("3 and 1 do not fit")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a + b", ("a", "b")),
        ("b + a", ("a", "b")),  # the message has them the other way round
        ("a + b + c", ("left", "right")),  # which has another shape than a + b could have
        ("f(a,", ("left", "right")),
        ("", ("left", "right")),
        ("a.T + b", ("a.T", "b")),
    ],
)
def test_operands_are_named_where_their_shapes_agree(text, names):
    space = {"a": np.ones(3), "b": np.ones(4), "c": np.ones(5)}
    error = ValueError("operands could not be broadcast together with shapes (3,) (4,)")
    assert found_in(error, [text], space).names == names


@pytest.mark.parametrize(
    "error",
    [
        ValueError("cannot reshape array of size 3 into shape (2,)"),
        ValueError(""),
        TypeError("operands could not be broadcast together with shapes (3,) (4,)"),
        ValueError("operands could not be broadcast together with shapes (3,) (3,)"),
        ValueError("operands could not be broadcast together with shapes " + "(1,1,1,1,1,1,1,1,2) (3,)"),
    ],
)
def test_other_errors_are_not_drawn(error):
    assert found_in(error, ["a + b"], {}) is None


def test_hostile_names_are_text():
    name = "x" * 100_000
    error = ValueError("operands could not be broadcast together with shapes (3,) (4,)")
    found = found_in(error, [f"f('<script>\u202e', '😀 & \"') + {name}"], {})
    root = ET.fromstring(sheet(found).picture(found.told, "\n".join(rows(found))))
    assert "<script>" in "".join(root.itertext())
    assert max(map(len, rows(found))) < 200


def test_a_notebook_with_such_an_error_compares_equal(notebook, tmp_path):
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("nbval")
    cells = ["%load_ext tensormagic\nimport numpy as np\nX = np.ones((4, 3))", "%%tensor\nX @ X"]
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    made.cells[1].metadata["tags"] = ["raises-exception"]
    notebook["X"] = np.ones((4, 3))
    ran = notebook(cells[1])
    shown = [nbformat.v4.new_output("display_data", data) for data in ran.displays]
    failed = nbformat.v4.new_output("error", ename="ShapeError", evalue=str(ran.error), traceback=[])
    made.cells[1].execution_count, made.cells[1].outputs = 2, [*shown, failed]
    path = tmp_path / "errors.ipynb"
    nbformat.write(made, path)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--nbval",
        "--nbval-current-env",
        "-q",
        "-p",
        "no:cacheprovider",
        str(path),
    ]
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=180, cwd=tmp_path, env=dict(os.environ), check=False
    )
    assert ran.returncode == 0, ran.stdout[-3000:]


def test_what_is_marked_is_what_numpy_refuses():
    shapes = [shape for rank in range(3) for shape in np.ndindex(*[3] * rank)]
    count = 0
    for left in shapes:
        for right in shapes:
            a, b = (tuple(n + 1 for n in shape) for shape in (left, right))
            try:
                np.empty(a) + np.empty(b)
            except ValueError as error:
                found = found_in(error, [""], {})
                wide = max(len(a), len(b))
                padded = [(1,) * (wide - len(shape)) + shape for shape in (a, b)]
                pairs = enumerate(zip(*padded, strict=True))
                assert list(found.clash) == [k for k, (m, n) in pairs if m != n and 1 not in {m, n}]
                count += 1
            else:
                text = f"operands could not be broadcast together with shapes {a} {b}"
                assert found_in(ValueError(text), [""], {}) is None
    assert count > 30
