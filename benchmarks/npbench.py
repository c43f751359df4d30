"""NPBench's programs against plain NumPy, at their first call and compiled.

``python benchmarks/npbench.py CHECKOUT [--preset M] [NAME ...]``: ``CHECKOUT`` is one of https://github.com/spcl/npbench, whose programs
are run as they are. Each has three processes of its own, of one thread, in which plain NumPy runs it up to five times; then the function is
captured and called: once, of a text that nothing is kept of, twice until it is compiled, five times until it is known whether Python is the
quicker one, and up to five times then. Three more call it once, of a text that the ones before have kept on disk what they found out
about (``known``). CPU time of the process, the least of all.
Writes ``benchmarks/results/npbench.md`` where no name is given.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from datetime import UTC, datetime
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from first_results import ENOUGH, PROCESSES, ROOT, mean

LIMIT = 300  # seconds of one program
RACE = 5  # calls of a compiled function after which it is known who runs the others
THREADS = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"


def loaded(path: Path, name: str) -> Any:
    """The module in a file."""
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def program(checkout: Path, name: str, preset: str) -> tuple[Any, list[Any]]:
    """The function of a program, and its arguments at a size."""
    said = json.loads((checkout / "bench_info" / f"{name}.json").read_text())["benchmark"]
    folder = checkout / "npbench" / "benchmarks" / said["relative_path"]
    data: dict[str, Any] = dict(said["parameters"][preset])
    if begin := said.get("init"):
        own = getattr(loaded(folder / f"{said['module_name']}.py", f"begin_{name}"), begin["func_name"])
        made = own(*[data[k] for k in begin["input_args"]])
        data.update(zip(begin["output_args"], made if len(begin["output_args"]) > 1 else (made,), strict=True))
    function = getattr(loaded(folder / f"{said['module_name']}_numpy.py", f"program_{name}"), said["func_name"])
    return function, [data[k] for k in said["input_args"]]


def measured(checkout: Path, name: str, preset: str, folder: Path, *, known: bool) -> dict[str, Any]:
    """Seconds of plain NumPy and of the first call, who ran that, and whether it gave the same.

    What first calls find out about texts is kept in ``folder``: of a text that is ``known`` there, no more is measured.
    """
    import numpy as np

    import tensormagic as tm
    from tensormagic.functions.calls import first_call as first
    from tensormagic.functions.calls import remembered_calls

    own, by_python = first.result_of, list[bool]()

    def noted(function: Any, args: tuple[Any, ...], *begins: Any) -> Any:
        result = own(function, args, *begins)
        by_python.append(result is not first.NOT)
        return result

    sys.path.insert(0, str(checkout))
    function, arguments = program(checkout, name, preset)
    tm.tensor(lambda v: v + 1)(np.ones(3))
    first.result_of = noted
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        there = copy.deepcopy(arguments)
        plain, expected = least(function, arguments, there)
        captured, here = tm.tensor(function), copy.deepcopy(arguments)
        with tm.config.using(cache_folder=folder):
            seconds, found = timed(captured, here)
            remembered_calls.write()
        same = alike(expected, found) and alike(there, here)
        if known:
            return {"known": seconds, "same": same}
        with tm.config.using(tier="numba"):
            for _ in range(2):
                captured(*copy.deepcopy(arguments))
        for _ in range(RACE):
            captured(*copy.deepcopy(arguments))
        here, before = copy.deepcopy(arguments), len(by_python)
        compiled, found = least(captured, arguments, here)
        later = len(by_python) > before
        same = same and alike(expected, found) and alike(there, here)
        row = {
            "numpy": plain,
            "first": seconds,
            "compiled": compiled,
            "python": by_python[0],
            "later": later,
            "same": same,
        }
        if not same:
            other = [
                a * (1 + np.finfo(float).eps) if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a
                for a in arguments
            ]
            row |= {"apart": apart(expected, found), "ill": apart(expected, function(*copy.deepcopy(other)))}
    return row


def least(function: Any, arguments: list[Any], given: list[Any]) -> tuple[float, Any]:
    """The least CPU seconds of some calls, and what the first gives, which is over ``given``."""
    seconds, result = timed(function, given)
    taken = [seconds]
    while sum(taken) < ENOUGH and len(taken) < 5:
        taken.append(timed(function, copy.deepcopy(arguments))[0])
    return min(taken), result


def timed(function: Any, given: list[Any]) -> tuple[float, Any]:
    """CPU seconds of a call, and what it gives."""
    start = time.process_time()
    result = function(*given)
    return time.process_time() - start, result


def alike(one: Any, other: Any) -> bool:
    """Whether results agree to what their dtype holds."""
    import numpy as np

    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(alike, one, other))
    if one is None or other is None or isinstance(one, str):
        return one is other or one == other
    a, b = np.asarray(one), np.asarray(other)
    close = 1e-5 if a.dtype.name in {"float32", "complex64"} else 1e-8
    return a.dtype == b.dtype and a.shape == b.shape and np.allclose(a, b, rtol=close, atol=1e-9, equal_nan=True)


def apart(one: Any, other: Any) -> float:
    """How far apart results are, as a part of the largest number in each array."""
    import numpy as np

    if isinstance(one, tuple | list):
        return max(map(apart, one, other), default=0.0)
    if one is None or np.size(one) == 0:
        return 0.0
    return float(np.max(np.abs(np.subtract(one, other))) / (np.max(np.abs(one)) or 1.0))


def in_a_process(checkout: Path, name: str, preset: str, folder: str, *, known: bool) -> dict[str, Any]:
    """The same, in a process of its own; what it says of an error where there is one."""
    command = [sys.executable, __file__, str(checkout), "--preset", preset, "--one", name, "--folder", folder]
    command += ["--known"] if known else []
    own = {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "kernel")))} | dict.fromkeys(THREADS, "1")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=os.environ | own, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"more than {LIMIT} s"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["?"])[-1][:80]}
    return json.loads(done.stdout.splitlines()[-1])


def in_some_processes(checkout: Path, name: str, preset: str) -> dict[str, Any]:
    """The least times of some processes; an error where one has any."""
    found: list[dict[str, Any]] = []
    for _ in range(PROCESSES):
        with tempfile.TemporaryDirectory() as folder:
            found += [in_a_process(checkout, name, preset, folder, known=known) for known in (False, True)]
    failed = next((one for one in found if "error" in one), None)
    return failed or {key: min(one[key] for one in found if key in one) for key in set().union(*found)}


def report(rows: dict[str, dict[str, Any]], preset: str) -> str:
    """The table."""
    import numpy as np

    load = f"on {os.cpu_count()} processors with a load of {os.getloadavg()[0]:.0f}"
    versions = f"CPython {platform.python_version()}, numpy {np.__version__}"
    lines = [
        "# NPBench's programs", "",
        f"{datetime.now(UTC).date()}, {platform.machine()}, {versions}, size {preset}.",
        f"CPU milliseconds, the least of {PROCESSES} processes a program, one thread, {load}.", "",
        "| program | NumPy | first | first / NumPy | known | known / NumPy | run by | later | NumPy / later | run by | same |",
        "|---|---:|---:|---:|---:|---:|---|---:|---:|---|---|",
    ]  # fmt: skip
    for name, row in rows.items():
        if "error" in row:
            lines.append(f"| {name} | | | | | | {row['error']} | | | | |")
            continue
        by, then = "Python" if row["python"] else "captured code", "Python" if row["later"] else "machine code"
        first = f"{row['numpy'] * 1e3:.3g} | {row['first'] * 1e3:.3g} | {row['first'] / row['numpy']:.2f}"
        first += f" | {row['known'] * 1e3:.3g} | {row['known'] / row['numpy']:.2f}"
        compiled = f"{row['compiled'] * 1e3:.3g} | {row['numpy'] / row['compiled']:.2f}"
        same = (
            "yes"
            if row["same"]
            else f"{row['apart']:.1e} apart; NumPy's own, with inputs off by an ulp: {row['ill']:.1e}"
        )
        lines.append(f"| {name} | {first} | {by} | {compiled} | {then} | {same} |")
    done = [row for row in rows.values() if "error" not in row]
    ratios, known = [sorted(row[kind] / row["numpy"] for row in done) for kind in ("first", "known")]
    gains = sorted(row["numpy"] / row["compiled"] for row in done)
    total = "; ".join(
        f"{what} {mean(own):.2f} times NumPy (median {own[len(own) // 2]:.2f}, worst {own[-1]:.1f})"
        for what, own in (("first results", ratios), ("of known texts", known))
    )
    faster = f"later ones {mean(gains):.2f} times as fast (median {gains[len(gains) // 2]:.2f}, worst {gains[0]:.2f})"
    return "\n".join([*lines, "", f"Geometric means over {len(done)}: {total}; {faster}.", ""])


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("checkout", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--preset", default="S", choices=("S", "M", "L"))
    parser.add_argument("--one")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--known", action="store_true")
    given = parser.parse_args()
    if given.one:
        row = measured(given.checkout, given.one, given.preset, given.folder, known=given.known)
        print(json.dumps(row), flush=True)
        os._exit(0)  # what is compiled on is of no interest
    names = given.names or sorted(path.stem for path in (given.checkout / "bench_info").glob("*.json"))
    rows: dict[str, dict[str, Any]] = {}
    for name in names:
        rows[name] = in_some_processes(given.checkout, name, given.preset)
        print(name, rows[name], flush=True)
    text = report(rows, given.preset)
    print(text)
    if not given.names:
        (ROOT / "benchmarks" / "results" / "npbench.md").write_text(text)


if __name__ == "__main__":
    main()
