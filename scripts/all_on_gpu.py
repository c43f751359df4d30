"""All that there is to check and to measure on a card, within minutes, by the order of what it is worth.

On any machine with the compiler (``pip install 'tensormagic[gpu]'``), no card needed::

    python scripts/all_on_gpu.py --ahead CODES.zip

compiles the kernels of all parts into one file. On a machine with a card and CuPy, which needs neither a network nor that compiler then::

    python scripts/all_on_gpu.py FOLDER --codes CODES.zip --minutes 9

``FOLDER/report.txt`` has what each part said, from the moment on at which it ended; what runs is in a file of its own beside it. Parts
that check run side by side, those that measure have the card for themselves. A part that takes longer than its share is ended, and
what it has said until then is kept; so is everything where the script itself is ended.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tensormagic.backend.cuda.compiling.compiler import MADE_BY, versions
from tensormagic.backend.cuda.device import missing

ROOT = Path(__file__).parents[1]
MINUTES = 9.0
PROCESSES = 4  # that check values side by side
PACKAGES = ("numpy", "scipy", "numba", "numba-cuda", "cuda-bindings", "nvidia-nvvm", "cupy-cuda13x", "jax", "torch")
DEVICE_TESTS = ("tests/backend/cuda", "tests/notebook/test_device.py", "tests/notebook/test_async_device.py")
LAUNCHED_OTHERWISE = (
    "tests/backend/cuda/test_segments.py",
    "tests/backend/cuda/test_draws.py",
    "tests/backend/cuda/test_loops.py",
    "tests/backend/cuda/test_nested.py",
    "tests/backend/cuda/test_one_thread.py",
)  # and not by check_gpu.py
OFTEN = 0.05  # seconds between looks at what runs


@dataclass
class Part:
    """A command, and how many seconds it may take.

    Attributes
    ----------
    environment
        What is set for it, beside what all have.
    verdict
        What became of it.
    """

    name: str
    command: list[str]
    seconds: float
    environment: dict[str, str] = field(default_factory=dict)
    verdict: str = ""


def _pytest(count: int) -> list[str]:
    found = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rfE", "--tb=short"]
    found += ["--continue-on-collection-errors"]  # files that need what is not installed there
    return [*found, "-n", str(count)] if find_spec("xdist") is not None else found


def _installed(paths: Sequence[str]) -> list[str]:
    """Files of tests, those of the notebook only where it is installed."""
    return [p for p in paths if "notebook" not in p or find_spec("IPython") is not None]


def stages(cores: int) -> list[list[Part]]:
    """All parts: those of one list run side by side."""
    python, own = sys.executable, "scripts/check_gpu.py"
    many = max(1, cores // 3)
    values = [Part(f"values {k + 1}", [python, own, "--share", f"{k + 1}/{PROCESSES}"], 150) for k in range(PROCESSES)]
    shares = [f"tests/capture/{p.name}" for p in sorted((ROOT / "tests/capture").glob("test_control_flow*.py"))]
    checks = [
        Part("tests", [*_pytest(many), "-m", "gpu", "--all", *_installed(DEVICE_TESTS)], 240),
        Part(
            "control flow",
            [*_pytest(many), *shares, "tests/functions/test_derivatives.py"],
            240,
            {"TENSORMAGIC_DEVICE": "gpu"},
        ),
    ]
    sanitizer = shutil.which("compute-sanitizer")
    for tool in ("memcheck", "racecheck") if sanitizer is not None else ():
        command = [str(sanitizer), "--tool", tool, "--error-exitcode", "1", "--target-processes", "all"]
        checks.append(Part(tool, [*command, python, own, "--small"], 240))
        checks.append(Part(f"{tool} of tests", [*command, *_pytest(0), "-m", "gpu", *LAUNCHED_OTHERWISE], 240))
    return [
        values,
        [Part("kernels", [python, "benchmarks/gpu.py"], 100)],
        [Part("cells", [python, "benchmarks/device_cells.py"], 90)],
        [Part("peers", [python, "benchmarks/gpu_peers.py"], 120)],
        checks,
    ]


class Report:
    """What has been said so far, in one file.

    Parameters
    ----------
    folder
        Where it is, and what runs beside it.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.path = folder / "report.txt"
        self.path.write_text("", encoding="utf-8")

    def say(self, line: str) -> None:
        """One line, to the file and to whoever looks."""
        print(line, flush=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def beside(self, part: Part) -> Path:
        """Where a part writes while it runs."""
        return self.folder / f"{part.name.replace(' ', '-')}.txt"

    def take(self, part: Part, seconds: float) -> None:
        """What a part has said, and how it ended; its own file is gone then."""
        said = self.beside(part).read_text(encoding="utf-8", errors="replace")
        self.say(f"{part.name}: {part.verdict}, {seconds:.0f} s")
        with self.path.open("a", encoding="utf-8") as file:
            file.write("".join(f"    {line}\n" for line in said.splitlines()))
        self.beside(part).unlink()


def run_stage(parts: Sequence[Part], report: Report, end: float, common: dict[str, str]) -> int:
    """Run parts side by side, each as long as it may and until ``end``; how many have failed or were ended."""
    begin = time.monotonic()
    running: list[tuple[Part, Any]] = []
    for part in parts:
        with report.beside(part).open("w", encoding="utf-8") as said:
            environment = os.environ | common | part.environment
            process = subprocess.Popen(
                part.command, cwd=ROOT, env=environment, stdout=said, stderr=subprocess.STDOUT, start_new_session=True
            )
        running.append((part, process))
    left = list(running)
    try:
        while left:
            now = time.monotonic()
            for pair in list(left):
                part, process = pair
                done = process.poll()
                if done is None and now < min(end, begin + part.seconds):
                    continue
                part.verdict = _ended(process) if done is None else "ok" if done == 0 else f"FAILED ({done})"
                left.remove(pair)
                report.take(part, time.monotonic() - begin)
            time.sleep(OFTEN)
    finally:  # where the script itself is ended, what was said is kept
        for part, process in left:
            part.verdict = _ended(process)
            report.take(part, time.monotonic() - begin)
    return sum(part.verdict != "ok" for part in parts)


def _ended(process: Any) -> str:
    """End a process with all that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return "NOT DONE: its time is over"


def unpacked(codes: Path | None, where: Path) -> dict[str, str]:
    """Variables by which code is found that another machine has compiled: it is unpacked into a folder that only the user can write."""
    found = {"TENSORMAGIC_CACHE_FOLDER": str(where / "cache"), "PYTHONUNBUFFERED": "1"}
    if codes is not None:
        folder = where / "carried"
        folder.mkdir(mode=0o700)
        with zipfile.ZipFile(codes) as packed:
            for name in packed.namelist():
                if Path(name).name == name:
                    (folder / name).write_bytes(packed.read(name))
        found["TENSORMAGIC_CARRIED_FOLDER"] = str(folder)
    return found


def described() -> str:
    """The machine, in a line."""
    found = [time.strftime("%Y-%m-%d %H:%M"), f"Python {platform.python_version()}", f"{os.cpu_count()} cores"]
    for name in PACKAGES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    if shutil.which(query[0]) is not None:
        found.append(subprocess.run(query, capture_output=True, text=True, check=False, timeout=30).stdout.strip())
    return ", ".join(found)


def run_all(folder: Path, codes: Path | None, minutes: float, planned: list[list[Part]]) -> int:
    """Run all parts; how many have failed, or had no time left."""
    report, end, bad = Report(folder), time.monotonic() + 60 * minutes, 0
    report.say(described())
    with tempfile.TemporaryDirectory(prefix="tensormagic-gpu-") as where:
        common = unpacked(codes, Path(where))
        for parts in planned:
            if time.monotonic() < end:
                bad += run_stage(parts, report, end, common)
            else:
                bad += len(parts)
                report.say(f"{', '.join(p.name for p in parts)}: NOT DONE: no time is left")
            compiled = len(list((Path(where) / "cache").glob("cuda-*.o")))
            report.say(f"kernels compiled here until now, and not ahead: {compiled}")
    return bad


def ahead(target: Path) -> int:
    """Compile the kernels of all parts, and pack them; how many parts have failed."""
    python = sys.executable
    tests = [*_pytest(0), "--all", "-k", "fake", "tests/backend/cuda"]
    commands = [
        [python, "scripts/check_gpu.py", "--compile"],
        [python, "benchmarks/gpu.py", "--compile"],
        [python, "benchmarks/device_cells.py", "--compile"],
        tests,
    ]
    bad = 0
    with tempfile.TemporaryDirectory(prefix="tensormagic-gpu-") as where:
        variables = {"TENSORMAGIC_CACHE_FOLDER": where, "TENSORMAGIC_TESTS_CACHE": where}
        for command in commands:
            bad += subprocess.run(command, cwd=ROOT, env=os.environ | variables, check=False).returncode != 0
        pack(Path(where), target)
    return bad


def pack(folder: Path, target: Path) -> None:
    """Put the code of a folder, and what has compiled it, into one file."""
    found = sorted(folder.glob("cuda-*.o"))
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(MADE_BY, json.dumps(versions()))
        for path in found:
            packed.write(path, path.name)
    print(f"{target}: {len(found)} kernels, {target.stat().st_size / 2**20:.1f} MiB")


def main() -> int:
    """Do what is asked for; gives 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", metavar="FOLDER")
    parser.add_argument("--codes", type=Path, metavar="CODES.zip")
    parser.add_argument("--ahead", type=Path, metavar="CODES.zip")
    parser.add_argument("--minutes", type=float, default=MINUTES)
    options = parser.parse_args()
    if options.ahead is not None:
        return int(ahead(options.ahead.absolute()) > 0)
    why = missing()
    if why is not None:
        print(f"needs a card: {why[0]} ({why[1]})")
        return 1
    if options.folder is None:
        parser.error("where shall the report go?")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    codes = options.codes.absolute() if options.codes is not None else None
    return int(run_all(options.folder.absolute(), codes, options.minutes, stages(os.cpu_count() or 1)) > 0)


if __name__ == "__main__":
    sys.exit(main())
