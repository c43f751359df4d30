"""Pages of results that scripts write: what they begin with, the machine and the versions, and what was measured."""

from __future__ import annotations

import datetime as dt
import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path


def write(page: Path, head: str, lines: Sequence[str]) -> None:
    """Write a page of a long run of kernels."""
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    versions = ", ".join(f"{n} {version(n)}" for n in ("ipykernel", "ipython", "numpy", "numba"))
    page.write_text(
        f"{head}\n{dt.datetime.now(dt.UTC).date()}; {machine}, {versions}.\n" + "\n".join(lines) + "\n", "utf-8"
    )
