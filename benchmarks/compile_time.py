"""What stands between a call and machine code: ``python benchmarks/compile_time.py [FILE.md]``.

Twelve programs, from an empty cache. For each: planning, then each step of compiling its kernels in a process that does
nothing else (CPU time, the least of three), by this compiler and by Numba's front end; the wall time until a call has machine
code with the worker ready, and the same from the disk cache in a new process.
"""
# pyright: basic

from __future__ import annotations

import datetime as dt
import itertools
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from speed import processor

HERE = Path(__file__).parent
ROOT = HERE.parent
CHAIN = (250, 500, 1000, 2000, 5000)
ROUNDS = 3
HEADS = (
    *("program", "kernels", "planning", "text", "passes", "code", "in all", "Numba", "passes", "code", "in all"),
    *("first call, wall", "from the cache, wall", "CPU"),
)
EXPLAINED = (
    f"Milliseconds of CPU, the least of {ROUNDS} for each kernel. *Text*: one pass over the kernel's syntax tree, and LLVM's",
    "parser. *Numba*: its front end in the steps that kernels need. Passes and code are LLVM's. The last three columns are one",
    "call in a process of its own, pinned to compiled code: wall time with an empty cache and a worker that is ready (capture,",
    "planning, compiling, loading), and wall and CPU time from the disk cache (capture, planning, the loader's import, loading).",
)


def graph_of(function, values):
    """The graph that a call compiles."""
    from tensormagic.transform.rewriting import rewrite

    return rewrite(function.graph(*values)).graph


def chain(count):
    """A graph of so many nodes: links of three, with a number of its own in each."""
    import numpy as np

    from tensormagic.ir.closing import close
    from tensormagic.ops.leaf import INPUT, Source, input_node, open_type, parameter
    from tensormagic.ops.scalars.scalar import tanh

    values = {"x": np.linspace(0, 1, 100), "w": np.float64(0.3)}
    x, w = (
        input_node(Source(name, value), open_type(Source(name, value), np.asarray(value).dtype, np.shape(value), form))
        for (name, value), form in zip(values.items(), ("array", "scalar"), strict=True)
    )
    for k in range(count // 3):
        x = tanh(x * w + (0.1 + k))
    return close([x], lambda n: n.op is INPUT, parameter).graph


def session():
    """For each program: what is compiled, and what planning takes."""
    from compile_programs import programs

    from tensormagic.backend.planning.plan import plan_graph

    found = {}
    graphs = {name: graph_of(*program) for name, program in programs().items()}
    for name, graph in {**graphs, **{f"chain of {n}": chain(n) for n in CHAIN}}.items():
        begin = time.process_time()
        plan = plan_graph(graph)
        spent = time.process_time() - begin
        found[name] = {
            "sources": plan.sources, "kernels": len(plan.kernels), "nodes": len(graph.nodes), "plan": spent,
        }  # fmt: skip
    return found


def compiled(sources, front, machine):
    """CPU seconds of the steps for some kernels, the least of some rounds, and the size of the code."""
    from tensormagic.backend.cpu.code import optimise

    total, size = [0.0] * 3, 0
    for source in sources:
        rounds = []
        for _ in range(ROUNDS):
            times = [time.process_time()]
            module = front(source)
            times.append(time.process_time())
            optimise(module)
            times.append(time.process_time())
            code = machine.emit_object(module)
            times.append(time.process_time())
            rounds.append([b - a for a, b in itertools.pairwise(times)])
        total = [t + min(own) for t, own in zip(total, zip(*rounds, strict=True), strict=True)]
        size += len(code)
    return [*total, size]


def by_text(source):
    """One pass over the text."""
    import llvmlite.binding as llvm  # noqa: TID251 (what is measured)

    from tensormagic.backend.cpu.text import module_of

    return llvm.parse_assembly(module_of(source))


def by_numba(source):
    """Numba's front end."""
    from tensormagic.backend.cpu.by_numba import lowered_by_numba

    return lowered_by_numba(source)[0]


def compiling(plans, which):
    """The steps for every program."""
    from tensormagic.backend.cpu.target import target_machine

    front, machine = {"text": by_text, "numba": by_numba}[which], target_machine()
    front("def kernel(table):\n    pass\n")
    return {name: compiled(plan["sources"], front, machine) for name, plan in plans.items()}


def first_call(name):
    """Wall and CPU milliseconds of the first call of one program, pinned to compiled code."""
    from compile_programs import programs

    import tensormagic as tm
    from tensormagic.backend.compiling import native

    tm.config.tier = "numba"
    if len(sys.argv) > 3:
        native.prepare()
        time.sleep(2.0)
    function, values = programs()[name]
    begin, cpu = time.perf_counter(), time.process_time()
    function(*values)
    return [(time.perf_counter() - begin) * 1e3, (time.process_time() - cpu) * 1e3]


def worker():
    """CPU and wall seconds until a worker has compiled its first kernel, the least of three."""
    import resource
    import threading

    from tensormagic.backend.compiling.compiler import Compiler
    from tensormagic.backend.compiling.messages import Request

    rounds = []
    for _ in range(ROUNDS):
        done = threading.Event()
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        compiler = Compiler(lambda *_, done=done: done.set())
        compiler.prepare()
        compiler.submit("one", Request("def kernel(table):\n    pass\n"))
        done.wait()
        wall = time.perf_counter() - begin
        compiler.close()
        time.sleep(0.5)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        rounds.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall))
    return [min(own) for own in zip(*rounds, strict=True)]


def child(folder, *arguments, given=""):
    """What a process of its own prints, with this cache folder, and bytecode as an installation has it."""
    environment = {
        **os.environ, "TENSORMAGIC_CACHE_FOLDER": folder, "PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}",
        "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "compile-time-bytecode"),
    }  # fmt: skip
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, __file__, *arguments], env=environment, input=given, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def measured():
    """All of it, as the lines of the page's tables."""
    with tempfile.TemporaryDirectory() as folder:
        child(folder, "--session")  # bytecode is written
        plans = child(folder, "--session")
        given = json.dumps(plans)
        ours, numbas = (child(folder, "--compile", which, given=given) for which in ("text", "numba"))
        cpu, wall = child(folder, "--worker")
    rows, lengths = [], []
    for name, plan in plans.items():
        a, b = ours[name], numbas[name]
        ms = [f"{1e3 * t:.0f}" for t in (plan["plan"], *a[:3], sum(a[:3]), *b[:3], sum(b[:3]))]
        if name.startswith("chain of"):
            counts = [plan["nodes"], plan["kernels"], len(plan["sources"]), ms[0], ms[4], ms[8]]
            lengths.append(f"| {' | '.join(map(str, counts))} |")
            continue
        with tempfile.TemporaryDirectory() as folder:
            child(folder, "--call", name, "ready")
            cold = []
            for _ in range(ROUNDS):
                with tempfile.TemporaryDirectory() as empty:
                    cold.append(child(empty, "--call", name, "ready"))
            warm = [child(folder, "--call", name) for _ in range(ROUNDS)]
        first, again, spent = min(c[0] for c in cold), min(w[0] for w in warm), min(w[1] for w in warm)
        rows.append(f"| {name} | {len(plan['sources'])} | {' | '.join(ms)} | {first:.0f} | {again:.0f} | {spent:.0f} |")
    return rows, lengths, cpu, wall


def main():
    """Measure and print."""
    rows, lengths, cpu, wall = measured()
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "llvmlite"))
    today, load = f"{dt.datetime.now(tz=dt.UTC):%Y-%m-%d}", f"(busy with other work: load {os.getloadavg()[0]:.1f})"
    page = "\n".join(
        [
            "# Time to machine code",
            "",
            f"{today}, {processor()}, {os.cpu_count()} cores {load}, CPython {platform.python_version()}, {versions}.",
            "`python benchmarks/compile_time.py FILE.md` writes this page.",
            "",
            *EXPLAINED,
            "",
            f"| {' | '.join(HEADS)} |",
            f"|---|{'---:|' * (len(HEADS) - 1)}",
            *rows,
            "",
            f"A worker from its start to its first kernel: {1e3 * cpu:.0f} ms of CPU, {1e3 * wall:.0f} ms of wall time.",
            "",
            "A chain of `x = tanh(x * w + k)`, `k` different in each link, by length:",
            "",
            "| nodes | kernels | of different text | planning | compiling | by Numba's front end |",
            "|---:|---:|---:|---:|---:|---:|",
            *lengths,
            "",
        ]
    )
    print(page)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page, encoding="utf-8")


MODES = {
    "--session": session,
    "--worker": worker,
    "--compile": lambda: compiling(json.load(sys.stdin), sys.argv[2]),
    "--call": lambda: first_call(sys.argv[2]),
}

if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] in MODES:
        print(json.dumps(MODES[sys.argv[1]]()))
    else:
        main()
