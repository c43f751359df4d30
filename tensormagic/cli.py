"""The command line: `tensormagic demo`, `lab`, `export`, `doctor`.

It finds the notebooks and starts Jupyter's own programs; of graphs, compilers and widgets it knows nothing.
"""

import argparse
import os
import shlex
import shutil
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

DEFAULT_NOTEBOOK = "quickstart.ipynb"
SOURCE_LINES = 6
OUTPUT_LINES = 30


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name, and return its exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        The command line without the program's name; `sys.argv` by default.
    """
    parser = argparse.ArgumentParser(prog="tensormagic", description="NumPy cells as graphs, in Jupyter.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    demo_parser = commands.add_parser("demo", help="run a notebook without a browser and print what it shows")
    demo_parser.add_argument("notebook", nargs="?", help=f"a notebook file (default: the tutorial {DEFAULT_NOTEBOOK})")
    lab_parser = commands.add_parser("lab", help="open JupyterLab on a copy of the tutorials")
    lab_parser.add_argument("folder", nargs="?", default="tensormagic-notebooks", help="where the copy is kept")
    export_parser = commands.add_parser(
        "export", help="write a notebook as Python functions or as plain NumPy, a saved function as a library for C"
    )
    export_parser.add_argument("notebook", metavar="FILE", help="a notebook file; with --c, a file of Compiled.save")
    export_parser.add_argument(
        "-o",
        "--output",
        metavar="PLACE",
        help="FILE.ipynb or FILE.py (default: Python, on standard output); with --c, a folder (default: this one)",
    )
    export_parser.add_argument(
        "--c", action="store_true", help="a header and a shared library with one function of C, without Python"
    )
    export_parser.add_argument("--name", default="", help="with --c, what the function is called")
    export_parser.add_argument(
        "--numpy",
        action="store_true",
        help="plain NumPy that needs no package, with gradients as code; runs the notebook",
    )
    commands.add_parser("doctor", help="print versions, processor, libraries, GPU, cache and compiler")
    options, rest = parser.parse_known_args(arguments)
    if rest and options.command != "lab":
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        if options.command == "demo":
            return demo(Path(options.notebook) if options.notebook else notebooks_folder() / DEFAULT_NOTEBOOK)
        if options.command == "lab":
            return lab(Path(options.folder), rest)
        if options.command == "export":
            output = Path(options.output) if options.output else None
            if options.c:
                return export_c(Path(options.notebook), output or Path(), options.name)
            return export(Path(options.notebook), output, numpy=options.numpy)
    except ModuleNotFoundError as error:
        print(f"{error.name} is missing: python -m pip install 'tensormagic[lab]'", file=sys.stderr)
        return 2
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    from tensormagic.doctor import report

    return report()


def export(notebook: Path, output: Path | None, *, numpy: bool) -> int:
    """Write a notebook as a program.

    Parameters
    ----------
    notebook
        The notebook, which is not changed.
    output
        A file of Python or a notebook; None for Python on standard output.
    numpy
        Whether the program is plain NumPy, with gradients as generated code. For that the notebook is run.

    Returns
    -------
    int
        0, or 1 for a cell that has no equal outside the notebook.
    """
    from tensormagic.notebook.export import files

    try:
        text = files.export(notebook, output, numpy=numpy)
    except files.ExportError as error:
        print(error, file=sys.stderr)
        return 1
    print(text if output is None else f"{notebook} is exported to {output}")
    return 0


def export_c(saved: Path, folder: Path, name: str) -> int:
    """Write a saved function as a header and a shared library for C.

    Parameters
    ----------
    saved
        A file that ``Compiled.save`` has written.
    folder
        The folder for the files.
    name
        The name of the C function; empty for the function's own name.

    Returns
    -------
    int
        0; 1 for a function that cannot be exported; 2 if there is no C compiler, so that only its input was written.
    """
    import tensormagic as tm

    tm.config.tier = "numpy"  # it is not run here
    try:
        found = tm.load(saved).export_c(folder, name)
    except tm.TensorError as error:
        print(error, file=sys.stderr)
        return 1
    if found.library is None:
        print(f"there is no compiler of C here; the library is built by\n{found.command}", file=sys.stderr)
        return 2
    print(f"{saved} is exported to {found.header} and {found.library}")
    return 0


def notebooks_folder() -> Path:
    """Return the folder of the tutorials: of the checkout, or of the environment that the package is installed in.

    Raises
    ------
    FileNotFoundError
        If neither has them.
    """
    schemes = (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user"))
    installed = [Path(sysconfig.get_path("data", scheme), "share", "tensormagic", "notebooks") for scheme in schemes]
    places = [Path(__file__).resolve().parents[1] / "notebooks", *installed]
    for place in places:
        if (place / DEFAULT_NOTEBOOK).is_file():
            return place
    raise FileNotFoundError(f"the tutorials were not found in {', '.join(map(str, places))}")


def demo(path: Path) -> int:
    """Execute a notebook from its first cell to its last and print each cell, in short, with its output.

    Parameters
    ----------
    path : pathlib.Path
        The notebook. It is not changed, and its cells run in an empty folder that is removed afterwards.

    Returns
    -------
    int
        0, or 1 if a cell failed; the cells after it are not run.
    """
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")  # the kernel of this environment, not one of the user's
    notebook = cast("Any", nbformat).read(path, as_version=4)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        resources = {"metadata": {"path": scratch}}
        client = NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources)
        cast("Any", client.create_kernel_manager()).transport_encryption = "auto"  # or the kernel warns of plain TCP
        with client.setup_kernel():
            for index, cell in enumerate(notebook.cells):
                _print_source(cell)
                try:
                    client.execute_cell(cell, index)
                except CellExecutionError:
                    _print_outputs(cell)
                    print(f"\nA cell of {path} failed.", file=sys.stderr)
                    return 1
                _print_outputs(cell)
    print(f"\n{path.name} ran in {time.perf_counter() - start:.0f} s.")
    print(f"Open the tutorials in JupyterLab with: {_command()} lab")
    return 0


def lab(folder: Path, arguments: Sequence[str]) -> int:
    """Become JupyterLab, on a copy of the tutorials and with the TensorMagic kernel installed.

    Parameters
    ----------
    folder : pathlib.Path
        The folder for the copy. Files that exist there are kept.
    arguments : sequence of str
        Passed on to JupyterLab.
    """
    import jupyterlab

    from tensormagic_kernel.install import install

    for name in copy_notebooks(notebooks_folder(), folder):
        print(f"kept your own {folder / name}")
    try:
        kernel = install(prefix=sys.prefix)
    except PermissionError:  # an environment that somebody else made
        kernel = install(user=True)
    print(f"TensorMagic kernel: {kernel}")
    command = [sys.executable, "-m", jupyterlab.__name__, str(folder / DEFAULT_NOTEBOOK), *arguments]
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # in a container one often is root, and JupyterLab asks for this
        command.append("--allow-root")
    sys.stdout.flush()
    os.execv(command[0], command)  # noqa: S606  (no shell is wanted)


def copy_notebooks(source: Path, target: Path) -> list[str]:
    """Copy what is missing, overwrite nothing, and return the names of the notebooks that differ from the originals."""
    kept: list[str] = []
    for original in sorted(path for path in source.rglob("*") if path.is_file() and not _hidden(path, source)):
        name = original.relative_to(source)
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.exists():
            shutil.copyfile(original, copy)
        elif copy.read_bytes() != original.read_bytes():
            kept.append(str(name))
    return kept


def _hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith((".", "__")) for part in path.relative_to(folder).parts)


def _print_source(cell: Any) -> None:
    lines = str(cell.source).splitlines()
    if cell.cell_type == "markdown":
        for line in lines:
            if line.startswith("#"):
                print(f"\n{line}")
    elif cell.cell_type == "code" and lines:
        print()
        for prompt, line in zip(["In:"] + ["   "] * len(lines), _shortened(lines, SOURCE_LINES), strict=False):
            print(f"{prompt} {line}")


def _print_outputs(cell: Any) -> None:
    for output in cell.get("outputs", ()):
        for line in _shortened(_output_text(output).splitlines(), OUTPUT_LINES):
            print(f"     {line}")


def _output_text(output: Any) -> str:
    if output.output_type == "stream":
        return str(output.text)
    if output.output_type == "error":
        return "\n".join(output.traceback)
    return str(output.data.get("text/plain", ""))


def _shortened(lines: Sequence[str], limit: int) -> Iterator[str]:
    """Yield the lines, or the first of them and how many are left out."""
    if len(lines) <= limit + 1:  # the line that says so takes the place of one
        yield from lines
    else:
        yield from lines[:limit]
        yield f"… {len(lines) - limit} more lines"


def _command() -> str:
    """Return how this program is called from here: from an environment that is not activated, by its path."""
    script = Path(sys.executable).with_name("tensormagic")
    if not script.exists():
        return "python -m tensormagic"
    if shutil.which("tensormagic") == str(script):
        return "tensormagic"
    if script.is_relative_to(Path.cwd()):
        script = script.relative_to(Path.cwd())
    return shlex.quote(str(script))
