"""What has no equal outside a notebook is refused by an error that names the cell; what is left out is said."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tensormagic import cli
from tensormagic.notebook.export.files import ExportError, export
from tests.notebook.export.conftest import write_notebook
from tests.notebook.export.programs import START


def exported(tmp_path: Path, *cells: str, suffix: str = ".py", numpy: bool = False) -> str:
    return export(write_notebook(tmp_path / "from.ipynb", [START, *cells]), tmp_path / f"to{suffix}", numpy=numpy)


@pytest.mark.parametrize(
    ("cells", "numpy", "message"),
    [
        (["%%tensor --gard x\nx"], False, "code cell 2 (%%tensor --gard x): .*--grad"),
        (["x = np.ones(2)", "%%tensor --grad h\nh = x * 2\nh.sum()"], False, "code cell 3 .* assigns"),
        (
            ["x = np.ones(2)", "%%tensor\nz = x * 2", "%%tensor --grad x\n(z * x).sum()"],
            False,
            "code cell 4 .*z, which the cell reads, was computed from x",
        ),
        (["x = np.ones(2)", "%%tensor\nz = x * 2", "z.code('cpu')"], False, "code cell 4 .*needs a lazy value"),
        (["x = np.ones(2)", "%%tensor --grad x\ny = x.sum()\nz = y * 2\ndel y"], False, "code cell 3 .*deletes"),
        (["files = !ls"], False, "code cell 2 .*no equivalent in a Python file"),
        (["%%bash\nls"], False, "code cell 2 .*bash"),
        (["Out[1]"], False, "code cell 2 .*Out is the notebook's own"),
        (["%%tensor\nx = = 2"], False, "code cell 2 .*line 1"),
        (["1 / 0"], True, "code cell 2 .*ZeroDivisionError"),
        (["value, pull = tm.vjp(np.sin, 1.0)"], True, "code cell 2 .*tm.vjp has no equivalent in plain NumPy"),
        (
            ["rng, x = np.random.default_rng(0), 2.0", "%%tensor --grad x\nrng.normal() * x"],
            True,
            "code cell 3 .*gradient is not exported",
        ),
    ],
)  # fmt: skip
def test_it_is_refused_by_name(tmp_path: Path, cells: list[str], numpy: bool, message: str) -> None:
    with pytest.raises(ExportError, match=message.replace("(", r"\(").replace(")", r"\)")):
        exported(tmp_path, *cells, numpy=numpy)
    assert not (tmp_path / "to.py").exists()


def test_a_notebook_keeps_its_lines_and_its_text(tmp_path: Path) -> None:
    import nbformat

    source = write_notebook(tmp_path / "from.ipynb", [START, "files = !ls\n%timeit 1", "%%bash\nls", "%tensor_rules"])
    read = nbformat.read(source, as_version=4)
    read.cells.insert(1, nbformat.v4.new_markdown_cell("# A title"))
    read.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    read.metadata["widgets"] = {"state": {}}
    nbformat.write(read, source)
    export(source, tmp_path / "to.ipynb")
    made = nbformat.read(tmp_path / "to.ipynb", as_version=4)
    nbformat.validate(made)
    assert made.metadata.kernelspec.name == "python3"
    assert "widgets" not in made.metadata
    texts = [cell.source for cell in made.cells]
    assert texts[1:] == ["# A title", "files = !ls\n%timeit 1", "%%bash\nls", "# %tensor_rules"]
    assert "%load_ext" not in texts[0]


def test_a_live_view_becomes_a_call_or_a_comment(tmp_path: Path) -> None:
    cells = ["scale = 2.0", "%%tensor --live a=0:10 --show none\nloss = np.sin(a) * scale"]
    text = exported(tmp_path, *cells, suffix=".ipynb")
    assert "tm.live(shown_3, a=(0, 10))" in text
    plain = exported(tmp_path, *cells, numpy=True)
    assert "# --live is left out" in plain
    space: dict[str, object] = {}
    exec(plain, space)
    assert space["loss"] == pytest.approx(-1.917848549, rel=1e-9)


def test_types_that_code_was_not_generated_for_are_refused(tmp_path: Path) -> None:
    text = exported(tmp_path, "def f(x):\n    return np.sum(x**3)\n\ng = tm.grad(f)\nslope = g(np.ones(3))", numpy=True)
    assert "x: float64[:]" in text
    space: dict[str, object] = {}
    exec(text, space)
    assert space["slope"].tolist() == [3.0, 3.0, 3.0]
    assert space["g"](2 * __import__("numpy").ones(5)).tolist() == [12.0] * 5
    with pytest.raises(TypeError, match="not generated for the types"):
        space["g"](1.0)


def test_the_program_reads_as_one_would_write_it(tmp_path: Path) -> None:
    text = exported(
        tmp_path,
        "X, w = np.eye(2), np.ones(2)",
        "%%tensor objective --grad w\n# the loss\nz = X @ w  # scores\nnp.sum(z ** 2)",
    )
    assert "(value_3, (z,)), grad_w = tm.value_and_grad(objective_cell, 'w', has_aux=True)(X, w)" in text
    assert "    # the loss\n    z = X @ w  # scores\n    return np.sum(z ** 2), (z,)\n" in text
    assert "@tm.tensor(missing=globals())\ndef objective(X, w):\n    return objective_cell(X, w)[0]\n" in text
    ast.parse(text)


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_notebook(tmp_path / "from.ipynb", [START, "x = 2.0", "%%tensor --grad x\nx ** 3"])
    assert cli.main(["export", str(source)]) == 0
    assert "tm.value_and_grad(cell_3, 'x')(x)" in capsys.readouterr().out
    assert cli.main(["export", str(source), "-o", str(tmp_path / "to.py"), "--numpy"]) == 0
    assert "exported to" in capsys.readouterr().out
    assert "def cell_3_gradient(x):" in (tmp_path / "to.py").read_text(encoding="utf-8")
    before = source.read_bytes()
    for wrong in (["-o", str(source)], ["-o", str(tmp_path / "to.txt")]):
        assert cli.main(["export", str(source), *wrong]) == 1
    assert source.read_bytes() == before
    write_notebook(source, ["x = !ls"])
    assert cli.main(["export", str(source)]) == 1
    assert "code cell 1 (x = !ls)" in capsys.readouterr().err
    assert cli.main(["export", "missing.ipynb"]) == 2
