"""Prints the Python function that runs a plan: arrays, kernel calls and library calls in a straight line."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np

from tensormagic.backend.cpu.rows import MOST_SHARES, SHARE, TILE_ROOM, part_room, tile_rows
from tensormagic.backend.planning.inline import is_growing, is_room
from tensormagic.backend.planning.kinds import is_base, is_library, kind_of
from tensormagic.backend.planning.overlap import Overlap
from tensormagic.backend.planning.overlap import least as least_effort
from tensormagic.backend.planning.schedule import Kernel
from tensormagic.backend.planning.size_bounds import is_fixed
from tensormagic.backend.planning.steps import Check, needed, produced
from tensormagic.backend.planning.work_counts import LONG, Pace, is_counted, work_of
from tensormagic.backend.printing.kernel_text import Entry, Fault, Raised
from tensormagic.backend.printing.ledger import is_view
from tensormagic.backend.printing.plan_walk import Walk
from tensormagic.backend.running.buffers import LARGE, cut, growing, owned, packed, pool
from tensormagic.backend.running.generated_functions import Binding, executed
from tensormagic.backend.running.memory_limit import GATE, afford
from tensormagic.backend.running.runtime import IDLE, UNUSED, Interpreted, evaluator, patiently, raised
from tensormagic.backend.running.threads import ALONE, least, team
from tensormagic.ir.graph import sizer
from tensormagic.ir.node import Node
from tensormagic.ir.size import Apply, Dim, Size, apply, product
from tensormagic.ops.contract import CONTRACT, operands_of_matmul, recipe_of
from tensormagic.ops.effects.raising import AFTER
from tensormagic.ops.leaf import CONSTANT
from tensormagic.ops.op import as_form

_serial = count()


class Driver(Walk):
    """The source of a plan's ``run``, and the objects it refers to."""

    def _begin(self) -> None:
        self.regions: dict[Node, str] = {}
        self.rooms: list[str] = []  # lines in which memory gets its size, as far as sizes decide it
        self.names: dict[str, Any] = {
            "ndarray": np.ndarray,
            "empty": np.empty,
            "array": np.array,
            "matmul": np.matmul,
            "take": pool.take,
            "growing": growing,
            "packed": packed,
            "cut": cut,
            "owned": owned,
            "sizer": sizer,
            "tile_rows": tile_rows,
            "part_room": part_room,
            "patiently": patiently,
            "idle": IDLE,
            "unused": UNUSED,
            "int64": np.dtype(np.int64),
            "zeros": np.zeros,
            "raised": raised,
            "afford": afford,
            "team": team,
            "alone": ALONE,
            "least": least,
        }

    def _print_deaths(self, dead: list[str]) -> None:
        self.lines.append(f"del {', '.join(dead)}")

    # parts

    def _atom(self, a: Any) -> str:
        if isinstance(a, Apply):
            left, right = self.size(a.left), self.size(a.right)
            return (
                f"{a.function}({left}, {right})"
                if a.function in {"min", "max"}
                else f"(({left}) {'//' if a.function == 'floordiv' else '%'} ({right}))"
            )
        if isinstance(a, Node):
            return f"int({self.operand(a)})"
        return self.symbols.setdefault(a, f"n{len(self.symbols)}")

    def shape(self, shape: Sequence[Size]) -> str:
        """Return a shape as an expression of Python."""
        return "(" + "".join(f"{self.size(s)}, " for s in shape).rstrip() + ")"

    def constant(self, prefix: str, value: Any) -> str:
        """Return a name for an object that the function refers to."""
        name = f"{prefix}{len(self.names)}"
        self.names[name] = value
        return name

    def dtype(self, node: Node) -> str:
        """Return the name of a node's dtype."""
        name = node.type.dtype.name.replace("bool", "bool_")
        self.names[name] = node.type.dtype
        return name

    def _allocate(self, node: Node) -> str:
        if is_growing(node):
            self.made.add(node)
            self.ledger.growing(node)
            self.lines.append(f"{self._new(node)} = growing()")
            return self.variables[node]
        extents, dtype = self._extents(node), self.dtype(node)
        shape, size = self.shape(extents), product(extents)
        name = self._new(node)
        self.ledger.array(node, extents, given=node in self.targets)
        fresh = f"empty({shape}, {dtype})"
        if not isinstance(size, int) or size >= LARGE:
            fresh = f"{fresh} if {self.size(size)} < {LARGE} else take({shape}, {dtype})"
        if node in self.targets:
            into = f"into[{self.targets[node]}]"
            fresh = f"({fresh}) if {into} is None else {into}"
        self.lines.append(f"{name} = {fresh}")
        self.made.add(node)
        return name

    def _pack(self, node: Node) -> str:
        if node.op is CONSTANT:
            return self.constant("c", packed(node["bits"].array(), node.type.dtype))
        self.ledger.packed(node)
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

    def _print_failed(self, kernel: Kernel, wanted: set[Node]) -> None:
        """Print the calls of NumPy that compute a kernel's nodes one by one."""
        made = {n for step in kernel.steps for n in produced(step)}
        results = [n for n in dict.fromkeys(n for step in kernel.steps for n in produced(step)) if n in wanted]
        given = list(dict.fromkeys(n for step in kernel.steps for n in needed(step) if n not in made))
        given = [n for n in given if n.op is not CONSTANT and not is_room(n)]
        guards = [step.guard for step in kernel.steps if isinstance(step, Check)]
        values = ", ".join(self.operand(n) for n in given)
        call = f"{self.constant('i', Interpreted(results, given, guards))}(sizes, [{values}])"
        names: list[str] = []
        for node in results:
            owner = self.memory.owner(node)
            if owner in self.variables and owner.type.shape:
                names.append(f"{self._packed(owner)}[...]")  # others hold that array: it is stored into
            else:
                names.append(self._new(owner))
            self.made.add(owner)
        self.lines.append(f"{', '.join(names)}{',' if len(names) == 1 else ''} = {call}" if names else call)

    # what a kernel's table holds

    _threads = "threads"
    _faults = "fault"

    def _number(self, number: int) -> str:
        return str(number)

    def _address(self, address: int) -> str:
        return str(address)

    def _reference(self, name: str) -> str:
        """Return an array as kernels take it."""
        return f"id({name})"

    def _watch(self, faults: Sequence[Fault | Raised]) -> list[str]:
        """Allocate room for a kernel's fault record; returns the lines that raise the error."""
        name = self._faults
        self.lines.append(f"{name} = zeros(4, int64)")
        self.ledger.take(name, 32)
        return [f"if {name}[0]: raised({self.constant('f', faults)}, {name})"]

    def _traded(self, number: int) -> str:
        return self._local(f"traded{number}")

    def _local(self, name: str) -> str:
        """Return the name of a local variable in this kernel."""
        return name

    def _launch(self, number: int, items: Sequence[str], after: Sequence[str]) -> None:
        """Call a kernel with its table."""
        self.names[f"table{number}"] = struct.Struct(f"{len(items) + 1}q").pack
        self.names[f"kernel{number}"] = None
        self._print_call(f"kernel{number}(unused, unused, table{number}({', '.join(['flag', *items])}))")
        self.lines += after

    def _print_call(self, call: str, name: str = "") -> None:
        """Print the call of a kernel, or of a library, whose result is assigned to ``name``."""
        self.lines.append(f"{name} = {call}" if name else call)

    def _tile(self, entry: Entry, number: int, *, shared: bool = False) -> str:
        tile = self._local(f"t{number}")
        if is_fixed(entry.count, self.known) and is_fixed(entry.width, self.known):
            room, largest = f"({self.size(entry.count)}) * tile_rows({self.size(entry.width)})", entry.count
        else:
            largest = self._most(entry.count)
            room = f"max({TILE_ROOM}, {self.size(largest)})"
        self.ledger.take(tile, apply("max", TILE_ROOM, largest) * entry.key.type.dtype.itemsize)
        each = "hands * " * shared  # each thread has its own
        self.lines.append(f"{tile} = empty({each}{room}, {self.dtype(entry.key)})")
        return tile

    def _parts(self, entry: Entry, number: int) -> str:
        """Allocate the memory in which shares of a loop accumulate a node."""
        parts, (node, rows, kept) = self._local(f"parts{number}"), entry.key
        count = node.type.size
        most = apply("min", MOST_SHARES, apply("floordiv", rows * (entry.width + 1), SHARE))
        self.ledger.take(parts, most * count * node.type.dtype.itemsize)
        sizes = ", ".join(map(self.size, (rows, entry.width, kept, count)))
        self.rooms.append(f"room{len(self.rooms)} = part_room({sizes})")
        room = self.rooms[-1].partition(" ")[0]
        nothing = self.constant("nothing", np.zeros(0, node.type.dtype))
        self.lines.append(f"{parts} = empty({room}, {self.dtype(node)}) if {room} else {nothing}")
        return parts

    def _trade(self, entry: Entry, traded: str) -> list[str]:
        """Return statements that rename arrays after a kernel has swapped them; a kernel that returns early does not report that."""
        names = [self._array(owner) for owner in entry.key]
        self.lines.append(f"{traded} = zeros({len(names)}, int64)")
        places = [f"places[{traded}[{k}]]" for k in range(len(names))]
        if len({self._extents(owner) for owner in entry.key}) > 1:  # one has room for more than another
            places = [f"cut({place}, places[{k}].shape)" for k, place in enumerate(places)]
        both = ", ".join(names)
        return [f"places = ({both})", f"{both} = {', '.join(places)}", "del places"]

    def operand(self, node: Node) -> str:
        """Return a value as NumPy functions take it."""
        if is_base(node) and node.op is not CONSTANT:
            return self.variables[node]
        if node.op is CONSTANT:
            return self.constant("c", as_form(node["bits"].array(), node.type.form))
        if kind_of(node) == "view":
            return f"{self.operand(node.args[0])}.reshape({self.shape(node.type.shape)})"
        owner = self.memory.owner(node)
        if owner is not node and owner in self.graph.parameters:
            return self._packed(owner)
        if owner in self.variables:
            name = self.variables[owner]
            if owner in self.made and not node.type.shape:
                return {"array": name, "scalar": f"{name}[()]", "python": f"{name}.item()"}[node.type.form]
            return name
        return self._call(node)

    def _call(self, node: Node) -> str:
        operands = [self.operand(a) for a in node.args]
        values = ", ".join(operands)
        if node.op is CONTRACT and (_is_matmul(node["subscripts"]) or _is_turned(node["subscripts"])):
            return f"matmul({', '.join(operands_of_matmul(node['subscripts'], operands) or operands)})"
        if node in self.driven:
            name = self.regions.setdefault(node, f"region{len(self.regions)}")
            return f"{name}([{values}], 0 if flag == idle else flag)"
        evaluated = self.constant("e", evaluator(node))
        if node.sized_by:
            known = ", ".join(f"{self.constant('k', n)}: {self._atom(n)}" for n in node.sized_by)
            return f"{evaluated}([{values}], sizer(sizes, {{{known}}}))"
        self.names["needs_size"] = True
        return f"{evaluated}([{values}], size)"

    def _print_library(self, node: Node) -> None:
        call = self._call(node)
        self.ledger.call(node, given=node in self.targets)
        if node in self.targets and call.startswith("matmul("):
            call = f"{call.removesuffix(')')}, out=into[{self.targets[node]}])"
        self._print_call(call, self._new(node))

    def _print_results(self) -> None:
        given: set[Node] = set()
        items: list[str] = []
        for number, node in enumerate(self.results):
            value = _passed_on(node)
            items.append(self._result(node, again=value in given))
            if node.type.shape and (is_view(node) or ".copy()" in items[-1] or items[-1].startswith("array(")):
                self.ledger.copied(number, node)
            given.add(value)
        self.lines.append(f"return [{', '.join(items)}]")

    def _result(self, node: Node, *, again: bool) -> str:
        if node.op is CONSTANT and node not in self.variables:
            return f"{self._packed(node)}.copy()" if node.type.form == "array" else self.operand(node)
        text = self.operand(node)
        if node.type.form != "array" and not node.type.shape:
            return text
        if is_base(node) and (again or node not in self.carried):
            return f"array({text}, order='C')"
        if again or kind_of(node) == "view":
            return f"{text}.copy()"
        if self.memory.owner(node) in self.targets and is_library(node):
            k = self.targets[node]
            return f"{text} if {text} is into[{k}] else owned({text}, ({''.join(f'{p}, ' for p in self.parameters)}))"
        return f"owned({text}, ({''.join(f'{p}, ' for p in self.parameters)}))" if is_library(node) else text

    # the function

    @property
    def source(self) -> str:
        """Return the text of ``run``."""
        work, values = self._work(), "".join(f"{p}, " for p in self.parameters)
        into, more = (", *, into", ", into=into") if self.given else ("", "")
        paced = f", pace=pace, amount={work}" if self.is_counted else ""
        long = f"if flag == 0 and {work} > {self._at_once()}: return patiently(run, sizes, ({values}){paced}{more})"
        need = self._need()
        enough = [f"if (need := {need}) > {GATE}: afford(need, largest)"] if need else []
        team = [f"threads, hands = team({self.size(self.work)})"] if self._shares() else []
        lines = [
            *self._checks(),
            *([long] if work else []),
            "flag = flag or idle",
            *self._beside(values),
            *team,
            *self.lines,
        ]
        lines = [*self._numbers(), *enough, *lines]
        return f"def run(sizes, {values}flag=0{into}):\n" + "".join(f"    {line}\n" for line in lines)

    @property
    def bound_source(self) -> str:
        """Return the text of a function that makes ``run`` for known sizes: without ``sizes`` and ``flag``; it gives None for long runs."""
        work, need = self._work(), self._need()
        left = [f"if {what} > {most}: return None" for what, most in ((work, self._at_once()), (need, GATE)) if what]
        left += [f"if {self.size(self.gate)} > least_effort(): return None"] if self.gate else []
        outer = [*self._numbers(), *left, "flag = idle"]
        teamed: list[str] = []
        if self._shares():
            outer += [f"work = {self.size(self.work)}", "several = work >= least()"]
            teamed = ["threads, hands = team(work) if several else alone"]
        lines = [*self._checks(), *teamed, *self.lines]
        inner = [f"def run({', '.join(self.parameters)}):", *(f"    {line}" for line in lines)]
        return "def bind(sizes):\n" + "".join(f"    {line}\n" for line in (*outer, *inner, "return run"))

    @cached_property
    def overlap(self) -> Overlap:
        """Return which steps may run concurrently."""
        return Overlap(self.graph, self.block, self.memory, self.steps, self.printed)

    @property
    def gate(self) -> Size:
        """Return the picoseconds of the steps that other threads could run, or 0 if there are none."""
        return 0 if self.given else self.overlap.gate

    def _beside(self, values: str) -> list[str]:
        """Return the line that runs steps concurrently if that pays; if it fails, they run in order, up to the first error."""
        if not self.gate:
            return []
        gate = f"{self.size(self.gate)} > least_effort()"
        return [f"if {gate} and (done := beside(sizes, ({values}), flag)) is not None: return done"]

    def _numbers(self) -> list[str]:
        """Return the lines that read the values of size symbols."""
        sizes = [f"{name} = sizes[{self.constant('s', a)}]" for a, name in self.symbols.items()]
        sizes += self.rooms
        return [*sizes, "size = sizer(sizes, {})"] if "needs_size" in self.names else sizes

    def _checks(self) -> list[str]:
        return [f"if {self.size(extent)} == 0: raise ValueError({text!r})" for extent, text in self.refusals()]

    def _need(self) -> str:
        """Return the peak memory in bytes as far as it is known before the run; empty if it is always small."""
        sizes = self.ledger.known_before(self.graph.parameters)
        texts = [self.size(s) for s in sizes if isinstance(s, Dim) or s > GATE]
        self.names["largest"] = self.ledger.largest[1]
        return f"max({', '.join(texts)})" if len(texts) > 1 else "".join(texts)

    def _work(self) -> str:
        return self.size(self.work) if isinstance(self.work, Dim) or self.work > LONG else ""

    @cached_property
    def work(self) -> Size:
        """Return the estimated work of all kernels, in eighths of an operation."""
        total: Size = 0
        for step in self.steps:
            if isinstance(step, Kernel):
                total = total + sum((work_of(s) for s in step.steps if not isinstance(s, Check)), 0)
        return total

    @cached_property
    def is_counted(self) -> bool:
        """Return whether that amount of work follows from sizes."""
        steps = (s for k in self.steps if isinstance(k, Kernel) for s in k.steps if not isinstance(s, Check))
        return not self.regions and all(map(is_counted, steps))

    def _at_once(self) -> int | str:
        """Return the amount of work from which the plan runs beside the main thread."""
        return "pace.most" if self.is_counted else LONG

    def _shares(self) -> bool:
        """Return whether there are loops that threads may share."""
        return any(e.kind == "threads" for k, p in enumerate(self.printed) if k not in self.failed for e in p.entries)

    def compile(
        self,
        kernels: Mapping[int, Callable[..., None]],
        regions: Mapping[Node, Callable[..., Any]],
        beside: Callable[..., list[Any] | None] | None = None,
    ) -> Callable[..., list[Any]]:
        """Return the function, with its kernels and regions; ``beside`` runs steps concurrently."""
        texts, number = (self.source, self.bound_source if beside else ""), next(_serial)
        space = dict(self.names) | {f"kernel{k}": kernel for k, kernel in kernels.items()}
        space |= {name: regions[node] for node, name in self.regions.items()}
        space |= {"beside": beside, "least_effort": least_effort, "pace": Pace()}
        run = executed(texts[0], f"<tensormagic run {number}>", space)["run"]
        if beside is not None:
            run.bind = Binding(texts[1], f"<tensormagic bound run {number}>", space)
        return run


def _is_turned(subscripts: str) -> bool:
    """Return whether ``np.matmul`` computes a contraction of two matrices, some of them transposed."""
    recipe = recipe_of(subscripts)
    return recipe.way == "turned" and recipe.out is None


def _is_matmul(subscripts: str) -> bool:
    """Return whether ``np.matmul`` computes a contraction as it is."""
    order = dict.fromkeys(c for c in subscripts if c.isalpha())
    names = dict(zip(order, "abcdef", strict=False))
    return "".join(names.get(c, c) for c in subscripts) in {"ab,bc->ac", "ab,b->a", "a,ab->b", "a,a->"}


def _passed_on(node: Node) -> Node:
    """Return the node whose value ``node`` passes on after a check."""
    while node.op is AFTER:
        node = node.args[1]
    return node
