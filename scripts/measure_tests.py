"""How long tests take, and which are slow: writes ``tests/slow.txt``, by which ``-m "not slow"`` is the fast part of the suite.

    python scripts/measure_tests.py --seconds 60 [PATHS]

runs one row in several of each test (``--rows``), in processor time, and marks so that the fast part takes about as many seconds: a test
function may take a part of a second in all, the same for each; of a table that takes more one row in so many is fast, and a single test
that takes more is slow. ``--times FILE`` keeps what was measured, and goes on from there; with ``--rows 0`` nothing is run.

    python scripts/measure_tests.py --report REPORT.xml

runs nothing and writes ``tests/shares.txt`` anew from pytest's report of a run of the suite with that list (``--junitxml``): of which
tables one row in how many is run where ``--all`` is not given, so that a table takes about ``--each`` seconds; one row in ``--least`` is
always run. A share never grows, since how long its other rows take is not known: for that, the run begins with an empty list.
"""

from __future__ import annotations

import argparse
import resource
import time
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "tests" / "slow.txt"
SHARES = ROOT / "tests" / "shares.txt"
WHOLE = ("tests/browser/", "tests/kernel/", "notebooks/")  # of these every test is run
LEFT_OUT = ("tests/browser/", "tests/kernel/", "tests/docs/", "tests/distributed/", "notebooks/")


def processor_time() -> float:
    """That of this process and of those that it has waited for, in seconds."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def function_of(nodeid: str) -> str:
    """The function of a test, without the row of its table."""
    path, _, rest = nodeid.partition("::")
    return f"{path}::{rest.partition('[')[0]}"


class Measuring:
    """Counts the rows of each test function, runs some that were not measured before, and notes how long each takes.

    Parameters
    ----------
    rows
        How many rows of each function to run.
    times
        Where to note them, a line each: seconds and the test, with a tab between.
    """

    def __init__(self, rows: int, times: Path) -> None:
        self.rows, self.times = rows, times
        self.counts: Counter[str] = Counter()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the first rows."""
        known, kept, begun = measured(self.times), list[pytest.Item](), Counter[str]()
        for item in items:
            function = function_of(item.nodeid)
            self.counts[function] += 1
            begun[function] += 1
            wanted = function not in known and begun[function] <= self.rows
            kept += [item] if wanted and not item.nodeid.startswith(LEFT_OUT) else []
        items[:] = kept

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Measure one."""
        begin = processor_time()
        done = yield
        with self.times.open("a", encoding="utf-8") as file:
            file.write(f"{processor_time() - begin:.4f}\t{item.nodeid}\n")
        return done


def measured(times: Path) -> dict[str, list[float]]:
    """The seconds of the rows of each function, as noted."""
    found: dict[str, list[float]] = defaultdict(list)
    for line in times.read_text(encoding="utf-8").splitlines() if times.exists() else ():
        seconds, _, nodeid = line.partition("\t")
        if nodeid:
            found[function_of(nodeid)].append(float(seconds))
    return found


def rows_of(counts: Counter[str], times: dict[str, list[float]], most: float) -> dict[str, int]:
    """Of which functions one row in how many is fast, if each may take ``most`` seconds; 0 for none."""
    found: dict[str, int] = {}
    for function, seconds in times.items():
        each = sum(seconds) / len(seconds)
        if each * counts[function] > most:
            found[function] = 0 if each > most else -int(-each * counts[function] // most)
    return found


def taken(counts: Counter[str], times: dict[str, list[float]], most: float) -> float:
    """About how long the fast part takes then, in seconds."""
    rows = rows_of(counts, times, most)
    each = {function: sum(s) / len(s) for function, s in times.items()}
    return sum(each[f] * counts[f] / rows.get(f, 1) for f in times if rows.get(f, 1))


def reported(report: Path) -> Iterator[tuple[str, float]]:
    """The tests of a report, each by its function, with the seconds that it took."""
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 (it is ours)
        path, name = case.get("classname", "").replace(".", "/") + ".py", case.get("name", "").partition("[")[0]
        if (ROOT / path).exists() and not path.startswith(WHOLE):
            yield f"{path}::{name}", float(case.get("time", "0"))


def shares_of(times: dict[str, list[float]], known: dict[str, int], most: float, least: int) -> dict[str, int]:
    """Of which tables one row in how many is run, if each may take ``most`` seconds: one in ``least`` at least; none grows."""
    rows: dict[str, int] = {}
    for function, found in times.items():
        now = known.get(function, 1)
        rows[function] = max(min(least, len(found) * now, -int(-sum(found) * now // most)), now)
    return {function: number for function, number in rows.items() if number > 1}


def listed(path: Path) -> dict[str, int]:
    """A list of functions, as `write` has written it."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {name: int(rows) for rows, name in (line.split(" ", 1) for line in lines)}


def write(path: Path, rows: dict[str, int]) -> None:
    """Write a list of functions, each behind its number of rows."""
    path.write_text("".join(f"{rows[name]} {name}\n" for name in sorted(rows)), encoding="utf-8")


def main() -> None:
    """Run, and write the list."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", default=["tests", "tensormagic"])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rows", type=int, default=2)
    parser.add_argument("--times", type=Path, default=ROOT / "tests" / ".times.txt")
    parser.add_argument("--report", type=Path)
    parser.add_argument("--each", type=float, default=0.5)
    parser.add_argument("--least", type=int, default=12)
    asked = parser.parse_args()
    if asked.report is not None:
        whole = defaultdict[str, list[float]](list)
        for function, seconds in reported(asked.report):
            whole[function].append(seconds)
        known = listed(SHARES)
        shares = shares_of(whole, known, asked.each, asked.least)
        write(SHARES, shares)
        taken_now = sum(sum(found) * known.get(f, 1) / shares.get(f, 1) for f, found in whole.items())
        print(f"{len(shares)} tables are shared: about {taken_now:.0f} s of {sum(map(sum, whole.values())):.0f}")
        return
    plugin = Measuring(asked.rows, asked.times)
    pytest.main(["-q", "-p", "no:cacheprovider", *asked.paths], plugins=[plugin])
    times = {f: s for f, s in measured(asked.times).items() if plugin.counts[f]}
    most = max(m / 1000 for m in range(1, 1001) if m == 1 or taken(plugin.counts, times, m / 1000) <= asked.seconds)
    write(OUTPUT, rows_of(plugin.counts, times, most))
    unknown = sum(f not in times and not f.startswith(LEFT_OUT) for f in plugin.counts)
    print(
        f"{len(times)} functions measured, {unknown} not; {most} s each, {taken(plugin.counts, times, most):.0f} s in all"
    )


if __name__ == "__main__":
    main()
