"""Installs the kernelspec, so that JupyterLab offers the kernel. Knows nothing of the kernel but its module name."""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager

KERNEL_NAME = "tensormagic"


def install(*, user: bool = False, prefix: str | None = None) -> Path:
    """Write the kernelspec, bound to the interpreter that runs this.

    The spec inside the wheel says `python`, which Jupyter takes for the interpreter it runs on itself;
    this one also works where Jupyter runs in another environment.

    Parameters
    ----------
    user : bool
        Install for the current user, outside any environment.
    prefix : str, optional
        Install under `PREFIX/share/jupyter/kernels`. Without it and without `user`, system-wide.

    Returns
    -------
    pathlib.Path
        The folder of the installed kernelspec.
    """
    with as_file(files("tensormagic_kernel") / "kernelspec") as source, tempfile.TemporaryDirectory() as scratch:
        spec_folder = Path(scratch, KERNEL_NAME)
        shutil.copytree(source, spec_folder)
        spec_file = spec_folder / "kernel.json"
        spec = json.loads(spec_file.read_text(encoding="utf-8"))
        spec["argv"][0] = sys.executable
        spec_file.write_text(json.dumps(spec, indent=1) + "\n", encoding="utf-8")
        target = KernelSpecManager().install_kernel_spec(str(spec_folder), KERNEL_NAME, user=user, prefix=prefix)
    return Path(target)


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m tensormagic_kernel install [--user | --sys-prefix | --prefix PATH]`."""
    parser = argparse.ArgumentParser(
        prog="python -m tensormagic_kernel install", description="Install the TensorMagic kernel for Jupyter."
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--user", action="store_true", help="for the current user")
    where.add_argument("--sys-prefix", action="store_true", help="in the environment of this Python (the default)")
    where.add_argument("--prefix", help="under PREFIX/share/jupyter/kernels")
    options = parser.parse_args(arguments)
    try:
        target = install(user=options.user, prefix=None if options.user else options.prefix or sys.prefix)
    except PermissionError as error:
        print(f"{error.filename} cannot be written: try --user or --prefix", file=sys.stderr)
        return 1
    print(f"Installed the TensorMagic kernel in {target}")
    return 0
