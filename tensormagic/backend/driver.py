"""Prints the Python function that runs a plan: arrays, kernel calls and library calls in a straight line."""

from __future__ import annotations

import linecache
import struct
import threading
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from tensormagic.backend.buffers import LARGE, owned, packed, pool
from tensormagic.backend.cpu import tile_rows
from tensormagic.backend.kernel_text import Entry
from tensormagic.backend.lower import Lowered, is_base, is_leaf, is_library, stripped
from tensormagic.backend.schedule import Kernel, Step
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.type import Apply, Dim, Size, Symbol, evaluate, lower_bound, product
from tensormagic.ops.contract import CONTRACT
from tensormagic.ops.leaf import CONSTANT
from tensormagic.ops.op import as_form

LONG = 20_000_000  # operations, about 20 ms: what takes longer runs beside the main thread, which stays interruptible
_serial = count()


class Driver:
    """The source of a plan's ``run``, and what it refers to.

    Parameters
    ----------
    graph, lowered, steps
        What is run.
    entries
        The table of each kernel, in the order of the kernels.
    """

    def __init__(
        self, graph: Graph, lowered: Lowered, steps: Sequence[Step], entries: Sequence[Sequence[Entry]]
    ) -> None:
        self.graph = graph
        self.results = lowered.results
        self.steps = steps
        self.entries = entries
        self.names: dict[str, Any] = {
            "ndarray": np.ndarray,
            "empty": np.empty,
            "array": np.array,
            "matmul": np.matmul,
            "take": pool.take,
            "packed": packed,
            "owned": owned,
            "evaluate": evaluate,
            "tile_rows": tile_rows,
            "patiently": patiently,
            "idle": IDLE,
            "unused": UNUSED,
        }
        self.variables: dict[Any, str] = {}
        self.made: set[Node] = set()
        self.packs: dict[Node, str] = {}
        self.symbols: dict[Any, str] = {}
        self.lines: list[str] = []
        self.parameters = [f"p{k}" for k in range(len(graph.parameters))]
        self.variables.update(zip(graph.parameters, self.parameters, strict=True))
        self.dies = self._deaths()
        self._print()

    def _print(self) -> None:
        kernel = 0
        for number, step in enumerate(self.steps):
            if isinstance(step, Kernel):
                self._print_kernel(kernel, self.entries[kernel])
                kernel += 1
            else:
                self._print_library(step)
            dead = [self.variables[n] for n in self.dies.get(number, []) if n in self.variables]
            dead += [
                self.packs[n]
                for n in self.dies.get(number, [])
                if self.packs.get(n, self.variables.get(n)) != self.variables.get(n)
            ]
            if dead and number + 1 < len(self.steps):
                self.lines.append(f"del {', '.join(dead)}")
        self._print_results()

    def _deaths(self) -> dict[int, list[Node]]:
        """For each step the stored values that nothing needs behind it."""
        last: dict[Node, int] = {}
        for number, step in enumerate(self.steps):
            if isinstance(step, Kernel):
                for stage in step.stages:
                    last[stage.root] = number
                    last.update((n, number) for n, _ in stage.reads)
            else:
                last[step] = number
                last.update((stripped(a), number) for a in step.args)
        kept = {*self.results, *self.graph.parameters}
        dies: dict[int, list[Node]] = {}
        for node, number in last.items():
            if node not in kept and not is_base(node) and not is_leaf(node):
                dies.setdefault(number, []).append(node)
        return dies

    # parts

    def size(self, size: Size) -> str:
        """A size as an expression of Python."""
        if isinstance(size, int):
            return str(size)
        return " + ".join(
            "*".join([*([str(c)] if c != 1 or not m else []), *(self._atom(a) for a, p in m for _ in range(p))])
            for m, c in size.terms
        )

    def _atom(self, a: Any) -> str:
        if isinstance(a, Apply):
            left, right = self.size(a.left), self.size(a.right)
            return (
                f"{a.function}({left}, {right})"
                if a.function in {"min", "max"}
                else f"(({left}) {'//' if a.function == 'floordiv' else '%'} ({right}))"
            )
        return self.symbols.setdefault(a, f"n{len(self.symbols)}")

    def shape(self, shape: Sequence[Size]) -> str:
        """A shape as an expression of Python."""
        return "(" + "".join(f"{self.size(s)}, " for s in shape).rstrip() + ")"

    def constant(self, prefix: str, value: Any) -> str:
        """A name for a value that the function refers to."""
        name = f"{prefix}{len(self.names)}"
        self.names[name] = value
        return name

    def dtype(self, node: Node) -> str:
        """The name of a node's dtype."""
        name = node.type.dtype.name.replace("bool", "bool_")
        self.names[name] = node.type.dtype
        return name

    def _new(self, node: Node) -> str:
        name = self.variables[node] = f"v{len(self.variables)}"
        return name

    def _allocate(self, node: Node) -> str:
        name, shape, dtype = self._new(node), self.shape(node.type.shape), self.dtype(node)
        size = node.type.size
        if isinstance(size, int) and size < LARGE:
            self.lines.append(f"{name} = empty({shape}, {dtype})")
        else:
            self.lines.append(
                f"{name} = empty({shape}, {dtype}) if {self.size(size)} < {LARGE} else take({shape}, {dtype})"
            )
        self.made.add(node)
        return name

    def _packed(self, node: Node) -> str:
        """The name of a node's value as an array that kernels take."""
        if node in self.made:
            return self.variables[node]
        if node not in self.packs:
            self.packs[node] = self._pack(node)
        return self.packs[node]

    def _pack(self, node: Node) -> str:
        if node.op is CONSTANT:
            return self.constant("c", packed(node["bits"].array(), node.type.dtype))
        name = self.variables[node]
        own = f"a{name}"
        if node.type.form == "array":
            self.lines.append(f"{own} = {name}")
            self.lines.append(
                f"if type({own}) is not ndarray or {own}.flags.num & 257 != 257: "
                f"{own} = packed({name}, {self.dtype(node)})"
            )
        else:
            self.lines.append(f"{own} = array({name}, {self.dtype(node)})")
        return own

    # steps

    def _print_kernel(self, number: int, entries: Sequence[Entry]) -> None:
        kernel = [s for s in self.steps if isinstance(s, Kernel)][number]
        own = {s.root for s in kernel.stages}
        items: list[str] = []
        for entry in entries:
            if entry.kind == "size":
                items.append(self._atom(entry.key))
            elif entry.kind == "number":
                items.append(str(entry.key))
            elif entry.kind == "tile":
                tile = f"t{len(items)}"
                rows = f"tile_rows({self.size(entry.width)})"
                self.lines.append(f"{tile} = empty(({self.size(entry.count)}) * {rows}, {self.dtype(entry.key)})")
                items.append(f"id({tile})")
            else:
                node = entry.key
                name = self._allocate(node) if node in own and node not in self.variables else self._packed(node)
                items.append(f"id({name})")
        self.names[f"table{number}"] = struct.Struct(f"{len(items) + 1}q").pack
        self.names[f"kernel{number}"] = None
        self.lines.append(f"kernel{number}(unused, unused, table{number}({', '.join(['flag', *items])}))")

    def operand(self, node: Node) -> str:
        """A value as NumPy's own functions take it."""
        if is_base(node) and node.op is not CONSTANT:
            return self.variables[node]
        if node.op is CONSTANT:
            return self.constant("c", as_form(node["bits"].array(), node.type.form))
        if node in self.variables:
            name = self.variables[node]
            if node in self.made and not node.type.shape:
                return {"array": name, "scalar": f"{name}[()]", "python": f"{name}.item()"}[node.type.form]
            return name
        return self._call(node)

    def _call(self, node: Node) -> str:
        values = ", ".join(self.operand(a) for a in node.args)
        if node.op is CONTRACT and _is_matmul(node["subscripts"]):
            return f"matmul({values})"
        self.names["needs_size"] = True
        return f"{self.constant('e', partial(node.op.evaluate, node))}([{values}], size)"  # type: ignore[attr-defined]

    def _print_library(self, node: Node) -> None:
        call = self._call(node)
        self.lines.append(f"{self._new(node)} = {call}")

    def _print_results(self) -> None:
        given: set[Node] = set()
        items: list[str] = []
        for node in self.results:
            items.append(self._result(node, again=node in given))
            given.add(node)
        self.lines.append(f"return [{', '.join(items)}]")

    def _result(self, node: Node, *, again: bool) -> str:
        if node.op is CONSTANT and node not in self.variables:
            return f"{self._packed(node)}.copy()"
        text = self.operand(node)
        if node.type.form != "array" and not node.type.shape:
            return text
        if is_base(node):
            return f"array({text}, order='C')"
        if again:
            return f"{text}.copy()"
        return f"owned({text}, ({''.join(f'{p}, ' for p in self.parameters)}))" if is_library(node) else text

    # the function

    @property
    def source(self) -> str:
        """The text of ``run``."""
        checks = self._checks()
        work = self._work()
        guard = (
            [
                (
                    f"if flag == 0 and {work} > {LONG}: "
                    f"return patiently(run, sizes, ({''.join(f'{p}, ' for p in self.parameters)}))"
                )
            ]
            if work
            else []
        )
        sizes = [f"{name} = sizes[{self.constant('s', a)}]" for a, name in self.symbols.items()]
        if "needs_size" in self.names:
            sizes.append("size = lambda s: s if type(s) is int else evaluate(s, sizes.__getitem__)")
        lines = [*sizes, *checks, *guard, "flag = flag or idle", *self.lines]
        return f"def run(sizes, {''.join(f'{p}, ' for p in self.parameters)}flag=0):\n" + "".join(
            f"    {line}\n" for line in lines
        )

    def _checks(self) -> list[str]:
        """That no fold without a first value is over nothing."""
        checks: list[str] = []
        for stage in (s for step in self.steps if isinstance(step, Kernel) for s in step.stages):
            extent = product(tuple(stage.domain[k] for k in stage.reduced))
            bound = lower_bound(extent)
            if stage.reduced and getattr(stage.root.op, "start", 0) is None and (bound is None or bound < 1):
                message = f"zero-size array to reduction operation {stage.root.op.name} which has no identity"
                checks.append(f"if {self.size(extent)} == 0: raise ValueError({message!r})")
        return checks

    def _work(self) -> str:
        total: Size = 0
        for stage in (s for step in self.steps if isinstance(step, Kernel) for s in step.stages):
            total = total + product(stage.domain) * (stage.ops + 1)
        return self.size(total) if isinstance(total, Dim) else ""

    def compile(self, kernels: Sequence[Callable[..., None]]) -> Callable[..., list[Any]]:
        """The function, with the kernels that it calls."""
        source = self.source
        filename = f"<tensormagic run {next(_serial)}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        names = dict(self.names) | {f"kernel{k}": kernel for k, kernel in enumerate(kernels)}
        exec(compile(source, filename, "exec"), names)  # noqa: S102 (our own text)
        return names["run"]  # type: ignore[no-any-return]


def _is_matmul(subscripts: str) -> bool:
    """Whether ``np.matmul`` computes a contraction as it is."""
    order = dict.fromkeys(c for c in subscripts if c.isalpha())
    names = dict(zip(order, "abcdef", strict=False))
    return "".join(names.get(c, c) for c in subscripts) in {"ab,bc->ac", "ab,b->a", "a,ab->b", "a,a->"}


# interrupts -----------------------------------------------------------------------------------------------------------

_idle_flag = np.zeros(1, np.uint8)
IDLE: int = _idle_flag.ctypes.data
_unused = np.zeros(1, np.uint64)
UNUSED: int = (
    _unused.ctypes.data
)  # where Numba's calling convention puts a result and an exception, which kernels do not have


def patiently(run: Callable[..., list[Any]], sizes: dict[Symbol, int], values: tuple[Any, ...]) -> list[Any]:
    """Run something long beside the main thread: an interrupt reaches that, and then the kernels stop early."""
    if threading.current_thread() is not threading.main_thread():
        return run(sizes, *values, flag=IDLE)
    flag = np.zeros(1, np.uint8)
    outcome: list[Any] = []

    def work() -> None:
        try:
            outcome.append((True, run(sizes, *values, flag=flag.ctypes.data)))
        except BaseException as error:  # noqa: BLE001 (raised again by the thread that waits)
            outcome.append((False, error))

    thread = threading.Thread(target=work, name="tensormagic run", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.1)
    except BaseException:
        flag[0] = 1
        thread.join()
        raise
    done, value = outcome[0]
    if done:
        return value
    raise value
