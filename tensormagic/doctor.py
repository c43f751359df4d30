"""What `tensormagic doctor` prints: the facts about a machine that a report of a problem needs.

It looks without importing what is heavy or may be broken: each line stands, whatever the others found.
"""

import ctypes
import importlib.metadata
import importlib.util
import os
import platform
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np

from tensormagic.config import config

PACKAGES = (
    *("tensormagic", "numpy", "numba", "llvmlite", "scipy", "ipython", "ipykernel", "ipywidgets", "anywidget"),
    *("jupyterlab", "numba-cuda", "cupy-cuda13x"),
)

# What the compiler has to be able to do, in a process of its own: a crash of it is a line of the report. As in the process that
# compiles for a session, the package's own imports are left out. Numba is asked, too: it reads what the first pass does not know.
# SciPy's linear algebra and cffi, which it would import, and the end of its process are half of its time, and no part of the trial.
COMPILE = """
import gc, os, sys, types
gc.disable()
sys.modules["scipy"] = sys.modules["cffi"] = None
package = types.ModuleType("tensormagic")
package.__path__ = sys.argv[1:]
sys.modules["tensormagic"] = package
from tensormagic.backend.cpu.code import compile_source
from tensormagic.backend.cpu.loader import load
load(compile_source("def kernel(table):\\n    x = table[0] + 1\\n"))(None, None, bytes(8))
import numba; assert numba.njit('float64(float64)')(lambda x: x + 1.0)(1.0) == 2.0
os._exit(0)
"""


def report() -> int:
    """Print the report; return 0, or 1 if the compiler or the cache does not work."""
    compiling = _Compiling()
    print(f"python       {platform.python_version()} ({platform.python_implementation()}, {sys.executable})")
    for package in PACKAGES:
        print(f"{package:12} {_version(package)}")
    healthy = True
    for name, look in {**CHECKS, "compiler": compiling.result}.items():
        try:
            text, good = look()
        except Exception as error:  # noqa: BLE001  (whatever broke is what the report is for)
            text, good = f"{type(error).__name__}: {error}", False
        healthy = healthy and good
        print(f"{name:12} {text}")
    print("all is well: cells can be compiled" if healthy else "something is wrong: see the lines above")
    return 0 if healthy else 1


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed; only an NVIDIA GPU needs it" if "cuda" in package else "not installed"


def _processor() -> tuple[str, bool]:
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        name = names[0] if names else name
    simd: dict[str, list[str]] = _numpy_config().get("SIMD Extensions", {})
    return f"{name}; instructions {' '.join([*simd.get('baseline', []), *simd.get('found', [])])}", True


def _threads() -> tuple[str, bool]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    limits = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.endswith("_NUM_THREADS")]
    return " ".join(
        [
            f"{os.cpu_count()} cores, {usable} usable by this process; large loops on {config.threads}",
            *limits,
        ]
    ), True


def _blas() -> tuple[str, bool]:
    blas = _numpy_config().get("Build Dependencies", {}).get("blas", {})
    text = f"{blas.get('name')} {blas.get('version')}"
    if importlib.util.find_spec("threadpoolctl"):
        import threadpoolctl

        pools = cast("Any", threadpoolctl).threadpool_info()
        text += "".join(
            f"; {pool['num_threads']} threads, with its code for {pool.get('architecture', '?')} and compatible processors"
            for pool in pools
            if pool["user_api"] == "blas"
        )
    return text, True


def _numpy_config() -> dict[str, Any]:
    return cast("dict[str, Any]", np.show_config(mode="dicts"))


def _gpu() -> tuple[str, bool]:
    """Ask the CUDA driver itself: no Python package of the GPU's is imported."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "none (no CUDA driver): all cells run on the processor", True
    status = driver.cuInit(0)
    if status:
        return f"none (the CUDA driver does not start: error {status})", True
    count, version, name = ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(100)
    driver.cuDeviceGetCount(ctypes.byref(count))
    driver.cuDriverGetVersion(ctypes.byref(version))
    names: list[str] = []
    for device in range(count.value):
        driver.cuDeviceGetName(name, len(name), device)
        names.append(name.value.decode())
    found = f"{', '.join(names) or 'none'} (driver for CUDA {version.value // 1000}.{version.value % 1000 // 10})"
    return f"{found}; {_usable()}", True


def _usable() -> str:
    """Whether captured code can run on the GPU, what compiles kernels for it, and how fast it copies."""
    from tensormagic.backend.cuda.bandwidth import bandwidths_text
    from tensormagic.backend.cuda.compiling.compiler import versions
    from tensormagic.backend.cuda.device import current, missing
    from tensormagic.ir.errors import TensorError

    why = missing()
    if why is not None:
        return f"not usable: {why[0]} ({why[1]})"
    copies = bandwidths_text(current())
    try:
        compiler, *_ = versions()
    except TensorError as error:
        return f"usable by its library alone: {error.message}; {copies}"
    return f"usable, with kernels of our own (numba-cuda {compiler}); {copies}"


def _cache() -> tuple[str, bool]:
    from tensormagic.backend.compiling.cache import problem

    folder = Path(config.cache_folder)
    if not folder.exists():
        return f"{folder}, not made yet", True
    files = [path for path in folder.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files) / 2**20
    # Code that is loaded from here runs as its user: nobody else may be able to put some there.
    wrong = problem()
    verdict = f"NOT SAFE, and not used: {wrong}" if wrong else "only you can write"
    return f"{folder}, {len(files)} files, {size:.1f} MiB, {stat.filemode(folder.stat().st_mode)}, {verdict}", not wrong


class _Compiling:
    """The compiler check, which runs while the other lines are collected."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        command = [sys.executable, "-c", COMPILE, str(Path(__file__).parent)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def result(self) -> tuple[str, bool]:
        """Wait for its end."""
        try:
            _, errors = self._process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        if self._process.returncode:
            last_line = (errors.strip().splitlines() or [f"exit status {self._process.returncode}"])[-1]
            return f"does not work: {last_line}", False
        return f"works: a trial in a process of its own took {time.perf_counter() - self._start:.1f} s", True


CHECKS: dict[str, Callable[[], tuple[str, bool]]] = {
    "processor": _processor,
    "threads": _threads,
    "blas": _blas,
    "gpu": _gpu,
    "cache": _cache,
}
