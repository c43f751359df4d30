"""The command line, as a user calls it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tensormagic.doctor
import tensormagic_command
import tensormagic_kernel.install
from tensormagic import cli, config

ROOT = Path(__file__).parents[1]


@pytest.fixture
def write_notebook(tmp_path: Path):
    def write(*cells: str) -> Path:
        import nbformat

        made = [
            nbformat.v4.new_markdown_cell(cell) if cell.startswith("#") else nbformat.v4.new_code_cell(cell)
            for cell in cells
        ]
        path = tmp_path / "a notebook.ipynb"
        nbformat.write(nbformat.v4.new_notebook(cells=made), path)
        return path

    return write


def test_demo_prints_sources_and_outputs(write_notebook, capsys):
    path = write_notebook(
        "# A title\nand a paragraph",
        "print('streamed')\n6 * 7",
        "from IPython.display import HTML\nHTML('<b>rich</b>')",
        "\n".join(f"a{line} = {line}" for line in range(20)),
        "open('left.txt', 'w').close()",
    )
    before = path.read_bytes()
    assert cli.main(["demo", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "# A title" in shown
    assert "In: print('streamed')\n    6 * 7\n     streamed\n     42\n" in shown
    assert "<IPython.core.display.HTML object>" in shown
    assert "a5 = 5" in shown
    assert "… 14 more lines" in shown
    assert "a6 = 6" not in shown
    assert shown.rstrip().endswith("tensormagic lab")
    assert path.read_bytes() == before
    assert not Path("left.txt").exists()


def test_demo_of_a_failing_notebook_fails(write_notebook, capsys):
    assert cli.main(["demo", str(write_notebook("1 / 0", "print('not reached')"))]) == 1
    out, err = capsys.readouterr()
    assert "ZeroDivisionError" in out
    assert "not reached" not in out
    assert "failed" in err


def test_demo_of_a_missing_notebook(capsys):
    assert cli.main(["demo", "missing.ipynb"]) == 2
    assert "missing.ipynb" in capsys.readouterr().err


def test_what_is_missing_is_named(monkeypatch, capsys, write_notebook):
    monkeypatch.setitem(sys.modules, "nbclient", None)
    assert cli.main(["demo", str(write_notebook("1"))]) == 2
    assert "tensormagic[lab]" in capsys.readouterr().err


def test_the_tutorials_of_the_checkout_are_found():
    assert cli.notebooks_folder() == ROOT / "notebooks"


def test_the_tutorials_of_an_environment_are_found(monkeypatch, tmp_path):
    monkeypatch.setattr(cli, "__file__", str(tmp_path / "site-packages/tensormagic/cli.py"))
    shared = tmp_path / "share/tensormagic/notebooks"
    monkeypatch.setattr(cli.sysconfig, "get_path", lambda name, scheme: str(tmp_path))
    with pytest.raises(FileNotFoundError, match="tutorials"):
        cli.notebooks_folder()
    shared.mkdir(parents=True)
    (shared / "quickstart.ipynb").touch()
    assert cli.notebooks_folder() == shared


def test_copies_are_never_overwritten(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "course/.ipynb_checkpoints").mkdir(parents=True)
    for name in ("a.ipynb", "course/b.ipynb", "course/.ipynb_checkpoints/b.ipynb"):
        (source / name).write_text("original")
    assert cli.copy_notebooks(source, target) == []
    assert sorted(path.relative_to(target).as_posix() for path in target.rglob("*.ipynb")) == [
        "a.ipynb",
        "course/b.ipynb",
    ]
    (target / "a.ipynb").write_text("mine")
    (target / "course/b.ipynb").unlink()
    assert cli.copy_notebooks(source, target) == ["a.ipynb"]
    assert (target / "a.ipynb").read_text() == "mine"
    assert (target / "course/b.ipynb").read_text() == "original"


def test_lab_becomes_jupyterlab(monkeypatch, tmp_path, capsys):
    started = []
    monkeypatch.setattr(os, "execv", lambda program, command: started.append(command))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    folder = tmp_path / "my notebooks"
    cli.main(["lab", str(folder), "--no-browser", "--port=9999"])
    (command,) = started
    assert command[:3] == [sys.executable, "-m", "jupyterlab"]
    assert command[3:6] == [str(folder / "quickstart.ipynb"), "--no-browser", "--port=9999"]
    assert (folder / "quickstart.ipynb").is_file()
    assert (tmp_path / "prefix/share/jupyter/kernels/tensormagic/kernel.json").is_file()
    assert "kernels/tensormagic" in capsys.readouterr().out


def test_lab_in_an_environment_of_somebody_else(monkeypatch, tmp_path, capsys):
    asked = []

    def install(**where):
        asked.append(where)
        if "prefix" in where:
            raise PermissionError
        return tmp_path / "kernels"

    monkeypatch.setattr(tensormagic_kernel.install, "install", install)
    monkeypatch.setattr(os, "execv", lambda program, command: None)
    cli.main(["lab", str(tmp_path / "notebooks")])
    assert asked == [{"prefix": sys.prefix}, {"user": True}]
    assert f"kernel: {tmp_path / 'kernels'}" in capsys.readouterr().out


def test_doctor_reports(capsys):
    assert cli.main(["doctor"]) == 0
    lines = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert lines["python"].startswith(".".join(map(str, sys.version_info[:3])))
    assert lines["numpy"][0].isdigit()
    assert lines["threads"].startswith(f"{os.cpu_count()} cores")
    assert f"large loops on {config.threads}" in lines["threads"]
    assert "works" in lines["compiler"]
    assert lines["all"] == "is well: cells can be compiled"
    assert os.environ["TENSORMAGIC_CACHE_FOLDER"] in lines["cache"]
    assert {"llvmlite", "scipy", "ipython", "jupyterlab", "processor", "blas", "gpu"} <= lines.keys()


def test_doctor_says_what_is_broken(monkeypatch, capsys):
    monkeypatch.setattr(tensormagic.doctor, "COMPILE", "import no_such_compiler")
    assert cli.main(["doctor"]) == 1
    assert "does not work: ModuleNotFoundError: No module named 'no_such_compiler'" in (out := capsys.readouterr().out)
    assert out.splitlines()[-1] == "something is wrong: see the lines above"


def test_doctor_reports_where_the_package_cannot_be_imported(tmp_path):
    (tmp_path / "scipy").mkdir()
    (tmp_path / "scipy" / "__init__.py").write_text("raise ImportError('a broken SciPy')")
    code = "import sys, tensormagic_command; tensormagic_command.main(); print('tensormagic.capture' in sys.modules)"
    path = os.pathsep.join([str(tmp_path), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-c", code, "doctor"]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    *lines, verdict, imported = run.stdout.splitlines()
    assert imported == "False"
    assert lines[-1].startswith("compiler     works")
    assert verdict.startswith("all is well")
    assert f"large loops on {config.threads}" in run.stdout


def test_the_other_commands_go_to_the_command_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tensormagic", "--help"])
    with pytest.raises(SystemExit, match="0"):
        tensormagic_command.main()
    assert "export" in capsys.readouterr().out


def test_doctor_warns_of_a_cache_that_others_can_write(monkeypatch, capsys, tmp_path):
    tmp_path.chmod(0o777)
    monkeypatch.setattr(tensormagic.config, "cache_folder", tmp_path)
    assert cli.main(["doctor"]) == 1
    assert "NOT SAFE" in capsys.readouterr().out


def test_an_unknown_option_is_an_error(capsys):
    with pytest.raises(SystemExit, match="2"):
        cli.main(["doctor", "--fast"])
    assert "--fast" in capsys.readouterr().err


def test_as_a_module():
    run = subprocess.run([sys.executable, "-m", "tensormagic", "--help"], capture_output=True, text=True, check=True)
    assert "doctor" in run.stdout
