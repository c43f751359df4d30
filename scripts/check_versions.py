"""The suite, or folders of it, on several versions of Python and NumPy: an environment for each pair, and a row of a table for each run.

    python scripts/check_versions.py --python python3.12 --python python3.13 --numpy 2.1 --numpy 2.5 [OPTIONS] [PATHS]

Each interpreter is a path or a name that is found. ``--numpy`` takes a minor version, ``latest``, or nothing for what pip chooses. PATHS
are what pytest takes, folders, files or single tests (default: ``tests``), and other options go to pytest, such as ``-k NAME``. The
whole suite, without browser, takes 20 to 30 minutes of a core for each pair; one process runs at a time.

``--share N`` takes one test in N, always the same ones, and ``--minutes M`` stops the run of a pair when they are over: what had run by
then is counted, and the row says so. Outcomes are noted test by test in the folder of the environment, ``outcomes.txt``, where failures
can be followed while the suite runs; the report lists them by name.

Environments are kept in ``--folder`` (default: a temporary one); a second run installs nothing where pyproject.toml is the same. The table
goes to standard output, and behind what ``benchmarks/results/versions.md`` holds, with the date, where ``--write`` is given.

An interpreter that the machine does not have comes from a Debian root, which is made in a minute or two and needs no other tool (trixie
has Python 3.13, sid 3.14); the script then runs within it:

    debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates sid ROOT
    mkdir -p ROOT/checkout && mount --bind . ROOT/checkout     # and proc and dev into ROOT/proc and ROOT/dev
    chroot ROOT bash -c 'cd /checkout && python3 scripts/check_versions.py --folder /environments tests/ops'

Processors are another axis: variables set what NumPy and LLVM may use, and reach the runs (CONTRIBUTING.md, "Other processors").
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "versions.md"
VARIABLES = ("NPY_DISABLE_CPU_FEATURES", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")
VERSIONS = (
    "import platform, numpy, scipy, numba; "
    "print(platform.python_version(), numpy.__version__, scipy.__version__, numba.__version__)"
)
HEAD = "| Python | NumPy | SciPy | Numba | passed | failed | skipped | minutes |\n|---|---|---|---|---|---|---|---|"
SHARE, OUTCOMES = "CHECK_VERSIONS_SHARE", "CHECK_VERSIONS_OUTCOMES"  # how the plugin below is told


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Keep one test in so many: this file is pytest's plugin, too."""
    share = int(os.environ[SHARE])
    items[:] = [item for item in items if zlib.crc32(item.nodeid.encode()) % share == 0]


def pytest_runtest_logreport(report: Any) -> None:
    """Note how a test ended, as soon as it has."""
    if report.when == "call" or not report.passed:
        with Path(os.environ[OUTCOMES]).open("a", encoding="utf-8") as file:
            file.write(f"{report.outcome} {report.nodeid}\n")
            if report.failed:
                file.writelines(f"    {line}\n" for line in report.longreprtext.splitlines()[-3:])


@dataclass(frozen=True)
class Run:
    """One run of the suite, by the names of the tests that passed, failed and were skipped."""

    versions: list[str]
    outcomes: dict[str, str]
    minutes: float
    ended: str

    @property
    def failures(self) -> list[str]:
        """The tests that failed, or whose setting up did."""
        return [name for name, outcome in self.outcomes.items() if outcome == "failed"]

    @property
    def row(self) -> str:
        """A row of the table."""
        counts = Counter(self.outcomes.values())
        counted = (str(counts[name]) for name in ("passed", "failed", "skipped"))
        return "| " + " | ".join([*self.versions, *counted, f"{self.minutes:.0f}{self.ended}"]) + " |"


def environment(python: str, numpy: str, folder: Path) -> Path:
    """The folder of a virtual environment with the package, what its tests need, and a version of NumPy."""
    name = re.sub(r"\W+", "-", f"{Path(python).resolve().parent.parent.name}-{Path(python).name}-{numpy or 'any'}")
    found = folder / name
    stamp, wanted = (
        found / "made-for.txt",
        f"{ROOT} {hashlib.sha256((ROOT / 'pyproject.toml').read_bytes()).hexdigest()}",
    )
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return found
    subprocess.run([python, "-m", "venv", found], check=True)
    version = {"": [], "latest": ["numpy"]}.get(numpy, [f"numpy=={numpy}.*"])
    install = [found / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "-e", f"{ROOT}[test]", *version], check=True)
    stamp.write_text(wanted, encoding="utf-8")
    return found


def run(found: Path, arguments: list[str], share: int, minutes: float | None) -> Run:
    """The suite by the interpreter of an environment."""
    python, outcomes = found / "bin" / "python", found / "outcomes.txt"
    versions = subprocess.run([python, "-c", VERSIONS], check=True, capture_output=True, text=True).stdout.split()
    outcomes.write_text("", encoding="utf-8")
    pytest = [
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "check_versions",
        "--all",
        "-m",
        "not browser",
        "--tb=line",
    ]
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "kernel", ROOT / "scripts")))
    told = {"PYTHONPATH": paths, SHARE: str(share), OUTCOMES: str(outcomes)}
    start, ended = time.monotonic(), ""
    with (found / "pytest.txt").open("w", encoding="utf-8") as output:
        try:
            done = subprocess.run(
                [python, *pytest, *arguments],
                cwd=ROOT,
                env=os.environ | told,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=minutes and 60 * minutes,
                check=False,
            )
            if done.returncode > 1:
                ended = f", pytest ended with {done.returncode}"
        except subprocess.TimeoutExpired:
            ended = ", stopped"
    lines = outcomes.read_text(encoding="utf-8").splitlines()
    noted = [line.split(" ", 1) for line in lines if not line.startswith(" ")]
    return Run(versions, {name: outcome for outcome, name in noted}, (time.monotonic() - start) / 60, ended)


def report(runs: list[Run], arguments: list[str], share: int) -> str:
    """What the runs found, as text for the results."""
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    given = [f"{name}={os.environ[name]!r}" for name in VARIABLES if name in os.environ]
    what = f"`pytest {' '.join(arguments)}`" + (f", one test in {share}" if share > 1 else "")
    lines = [f"## {dt.datetime.now(dt.UTC).date()}, {machine}", ""]
    lines += [f"{what}, {', '.join(given) or 'every feature of the processor'}.", "", HEAD]
    lines += [r.row for r in runs]
    lines += [""] * any(r.failures for r in runs)
    lines += [f"- {r.versions[0]}, NumPy {r.versions[1]}: `{name}`" for r in runs for name in r.failures]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run what is asked for; 1 where a test failed or a run did not end as it should."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", default=[], help="an interpreter; may be given several times")
    parser.add_argument("--numpy", action="append", default=[], help="a minor version such as 2.1, or latest")
    parser.add_argument("--share", type=int, default=1, help="one test in so many")
    parser.add_argument("--minutes", type=float, help="the most that the run of a pair may take")
    parser.add_argument("--folder", type=Path, help="where environments are kept")
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/results/versions.md, too")
    options, arguments = parser.parse_known_args()
    arguments = arguments or ["tests"]
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # what was started with `&` ignores it: tests of interrupts fail
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        runs = [
            run(environment(python, numpy, folder), arguments, options.share, options.minutes)
            for python in options.python or [sys.executable]
            for numpy in options.numpy or [""]
        ]
    text = report(runs, arguments, options.share)
    print(text)
    if options.write:
        RESULTS.write_text(f"{RESULTS.read_text(encoding='utf-8').rstrip()}\n\n{text}", encoding="utf-8")
    return int(any(r.failures or r.ended for r in runs))


if __name__ == "__main__":
    raise SystemExit(main())
