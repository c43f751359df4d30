"""The cell's lines with their operations, costs, kernels and code; yellow where NumPy runs them. Without a script."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

TEXT = """z = X @ w + b
# & nothing
u = np.linalg.solve(X.T @ X + np.eye(3), w)
for k in range(20):
    u = u - 0.1 * np.sin(u)
np.sum(np.exp(z)) + u.sum()"""


def annotated(notebook, text=TEXT, options=""):
    data = notebook.ok(f"%%tensor -a --show none {options}\n{text}").data
    return data["text/plain"].splitlines()[1:], ET.fromstring(f"<root>{data['text/html']}</root>"), data


def row_of(rows, part):
    return next(row for row in rows if part in row)


def details(page, part):
    """The element that a line opens."""
    return next(e for e in page.iter("details") if part in "".join(e.find("summary").itertext()))


def test_lines_with_their_operations_and_where_they_run(notebook):
    rows, _, _ = annotated(notebook)
    assert re.search(r"@, \+ +280 +kernel 1$", row_of(rows, "z = X @ w + b"))  # 2 * 40 * 3 and 40
    assert row_of(rows, "# & nothing").rstrip().endswith("# & nothing")
    flops = re.search(r"sin, ×, − +([\d.]+) k ", row_of(rows, "u - 0.1"))
    assert float(flops[1]) * 1000 > 20 * 3 * 10  # three numbers in 20 iterations, and a sine is many
    assert re.search(r"loop × 20", row_of(rows, "for k in"))
    solve = row_of(rows, "np.linalg.solve")
    assert solve.startswith("*")
    assert solve.endswith("NumPy")
    assert [row.startswith("*") for row in rows].count(True) == 1


def test_a_line_opens_to_its_code(notebook):
    _, page, data = annotated(notebook)
    assert "<script" not in data["text/html"]
    assert not [e for e in page.iter() if any(name.startswith("on") for name in e.attrib)]
    made = details(page, "X @ w")
    code = "".join(made.find("div").itertext())
    assert "def kernel(table):" in code
    marked = ["".join(e.itertext()) for e in made.iter("mark")]
    assert any("contract" in line or "add" in line for line in marked)
    assert not any("exp(" in line for line in marked)
    assert any("exp(" in line for line in ("".join(e.itertext()) for e in details(page, "np.exp(z)").iter("mark")))
    assert [e.tag for e in page.iter("details")] == ["details"] * 5  # the comment has nothing to open
    assert "float64[3, 3], float64[3, 1]) -> float64[3, 1]" in "".join(details(page, "solve").itertext())


def test_yellow_is_said_and_not_only_shown(notebook):
    _, page, data = annotated(notebook)
    yellow = [e for e in page.iter("details") if "yellow" in e.get("class")]
    assert len(yellow) == 1
    assert "NumPy" in "".join(yellow[0].find("summary").itertext())
    picture = ET.fromstring(data["image/svg+xml"])
    assert "NumPy runs a part of it" in "".join(picture.itertext())
    assert len([e for e in picture.iter() if e.get("class") == "yellow"]) == 1


def test_a_loop_that_python_iterations(notebook):
    notebook["A"] = np.eye(3)
    rows, page, _ = annotated(notebook, "v = w\nfor k in range(5):\n    v = np.exp(-np.linalg.solve(A, v))\nv.sum()")
    row = row_of(rows, "np.linalg.solve")
    assert row.startswith("*")
    assert "kernel" in row
    assert "NumPy" in row
    assert "exp(" in "".join(details(page, "np.linalg.solve").itertext())


def test_a_while_is_at_least_so_many(notebook):
    rows, _, _ = annotated(notebook, "v = w * 1.0\nwhile v.sum() > 1:\n    v = np.sin(v) / 2\nv.sum()")
    assert "≥ " in row_of(rows, "np.sin(v)")
    assert row_of(rows, "np.sin(v)").split()[0] == "4"


def test_gradients_are_counted_with_their_lines(notebook):
    alone, with_gradient = (
        annotated(notebook, "z = X @ w\nnp.sum(z ** 2)", options)[0] for options in ("", "--grad w")
    )
    assert "240 " in row_of(alone, "X @ w")
    assert "480 " in row_of(with_gradient, "X @ w")  # X.T @ ... is as much again


def test_hostile_lines_are_text(notebook):
    rows, page, _ = annotated(notebook, 's = "<script>&\\u202e😀' + "x" * 3000 + '"\nnp.sum(w)')
    assert not list(page.iter("script"))
    assert any("<script>" in "".join(e.itertext()) for e in page.iter("code"))
    assert "np.sum(w)" in row_of(rows, "np.sum")


def test_of_a_long_kernel_a_line_shows_its_part(notebook):
    text = "v = w\n" + "\n".join(f"v = np.sin(v) + {k}.5" for k in range(30)) + "\nv.sum()"
    _, page, data = annotated(notebook, text)
    made = details(page, "np.sin(v) + 7.5")
    code = "".join(made.find("div").itertext())
    assert "⋮" in code
    assert "for i in range(start, stop):" in code  # around the statements
    assert code.count("sin(") == len([e for e in made.iter("mark") if "sin(" in "".join(e.itertext())]) == 1
    assert len(data["text/html"]) < 60_000


def test_a_page_without_a_kernel_has_it_all(notebook):
    nbformat, nbconvert = pytest.importorskip("nbformat"), pytest.importorskip("nbconvert")
    _, _, data = annotated(notebook)
    cell = nbformat.v4.new_code_cell("…", outputs=[nbformat.v4.new_output("execute_result", data)])
    page, _ = nbconvert.HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=[cell]))
    assert page.count('<details class="') == 5
    assert "def kernel(table):" in page


def test_a_colour_is_explained_where_a_line_has_it(notebook):
    data = notebook.ok("%%tensor -a\nnp.sum(w * 2)").displays[0]
    assert "yellow" not in data["text/plain"].splitlines()[0]
    texts = [e for e in ET.fromstring(data["image/svg+xml"]).iter() if e.tag.endswith("text")]
    assert "yellow" not in "".join(part for text in texts for part in text.itertext())


# lines that rules have left nothing of, and code that an earlier cell has printed ----------------------------------------------


@pytest.mark.parametrize(
    ("cell", "gone"),
    [
        ("a = np.exp(x)\nb = np.log(a)\nc = b * 2\nc", {2: "merged into line 4", 3: "merged into line 4"}),
        ("q = 1 - x\n\n# a comment\nr = np.log(q).sum()\nr", {2: "merged into line 5"}),
        ("s = np.exp(x)\nt = 1 + s\nu = np.log(t).sum()\nu", {2: "merged into line 4", 3: "merged into line 4"}),
        ("s = x\nfor k in range(9):\n    d = -s\n    s = -d + 1.5\ns", {4: "merged into line 5"}),
        ("n = len(x)\nm = x * 2\nm", {}),
    ],
)
def test_lines_that_rules_have_merged_into_others_say_so(notebook, cell, gone):
    notebook.ok("x = np.linspace(0.1, 0.5, 20)")
    data = notebook.ok(f"%%tensor -a --show none\n{cell}").displays[0]
    rows = [re.match(r"[* ] *(\d+)(.*)", row) for row in data["text/plain"].splitlines()]
    told = {int(row[1]): row[2] for row in rows if row}
    said = {number: re.search(r"merged into line \d+|left out: .*", row) for number, row in told.items()}
    assert {number: found[0] for number, found in said.items() if found} == gone
    for words in gone.values():
        assert words in data["text/html"]
        assert words in data["image/svg+xml"]


def test_code_names_lines_of_the_cell_that_is_shown(notebook):
    notebook.ok("x = np.linspace(0.1, 0.5, 20)")
    cell = "y = np.sin(x) * 3\nz = y.sum()\nz"
    notebook.ok(f"%%tensor --show code\n\n\n{cell}")
    text = notebook.ok(f"%%tensor --show code\n{cell}").data["text/plain"]
    assert {int(line) for line in re.findall(r"# line (\d+)$", text, re.MULTILINE)} == {2, 3}
    assert "# In[" not in text.partition("rewritten graph")[0]


def test_a_line_that_names_a_value_alone_has_become_nothing(notebook):
    text = "%%tensor -a --show none --grad w,b\nz = X @ w + b\nloss = np.mean(np.log(1 + np.exp(-y * z)))\nloss"
    rows = notebook.ok(text).displays[0]["text/plain"].splitlines()
    assert [row.strip() for row in rows if row.lstrip().startswith("4 ")] == ["4 loss"]
    assert "form" not in "\n".join(rows)


def test_operations_stand_at_the_lines_of_this_cell_where_an_earlier_one_is_equal(notebook):
    """The earlier cell reads at line 3 what line 2 has computed, and was called since."""
    cell = "p = 2 * w[0] + b\nloss = ((y - p) ** 2).sum() / 2\nloss"
    notebook.ok(f"%%tensor -q fit --grad b\n{cell}")
    notebook.ok("step = tm.value_and_grad(fit, 'b')\nfor k in range(3):\n    b -= 0.1 * step(b=b)[1]")
    rows = (
        notebook.ok(f"%%tensor -a --show none\n{cell.replace('.sum() / 2', '.mean()')}")
        .displays[0]["text/plain"]
        .splitlines()
    )
    assert "−" not in next(row for row in rows if "p = 2" in row)
    assert "−" in next(row for row in rows if "loss =" in row)


def test_several_equal_operations_are_counted_behind_their_name(notebook):
    rows, _, _ = annotated(notebook, "np.sum(w * X[0] * X[1] * y[:3])")
    assert "× (3), sum" in row_of(rows, "np.sum")


@pytest.mark.parametrize("options", ["", "--grad w"])
def test_each_number_of_a_line_has_its_heads_name_for_narrow_pages(notebook, options):
    _, page, data = annotated(notebook, options=options)
    for row in page.iter("details"):
        told = ["".join(e.itertext()) for e in row.find("summary") if "told" in e.get("class", "")]
        assert [text.partition(": ")[0] for text in told] == ["becomes", "flops", "runs in"]
        assert all(text.partition(": ")[2] for text in told)
    narrow = data["text/html"].partition("@container (max-width:700px){")[2].partition("\n}")[0]
    assert ".told .of{display:inline}" in narrow
