"""The kernel, installed as a user installs it and found where Jupyter looks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def kernelspec(tmp_path_factory: pytest.TempPathFactory):
    """The folder of the kernelspec, on Jupyter's path."""
    prefix = tmp_path_factory.mktemp("prefix with space")
    subprocess.run(
        [sys.executable, "-m", "tensormagic_kernel", "install", "--prefix", prefix], check=True, capture_output=True
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(prefix / "share/jupyter"), prepend=os.pathsep)
        yield Path(prefix / "share/jupyter/kernels/tensormagic")
