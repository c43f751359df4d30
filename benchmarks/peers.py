"""tensormagic beside NumPy, numexpr, JAX, PyTorch and PyTensor: first call and CPU time, one thread, all in one run.

``python benchmarks/peers.py [FILE.md] [NAME ...]`` in an environment that has the peers; one that is missing is left out, and named.
The programs are those of ``peer_programs.py``. The results of each peer are compared with NumPy's before anything is timed.
"""
# pyright: basic

from __future__ import annotations

import datetime as dt
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")

import numpy as np  # noqa: E402 (the threads are set first)
from peer_programs import PROGRAMS, Program  # noqa: E402
from peer_runs import machine, seconds, taking_part  # noqa: E402

ROUNDS = 7
BLOCK = 0.02
"""CPU seconds of a block of calls, roughly."""
NEAR = 1e-6
Call = Callable[[], object]
Prepare = Callable[[Program], Call | None]
EXPRESSIONS = {
    "10^6 elements, a mean": ("sum(log(1 + exp(-abs(a))) + where(a > 0, a, 0) - a * b)", 1e-6),
    "2·10^6 elements": ("sqrt(a * a + b * b) * 2 - a / (b + 3) + 1", 1),
    "4·10^6 elements": ("sum(a * b)", 1),
}
"""What NumExpr can say: the expression, and what its result is multiplied with."""


def loop(steps, body, state):
    for i in range(steps):
        state = body(i, state)
    return state


def inner(u, new):
    u = u.copy()
    u[1:-1, 1:-1] = new
    return u


NAMES = [
    "abs",
    "amax",
    "cumsum",
    "exp",
    "eye",
    "linalg",
    "log",
    "mean",
    "minimum",
    "ones_like",
    "sqrt",
    "sum",
    "tanh",
    "where",
    "zeros",
]


def namespace(base, **more):
    """A library's functions, and those that it calls otherwise or leaves to the language."""
    names = {name: getattr(base, name) for name in NAMES if hasattr(base, name)}
    return SimpleNamespace(**(names | {"loop": loop, "inner": inner} | more))


NUMPY = namespace(np)


def with_numpy() -> Prepare:
    """Without gradients: what they are held against is in ``derivatives.py``."""

    def prepare(program):
        arrays = program.arrays()
        return lambda: program.function(NUMPY, *arrays)

    return prepare


def with_tensormagic() -> Prepare:
    import tensormagic as tm

    tm.config.tier, tm.config.threads = "numba", 1

    def prepare(program):
        function = program.function

        def f(*arrays):
            return function(NUMPY, *arrays)

        arrays = program.arrays()
        run = tm.value_and_grad(f, tuple(range(program.grad))) if program.grad else tm.tensor(f)
        return lambda: run(*arrays)

    return prepare


def with_numexpr() -> Prepare:
    import numexpr

    numexpr.set_num_threads(1)

    def prepare(program):
        if program.about not in EXPRESSIONS:
            return None
        text, factor = EXPRESSIONS[program.about]
        names = dict(zip("ab", program.arrays(), strict=False))
        return lambda: numexpr.evaluate(text, names) * factor if factor != 1 else numexpr.evaluate(text, names)

    return prepare


def with_jax() -> Prepare:
    import jax
    import jax.numpy as jnp

    xp = namespace(jnp)
    xp.loop = lambda steps, body, state: jax.lax.fori_loop(0, steps, body, state)
    xp.inner = lambda u, new: u.at[1:-1, 1:-1].set(new)

    def prepare(program):
        def f(*arrays):
            return program.function(xp, *arrays)

        arrays = [jnp.asarray(a) for a in program.arrays()]
        run = jax.jit(jax.value_and_grad(f, tuple(range(program.grad))) if program.grad else f)
        return lambda: jax.block_until_ready(run(*arrays))

    return prepare


def torch_namespace(torch):
    def clone(u, new):
        u = u.clone()
        u[1:-1, 1:-1] = new
        return u

    xp = namespace(torch)
    xp.inner, xp.eye, xp.zeros = (
        clone,
        lambda n: torch.eye(n, dtype=torch.float64),
        lambda shape: torch.zeros(shape, dtype=torch.float64),
    )
    return xp


def with_torch() -> Prepare:
    import torch

    torch.set_num_threads(1)
    xp = torch_namespace(torch)

    def prepare(program):
        arrays = [torch.from_numpy(np.asarray(a)) for a in program.arrays()]
        if not program.grad:
            return lambda: program.function(xp, *arrays)
        own = [a.clone().requires_grad_() for a in arrays[: program.grad]]

        def run():
            value = program.function(xp, *own, *arrays[program.grad :])
            return value.detach(), torch.autograd.grad(value, own)

        return run

    return prepare


def with_torch_compiled() -> Prepare:
    import torch

    if not os.environ.get("PEERS_COMPILE"):
        raise ImportError("set PEERS_COMPILE=1: it takes minutes, and a C++ compiler")
    torch.set_num_threads(1)
    xp = torch_namespace(torch)

    def prepare(program):
        if program.function.__code__.co_consts and "loop" in program.function.__code__.co_names:
            return None  # unrolled, it takes minutes to compile
        arrays = [torch.from_numpy(np.asarray(a)) for a in program.arrays()]
        own = [a.clone().requires_grad_() for a in arrays[: program.grad]]
        torch.compiler.reset()  # one function is compiled for eight programs at most, and silently run as it is for others
        compiled = torch.compile(lambda *given: program.function(xp, *given))
        if not program.grad:
            return lambda: compiled(*arrays)

        def run():
            value = compiled(*own, *arrays[program.grad :])
            return value.detach(), torch.autograd.grad(value, own)

        return run

    return prepare


def with_pytensor() -> Prepare:
    import pytensor
    import pytensor.tensor as pt

    xp = namespace(pt, amax=lambda x, axis: pt.max(x, axis=axis))
    xp.linalg = SimpleNamespace(cholesky=pt.linalg.cholesky, solve=pt.linalg.solve, diagonal=pt.diagonal)
    kinds = (pt.dscalar, pt.dvector, pt.dmatrix, pt.dtensor3)

    def prepare(program):
        if "PyTensor" in program.without:
            return None
        arrays = program.arrays()
        made = []

        def call():
            if not made:
                inputs = [kinds[np.ndim(a)]() for a in arrays]
                value = program.function(xp, *inputs)
                outputs = [value, *pytensor.grad(value, inputs[: program.grad])] if program.grad else value
                made.append(
                    pytensor.function(
                        inputs, list(outputs) if isinstance(outputs, tuple) else outputs, on_unused_input="ignore"
                    )
                )
            return made[0](*arrays)

        return call

    return prepare


PEERS = {
    "NumPy": ("numpy", with_numpy),
    "tensormagic": ("numba", with_tensormagic),
    "numexpr": ("numexpr", with_numexpr),
    "JAX": ("jax", with_jax),
    "PyTorch": ("torch", with_torch),
    "torch.compile": ("torch", with_torch_compiled),
    "PyTensor": ("pytensor", with_pytensor),
}


def flat(result: object) -> list[np.ndarray]:
    """The arrays of a result, in order."""
    if isinstance(result, (tuple, list)):
        return [a for part in result for a in flat(part)]
    return [np.asarray(result)]


def agree(name: str, own: object, other: object, grad: bool) -> None:
    """Raise where a peer's result is another than tensormagic's."""
    for a, b in zip(flat(own), flat(other), strict=not grad):
        if a.shape != b.shape or not np.allclose(a, b, rtol=NEAR, atol=NEAR * float(np.max(np.abs(a)))):
            raise AssertionError(f"{name}: results differ")


def block(call: Call, count: int) -> float:
    """CPU milliseconds of a call in a block; the first, which finds the caches full of another's data, is not counted."""
    call()
    begin = time.process_time_ns()
    for _ in range(count):
        call()
    return (time.process_time_ns() - begin) / 1e6 / count


def measured(name: str, prepared: dict[str, Prepare]) -> tuple[dict[str, float], dict[str, float], list[str]]:
    """First calls in seconds, CPU milliseconds of later ones: blocks of calls, the peers in turn; and who failed."""
    program, calls, failed = PROGRAMS[name], {}, []
    first, results = {}, {}
    for peer, prepare in prepared.items():
        try:
            call = prepare(program)
            if call is None:
                continue
            first[peer] = seconds(lambda call=call, peer=peer: results.__setitem__(peer, call()))
            if peer != "NumPy":
                agree(f"{name} by {peer}", results["tensormagic"], results[peer], bool(program.grad))
        except Exception as error:  # noqa: BLE001 (a peer that cannot run a program is named, whatever stops it)
            failed.append(
                f"{name} by {peer}: {type(error).__name__}: {str(error).splitlines()[0][:120] if str(error) else ''}"
            )
            continue
        calls[peer] = call
    counts = {peer: max(2, min(200, int(BLOCK / max(block(call, 2) / 1e3, 1e-5)))) for peer, call in calls.items()}
    times: dict[str, list[float]] = {peer: [] for peer in calls}
    for _ in range(ROUNDS):
        for peer, call in calls.items():
            times[peer].append(block(call, counts[peer]))
    return first, {peer: statistics.median(t) for peer, t in times.items()}, failed


def mean(ratios: Iterable[float]) -> str:
    """The geometric mean, in text."""
    logs = [math.log(r) for r in ratios]
    return f"{math.exp(sum(logs) / len(logs)):.2f} ({len(logs)})" if logs else "–"


def main() -> None:
    """Measure, print, and write the page."""
    given = sys.argv[1:]
    file = given.pop(0) if given and given[0].endswith(".md") else None
    prepared, versions, missing = taking_part(PEERS)
    load = os.getloadavg()[0]
    others = [peer for peer in prepared if peer != "tensormagic"]
    rows, failed, found = [], [], {}
    for name in given or PROGRAMS:
        first, times, wrong = measured(name, prepared)
        failed += wrong
        found[name] = times
        best = min((t for peer, t in times.items() if peer not in ("tensormagic", "NumPy")), default=math.nan)
        cells = [f"{times[p]:.3g} ({first[p]:.2g})" if p in times else "–" for p in ("tensormagic", *others)]
        rows.append(f"| {name} | " + " | ".join(cells) + f" | {best / times['tensormagic']:.2f} |")
        print(rows[-1], flush=True)
    means = []
    for peer in others:
        plain = [n for n in found if peer in found[n] and not (peer == "NumPy" and PROGRAMS[n].grad)]
        means.append(mean(found[n][peer] / found[n]["tensormagic"] for n in plain))
    best = [
        min(t for p, t in times.items() if p not in ("tensormagic", "NumPy")) / times["tensormagic"]
        for times in found.values()
    ]
    text = [
        "# Beside the peers",
        "",
        f"`python benchmarks/peers.py`, {dt.datetime.now(dt.UTC).date()}; {machine()}, load {load:.1f}; {', '.join(versions)};",
        "one thread, malloc as it comes.",
        "",
        f"CPU milliseconds of a call: the median of {ROUNDS} blocks of calls, the peers in turn; in brackets wall seconds of the first",
        "call, compiling included (tensormagic: waiting for the compiler, with its cache as it is). NumPy: the value, without gradients.",
        "All results were compared with each other first. The last column: the fastest library's time over tensormagic's.",
        "",
        "| program | tensormagic | " + " | ".join(others) + " | fastest / tensormagic |",
        "|---|" + "---:|" * (len(others) + 2),
        *rows,
        "| geometric mean of their times over tensormagic's (programs) | | " + " | ".join(means) + f" | {mean(best)} |",
        "",
        f"Faster than every library on {sum(r > 1 for r in best)} of {len(best)}; at worst {min(best):.2f} of the fastest one's speed.",
        "",
        *(f"- *{name}*: {PROGRAMS[name].about}" for name in found),
        *([f"\nNot taking part: {', '.join(missing)}."] if missing else []),
        *([""] + [f"- {line}" for line in failed] if failed else []),
    ]
    page = "\n".join(text) + "\n"
    print(page)
    if file:
        Path(file).write_text(page)


if __name__ == "__main__":
    main()
