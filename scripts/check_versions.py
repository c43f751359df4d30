"""The suite on several versions of Python and NumPy: a virtual environment for each pair, a row of a table for each run.

    python scripts/check_versions.py --python python3.12 --python python3.13 --numpy 2.1 --numpy 2.5 [-k NAME] [PATHS]

Each interpreter is a path or a name that is found. ``--numpy`` takes a minor version, ``latest``, or nothing for what pip chooses. The
suite runs without browser and notebooks, one process at a time; it takes about 25 minutes of a core. Environments are kept in
``--folder`` (default: a temporary one), so that a second run installs nothing. The table goes to standard output, and behind what
``benchmarks/results/versions.md`` holds, with the date, where ``--write`` is given.

An interpreter that the machine does not have comes from a Debian root, which is made in a minute or two and needs no other tool:

    debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates trixie ROOT
    chroot ROOT python3 …     # with the checkout mounted or copied into it, and pip's configuration and certificates

Processors are another axis: variables set what NumPy and LLVM may use, and reach the runs (CONTRIBUTING.md, "Other processors").
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "versions.md"
VARIABLES = ("NPY_DISABLE_CPU_FEATURES", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")
VERSIONS = (
    "import platform, numpy, scipy, numba; "
    "print(platform.python_version(), numpy.__version__, scipy.__version__, numba.__version__)"
)
HEAD = "| Python | NumPy | SciPy | Numba | passed | failed | skipped | minutes |\n|---|---|---|---|---|---|---|---|"


@dataclass(frozen=True)
class Run:
    """One run of the suite."""

    versions: list[str]
    counts: dict[str, int]
    minutes: float
    failures: list[str]

    @property
    def row(self) -> str:
        """A row of the table."""
        counted = (str(self.counts.get(name, 0)) for name in ("passed", "failed", "skipped"))
        return "| " + " | ".join([*self.versions, *counted, f"{self.minutes:.0f}"]) + " |"


def environment(python: str, numpy: str, folder: Path) -> Path:
    """The interpreter of a virtual environment with the package, what its tests need, and a version of NumPy."""
    name = re.sub(r"\W+", "-", f"{Path(python).resolve().parent.parent.name}-{Path(python).name}-{numpy or 'any'}")
    found = folder / name / "bin" / "python"
    if not found.exists():
        subprocess.run([python, "-m", "venv", folder / name], check=True)
    wanted = {"": [], "latest": ["numpy"]}.get(numpy, [f"numpy=={numpy}.*"])
    subprocess.run(
        [found, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-e", f"{ROOT}[test]", *wanted],
        check=True,
    )
    return found


def run(python: Path, arguments: list[str]) -> Run:
    """The suite by an interpreter."""
    versions = subprocess.run([python, "-c", VERSIONS], check=True, capture_output=True, text=True).stdout.split()
    start = time.monotonic()
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not browser", "--tb=no", "-rfE", *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'kernel'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    counts = {
        name: int(n) for n, name in re.findall(r"(\d+) (passed|failed|skipped|error)", done.stdout.splitlines()[-1])
    }
    counts["failed"] = counts.get("failed", 0) + counts.pop("error", 0)
    failures = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return Run(versions, counts, (time.monotonic() - start) / 60, failures)


def report(runs: list[Run], arguments: list[str]) -> str:
    """What the runs found, as text for the results."""
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    given = [f"{name}={os.environ[name]!r}" for name in VARIABLES if name in os.environ]
    lines = [f"## {dt.datetime.now(dt.UTC).date()}, {machine}", ""]
    lines += [f"`pytest {' '.join(arguments)}`, {', '.join(given) or 'every feature of the processor'}.", "", HEAD]
    lines += [r.row for r in runs]
    lines += [f"- {r.versions[0]}, NumPy {r.versions[1]}: `{name}`" for r in runs for name in r.failures]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run what is asked for; 1 where a test failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", default=[], help="an interpreter; may be given several times")
    parser.add_argument("--numpy", action="append", default=[], help="a minor version such as 2.1, or latest")
    parser.add_argument("--folder", type=Path, help="where environments are kept")
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/results/versions.md, too")
    options, arguments = parser.parse_known_args()
    arguments = arguments or ["tests"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        runs = [
            run(environment(python, numpy, folder), arguments)
            for python in options.python or [sys.executable]
            for numpy in options.numpy or [""]
        ]
    text = report(runs, arguments)
    print(text)
    if options.write:
        RESULTS.write_text(f"{RESULTS.read_text(encoding='utf-8').rstrip()}\n\n{text}", encoding="utf-8")
    return int(any(r.counts["failed"] for r in runs))


if __name__ == "__main__":
    raise SystemExit(main())
