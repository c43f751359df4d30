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


def medians_ms(calls, rounds=5):
    """The medians of several calls, measured in turns, so that a busy moment of the machine meets all of them."""
    times = [[median_ms(call, 15) for call in calls] for _ in range(rounds)]
    return [sorted(own)[rounds // 2] for own in zip(*times, strict=True)]


def cases():
    """For each benchmark: the graph's results, and NumPy's function of nothing."""
    import numpy as np

    from tensormagic.ops import contract
    from tensormagic.ops.fold import SOFTMAX, mean, row
    from tensormagic.ops.leaf import Source, input_node, open_type
    from tensormagic.ops.scalar import absolute, exp, log, log1p, maximum
    from tensormagic.transform.grad import gradient

    rng = np.random.default_rng(0)

    def node(name, value):
        source = Source(name, value)
        return input_node(source, open_type(source, np.asarray(value).dtype, np.shape(value)))

    x, y = rng.normal(size=10**6), rng.normal(size=10**6)
    S = rng.normal(size=(1000, 1000))
    X, w, b, t = rng.normal(size=(100_000, 30)), rng.normal(size=30), np.array(0.1), np.sign(rng.normal(size=100_000))

    def softmax():
        e = np.exp(S - S.max(1, keepdims=True))
        return (e / e.sum(1, keepdims=True),)

    def logistic():
        z = X @ w + b
        m = -t * z
        e = np.exp(m)
        g = -(t * (e / (1 + e))) / len(t)
        return np.mean(np.log1p(e)), X.T @ g, g.sum()

    nx, ny, nS, nX, nw, nb, nt = (
        node(*item) for item in {"x": x, "y": y, "S": S, "X": X, "w": w, "b": b, "t": t}.items()
    )
    loss = mean(log1p(exp(-nt * (contract.matmul(nX, nw) + nb))), (0,))
    return {
        "stable loss, 10⁶": (
            [mean(log(1 + exp(-absolute(nx))) + maximum(nx, 0) - nx * ny, (0,))],
            lambda: (np.mean(np.log(1 + np.exp(-abs(x))) + np.maximum(x, 0) - x * y),),
            (3.0, 2.2),
        ),
        "softmax over rows, 1000×1000": ([row(SOFTMAX, nS, (1,))], softmax, (3.0, 2.2)),
        "logistic loss and gradient, 10⁵×30": ([loss, *gradient(loss, [nw, nb])], logistic, (2.0, 2.0)),
    }


def closed(results):
    import numpy as np

    from tensormagic.ir.graph import close
    from tensormagic.ops.leaf import INPUT, parameter

    found = close(results, lambda n: n.op is INPUT, parameter)
    values = [leaf["source"].value for leaf in found.leaves]
    return found.graph, found.graph.bind([np.shape(v) for v in values]), values


def measure():
    """One setting: everything that is measured, as plain data."""
    import numpy as np

    from tensormagic.backend.native import compiled
    from tensormagic.backend.plan import plan_graph

    report = {"speed": [], "compile": []}
    for name, (results, numpy, wanted) in cases().items():
        graph, sizes, values = closed(results)
        begin = time.perf_counter()
        plan = plan_graph(graph)
        planning = (time.perf_counter() - begin) * 1e3
        begin = time.perf_counter()
        handle = compiled(plan)
        ready = (time.perf_counter() - begin) * 1e3
        for found, expected in zip(handle.run(sizes, *values), numpy(), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
        ours, theirs = medians_ms([lambda h=handle, s=sizes, v=values: h.run(s, *v), numpy])
        report["speed"].append([name, ours, theirs, wanted])
        report["compile"].append(
            [name, len(plan.kernels), planning, handle.compile_seconds * 1e3, ready, handle.from_cache]
        )
    report["call"] = small_call()
    return report


def small_call():
    """Microseconds for a run on three small arrays with two results, sizes bound beforehand."""
    import numpy as np

    from tensormagic.backend.native import compiled
    from tensormagic.backend.plan import plan_graph
    from tensormagic.ops.fold import SUM, fold
    from tensormagic.ops.leaf import Source, input_node, open_type

    nodes = []
    for name in "xyz":
        source = Source(name, np.arange(3.0))
        nodes.append(input_node(source, open_type(source, "f8", (3,))))
    x, y, z = nodes
    graph, sizes, values = closed([x * y + z, fold(SUM, x, (0,))])
    run = compiled(plan_graph(graph)).run

    def many():
        for _ in range(10_000):
            run(sizes, *values)

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
        f"A run on three arrays of 3 elements with two results takes {plain['call']:.2f} µs.",
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
