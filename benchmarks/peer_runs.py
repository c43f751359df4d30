"""What the benchmarks beside peers share: who takes part, on what machine, and the time of a call."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import time
from collections.abc import Callable, Mapping
from typing import Any


def taking_part(
    peers: Mapping[str, tuple[str, Callable[[], dict[str, Any]]]],
) -> tuple[dict[str, dict[str, Any]], list[str], list[str]]:
    """The programs of each peer that is installed, the versions of these, and who is missing and why."""
    found: dict[str, dict[str, Any]] = {}
    versions, missing = [], []
    for peer, (package, programs) in peers.items():
        try:
            found[peer] = programs()
        except ImportError as error:
            missing.append(f"{peer} ({error})")
            continue
        versions.append(f"{package} {importlib.metadata.version(package)}")
    return found, list(dict.fromkeys(versions)), missing


def machine() -> str:
    """What it was measured on."""
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def seconds(program: Callable[[], Any]) -> float:
    """Wall seconds of one call."""
    start = time.perf_counter()
    program()
    return time.perf_counter() - start
