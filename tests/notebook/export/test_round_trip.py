"""What a notebook binds, its exported program binds too, in a Python of its own."""

# tests named elsewhere

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tensormagic.notebook.export.files import export
from tests.notebook.export.conftest import assert_same, run_programs, write_notebook
from tests.notebook.export.programs import HARD

SHORTER = {"1_000_000": "10_000", "range(120)": "range(12)", "size, iterations = 30, 400": "size, iterations = 12, 40"}
RESIDUES = {"scipy_agrees", "newton_agrees"}  # differences of results that agree: what is left is rounding
# the course and the notebook of GPUs ask values for their graphs and code, which an exported cell does not give
NOTEBOOKS = [p for p in sorted(Path(__file__).parents[3].glob("notebooks/*.ipynb")) if p.stem != "on_a_gpu"]


@pytest.mark.share(2)
@pytest.mark.parametrize("numpy", [False, True], ids=["functions", "numpy"])
def test_hard_cells_bind_the_same(executed, tmp_path: Path, numpy: bool) -> None:
    paths: list[Path] = []
    for k, cells in enumerate(HARD.values()):
        target = tmp_path / f"program{k}.py"
        export(write_notebook(tmp_path / f"notebook{k}.ipynb", cells), target, numpy=numpy)
        paths.append(target)
    found, imported = run_programs(paths, tmp_path)
    assert imported is not numpy
    for (title, cells), bound in zip(HARD.items(), found, strict=True):
        wanted = executed(cells)
        assert wanted, title
        for name, value in wanted.items():
            assert name in bound, f"{title}: {name}"
            assert_same(f"{title}: {name}", value, bound[name])


@pytest.mark.share(2)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebooks_bind_the_same(executed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: Path) -> None:
    import nbformat

    monkeypatch.setenv("MPLBACKEND", "agg")
    text = path.read_text(encoding="utf-8")
    for long, short in SHORTER.items():
        text = text.replace(long, short)
    notebook = tmp_path / path.name
    notebook.write_text(text, encoding="utf-8")
    export(notebook, tmp_path / "functions.py")
    export(notebook, tmp_path / "plain.py", numpy=True)
    cells = [cell.source for cell in nbformat.reads(text, as_version=4).cells if cell.cell_type == "code"]
    wanted = executed([cell.replace("%%tensor -t", "%%tensor") for cell in cells])
    assert len(wanted) > 20
    (first, second), _ = run_programs([tmp_path / "functions.py", tmp_path / "plain.py"], tmp_path)
    for name in wanted.keys() - RESIDUES:
        assert_same(name, wanted[name], first[name])
        assert_same(name, wanted[name], second[name])
    plain = ast.parse((tmp_path / "plain.py").read_text(encoding="utf-8"))
    assert not {n.id for n in ast.walk(plain) if isinstance(n, ast.Name)} & {"tm", "tensormagic"}
    assert "tensormagic" not in {a.name for n in ast.walk(plain) if isinstance(n, ast.Import) for a in n.names}
