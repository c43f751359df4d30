"""How fast compiled plans are against the same formulas in NumPy: ``python benchmarks/speed.py``, in one run.

It writes ``results/speed.md``. Medians of the process's CPU time, single thread, each under two settings of the C
library's allocator: as it comes, and with the thresholds from which it takes fresh pages for every array at 256 MiB,
where NumPy gets faster. Compiling and loading are timed by the wall clock.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

THRESHOLD = str(256 << 20)
THREADS = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
HERE = Path(__file__).parent


def median_ms(call, repetitions=41):
    """The median CPU time of a call in milliseconds, after two calls that are not counted."""
    call(), call()
    times = []
    for _ in range(repetitions):
        begin = time.process_time_ns()
        call()
        times.append(time.process_time_ns() - begin)
    return sorted(times)[repetitions // 2] / 1e6


def medians_ms(calls, rounds=25):
    """The medians of several calls, measured in turns, so that a busy moment of the machine meets all of them."""
    times = [[median_ms(call, 5) for call in calls] for _ in range(rounds)]
    return [sorted(own)[rounds // 2] for own in zip(*times, strict=True)]


def cases():
    """For each benchmark: what the user writes, captured; the same in NumPy (gradients by hand); the arguments; what is wanted."""
    import numpy as np

    import tensormagic as tm

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=10**6), rng.normal(size=10**6)
    S = rng.normal(size=(1000, 1000))
    X, w, b, t = rng.normal(size=(100_000, 30)), rng.normal(size=30), np.array(0.1), np.sign(rng.normal(size=100_000))

    def cross_entropy(x, y):
        return np.mean(np.log(1 + np.exp(-abs(x))) + np.maximum(x, 0) - x * y)

    def softmax(S):
        e = np.exp(S - S.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    def loss(w, b, X, t):
        return np.mean(np.log(1 + np.exp(-t * (X @ w + b))))

    def by_hand(w, b, X, t):
        z = X @ w + b
        m = -t * z
        e = np.exp(m)
        g = -(t * (e / (1 + e))) / len(t)
        return np.mean(np.log1p(e)), (X.T @ g, g.sum())

    return {
        "cross entropy, 10⁶": (tm.tensor(cross_entropy), cross_entropy, (x, y), (3.0, 2.2)),
        "softmax over rows, 1000×1000": (tm.tensor(softmax), softmax, (S,), (3.0, 2.2)),
        "logistic loss and gradient, 10⁵×30": (tm.value_and_grad(loss, (0, 1)), by_hand, (w, b, X, t), (2.0, 2.0)),
    }


def measure():
    """One setting: everything that is measured, as plain data."""
    import numpy as np

    import tensormagic as tm
    from tensormagic.backend.compiling.native import compiled
    from tensormagic.backend.planning.plan import plan_graph
    from tensormagic.capture.tree import flatten
    from tensormagic.transform.rewriting import rewrite

    tm.config.tier = "numba"
    report = {"speed": [], "compile": []}
    for name, (function, numpy, values, wanted) in cases().items():
        graph = rewrite(function.graph(*values)).graph
        begin = time.perf_counter()
        plan = plan_graph(graph)
        planning = (time.perf_counter() - begin) * 1e3
        begin = time.perf_counter()
        handle = compiled(plan)
        ready = (time.perf_counter() - begin) * 1e3
        for found, expected in zip(flatten(function(*values))[0], flatten(numpy(*values))[0], strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
        ours, theirs = medians_ms([lambda f=function, v=values: f(*v), lambda f=numpy, v=values: f(*v)])
        report["speed"].append([name, ours, theirs, wanted])
        report["compile"].append(
            [name, len(plan.kernels), planning, handle.compile_seconds * 1e3, ready, handle.from_cache]
        )
    report["call"] = small_call()
    return report


def small_call():
    """Microseconds for a call of a compiled function on three small arrays."""
    import numpy as np

    import tensormagic as tm

    function = tm.tensor(lambda x, y, z: np.exp(x) * y + z)
    x, y, z = np.ones(3), np.full(3, 2.0), np.zeros(3)

    def many():
        for _ in range(10_000):
            function(x, y, z)

    return median_ms(many, 11) / 10


def child(settings, folder):
    """The report of a process of its own with these settings."""
    root = str(HERE.parent)
    environment = {**os.environ, **THREADS, **settings, "TENSORMAGIC_CACHE_FOLDER": folder, "PYTHONPATH": root}
    command = [sys.executable, __file__, "--measure"]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def main():
    with tempfile.TemporaryDirectory() as folder:
        plain = child({}, folder)
        raised = child({"MALLOC_MMAP_THRESHOLD_": THRESHOLD, "MALLOC_TRIM_THRESHOLD_": THRESHOLD}, folder)
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "llvmlite"))
    today = f"{dt.datetime.now(tz=dt.UTC):%Y-%m-%d}"
    lines = [
        "# Speed against NumPy",
        "",
        f"{today}, {processor()}, {os.cpu_count()} cores, CPython {platform.python_version()}, {versions}.",
        "Medians of CPU time, one thread. `python benchmarks/speed.py` writes this file.",
        "",
        "| benchmark | allocator | compiled, ms | NumPy, ms | ratio | wanted |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for setting, report in (("as it comes", plain), ("thresholds 256 MiB", raised)):
        for name, ours, theirs, wanted in report["speed"]:
            least = wanted[setting != "as it comes"]
            lines.append(f"| {name} | {setting} | {ours:.2f} | {theirs:.2f} | {theirs / ours:.2f} | {least:g} |")
    lines += [
        "",
        "| plan | kernels | planning, ms | compiling, ms | loading from the cache, ms |",
        "|---|---:|---:|---:|---:|",
    ]
    for (name, kernels, planning, compiling, _, _), (*_, loading, _) in zip(
        plain["compile"], raised["compile"], strict=True
    ):
        lines.append(f"| {name} | {kernels} | {planning:.1f} | {compiling:.0f} | {loading:.1f} |")
    lines += [
        "",
        "The first row of compiling and of loading holds the start of the compiler and of the loader.",
        "",
        f"A call of a compiled function with three arrays of 3 elements takes {plain['call']:.2f} µs.",
        "",
    ]
    text = "\n".join(lines)
    path = HERE / "results" / "speed.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    if sys.argv[1:] == ["--measure"]:
        print(json.dumps(measure()))
    else:
        main()
