"""Computing what is wanted: close, rewrite, run on the tier that is ready, remember. Knows graphs and backends, no notebook."""

from __future__ import annotations

import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tensormagic.backend import flags, native, reference
from tensormagic.backend.plan import Plan, plan_graph
from tensormagic.capture import context, floating
from tensormagic.capture.hooks import hooks
from tensormagic.capture.inputs import Snapshot
from tensormagic.config import config
from tensormagic.ir import site
from tensormagic.ir.errors import GuardError
from tensormagic.ir.graph import Closed, Graph, Guard, check, close
from tensormagic.ir.node import Node, topological
from tensormagic.ir.size import Size, Symbol, evaluate
from tensormagic.ops.leaf import CONSTANT, INPUT, PARAMETER, parameter
from tensormagic.transform.rewriting import Rewritten, own_rules, rewrite

WORTH_WARNING = 0.5  # seconds of NumPy's time that may be spent to find out which line a warning is about
SLOWER = 200  # times that NumPy may take of compiled code's time, where it is not known
WORTH_COMPILING = 1e-3  # seconds of NumPy's time, in all runs together, above which a graph is compiled


@dataclass(eq=False)
class Executable:
    """A rewritten graph on its tiers: NumPy at once, compiled code when it is there.

    Parameters
    ----------
    rewritten
        The graph in normal form, and what was rewritten.
    """

    rewritten: Rewritten
    spent: float = 0.0  # seconds of NumPy's time so far
    seconds: dict[str, float] = field(default_factory=dict)
    _reference: Callable[..., list[Any]] | None = None
    _handle: native.Handle | None = None
    _native: Callable[..., list[Any]] | None = None
    _warned: int = -1  # the run of a cell for which warnings were looked for
    late: tuple[Guard, ...] = ()  # relations of sizes of which rewriting has found what data said: no step checks them

    @property
    def graph(self) -> Graph:
        """The graph that runs."""
        return self.rewritten.graph

    @property
    def tier(self) -> str:
        """The tier that the next run takes."""
        if config.tier == "numpy":
            return "numpy"
        if self._handle is not None and self._handle.ready():
            return "numba"
        return config.tier if config.tier == "numba" else "numpy"

    @property
    def tier_at_work(self) -> str:
        """What runs while this is at work: ``"numba"``, ``"numpy"``, or ``"compiler"`` where it is waited for."""
        if config.tier != "numpy" and self._native is not None:
            return "numba"
        waits = config.tier == "numba" and self._handle is not None and self._handle.state == "pending"
        return "compiler" if waits else "numpy"

    @cached_property
    def plan(self) -> Plan:
        """What would be compiled: kernels and steps."""
        return plan_graph(self.graph)

    def compile(self) -> native.Handle:
        """Start compiling, where that has not been done."""
        if self._handle is None:
            self._handle = native.start(self.plan)
        return self._handle

    def run(self, sizes: dict[Any, int], *values: Any) -> list[Any]:
        """The results, by the tier that is ready."""
        at_work.append((self, time.perf_counter()))
        try:
            if self._native is not None and config.tier != "numpy":
                return self._by_machine(self._native, sizes, values)
            return self._slow(sizes, *values)
        finally:
            at_work.pop()

    def by_numpy(self, sizes: dict[Any, int], *values: Any) -> list[Any]:
        """The results, by NumPy: floating-point errors are raised or told, as ``np.errstate`` asks."""
        self._fit(sizes)
        if self._reference is None:
            self._reference = reference.compile(self.graph)
        with floating.watched():
            return reference.owned(self._reference(sizes, *values), values)

    def _fit(self, sizes: dict[Any, int]) -> None:
        for guard in self.late:
            check(guard, sizes.__getitem__)

    def _by_machine(self, run: Callable[..., list[Any]], sizes: dict[Any, int], values: Sequence[Any]) -> list[Any]:
        """The results, by machine code, which does not say where a number stopped being finite."""
        self._fit(sizes)
        flags.clear()
        start = time.perf_counter()
        results = run(sizes, *values)
        elapsed = self.seconds["numba"] = time.perf_counter() - start
        if flags.suspicious(results) and context.cells:
            self._warn_again(elapsed, sizes, values)
        return results

    def _warn_again(self, elapsed: float, sizes: dict[Any, int], values: Sequence[Any]) -> None:
        """NumPy's warnings, by a second run in NumPy: once for each run of a cell, where that takes no long time."""
        run = max(cell.run for cell in context.cells.values())
        quick = self.seconds.get("numpy", elapsed * SLOWER) < WORTH_WARNING
        if run != self._warned and quick and not self._tells:
            self._warned = run
            self.by_numpy(sizes, *values)

    @cached_property
    def _tells(self) -> bool:
        return " = tell(" in self.graph.text  # a print is not to happen twice

    def _slow(self, sizes: dict[Any, int], *values: Any) -> list[Any]:
        handle = self.compile() if config.tier == "numba" else self._handle
        if config.tier == "numba" and handle is not None:
            handle.wait()
        if config.tier != "numpy" and handle is not None and handle.ready():
            self._native = handle.run
            return self._by_machine(handle.run, sizes, values)
        start = time.perf_counter()
        results = self.by_numpy(sizes, *values)
        elapsed = time.perf_counter() - start
        self.seconds["numpy"] = elapsed
        self.spent += elapsed
        if config.tier == "auto" and self.spent > WORTH_COMPILING:
            self.compile()
        return results


at_work: list[tuple[Executable, float]] = []  # what runs, and since when: for whoever shows that

_lock = threading.RLock()
_executables: OrderedDict[tuple[Any, ...], Executable] = OrderedDict()
_values: weakref.WeakKeyDictionary[Node, Any] = weakref.WeakKeyDictionary()
_KEPT = 512


def executable(graph: Graph, level: str | None = None) -> Executable:
    """The executable of a closed graph: the same one for an equal graph."""
    level = level or config.math
    key = (graph, level, own_rules(level))
    with _lock:
        found = _executables.get(key)
        if found is None:
            rewritten = rewrite(graph, level)
            late = tuple(g for g in rewritten.graph.guards if g not in {*graph.guards, *rewritten.graph.checks})
            found = _executables[key] = Executable(rewritten, late=late)
            if len(_executables) > _KEPT:
                _executables.popitem(last=False)
        _executables.move_to_end(key)
        return found


def prepare() -> None:
    """Have the compiler started in the background, where it may be wanted."""
    if config.tier != "numpy":
        native.prepare()


def forget(graph: Graph) -> None:
    """Drop what is kept for a graph."""
    with _lock:
        for key in [k for k in _executables if k[0] == graph]:
            del _executables[key]


def forget_values(nodes: Sequence[Node]) -> None:
    """Drop the values that are kept for ``nodes`` and for what they are computed from, but not those of inputs."""
    with _lock:
        for node in topological(nodes):
            if node.args:
                _values.pop(node, None)


def close_over(
    nodes: Sequence[Node], leaves: Sequence[Node] = (), guards: Any = (), *, use_values: bool = True
) -> Closed:
    """The graph of ``nodes``, cut at inputs and at values that are known."""
    known = _values if use_values else {}
    wanted = set(nodes)
    return close(
        nodes,
        lambda n: n.op is INPUT or (n in known and n not in wanted and len(n.types) == 1),
        parameter,
        leaves,
        guards,
    )


def value_of(leaf: Node) -> Any:
    """The value behind a leaf of a graph that is demanded."""
    if leaf in _values:
        return _values[leaf]
    source = leaf["source"]
    if not isinstance(source, Snapshot):
        raise GuardError(f"{source.name} is a parameter of a function that is being captured: it has no value")
    return source.read()


def compute(nodes: Sequence[Node]) -> list[Any]:
    """The values of ``nodes``, several in one run; each is computed once and kept while its node lives."""
    with _lock:
        pending = [n for n in dict.fromkeys(nodes) if n not in _values]
        for node in [n for n in pending if n.op in {INPUT, CONSTANT}]:
            _values[node] = _kept(value_of(node) if node.op is INPUT else node.op.evaluate(node, (), int))  # type: ignore[attr-defined]
        pending = [n for n in pending if n not in _values]
        if len(pending) == 1 and (found := _at_once_by_numpy(pending[0])) is not None:
            _values[pending.pop()] = _kept(found)
        if pending:
            closed, values, sizes = _bound(pending)
            program = executable(closed.graph)
            with floating.told(lambda: site.Lens(closed.mapping)):
                results = (program.by_numpy if floating.raises() else program.run)(sizes, *values)
            for node, result in zip(pending, results, strict=True):
                _values[node] = _kept(result)
    return [_values[n] for n in nodes]


FEW, SMALL = (
    6,
    10_000,
)  # nodes of one operation with its moves, and their elements: above that, code may be worth compiling
_PLAIN = {"pointwise", "fold", "move", "contract"}


def _at_once_by_numpy(node: Node) -> Any:
    """The value of one small operation of values that are there; None where a graph is to be closed, and where NumPy warns or raises."""

    def is_there(n: Node) -> bool:
        return n in _values or not n.args

    todo = [n for n in topological([node], stop=is_there) if not is_there(n)]
    if config.tier == "numba" or not 0 < len(todo) <= FEW or any(n.op.kind not in _PLAIN for n in todo):  # type: ignore[attr-defined]
        return None
    if sum(n.op.kind != "move" for n in todo) > 1 or own_rules(config.math):  # type: ignore[attr-defined]
        return None
    leaves = list(dict.fromkeys(a for n in todo for a in n.args if is_there(a)))
    if any(n.op is PARAMETER for n in leaves):
        return None
    try:
        if sum(np.prod([_number(s) for s in n.type.shape]) for n in todo) > SMALL:
            return None
        with np.errstate(all="raise", under="ignore"):
            there = {n: value_of(n) if n.op is INPUT or n in _values else n.op.evaluate(n, (), _number) for n in leaves}  # type: ignore[attr-defined]
            table = dict(there)
            for n in todo:
                table[n] = n.op.evaluate(n, [table[a] for a in n.args], _number)  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001 (what raises or warns does so where lines are known)
        return None
    return reference.owned([table[node]], list(there.values()))[0]


def _number(size: Size) -> int:
    """What a size was at capture, or has been computed to be."""
    return evaluate(size, lambda a: int(a.hint if isinstance(a, Symbol) else _values[a]))  # type: ignore[arg-type]


def _bound(nodes: Sequence[Node]) -> tuple[Closed, list[Any], dict[Any, int]]:
    """The graph of ``nodes``, what its parameters are, and the sizes; cut at known values, where their shapes say what sizes are."""
    closed = close_over(nodes)
    values = [value_of(leaf) for leaf in closed.leaves]
    try:
        return closed, values, closed.graph.bind([np.shape(v) for v in values])
    except GuardError:  # a value of half the size of an input does not say what size that has
        closed = close_over(nodes, use_values=False)
        values = [value_of(leaf) for leaf in closed.leaves]
        return closed, values, closed.graph.bind([np.shape(v) for v in values])


def _kept(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.flags.writeable:
        value = value.view() if value.base is not None else value
        value.flags.writeable = False
    return value


def is_computed(node: Node) -> bool:
    """Whether the value of ``node`` is there."""
    return node in _values or node.op is CONSTANT


def _at_once(node: Node) -> None:
    """Compute a node as soon as code has built it; not one that depends on a region's arguments, which have no values."""
    try:
        compute([node])
    except GuardError:
        return


context.at_once.append(_at_once)
hooks.compute = compute
hooks.is_computed = is_computed
