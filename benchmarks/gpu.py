"""Kernels on a card, beside what their peers need for the same: microseconds, with the data on the card.

``host``: by the host's clock with synchronisation, medians of 20, as peers are measured; ``card``: by events, a run among 20
without synchronisation between. Run on a machine with a card: ``python benchmarks/gpu.py``; with ``--compile`` it compiles what that
needs, and stops: no card is needed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from tensormagic.backend.cuda.compiling.compiler import Codes, compiled
from tensormagic.backend.cuda.device import Device, current
from tensormagic.backend.cuda.loops.guarded import copied

_check: Any = import_module("check_gpu")
Program, black_scholes = _check.Program, _check.black_scholes

MANY = 1 << 26
COPIED = 1 << 28  # elements, to know how quick the memory is


def cross_entropy(x: Any, y: Any) -> Any:
    """The mean of a cross entropy."""
    return np.mean(np.log(1 + np.exp(-np.abs(x))) + np.clip(x, 0, None) - x * y)


def softmax(x: Any) -> Any:
    """The softmax of rows."""
    e = np.exp(x - np.max(x, axis=1)[:, None])
    return e / np.sum(e, axis=1)[:, None]


def layer_norm(x: Any, g: Any, b: Any) -> Any:
    """The layer norm of rows."""
    m = np.mean(x, axis=1)[:, None]
    v = np.mean((x - m) ** 2, axis=1)[:, None]
    return (x - m) / np.sqrt(v + 1e-5) * g + b


PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "elementwise 2^26": (lambda x, y: np.exp(-x * x) * y + x, [(MANY,)] * 2),
    "cross entropy 2^26": (cross_entropy, [(MANY,)] * 2),
    "cross entropy 10^6": (cross_entropy, [(10**6,)] * 2),
    "softmax 32768x2048": (softmax, [(32768, 2048)]),
    "layer norm 32768x2048": (layer_norm, [(32768, 2048), (2048,), (2048,)]),
    "Black-Scholes 2^24": (black_scholes, [(MANY // 4,)] * 3),
    "sum of columns 32768x2048": (lambda x: np.sum(x, axis=0), [(32768, 2048)]),
    "sum of columns 2000000x30": (lambda x: np.sum(x, axis=0), [(2_000_000, 30)]),
    "sum of rows 2000000x30": (lambda x: np.sum(x, axis=1), [(2_000_000, 30)]),
    "sum of rows 64x1048576": (lambda x: np.sum(x, axis=1), [(64, 1 << 20)]),
    "transposed 8192x8192": (lambda x: x.T * 2, [(8192, 8192)]),
    "broadcast 8192x8192": (lambda x, y: x * y, [(8192, 8192), (8192, 1)]),
    "logistic 2000000x30": (_check.logistic, [(2_000_000, 30), (2_000_000,), (30,)]),
    "mean of columns and deviation": (lambda x: (x - np.mean(x, axis=0)) / np.std(x, axis=0), [(32768, 2048)]),
    "gather 2^26 of 2^20": (lambda x, i: x[i] * 2, [(1 << 20,), (MANY,)]),
    "running sum 2^26": (lambda x: np.cumsum(x), [(MANY,)]),
    "running sums of columns 32768x2048": (lambda x: np.cumsum(x, axis=0), [(32768, 2048)]),
    "argmax of rows 32768x2048": (lambda x: np.argmax(x, axis=1), [(32768, 2048)]),
    "four elements": (lambda x, y: np.exp(-x * x) * y + x, [(4,)] * 2),
}


def measure(program: Any) -> tuple[float, float]:
    """Microseconds of a run by the host's clock, and by the card's."""
    stream, event = program.cupy.cuda.Stream.null, program.cupy.cuda.Event
    for _ in range(3):
        program.run()
    stream.synchronize()
    found: list[float] = []
    for _ in range(20):
        begin = time.perf_counter()
        program.run()
        stream.synchronize()
        found.append(time.perf_counter() - begin)
    first, last = event(), event()
    first.record()
    for _ in range(20):
        program.run()
    last.record()
    last.synchronize()
    return float(np.median(found)) * 1e6, program.cupy.cuda.get_elapsed_time(first, last) / 20 * 1e3


def launch_costs(device: Device, count: int = 3000) -> tuple[float, float]:
    """Microseconds of the host for a launch of three arrays, and for a kernel of a recording of 64 that is replayed."""
    one = copied("float32")
    code = compiled(one, device.capability)
    kernel = device.load(code.data, code.symbol)
    given, target = device.put(np.zeros(4, np.float32)), device.put(np.zeros(4, np.float32))

    def launch() -> None:
        device.launch(kernel, (1,), (256,), [target, given, np.int64(4)])

    def timed(run: Callable[[], None], times: int) -> float:
        run()
        device.synchronize()
        begin = time.perf_counter()
        for _ in range(times):
            run()
        device.synchronize()
        return (time.perf_counter() - begin) / times * 1e6

    replay = device.recorded(lambda: [launch() for _ in range(64)] and None)
    return timed(launch, count), timed(replay, max(1, count // 64)) / 64 if replay is not None else float("nan")


def compile_costs(cc: tuple[int, int]) -> tuple[float, float]:
    """Seconds that one kernel takes to be compiled, with a worker that is there, and to come from the disk."""
    graph, _, _, found = _check.lowered(lambda x, y: np.exp(-x * x) * y + x, [np.zeros(64, np.float32)] * 2)
    del graph
    fresh = replace(found[0], source=f"{found[0].source}# {time.time_ns()}\n")
    compiled(copied("int8"), cc)

    def seconds() -> float:
        codes, begin = Codes([fresh], whole=True), time.perf_counter()
        codes.start(cc)
        codes.wait()
        return time.perf_counter() - begin

    return seconds(), seconds()


def compile_ahead(cc: tuple[int, int]) -> int:
    """Have the kernels of all programs compiled; how many are refused."""
    launches = [copied("float32"), copied("int8")]
    for label, (function, shapes) in PROGRAMS.items():
        for dtype in ("float32", "float64"):
            like = [np.broadcast_to(np.zeros((), dtype), s) for s in shapes]
            if "gather" in label:
                like[1] = np.broadcast_to(np.int64(0), shapes[1])
            launches += _check.lowered(function, like)[3]
    codes = Codes(launches, whole=False)
    codes.start(cc)
    codes.wait()
    print(f"{len(launches)} launches: {codes.compiled} compiled, {len(codes.errors)} refused")
    return len(codes.errors)


def told(text: str, measured: Callable[[], tuple[float, ...]]) -> None:
    """Say what was measured, or why it could not be: the others are measured all the same."""
    try:
        print(text.format(*measured()), flush=True)
    except Exception as error:  # noqa: BLE001 (whatever it is)
        print(f"{text}: {type(error).__name__}: {error}", flush=True)


def main() -> None:
    """Measure everything."""
    if "--compile" in sys.argv:
        sys.exit(int(compile_ahead((9, 0)) > 0))
    cupy = import_module("cupy")
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"{name}, driver {cupy.cuda.runtime.driverGetVersion()}, CuPy {cupy.__version__}, NumPy {np.__version__}")
    given, room = cupy.empty(COPIED, "f4"), cupy.empty(COPIED, "f4")
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    cupy.copyto(room, given)
    begin.record()
    for _ in range(10):
        cupy.copyto(room, given)
    end.record()
    end.synchronize()
    copy = 2 * given.nbytes * 10 / (cupy.cuda.get_elapsed_time(begin, end) * 1e-3) / 1e12
    print(f"device copy {copy:.2f} TB/s")
    del given, room
    cupy.get_default_memory_pool().free_all_blocks()
    device = current()
    told("a launch {:.1f} us of the host, a kernel of a replayed recording {:.2f} us", lambda: launch_costs(device))
    told("a kernel compiled in {:.2f} s, from the disk in {:.3f} s", lambda: compile_costs(device.capability))
    for label, (function, shapes) in PROGRAMS.items():
        for dtype in ("float32", "float64"):
            make: Any = cupy.random.uniform if "Black" in label else cupy.random.standard_normal
            arguments = [make(0.5, 2, s, dtype=dtype) if "Black" in label else make(s, dtype=dtype) for s in shapes]
            if "gather" in label:
                arguments[1] = cupy.random.randint(0, 1 << 20, MANY, dtype="int64")
            begin_at = time.perf_counter()
            try:
                program = Program(function, arguments)
                program.run()
                program.cupy.cuda.Device().synchronize()
                first = time.perf_counter() - begin_at
                host, card = measure(program)
                moved = sum(a.nbytes for a in arguments) + sum(r.nbytes for r in program.results())
                names = " ".join(one.name for one in program.launches)
                rate = moved / card / 1e6
                print(
                    f"{label} {dtype}: host {host:.0f}, card {card:.0f} us, {rate:.2f} TB/s, first {first:.2f} s [{names}]"
                )
            except Exception as error:  # noqa: BLE001 (the others are measured all the same)
                print(f"{label} {dtype}: {type(error).__name__}: {error}", flush=True)
            cupy.get_default_memory_pool().free_all_blocks()


if __name__ == "__main__":
    main()
