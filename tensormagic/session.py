"""Computing what is wanted: close, rewrite, run on the tier that is ready, remember. Knows graphs and backends, no notebook."""

from __future__ import annotations

import math
import operator
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Generator, MutableMapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache as cached
from functools import cached_property, partial
from typing import Any

import numpy as np

from tensormagic import residence
from tensormagic.backend import flags, native, reference, room
from tensormagic.backend.cuda.device import in_use
from tensormagic.backend.fusion import fusing
from tensormagic.backend.plan import Plan, plan_graph
from tensormagic.capture import context, errstate, floating, living
from tensormagic.capture.hooks import hooks
from tensormagic.capture.inputs import Snapshot
from tensormagic.config import config
from tensormagic.forms import Forms, find
from tensormagic.ir import site
from tensormagic.ir.errors import BoundsError, CaptureError, GuardError, ShapeError, WideError
from tensormagic.ir.graph import Closed, Graph, Guard, check, close
from tensormagic.ir.node import Node, topological
from tensormagic.ir.size import Atom, Size, Symbol, evaluate, nodes_of
from tensormagic.ops.effects.telling import silently
from tensormagic.ops.leaf import CONSTANT, INPUT, parameter
from tensormagic.transform.rewriting import Rewritten, choices, own_rules, rewrite
from tensormagic.transform.values import Parts, Values, absorbed, parted

WORTH_WARNING = 0.5  # seconds of NumPy's time that may be spent to find out which line a warning is about
SLOWER = 200  # times that NumPy may take of compiled code's time, where it is not known
WORTH_COMPILING = 1e-3  # seconds of NumPy's time, in all runs together, above which a graph is compiled
PLANNING = 1e-4  # seconds that planning and printing take for each node: NumPy's time is to have cost as much before

LONG = 0.1  # seconds of NumPy's time, as far as that is known before, from which on it is compiled beside the first run


@dataclass(eq=False)
class Executable:
    """A rewritten graph on its tiers: NumPy at once, compiled code when it is there.

    Parameters
    ----------
    rewritten
        The graph in normal form, and what was rewritten.
    device
        Where it runs: ``"cpu"``, ``"gpu"``, or ``"auto"``.
    """

    rewritten: Rewritten
    device: str = "cpu"
    why: str = ""  # of the last choice of a device
    spent: float = 0.0  # seconds of NumPy's time so far
    seconds: dict[str, float] = field(default_factory=dict)
    _reference: Callable[..., list[Any]] | None = None
    _handle: native.Handle | None = None
    _native: Callable[..., list[Any]] | None = None
    _small: set[tuple[int, ...]] = field(default_factory=set[tuple[int, ...]])  # sizes of runs that need little memory
    _warned: int = -1  # the run of a cell for which warnings were looked for
    late: tuple[Guard, ...] = ()  # relations of sizes of which rewriting has found what data said: no step checks them

    @property
    def graph(self) -> Graph:
        """The graph that runs."""
        return self.rewritten.graph

    @property
    def tier(self) -> str:
        """The tier that the next run takes."""
        if self.device != "cpu":
            return "gpu"
        if config.tier == "numpy":
            return "numpy"
        if self._handle is not None and self._handle.ready():
            return "numba"
        return config.tier if config.tier == "numba" else "numpy"

    @property
    def tier_at_work(self) -> str:
        """What runs while this is at work: ``"numba"``, ``"numpy"``, or ``"compiler"`` where it is waited for."""
        if self.device != "cpu":
            return "gpu"
        if config.tier != "numpy" and self._native is not None:
            return "numba"
        waits = config.tier == "numba" and self._handle is not None and self._handle.state == "pending"
        return "compiler" if waits else "numpy"

    @cached_property
    def plan(self) -> Plan:
        """What would be compiled: kernels and steps."""
        with fusing(fused=self.rewritten.fused):
            return plan_graph(self.graph)

    def compile(self) -> native.Handle:
        """Start compiling, where that has not been done."""
        if self._handle is None:
            with working("planning"):
                self._handle = native.start(self.plan)
        return self._handle

    def resident(
        self, values: Sequence[Any], names: Sequence[str] = (), sites: residence.Sites = residence.at_call
    ) -> list[Any]:
        """The results of a run on the device: what lies there stays there."""
        start = time.perf_counter()
        try:
            with working(self):
                return residence.run(self.graph, values, names, sites)
        finally:
            self.seconds["gpu"] = time.perf_counter() - start

    def is_for_device(self, sizes: dict[Any, int], values: Sequence[Any]) -> bool:
        """Whether this run is the device's: where the device is chosen by sizes, ``why`` says it then."""
        if self.device == "auto":
            pays, self.why = residence.chosen(self.graph, sizes, values)
            return pays
        return self.device == "gpu"

    def run(self, sizes: dict[Any, int], *values: Any, names: Sequence[str] = ()) -> list[Any]:
        """The results, by the tier that is ready, on the host; ``names`` are what the user calls the values."""
        if self.device != "cpu" and self.is_for_device(sizes, values):
            results = zip(self.resident(values, names), self.graph.results, strict=True)
            return [residence.hosted(value, node) for value, node in results]
        return self.here(sizes, *values)

    def here(self, sizes: dict[Any, int], *values: Any) -> list[Any]:
        """The results, on the CPU, by the tier that is ready."""
        with working(self):
            return self._here(sizes, *values)

    def _here(self, sizes: dict[Any, int], *values: Any) -> list[Any]:
        try:
            if self.graph.is_wide:
                return self.by_numpy(sizes, *values)
            if self._native is not None and config.tier != "numpy":
                return self._by_machine(self._native, sizes, values)
            return self._slow(sizes, *values)
        except WideError:
            if self.tells or self.calls:
                raise
            return self.by_numpy(sizes, *values)
        except (ShapeError, BoundsError) as error:
            refused = reference.refusal(self.graph, sizes, values)
            if refused is not None:
                raise refused from error
            raise

    @cached_property
    def is_plain(self) -> bool:
        """Whether a run only computes, on the host, and checks nothing itself."""
        return self.device == "cpu" and not (self.late or self.graph.is_wide or self.tells or self.calls)

    def plainly(self, sizes: dict[Any, int], values: Sequence[Any]) -> list[Any] | None:
        """What machine code gives, where that runs next, on the host, and does nothing but compute.

        None where it does not, and where it fails: what that means is said by :meth:`run`.
        """
        machine = self._native
        if machine is None or config.tier == "numpy" or not self.is_plain:
            return None
        at_work.append((self, time.perf_counter()))
        try:
            return self._by_machine(machine, sizes, values)
        except Exception:  # noqa: BLE001 (met again)
            return None
        finally:
            at_work.pop()

    def into(self, sizes: dict[Any, int], values: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
        """The results, computed in ``arrays`` as far as machine code can: one for each, or None; they share no memory with ``values``."""
        machine: Any = self._ready()
        if machine is not None and self.is_plain:
            at_work.append((self, time.perf_counter()))
            try:
                return self._by_machine(partial(machine.given(), into=arrays), sizes, values)
            except Exception:  # noqa: BLE001, S110 (met again)
                pass
            finally:
                at_work.pop()
        return self.run(sizes, *values)

    def bound(self, sizes: dict[Any, int]) -> Callable[[Sequence[Any]], list[Any] | None] | None:
        """:meth:`plainly` for these sizes, with nothing looked up that is known; None where there is no such function yet."""
        machine: Any = self._native
        run = machine.bind(sizes) if machine is not None and self.is_plain else None
        return None if run is None else self._bound(run, sizes)

    def _bound(
        self, run: Callable[..., list[Any]], sizes: dict[Any, int]
    ) -> Callable[[Sequence[Any]], list[Any] | None]:
        now, clear, suspicious, cells = time.perf_counter, flags.clear, flags.suspicious, context.cells
        begin, done = at_work.append, at_work.pop

        def bound(values: Sequence[Any]) -> list[Any] | None:
            if config.tier == "numpy":
                return None
            begin((self, start := now()))
            try:
                if not cells:
                    return run(*values)
                clear()
                results = run(*values)
                elapsed = now() - start
                if suspicious(results):
                    self._warn_again(elapsed, sizes, values)
            except Exception:  # noqa: BLE001 (met again)
                return None
            finally:
                done()
            return results

        return bound

    def by_numpy(self, sizes: dict[Any, int], *values: Any) -> list[Any]:
        """The results, by NumPy: floating-point errors are raised or told, as ``np.errstate`` asks."""
        self._fit(sizes)
        self._afford(sizes)
        if self._reference is None:
            self._reference = reference.compile(self.graph)
        with floating.watched():
            return reference.owned(self._reference(sizes, *values), values)

    def _afford(self, sizes: dict[Any, int]) -> None:
        """Refuse a run of NumPy that needs more memory than there is; what needs little is asked once."""
        key = tuple(sizes.values())
        if key in self._small:
            return
        needed, largest = room.least_by_numpy(self.graph, sizes)
        if needed > room.GATE:
            room.afford(needed, largest)
        else:
            self._small.add(key)

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
        if context.cells and flags.suspicious(results):
            self._warn_again(elapsed, sizes, values)
        return results

    def _warn_again(self, elapsed: float, sizes: dict[Any, int], values: Sequence[Any]) -> None:
        """NumPy's warnings, by a second run in NumPy: once for each run of a cell, where that takes no long time."""
        run = max(cell.run for cell in context.cells.values())
        quick = self.seconds.get("numpy", elapsed * SLOWER) < WORTH_WARNING
        if run != self._warned and quick and not self.tells and not self.calls:
            self._warned = run
            self.by_numpy(sizes, *values)

    @cached_property
    def tells(self) -> bool:
        """Whether running it prints."""
        return "tell" in self.graph.ops  # a print is not to happen twice

    @cached_property
    def calls(self) -> bool:
        """Whether running it calls functions that are called as they are."""
        return "outside" in self.graph.ops

    def _ready(self) -> Callable[..., list[Any]] | None:
        """The machine code, where it is there and may run; it is waited for where nothing else may."""
        if self._native is None and config.tier != "numpy":
            handle = self.compile() if config.tier == "numba" else self._handle
            if config.tier == "numba" and handle is not None:
                handle.wait()
            if handle is not None and handle.ready():
                self._native = handle.run
        return None if config.tier == "numpy" else self._native

    def _slow(self, sizes: dict[Any, int], *values: Any) -> list[Any]:
        machine = self._ready()
        if machine is not None:
            return self._by_machine(machine, sizes, values)
        handle = self._handle
        runs_once = context.is_driven()
        if (
            config.tier == "auto"
            and handle is None
            and not runs_once
            and reference.least_seconds(self.graph, sizes, values) > LONG
        ):
            self.compile()  # beside the first run
        start = time.perf_counter()
        results = self.by_numpy(sizes, *values)
        elapsed = time.perf_counter() - start
        self.seconds["numpy"] = elapsed
        self.spent += elapsed
        if (
            config.tier == "auto"
            and not runs_once
            and self.spent > max(WORTH_COMPILING, PLANNING * len(self.graph.nodes))
        ):
            self.compile()
        return results


@dataclass(eq=False)
class Counted:
    """What is done piece by piece elsewhere, and how far that is."""

    what: str
    count: int
    done: int = 0

    def __str__(self) -> str:
        return f"{self.what} {self.done:,} of {self.count:,}"


Stage = str | Counted  # what is done before a computation, or in place of one

at_work: list[tuple[Executable | Stage, float]] = []  # what runs or is done, and since when: for whoever shows that


class _Apart(threading.local):
    """Whether this thread works in the background: nobody waits for it, and nobody is told."""

    now = False


apart = _Apart()


@contextmanager
def working(stage: Executable | Stage) -> Generator[None]:
    """Have it known what is done, as "rewriting", where that may take long."""
    if apart.now:
        yield
        return
    at_work.append((stage, time.perf_counter()))
    try:
        yield
    finally:
        at_work.pop()


_lock = threading.RLock()
_executables: OrderedDict[tuple[Any, ...], Executable] = OrderedDict()
_KEPT = 512  # programs
_NODES = 100_000  # of all their graphs together: some 4 KB each, with what was rewritten
_LAST = 16  # programs that are kept whatever their size


_values = Values()


def executable(graph: Graph, level: str | None = None) -> Executable:
    """The executable of a closed graph: the same one for an equal graph."""
    chosen = choices(level or "")
    key = (graph, chosen)
    with _lock:
        found = _executables.get(key)
        if found is None:
            with working("rewriting"):
                rewritten = rewrite(graph, chosen[0])
            found = _executables[key] = _running(graph, rewritten)
            _drop_oldest()
        _executables.move_to_end(key)
        return found


def _drop_oldest() -> None:
    """Let go of the programs that were asked for longest ago, where there are too many, or too large ones."""
    nodes = sum(len(g.nodes) for g, _ in _executables)
    while len(_executables) > _KEPT or (nodes > _NODES and len(_executables) > _LAST):
        (graph, _), _ = _executables.popitem(last=False)
        nodes -= len(graph.nodes)


def _running(graph: Graph, rewritten: Rewritten) -> Executable:
    late = tuple(g for g in rewritten.graph.guards if g not in {*graph.guards, *rewritten.graph.checks})
    return Executable(rewritten, residence.device_in_force(), late=late)


def executable_as(graph: Graph, rewritten: Graph) -> Executable:
    """The executable of a graph that was rewritten elsewhere: the rules in force here are not asked."""
    return _running(graph, Rewritten(rewritten))


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
            for values in _values.every() if node.args else ():
                values.pop(node, None)


def close_over(
    nodes: Sequence[Node], leaves: Sequence[Node] = (), guards: Any = (), *, use_values: bool = True
) -> Closed:
    """The graph of ``nodes``, cut at inputs and at values that are known, but where rules see more in the whole than in its parts.

    A constant stays one, whoever has asked for its value, and so does one of another shape: equal ones are one node wherever they are used.
    """
    tables = _values.near() if use_values else []
    whole = set(nodes)  # where it is not cut

    def is_leaf(n: Node) -> bool:
        if not n.args:
            return n.op is INPUT
        return n not in whole and len(n.types) == 1 and any(n in known for known in tables) and not _is_constant(n)

    while True:
        with working("building the graph"):
            closed = close(nodes, is_leaf, parameter, leaves, guards, alone=bool(leaves))
        if not use_values:
            return closed
        _values.adopt(closed.leaves)
        more = parted(nodes, closed.leaves, partial(_absorbed, closed), _values.table())
        if not more:
            return closed
        whole |= more


def _is_constant(n: Node) -> bool:
    """Whether a node is a constant, or moves the elements of one."""
    while n.op.kind == "move" and len(n.needs) == 1:  # type: ignore[attr-defined]
        n = n.needs[0]
    return n.op is CONSTANT


def _absorbed(closed: Closed) -> Parts:
    """The nodes whose roundings rules absorb in a graph."""
    return absorbed(closed, executable(closed.graph).rewritten)


def value_of(leaf: Node) -> Any:
    """The value behind a leaf of a graph that is demanded, on the host."""
    return residence.hosted(_held(leaf), leaf)


def place(node: Node) -> None:
    """Have the value of ``node`` on the device, beside where it is."""
    have([node])
    there = _values.here()
    held = residence.kept(node, there[node], there)
    if isinstance(held, residence.Resident):
        held.device()
        held.stays = True


def device_array(node: Node) -> Any:
    """The array of ``node`` on the device; None where its value is not there, or belongs on the host."""
    held = next((values[node] for values in _values.near() if node in values), None)
    if held is None and node.op is INPUT and isinstance(node["source"], Snapshot):
        held = node["source"].value
    return held.device() if isinstance(held, residence.Resident) and held.stays else None


def norm_of(node: Node) -> float:
    """The Euclidean norm of a value on the device, of which one number is read."""
    return residence.norm(_values.here()[node])


reasons: weakref.WeakKeyDictionary[Node, str] = weakref.WeakKeyDictionary()
"""Why values were computed where they were, where the device was chosen by sizes."""


def shape_of(leaf: Node) -> tuple[int, ...]:
    """The shape of the value behind a leaf, wherever that lies."""
    return np.shape(_held(leaf))


def _held(leaf: Node) -> Any:
    """The value behind a leaf, where it lies."""
    for values in _values.near():
        if leaf in values:
            return values[leaf]
    if leaf.args:  # its value was let go
        have([leaf])
        return _values.here()[leaf]
    source = leaf["source"]
    if not isinstance(source, Snapshot):
        raise GuardError(
            f"the value of {source.name} is needed while a function of it is differentiated or batched, but it has none there",
            "Print and convert outside of that function, and store into arrays that it is given.",
        )
    return source.read()


def compute(nodes: Sequence[Node], names: Sequence[str] = ()) -> list[Any]:
    """The values of ``nodes`` on the host, several in one run; ``names`` are what the user calls them, for messages."""
    have(nodes)
    found = [*map(_values.here().__getitem__, nodes)]
    if in_use:
        called = [*names, *("" for _ in nodes[len(names) :])]
        return [residence.hosted(v, n, name) for v, n, name in zip(found, nodes, called, strict=True)]
    return found


def have(nodes: Sequence[Node]) -> None:
    """Have the values of ``nodes`` there, several in one run; each is computed once and kept while its node lives."""
    if coming:
        _await(nodes)
    with errstate.later():
        _have(nodes)


coming: weakref.WeakKeyDictionary[Node, Future[Any]] = weakref.WeakKeyDictionary()  # what is computed in the background


def _await(nodes: Sequence[Node]) -> None:
    """Wait for what ``nodes`` need that is computed in the background; what fails there is computed again, and fails here."""
    found = _coming_for(nodes)
    if found:
        wait(found)


def _coming_for(nodes: Sequence[Node]) -> set[Future[Any]]:
    """What computes in the background what ``nodes`` need."""
    there = _values.here()
    return {coming[n] for n in topological(nodes, stop=there.__contains__) if n in coming and n not in there}


Later = tuple[list[Node], Callable[[], dict[Node, Any]], set["Future[Any]"]]


def later(nodes: Sequence[Node]) -> Later:
    """What has to be computed of ``nodes``, what does that on another thread, over inputs as they are now, and what that waits for.

    Raises
    ------
    CaptureError
        Where that prints, or calls functions as they are: then the order of effects would be another one.
    """
    have(wanted := [n for n in nodes if n.op is INPUT or n.op is CONSTANT])
    after = _coming_for(nodes) if coming else set()
    if not after:
        return *_apart_from_here(nodes, wanted), after
    there = _values.here()
    pending = [n for n in dict.fromkeys(nodes) if n not in there]
    _refuse_effects(close_over(pending, use_values=False).graph)
    return pending, lambda: _apart_from_here(nodes, wanted)[1](), after


def _refuse_effects(graph: Graph) -> None:
    if not graph.ops.isdisjoint({"tell", "outside"}):
        raise CaptureError(
            "a computation that prints, or calls uncaptured functions, cannot run in the background",
            "Leave out --async.",
        )


def _apart_from_here(nodes: Sequence[Node], wanted: Sequence[Node]) -> tuple[list[Node], Callable[[], dict[Node, Any]]]:
    """What of ``nodes`` is not there, and what computes it without the lock, over copies; inputs that are ``wanted`` are there."""
    with _lock:
        there, table = _values.here(), _values.table()
        known = {n: there[n] for n in wanted}
        pending = [n for n in dict.fromkeys(nodes) if n not in there]
        known.update((n, there[n]) for n in nodes if n in there)
        if not pending:
            return [], lambda: known
        closed, values, sizes = _bound(pending)
        program = executable(closed.graph)
    _refuse_effects(program.graph)
    given = [np.array(v, order="K") if isinstance(v, np.ndarray) and not _is_kept(v) else v for v in values]

    def run() -> dict[Node, Any]:
        with floating.told(cached(lambda: site.Lens(closed.mapping))):
            results = program.here(sizes, *given)
        own = absorbed(closed, program.rewritten)
        for node, result in zip(pending, results, strict=True):
            known[node] = _kept(result)
            table.there.setdefault(node, known[node])
            table.inherit(node, closed.leaves, own)
        return known

    return pending, run


def _is_kept(value: np.ndarray[Any, Any]) -> bool:
    """Whether nobody can store into an array."""
    return not value.flags.writeable and (value.base is None or not getattr(value.base, "flags", value.flags).writeable)


def _have(nodes: Sequence[Node]) -> None:
    with _lock:
        _let_go(nodes)
        there = _values.here()
        pending = []
        for node in dict.fromkeys(nodes):
            if node in there:
                continue
            if node.op is INPUT or node.op is CONSTANT:
                there[node] = _kept(_held(node) if node.op is INPUT else _leaf_value(node))
            else:
                pending.append(node)
        if len(pending) == 1 and (found := _at_once(pending[0])) is not None:
            there[pending.pop()] = _kept(found)
        if pending:
            for node, result in zip(pending, _run(pending, there), strict=True):
                there[node] = _kept(result)


def _run(pending: list[Node], there: MutableMapping[Node, Any]) -> list[Any]:
    """The values of ``pending``, to which what is worth a value on the way is added, by one program."""
    closed, values, sizes = _by_form(pending) or _bound(pending)
    if len(closed.mapping) > living.LONG and (passed := living.on_the_way(pending, there.__contains__)):
        pending += passed
        closed, values, sizes = _bound(pending)
    if config.device == "cpu" and not config.own_devices and any(map(residence.stays, values)):
        # what is computed from values on the device is computed there, unless a block says where
        with config.using(device="gpu", transfers=residence.policy(values)):
            _have(pending)
            found = [_values.here()[n] for n in pending]
        _values.adopt(pending)
        return found
    program = executable(closed.graph)
    again = all(any(n in table for table in _values.every()) for n in pending)  # at another level
    with floating.told(lens := cached(lambda: site.Lens(closed.mapping))), silently() if again else nullcontext():
        if program.device != "cpu" and not floating.raises() and program.is_for_device(sizes, values):
            names = [residence.name_of(leaf) for leaf in closed.leaves]
            given = [residence.kept(leaf, v, there) for leaf, v in zip(closed.leaves, values, strict=True)]
            results = program.resident(given, names, lambda node: lens().of(node))
        else:
            values = [residence.hosted(v, leaf) for leaf, v in zip(closed.leaves, values, strict=True)]
            results = (program.by_numpy if floating.raises() else program.here)(sizes, *values)
    reasons.update((node, program.why) for node in pending if program.device == "auto")
    own, table = absorbed(closed, program.rewritten), _values.table()
    for node in pending:
        table.inherit(node, closed.leaves, own)
    return results


FEW, SMALL = 32, 10_000  # nodes that NumPy computes one by one, and their elements: above that, compiled code pays
_PLAIN = {"pointwise", "fold", "move", "contract"}
_INDICES = {"position", "require", "size"}  # what indices that are data go through


def _at_once(node: Node) -> Any:
    """The value of a small operation of values that are there, or of elements of small arrays; None where a graph is to be closed."""
    if config.tier == "numba" or config.device != "cpu" or own_rules(config.math) or (in_use and _reads_device(node)):
        return None
    for _ in range(FEW):
        found = _by_numpy(node)
        if found is not None or not (first := _read_from(node)):
            return found
        compute(first)
    return None


def _by_numpy(node: Node) -> Any:
    """The value of one small operation of values that are there; None where that is more, and where NumPy warns or raises."""
    try:
        todo = _few(node)
        if not todo:
            return None
        there = {a: _leaf_value(a) for n in todo for a in n.needs if a not in todo}
        if (values := _values.table()).absorbed and parted([node], list(there), Parts, values):
            return None
        table = dict(there)

        def known(a: Atom) -> int:
            return int(a.hint if isinstance(a, Symbol) else table[a])  # type: ignore[arg-type]

        def size(s: Size) -> int:
            return s if isinstance(s, int) else evaluate(s, known)

        with np.errstate(all="raise", under="ignore"):
            for n in todo:
                for guard in n.op.guards(n) if n.sized_by else ():  # type: ignore[attr-defined]
                    check(guard, known)
                table[n] = n.op.evaluate(n, [table[a] for a in n.args], size)  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001 (what raises or warns does so where lines are known)
        return None
    value = table[node]
    values.inherit(node, there)
    return reference.owned([value], list(there.values()))[0] if isinstance(value, np.ndarray) else value


def _reads_device(node: Node) -> bool:
    """Whether a value is computed from values that belong on the device, or from more than a few."""
    tables = _values.near()
    pending, seen = [node], {node}
    while pending:
        part = pending.pop()
        known = [table[part] for table in tables if part in table]
        if any(map(residence.stays, known)):
            return True
        fresh = [] if known else [n for n in part.needs if n not in seen]
        seen.update(fresh)
        pending += fresh
        if len(seen) > 4 * FEW:
            return True
    return False


def _few(node: Node) -> list[Node] | None:
    """What is not there of a node and of what it needs, what is needed first; None where that is more than one small operation.

    Moves and stores are none, nor is what integers and truth values go through: no rule makes these more accurate.
    """
    found: set[Node] = set()
    there = _values.here()
    pending = [node]
    operations = elements = 0
    while pending:
        n = pending.pop()
        if n in found or not n.needs or n in there:
            continue
        kind: str = n.op.kind  # type: ignore[attr-defined]
        moves = kind == "move" or (kind == "update" and n.op.picks)  # type: ignore[attr-defined]
        if not moves and kind not in _PLAIN and n.op.name not in _INDICES:
            return None
        found.add(n)
        operations += not moves and any(a.type.inexact for a in (n, *n.args))
        elements += math.prod([_number(s) for s in n.type.shape])
        if len(found) > FEW or operations > 1 or elements > SMALL:
            return None
        pending += n.needs
    return sorted(found, key=_age)


_age = operator.attrgetter("serial")  # a node is made after what it needs


def _read_from(node: Node) -> list[Node]:
    """Small arrays that are not there, and of which ``node`` reads a part: each is computed once, and not for each part.

    Where it is data-dependent how large one is, that comes first. A number that is computed from parts has those alone that no rule makes
    more accurate together with what is done to them: of integers, and of library calls.
    """
    found: dict[Node, None] = {}
    there = _values.here()
    pending, iterations = [node], 0
    while pending and iterations < FEW:
        part, iterations = pending.pop(), iterations + 1
        whole = part
        while whole.op.kind == "move" and len(whole.args) == 1 and whole not in there:  # type: ignore[attr-defined]
            pending += whole.sized_by
            whole = whole.args[0]
        if whole in there or len(whole.types) > 1:
            continue
        if _elements(whole) == 1:
            pending += whole.needs
        elif whole is not part and (part is node or _stays(whole)) and not any(map(_is_large, whole.args)):
            found.update(dict.fromkeys(_missing(part, whole)))
    return list(found)


def _missing(part: Node, whole: Node) -> list[Node]:
    """What is to be computed before a part of an array: what says how large that is, and the array, where it is small."""
    there = _values.here()
    unknown = [a for s in whole.type.shape for a in nodes_of(s) if a not in there]
    return unknown or [whole] * (bool(whole.args) and _elements(part) < _elements(whole) <= SMALL)


def _elements(node: Node) -> float:
    """The number of elements; infinite where it depends on data that are not there."""
    try:
        return math.prod([_number(s) for s in node.type.shape])
    except (KeyError, TypeError):
        return math.inf


def _is_large(node: Node) -> bool:
    return len(node.types) == 1 and SMALL < _elements(node) < math.inf


def _stays(node: Node) -> bool:
    return node.op.kind == "opaque" or not node.type.inexact  # type: ignore[attr-defined]


def _leaf_value(node: Node) -> Any:
    """The value of what is there, or needs no operands."""
    known = _values.here().get(node)
    if known is not None:
        return residence.hosted(known, node) if type(known) is residence.Resident else known
    return value_of(node) if node.op is INPUT else node.op.evaluate(node, (), _number)  # type: ignore[attr-defined]


def number_of(size: Size) -> int:
    """What a size was at capture, or is computed to be."""
    if nodes_of(size):
        compute(nodes_of(size))
    return _number(size)


def _number(size: Size) -> int:
    """What a size was at capture, or has been computed to be."""
    if isinstance(size, int):
        return size
    there = _values.here()
    return evaluate(size, lambda a: int(a.hint if isinstance(a, Symbol) else there[a]))  # type: ignore[arg-type]


def _bound(nodes: Sequence[Node]) -> tuple[Closed, list[Any], dict[Any, int]]:
    """The graph of ``nodes``, what its parameters are, and the sizes; cut at known values, where their shapes say what sizes are."""
    closed = close_over(nodes)
    values = [_held(leaf) for leaf in closed.leaves]
    for guard in closed.before:
        check(guard, _extent)
    try:
        return closed, values, closed.graph.bind([np.shape(v) for v in values])
    except GuardError:  # a value of half the size of an input does not say what size that has
        closed = close_over(nodes, use_values=False)
        values = [_held(leaf) for leaf in closed.leaves]
        return closed, values, closed.graph.bind([np.shape(v) for v in values])


_forms = Forms()


def _by_form(nodes: Sequence[Node]) -> tuple[Closed, list[Any], dict[Any, int]] | None:
    """:func:`_bound` for what an iteration asks for that Python runs, where the graph may have the form of one that is there."""
    if len(nodes) > 1 or not context.is_driven() or config.device != "cpu" or in_use:
        return None
    table = _values.table()
    found = find(nodes[0], table.there, _held, _number)
    if found is None or any(n in table.absorbed for n in found.values):
        return None
    known = _forms.close(found)
    if known is None:
        return None
    closed = known.closed(found)
    if parted(nodes, closed.leaves, partial(_absorbed, closed), table):
        return None
    values = [found.values[leaf] for leaf in closed.leaves]
    try:
        return closed, values, closed.graph.bind([np.shape(v) for v in values])
    except GuardError:
        return None


def _extent(a: Atom) -> int:
    """The number of a symbol at capture, or of a node."""
    return int(a.hint if isinstance(a, Symbol) else compute([a])[0])  # type: ignore[arg-type]


def _let_go(wanted: Sequence[Node]) -> None:
    """Drop values that nobody has any more, once many have come."""
    global _fresh
    if _fresh > living.SEARCH_BYTES:
        _fresh = 0
        for values in _values.every():
            for node in living.let_go(values, wanted):
                del values[node]


_fresh = 0  # bytes of values since then


def _kept(value: Any) -> Any:
    global _fresh
    if living.is_large(value):
        _fresh += value.nbytes
    if isinstance(value, np.ndarray) and value.flags.writeable:
        value = value.view() if value.base is not None else value
        value.flags.writeable = False
    return value


def is_computed(node: Node) -> bool:
    """Whether the value of ``node`` is there."""
    return node in _values.here() or node.op is CONSTANT


def _as_built(node: Node) -> None:
    """Compute a node as soon as code has built it; not one that depends on a region's arguments, which have no values.

    What it is made of, and was built before, is computed as it was asked for then; what is built again meets its errors again.
    """
    there = _values.here()
    before = there.pop(node, None) if node.op is not INPUT and node.op is not CONSTANT else None
    try:
        have(context.built_before(node, there.__contains__))
        _have([node])
    except GuardError:
        return
    finally:
        if before is not None:
            there[node] = before


def _is_away(node: Node) -> bool:
    value = _values.here().get(node)
    return isinstance(value, residence.Resident) and not value.on_host


context.at_once.append(_as_built)
hooks.is_on_device = _is_away
hooks.compute = compute
hooks.is_computed = is_computed
