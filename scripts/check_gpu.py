"""Kernels on a card: each class of them against NumPy, and repeated runs against each other.

Run on a machine with a card, CuPy and numba-cuda::

    python scripts/check_gpu.py                # values; exits with 1 where one is wrong
    python scripts/check_gpu.py --share 1/4    # a fourth of them; four processes at once take a third of the time
    python scripts/check_gpu.py --small        # each class once, for compute-sanitizer
    python scripts/check_gpu.py --compile      # compiles what the values need, and stops: no card is needed

Integers and truth values have to be equal. Floats are held against NumPy in float64 (float32) or extended precision
(float64), in units of the last place of the largest number that took part.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import tensormagic as tm
from tensormagic.backend.cuda.compiling.compiler import Codes, compiled
from tensormagic.backend.cuda.device import Card, missing
from tensormagic.backend.cuda.kernels.launch import Array, Count, Fault, Launch, Number, Scratch, chosen
from tensormagic.backend.cuda.kernels.lowering import lower
from tensormagic.backend.cuda.plan import plan_device
from tensormagic.backend.planning.schedule import Kernel
from tensormagic.ir.size import evaluate
from tensormagic.ops.leaf import CONSTANT


def lowered(function: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Any, Any, Any, list[Launch]]:
    """The graph of a function, its plan, the sizes of arguments, and the launches for these sizes, in order."""
    like = [
        np.empty(a.shape, a.dtype) if a.size < 2 else f"{a.dtype}[{', '.join(map(str, a.shape))}]" for a in arguments
    ]
    graph = tm.trace(function, *like)
    plan, sizes = plan_device(graph), graph.bind([a.shape for a in arguments])
    found: list[Launch] = []
    for step in plan.steps:
        launches = lower(step, plan) if isinstance(step, Kernel) else None
        if launches is None:
            raise ValueError(f"there is no kernel for {step}")
        found += chosen(launches, sizes)
    return graph, plan, sizes, found


class Program:
    """A function whose steps are all kernels, on a card; arrays stay there.

    Parameters
    ----------
    function
        What is captured.
    arguments
        Arrays of NumPy, or of CuPy.
    """

    def __init__(self, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        self.cupy = cupy = import_module("cupy")
        self.graph, self.plan, self.sizes, self.launches = lowered(function, arguments)
        self.held: dict[Any, Any] = {
            p: cupy.ascontiguousarray(cupy.asarray(a)) for p, a in zip(self.graph.parameters, arguments, strict=True)
        }
        self.fault = cupy.zeros(4, cupy.int64)
        self.calls: list[tuple[Any, tuple[Any, ...]]] = []
        self._modules: list[Any] = []
        major, minor = divmod(int(cupy.cuda.Device().compute_capability), 10)
        for one in self.launches:
            self._prepare(one, (major, minor))

    def _prepare(self, one: Launch, cc: tuple[int, int]) -> None:
        blocks, threads, shared = one.grid(self.sizes)
        arguments = tuple(map(self._argument, one.parameters))
        if not blocks:
            return
        code = compiled(one, cc)
        module = self.cupy.cuda.function.Module()
        module.load(code.data)
        self._modules.append(module)
        self.calls.append((module.get_function(code.symbol), ((blocks,), (threads,), arguments, shared)))

    def _argument(self, parameter: Any) -> Any:
        if isinstance(parameter, Count):
            return np.int64(evaluate(parameter.size, self.sizes.__getitem__))
        if isinstance(parameter, Number):
            return parameter.value
        if isinstance(parameter, Fault):
            return self.fault
        key = parameter.key if isinstance(parameter, Scratch) else parameter.node
        if key not in self.held and isinstance(parameter, Array) and parameter.node.op is CONSTANT:
            self.held[key] = self.cupy.asarray(np.ascontiguousarray(parameter.node["bits"].array()))
        if key not in self.held:
            size = parameter.count if isinstance(parameter, Scratch) else parameter.node.type.size
            count = evaluate(size, self.sizes.__getitem__)
            self.held[key] = self.cupy.empty(max(count, 16), parameter.type.lstrip("*"))
        return self.held[key]

    def run(self) -> None:
        """Launch all kernels."""
        for function, call in self.calls:
            function(*call)

    def results(self) -> list[np.ndarray]:
        """What they have computed, on the host."""
        found: list[np.ndarray] = []
        for node in self.plan.block.results:
            shape = tuple(evaluate(s, self.sizes.__getitem__) for s in node.type.shape)
            data = self.held.get(self.plan.memory.owner(node))
            count = int(np.prod(shape))
            found.append(
                np.empty(shape, node.type.dtype) if data is None else data.reshape(-1)[:count].get().reshape(shape)
            )
        return found


@dataclass
class Case:
    """One class of kernels: a function of arrays, and which dtypes and shapes it is tried with."""

    name: str
    function: Callable[..., Any]
    dtypes: tuple[str, ...]
    shapes: tuple[tuple[tuple[int, ...], ...], ...]


FLOATS = ("float32", "float64")
ALL_FLOATS = ("float16", *FLOATS)
COMPLEX = ("complex64", "complex128")
STORED = (*ALL_FLOATS, *COMPLEX)
INTEGERS = ("int8", "uint8", "int16", "int32", "uint32", "int64")
LINES = tuple(((n,),) for n in (1, 5, 31, 32, 33, 4096, 100_003))
PAIRS = tuple((n, n) for (n,) in LINES)
TABLES = tuple(((n, k),) for n, k in ((3, 2), (9, 7), (5, 64), (33, 257), (4, 2048), (2, 20_000), (3000, 30)))


def black_scholes(s: Any, k: Any, t: Any) -> Any:
    """The price of an option, with a logistic function for the normal distribution."""
    d1 = (np.log(s / k) + (0.02 + 0.045) * t) / (0.3 * np.sqrt(t))
    d2 = d1 - 0.3 * np.sqrt(t)
    first, second = 1 / (1 + np.exp(-1.702 * d1)), 1 / (1 + np.exp(-1.702 * d2))
    return s * first - k * np.exp(-0.02 * t) * second


def softmax(x: Any) -> Any:
    """The softmax of rows."""
    e = np.exp(x - np.max(x, axis=1)[:, None])
    return e / np.sum(e, axis=1)[:, None]


def layer_norm(x: Any) -> Any:
    """Rows of mean 0 and variance 1."""
    centred = x - np.mean(x, axis=1)[:, None]
    return centred / np.sqrt(np.mean(centred**2, axis=1)[:, None] + 1e-5)


def logsumexp(x: Any) -> Any:
    """The logarithm of sums of exponentials of rows."""
    m = np.max(x, axis=1)
    return m + np.log(np.sum(np.exp(x - m[:, None]), axis=1))


def padded(x: Any) -> Any:
    """A store into part of an array."""
    y = np.zeros_like(x)
    y[1:, 2:] = x[:-1, :-2] * 2
    return y


def stencil(x: Any) -> Any:
    """A store that begins with a copy."""
    y = x.copy()
    y[1:-1] = x[:-2] + x[2:]
    return y


def logistic(x: Any, y: Any, w: Any) -> Any:
    """The logistic loss and its gradient."""
    z = y * (x @ w)
    return np.mean(np.log1p(np.exp(-z))), x.T @ (-y / (1 + np.exp(z))) / x.shape[0]


CASES = [
    Case("maps", lambda x: np.exp(-x * x) * 0.3 + x, ALL_FLOATS, LINES),
    Case(
        "functions", lambda x: (np.tanh(x), np.log1p(np.exp(x)), np.sqrt(np.abs(x)), np.arctan(x)), FLOATS, LINES[-2:]
    ),
    Case("integers", lambda x: (x + x, x * 3, x // 3, x % 5, x & 7, x > 2), INTEGERS, LINES[-3:]),
    Case(
        "broadcast",
        lambda x, y: x * y + 1,
        ALL_FLOATS,
        (((33, 257), (257,)), ((64, 64), (64, 1)), ((5, 1, 7), (1, 4, 7))),
    ),
    Case("transposed", lambda x: (x.T + x.T * 2, x.T > 0), ALL_FLOATS, (*TABLES[:4], ((700, 333),))),
    Case("transposed axes", lambda x: np.transpose(x, (2, 0, 1)) + 1, FLOATS, (((20, 3, 33),), ((100, 7, 65),))),
    Case(
        "trigonometry", lambda x: (np.sin(x), np.cos(x * 2.0**17), np.tan(x), np.sin(x * 2.0**66)), FLOATS, LINES[-2:]
    ),
    Case("stores", padded, STORED, TABLES[2:4]),
    Case("stencil", stencil, STORED, TABLES[2:4]),
    Case("gathers", lambda x: x[np.array([0, -1, 2, 1])] + 1, STORED, TABLES[2:4]),
    Case(
        "folds of both in one pass", lambda x: (np.sum(np.exp(-np.abs(x)), axis=0), np.exp(-np.abs(x))), FLOATS, TABLES
    ),
    Case("logistic", logistic, FLOATS, (((3000, 30), (3000,), (30,)), ((257, 7), (257,), (7,)))),
    Case("sliced", lambda x: x[1:, ::2] - x[:-1, ::2], ALL_FLOATS, TABLES[1:4]),
    Case("several results", lambda x: (x + 1, np.exp(x), x > 0), ALL_FLOATS, LINES[-2:]),
    Case("totals", lambda x: (np.sum(x), np.max(x), np.mean(x * x)), ALL_FLOATS, LINES),
    Case("whole totals", lambda x: (np.sum(x), np.max(x), np.any(x > 3)), INTEGERS, LINES[-3:]),
    Case("folds of rows", lambda x: (np.sum(x, axis=1), np.max(x, axis=1)), (*ALL_FLOATS, "int32"), TABLES),
    Case("folds of columns", lambda x: (np.sum(x, axis=0), np.min(x, axis=0)), (*FLOATS, "int32"), TABLES),
    Case("folds of both", lambda x: np.sum(x, axis=(0, 2)), FLOATS, (((4, 50, 60),), ((2, 3, 5),))),
    Case("scans", lambda x: (np.cumsum(x), np.maximum.accumulate(x * 2)), ALL_FLOATS, LINES[1:]),
    Case("scans of integers", lambda x: (np.cumsum(x), np.minimum.accumulate(x)), INTEGERS, LINES[-3:]),
    Case(
        "scans of rows and columns",
        lambda x: (np.cumsum(x, axis=1), np.cumsum(x, axis=0)),
        FLOATS,
        (*TABLES, ((200, 1100),)),
    ),
    Case("places", lambda x: (np.argmax(x, axis=1), np.argmin(x, axis=0)), (*FLOATS, "int32"), TABLES),
    Case("softmax", softmax, ALL_FLOATS, TABLES),
    Case("layer norm", layer_norm, ALL_FLOATS, TABLES),
    Case("logsumexp", logsumexp, FLOATS, TABLES),
    Case("complex", lambda z, w: (z * w + z, z / w, np.abs(z), np.exp(z), z == w), COMPLEX, PAIRS),
    Case("complex tables", lambda z: (z.T * 2j, np.sum(z), np.sum(np.abs(z), axis=1)), COMPLEX, TABLES[:6]),
    Case("black scholes", black_scholes, ALL_FLOATS, (((4096,),) * 3, ((1001,),) * 3)),
]
MOST_ULPS = 64.0  # of the largest number of a result: sums of 100,003 numbers, NumPy's in pairs


def _arguments(case: Case, dtype: str, shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
    rng = np.random.default_rng(len(case.name))
    if dtype.startswith(("int", "uint")):
        return [rng.integers(0, 100, s).astype(dtype) for s in shapes]
    if dtype.startswith("complex"):
        return [(rng.normal(size=s) + 1j * rng.normal(size=s)).astype(dtype) for s in shapes]
    if case.name == "black scholes":
        return [rng.uniform(0.5, 2, s).astype(dtype) for s in shapes]
    return [rng.normal(size=s).astype(dtype) for s in shapes]


def _off(found: np.ndarray, expected: np.ndarray) -> float:
    """How far off a result is, in units of the last place of the largest number; infinite where integers differ."""
    if found.shape != expected.shape:
        return np.inf
    if found.dtype.kind == "c":
        return max(_off(found.real, expected.real), _off(found.imag, expected.imag))
    if found.dtype.kind != "f":
        return 0.0 if np.array_equal(found, expected) else np.inf
    if not expected.size:
        return 0.0
    unit = np.spacing(np.max(np.abs(expected)).astype(found.dtype)).astype(np.longdouble)
    return float(np.max(np.abs(found.astype(np.longdouble) - expected.astype(np.longdouble))) / unit)


def check(case: Case, dtype: str, shapes: Sequence[tuple[int, ...]]) -> float:
    """How far off the worst result of a case is; infinite also where a second run gives other bits."""
    arguments = _arguments(case, dtype, shapes)
    program = Program(case.function, arguments)
    program.run()
    found = program.results()
    program.run()
    again = program.results()
    wider = {"float64": np.longdouble, "complex64": np.complex128, "complex128": np.clongdouble}.get(dtype, np.float64)
    wide = [a.astype(wider) if a.dtype.kind in "fc" else a for a in arguments]
    expected = case.function(*wide)
    expected = expected if isinstance(expected, tuple) else (expected,)
    same = all(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") for a, b in zip(found, again, strict=True))
    return max(_off(f, np.asarray(e)) for f, e in zip(found, expected, strict=True)) if same else np.inf


def compile_ahead(tries: Sequence[Try], cc: tuple[int, int]) -> int:
    """Have the kernels of all tries compiled at once, side by side; how many are refused."""
    begin = time.perf_counter()
    launches = [
        one for case, dtype, shapes in tries for one in lowered(case.function, _arguments(case, dtype, shapes))[3]
    ]
    planned = time.perf_counter()
    codes = Codes(launches, whole=False)
    codes.start(cc)
    codes.wait()
    for error in dict.fromkeys(codes.errors.values()):
        print(f"WRONG {error}")
    seconds = f"{planned - begin:.0f} s to plan, {time.perf_counter() - planned:.0f} s to compile"
    counts = f"{codes.compiled} compiled, {len(codes.errors)} refused"
    print(f"{len(launches)} launches of {len(tries)} programs: {seconds}, {counts}", flush=True)
    return len(codes.errors)


def check_values(tries: Sequence[Try]) -> int:
    """Run all tries on the card; how many pairs of a class and a dtype are wrong."""
    worst: dict[tuple[str, str], list[float]] = {}
    for case, dtype, shapes in tries:
        try:
            off = check(case, dtype, shapes)
        except Exception:  # noqa: BLE001 (the others are checked all the same)
            traceback.print_exc()
            off = np.inf
        worst.setdefault((case.name, dtype), []).append(off)
    for (name, dtype), all_off in worst.items():
        verdict = "WRONG" if max(all_off) > MOST_ULPS else "ok   "
        print(f"{verdict} {name}, {dtype}, {len(all_off)} shapes: {max(all_off):.1f} ulp", flush=True)
    wrong = sum(max(all_off) > MOST_ULPS for all_off in worst.values())
    print(f"{wrong} wrong", flush=True)
    return wrong


def chosen_tries(share: str, *, small: bool) -> list[Try]:
    """Every class with each of its dtypes and shapes, or once; of these a share, as ``"1/4"``."""
    tries: list[Try] = []
    for case in CASES:
        shapes = case.shapes[-2:-1] or case.shapes if small else case.shapes
        dtypes = case.dtypes[:1] if small else case.dtypes
        tries += [(case, dtype, shape) for dtype in dtypes for shape in shapes]
    number, count = map(int, share.split("/"))
    return tries[number - 1 :: count]


Try = tuple[Case, str, Sequence[tuple[int, ...]]]


def main() -> int:
    """Check what is asked for; gives 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--share", default="1/1", metavar="K/N")
    options = parser.parse_args()
    why = None if options.compile else missing()
    if why is not None:
        print(f"needs a card: {why[0]} ({why[1]})")
        return 1
    tries = chosen_tries(options.share, small=options.small)
    refused = compile_ahead(tries, (9, 0) if options.compile else Card().capability)
    return int(refused + (0 if options.compile else check_values(tries)) > 0)


if __name__ == "__main__":
    sys.exit(main())
