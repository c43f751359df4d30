"""Functions over arrays, traced once for each kind of arguments: ``tm.tensor`` on functions, and what is made of them."""

from __future__ import annotations

import functools
import inspect
import types
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from tensormagic import session
from tensormagic.capture import context, door, floating, random
from tensormagic.capture.context import Capture
from tensormagic.capture.hooks import hooks
from tensormagic.capture.staging.raising import checked, refusing
from tensormagic.capture.stores.place import Buffer
from tensormagic.capture.traces import users_alone
from tensormagic.capture.tree import computed, flatten, structure
from tensormagic.capture.value import Tensor, node_of, wrap
from tensormagic.config import config
from tensormagic.functions.footprint import UNKNOWN, constants_of, record_of
from tensormagic.functions.inside import Inside, arrays_in, placed, refuse_kept, taken_back
from tensormagic.functions.left import give_values, held_by, left_behind, rescued, young
from tensormagic.functions.moving import agree, arrays_of, choices_of, moved
from tensormagic.functions.reading import (
    Body,
    Read,
    called_body,
    captured_body,
    is_moving,
    parameters_of,
    reads_of,
)
from tensormagic.functions.record import Record, bits
from tensormagic.functions.space import place_of
from tensormagic.functions.stand_ins import abstract_tensor
from tensormagic.functions.stores import Stores, committed, stores_of, unchanged
from tensormagic.functions.travel import Made
from tensormagic.ir.errors import CaptureError, ForeignStoreError, GuardError, KindError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ops.effects.outside import Changed, Log, logged
from tensormagic.ops.leaf import INPUT, constant
from tensormagic.transform.rewriting import choices

_EXACT = 128  # argument shapes whose sizes are remembered
_STATES = 8  # states of what is read for which programs are kept, for one kind of arguments
_AGAIN = 15  # calls that trace again, where what is read could not be followed, before that is asked anew
Completing = Callable[[tuple[Any, ...], dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]]


@dataclass(frozen=True, eq=False)
class Trace:
    """What a body gave: nodes of arguments, of results and then of stores, how results are put together, and what it relies on.

    ``new`` are the reads that were not known before, and ``again`` says that they have to be known for a trace to be right.
    """

    leaves: list[Node]
    results: list[Node]
    stores: Stores
    build: Callable[[Any], Any]
    guards: list[Any]
    new: list[Read]
    again: bool
    raising: bool  # floating-point errors, where it asks for that
    caught: bool  # those, in a `try`, where a call asks for them
    values: dict[Node, Any]  # what each input was
    inside: list[Buffer]  # of arrays inside of containers and objects


@dataclass(frozen=True, eq=False)
class Given:
    """The values of one call: those that become inputs of the trace, and how the others stand between them.

    Parameters
    ----------
    leaves, moving, build
        The parts of the arguments, which of them become inputs, and how arguments are put together again.
    held
        The reads that hold something, and what they hold.
    """

    leaves: list[Any]
    moving: list[bool]
    build: Callable[[Any], Any]
    held: list[tuple[Read, Any]]

    @property
    def reads(self) -> list[Read]:
        """The reads that become inputs."""
        return [read for read, value in self.held if is_moving(value)]

    @property
    def values(self) -> list[Any]:
        """What the inputs are: arguments, then reads."""
        return [random.state_of(v) if random.is_generator(v) else v for v in self.objects]

    @property
    def objects(self) -> list[Any]:
        """What stands behind the inputs: for the state of a generator, the generator."""
        own = [v for v, m in zip(self.leaves, self.moving, strict=True) if m]
        return own + [value for _, value in self.held if is_moving(value)]

    def with_reads(self, new: Sequence[Read]) -> Given:
        """With what more was found to be read."""
        return Given(self.leaves, self.moving, self.build, [*self.held, *((r, _held(r)) for r in new)])


def _held(read: Read) -> Any:
    """What a name holds, as captured code computes with it."""
    value = read[1][read[0]]
    return door.variable(value, read[0]) if is_moving(value) else value


def refuse_stores(tensors: Sequence[Tensor], label: str) -> None:
    """Raise where a function has stored into an argument."""
    for tensor in tensors:
        if tensor.place.buffer.version:
            name = tensor.place.buffer.name
            raise CaptureError(
                f"{label} stores into its argument {name}, which is not captured in functions yet",
                f"Begin with {name} = {name}.copy(), and return it.",
            )


def trace(
    body: Body, given: Given, names: Sequence[str], label: str, complex_sites: frozenset[int] = frozenset()
) -> Trace:
    """Run ``body`` over abstract arguments of the types of the values that are given."""
    capture = Capture(label, abstract=True, complex_sites=complex_sites)
    tensors = [abstract_tensor(v, n) for v, n in zip(given.values, names, strict=True)]
    leaves = [t.node for t in tensors]
    capture.values.update(zip(leaves, given.values, strict=True))
    count = sum(given.moving)
    seen = [random.over(o, t, capture) for o, t in zip(given.objects, tensors, strict=True)]
    capture.lifted.update(zip(map(place_of, given.reads), seen[count:], strict=True))
    own = iter(seen[:count])
    with context.capturing(capture), placed(given.reads, seen[count:]):
        args, options = given.build(
            iter([next(own) if m else v for v, m in zip(given.leaves, given.moving, strict=True)])
        )
        with refusing(label), rescued(capture.values):
            result = unchanged((args, options), label, lambda: body(*args, **options))
        found, build = computed(result)
        nodes = [node_of(v) for v in found]
        known = {place_of(read) for read, _ in given.held}
        new = [read for place, read in capture.noted.items() if place not in known]
        fresh = [capture.lifted[p] for p in map(place_of, new) if isinstance(capture.lifted.get(p), Tensor)]
        tensors += fresh
        leaves += [t.node for t in fresh]
        matters = capture.by_layout or (capture.stores and capture.ordered)
        known = [*given.values, *(capture.values.get(t.node) for t in fresh)]
        stores = stores_of(label, tensors, found, known if matters else None)
    nodes += [tensors[k].place.buffer.node for k in stores.inputs]
    again = any(t.place.buffer.version for t in fresh) or any(random.is_generator(r[1][r[0]]) for r in new)
    return Trace(
        leaves, nodes, stores, build, capture.guards, new, again, capture.raising, capture.caught, capture.values,
        [t.place.buffer for t, r in zip(tensors[count:], given.reads, strict=False) if isinstance(r[1], Inside)],
    )  # fmt: skip


@dataclass(eq=False)
class Specialisation:
    """A function for one kind of arguments."""

    graph: Graph
    program: session.Executable
    build: Callable[[Any], Any]
    extra: list[Node]
    single: bool
    stores: Stores
    raising: bool
    caught: bool
    names: tuple[str, ...] = ()
    held: list[Any] | None = None  # what is behind ``extra``

    def whole(self, values: Sequence[Any]) -> Sequence[Any]:
        """The values of all parameters of the graph, where ``values`` are those of arguments and reads."""
        if not self.extra:
            return values
        if self.held is None:
            self.held = [*map(session.value_of, self.extra)]
        return [*values, *self.held]

    def sizes(self, values: Sequence[Any]) -> dict[Any, int]:
        """The sizes of a call."""
        return self.graph.bind([np.shape(v) for v in self.whole(values)])

    def run(self, sizes: dict[Any, int], values: Sequence[Any], given: Sequence[Any]) -> Any:
        """The result as the user's function would give it, with its stores done in the arrays that were ``given``."""
        values = self.whole(values)
        if not self.stores:
            asks = self.raising or self.caught or floating.raises()
            results = None if asks else self.program.plainly(sizes, values)
            if results is None:
                results = self.results(sizes, values)
            return results[0] if self.single else self.build(iter(results))
        self.stores.check(values, given)
        results = self.stores.commit(self.results(sizes, values), values)
        return results[0] if self.single else self.build(iter(results))

    def results(self, sizes: dict[Any, int], values: Sequence[Any]) -> list[Any]:
        """What the graph gives: by the tier that is ready; by NumPy, where floating-point errors are to raise."""
        if not self.program.calls:
            return self._results(sizes, values)
        with logged():
            return self._results(sizes, values)

    def _results(self, sizes: dict[Any, int], values: Sequence[Any]) -> list[Any]:
        try:
            if self.caught:
                self._refuse_errors()
            if self.raising:
                with floating.inside():
                    return self.program.by_numpy(sizes, *values)
            if floating.raises():
                return self.program.by_numpy(sizes, *values)
            return self.program.run(sizes, *values, names=self.names)
        except BaseException as error:
            if isinstance(error, KindError) and self.program.tells:
                error.site = -1  # what was printed is not to be printed twice
            hooks.failed(error)
            raise

    def _refuse_errors(self) -> None:
        """Refuse a call that asks for floating-point errors, which a ``try`` of the function would catch."""
        if floating.raises():
            raise context.uncaught()


@dataclass(frozen=True, eq=False)
class Known:
    """A program for values of known types and shapes: the sizes, what has to be as it was, what keys know by its id, and its reads."""

    program: Specialisation
    sizes: dict[Any, int]
    holds: Callable[[], bool]
    kept: list[Any]
    reads: tuple[tuple[Read, Any], ...]

    def values(self, args: Sequence[Any]) -> list[Any]:
        """The arguments and what the reads hold; a KeyError where that is of another kind."""
        found = list(args)
        for (name, space), signature in self.reads:
            value = space[name]
            if _signature(value) != signature:
                raise KeyError(name)
            found.append(value)
        return found


@dataclass(eq=False, repr=False)
class Function(Made):
    """A captured function: a call traces it for the kind of its arguments, and runs the graph.

    Called on lazy arrays, or inside a captured cell, it gives lazy arrays; on NumPy arrays it gives NumPy arrays.

    Parameters
    ----------
    body
        What is traced: takes and gives lazy arrays.
    name, parameters
        For messages, and for arguments that are named.
    complete
        Brings arguments to their normal form: positional, with those filled in that were not given.
    fills
        Whether ``complete`` has something to do where all arguments are positional.
    reads
        The names that ``body`` reads beside its arguments, each with the dictionary that holds it; a trace adds to them.
    roots
        The user's functions, and code of cells, that ``body`` runs: what these can read is followed. None where that is not
        known: then every call traces it again.
    math
        Which rewrites may be used; empty for what ``config.math`` says at the call.
    placed
        The device that calls run on, and what is said of copies; empty for what ``config`` says at the call.
    """

    offered: ClassVar[tuple[str, ...]] = ("forget", "graph", "math", "name", "source")

    body: Body
    name: str
    parameters: tuple[str, ...] = ()
    complete: Completing | None = None
    reads: tuple[Read, ...] = ()
    fills: bool = False
    roots: tuple[Any, ...] | None = None
    math: str = ""
    placed: tuple[str, str] = ("", "")
    inside: Body = field(init=False, repr=False)  # what runs in other code, whose checks and effects its own are among
    quick: dict[Any, Known] = field(default_factory=dict, repr=False)
    _exact: OrderedDict[Any, list[Known]] = field(default_factory=OrderedDict, repr=False)
    _kinds: OrderedDict[Any, list[tuple[Specialisation, Record]]] = field(default_factory=OrderedDict, repr=False)
    _unfollowed: int = field(
        default=0, repr=False
    )  # calls until it is asked again whether what is read can be followed
    _moving: OrderedDict[Any, tuple[tuple[str, Inside], ...]] = field(
        default_factory=OrderedDict, repr=False
    )  # places in objects that are inputs, by the arguments that are none
    _constant: set[Any] = field(default_factory=set[Any], repr=False)  # places in objects that cannot be inputs
    _met: set[Any] = field(
        default_factory=set[Any], repr=False
    )  # kinds of arguments that were traced with arrays inside
    _leaves: bool = False  # whether its last trace has left values in objects
    _settled: bool = False  # whether it was traced once: where it stores is known
    _complex: frozenset[int] = frozenset()
    _kept: dict[frozenset[int], Any] = field(default_factory=dict[frozenset[int], Any], repr=False)

    def __post_init__(self) -> None:
        self.inside, self.body = self.body, checked(self.body)
        self.__doc__ = f"The captured function {self.name}: NumPy arrays in, NumPy arrays out; lazy ones on lazy ones."
        if self.fills:  # any argument may be left out
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            given = [inspect.Parameter(name, kind, default=...) for name in self.parameters]
            self.__signature__ = inspect.Signature(given)  # no field: `inspect` looks for it

    def __repr__(self) -> str:
        return f"<captured function {self.name}({', '.join(self.parameters) or '...'})>"

    @property
    def _users(self) -> Any:
        own: Any = self
        return own.__wrapped__

    @property
    def __defaults__(self) -> tuple[Any, ...] | None:
        """The defaults of the user's function: those that are set here are its own."""
        return self._users.__defaults__

    @__defaults__.setter
    def __defaults__(self, values: tuple[Any, ...] | None) -> None:
        self._users.__defaults__ = values

    @property
    def __kwdefaults__(self) -> dict[str, Any] | None:
        """The same for arguments by name alone."""
        return self._users.__kwdefaults__

    @__kwdefaults__.setter
    def __kwdefaults__(self, values: dict[str, Any] | None) -> None:
        self._users.__kwdefaults__ = values

    @property
    def follows(self) -> tuple[Any, ...] | None:
        """What a function that calls this one can read."""
        return self.roots

    def forget(self) -> None:
        """Let go of the programs."""
        self.quick.clear()
        self._exact.clear()
        self._kinds.clear()
        self._kept.clear()
        self._moving.clear()
        self._constant.clear()
        self._met.clear()

    def __call__(self, *args: Any, **options: Any) -> Any:
        __tracebackhide__ = True  # IPython leaves this frame out of tracebacks
        device, policy = self.placed
        if device and (config.device, config.transfers) != (device, policy or config.transfers):
            with config.using(device=device, transfers=policy):
                return self(*args, **options)
        if context.current() is not None:
            args, options = self._completed(args, options)
            return self._leveled(args, options)
        if not options and not self.fills:
            try:
                known = self.quick[choices(self.math), tuple([(a.__class__, a.dtype, a.shape) for a in args])]
                if known.holds():
                    values = known.values(args) if known.reads else args
                    return known.program.run(known.sizes, values, values)
            except (AttributeError, KeyError, TypeError):
                pass  # not seen before in just this form
            except KindError as error:
                _unless_met_again(error)
            except Changed as changed:
                return self._again(args, options, changed.log)
        args, options = self._completed(args, options)
        try:
            with logged():
                try:
                    return self._of_kind(args, options)
                except Changed as changed:
                    return self._again(args, options, changed.log)
        except BaseException as error:  # noqa: BLE001 (raised again)
            raise users_alone(error)  # noqa: B904 (the same one)

    def _again(self, args: tuple[Any, ...], options: dict[str, Any], log: Log | None) -> Any:
        """The result, traced anew: a function that is called as it is has given something of another kind than before.

        Where an argument lies otherwise in memory, there may be a trace for that; nothing has run then, and there is no log.
        """
        if log is None:
            self.quick.clear()
            return self._of_kind(*self._completed(args, options))
        with logged(log):
            self.forget()
            return self._of_kind(args, options)

    def _of_kind(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """The result; what was taken for real and is complex, or the other way round, is traced again as what it is.

        What was traced is kept for each way to take such results, so that values which take turns are traced once each.
        """
        tried = {self._complex}
        while True:
            try:
                return self._general(args, options)
            except KindError as error:
                other = self._complex ^ {error.site}
                if error.site < 0 or other in tried:  # both, in the iterations of a loop
                    raise
                tried.add(other)
                self._kept[self._complex] = self.quick, self._exact, self._kinds
                self._complex = other
                self.quick, self._exact, self._kinds = self._kept.pop(other, ({}, OrderedDict(), OrderedDict()))

    def _leveled(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """What the body gives for lazy arguments: lazy values of its own level."""
        capture = context.current()
        body = self.inside if capture is not None and capture.abstract else self.body
        if not self.math:
            return body(*args, **options)
        with config.using(math=self.math):
            return body(*args, **options)

    def _completed(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self.complete(args, options) if self.complete and (options or self.fills) else (args, options)

    def _general(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if any(isinstance(v, Tensor) for v in self._flattened(args, options)[0]):
            with context.capturing(
                context.Capture(self.name)
            ) as capture:  # as in a cell: control flow on them is staged
                result = self._leveled(args, options)
            drawn = random.advanced(capture)
            random.commit(drawn, session.compute([g.buffer.node for g in drawn]))
            committed(capture, self.name)
            return result
        given, key = self.kind(args, options)
        known = next((k for k in self._exact.get(key, ()) if k.program.stores.fits(given.values) and k.holds()), None)
        if known is None:
            program, given, record = self._specialise(key, given, (args, options))
            sizes = program.sizes(given.values)
            if record.why:
                return program.run(sizes, given.values, _own_arrays(args, options, given) if program.stores else ())
            reads = tuple([(r, _signature(v)) for r, v in given.held if is_moving(v)])
            known = Known(program, sizes, record.holds, given.leaves, reads)
            self._remember(args, options, given, known)
        program = known.program
        return program.run(known.sizes, given.values, _own_arrays(args, options, given) if program.stores else ())

    def kind(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Given, Any]:
        """The values of a call, and the key of the programs for values of their types and shapes."""
        given = self._given(args, options)
        return given, (structure((args, options)), *self._key(given), tuple([_signature(v) for v in given.values]))

    def stored(self, args: tuple[Any, ...]) -> tuple[Given, bool]:
        """The values of a call, with all that it reads, and whether it stores into some of these."""
        given, key = self.kind(args, {})
        program, given, _ = self._specialise(key, given, (args, {}))
        return given, bool(program.stores.inputs)

    def whole(self, args: tuple[Any, ...]) -> Record:
        """What a call with these arguments can read, with which what it changes can be taken back."""
        return self._whole((args, {}))

    def _flattened(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[list[Any], Callable[[Any], Any]]:
        """The parts of the arguments; a refusal says which of them it is."""
        try:
            return flatten((args, options))
        except door.RefusedError as error:
            raise door.RefusedError(error.value, door.name_of(error.value, args, options, self.parameters)) from None

    def _given(self, args: tuple[Any, ...], options: dict[str, Any]) -> Given:
        leaves, build = self._flattened(args, options)
        return self._among(leaves, [is_moving(v) for v in leaves], build)

    def _among(self, leaves: list[Any], moving: list[bool], build: Callable[[Any], Any]) -> Given:
        reads = (*self.reads, *self._moving_of(leaves, moving)) if self._moving else self.reads
        return Given(leaves, moving, build, [(read, _held(read)) for read in reads if read[0] in read[1]])

    def _moving_of(self, leaves: list[Any], moving: list[bool]) -> tuple[Read, ...]:
        """The places in objects that are inputs of calls with these arguments."""
        return self._moving.get(_objects(leaves, moving), ())

    def _remember(self, args: tuple[Any, ...], options: dict[str, Any], given: Given, known: Known) -> None:
        key = structure((args, options)), *self._key(given), tuple([_signature(v) for v in given.values])
        found = self._exact.setdefault(key, [])
        found.insert(0, known)
        del found[_STATES:]
        if not options and all(type(v) is np.ndarray for v in args) and all(type(v) in _OWN for v in given.objects):
            self.quick[choices(self.math), tuple([(a.__class__, a.dtype, a.shape) for a in args])] = known
        while len(self._exact) > _EXACT:
            self._exact.popitem(last=False)
        while len(self.quick) > _EXACT:
            del self.quick[next(iter(self.quick))]

    def _specialise(self, key: Any, given: Given, call: Any) -> tuple[Specialisation, Given, Record]:
        """The program for values of this kind, one that is there or a new one; and what it has read."""
        kind = (*key[:-1], tuple([_kind(v) for v in given.values]))
        for program, record in self._kinds.get(kind, ()):
            if program.stores.fits(given.values) and record.holds() and _fits(program, given.values):
                return program, given, record
        objects = _objects(given.leaves, given.moving)
        before, reads = self.record(call), (self.reads, self._moving.get(objects))
        whole = self._whole(call) if before.why and not self._settled else before
        try:
            program, given = self.specialise(given)
        except ForeignStoreError:
            inside = arrays_in(whole) if taken_back(whole) else ()
            moving = [read for read in self._moving.get(objects, ()) if read[1].moving]
            known = {space.spot for _, space in moving}
            inside = [read for read in inside if read[1].spot not in known]
            if not inside:
                raise
            self._moving[objects] = (*moving, *inside)
            before, given = self.record(call), self._among(given.leaves, given.moving, given.build)
            program, given = self.specialise(given)
        self._settled = True
        known = (
            (self.reads, self._moving.get(objects)) == reads
            and not self._leaves
            and not before.why
            and not before.changed()
        )
        record = before if known else self.followed(before, call)
        changed = self._moved(kind, program, call)
        if changed:
            program, given, record = self._opened(changed, program, given, record, call)
        if not record.why:
            self._keep(key, program, given, record)
        return program, given, record

    def _keep(self, key: Any, program: Specialisation, given: Given, record: Record) -> None:
        kind = (key[0], *self._key(given), tuple([_kind(v) for v in given.values]))
        found = self._kinds.setdefault(kind, [])
        found.insert(0, (program, record))
        del found[_STATES:]
        while len(self._kinds) > _EXACT:
            self._kinds.popitem(last=False)

    def _moved(self, kind: Any, program: Specialisation, call: Any) -> tuple[Inside, ...]:
        """The places in objects that may be inputs: whose values alone have changed since the last trace of this kind, or that hold arrays.

        Those of arrays are asked for at the second trace.
        """
        found = tuple(space for _, record in self._kinds.get(kind, ())[:1] for space in moved(record))
        if not found and program.extra and not self._leaves:
            if kind in self._met:
                found = arrays_of(self._whole(call))
            self._met.add(kind)
        known = {space.spot for space in found} - self._constant
        return tuple(space for space in found if space.spot in known)

    def _opened(
        self, changed: tuple[Inside, ...], program: Specialisation, given: Given, record: Record, call: Any
    ) -> tuple[Specialisation, Given, Record]:
        """The program with inputs for these places in objects, where it is to be had; else the one that there is."""
        key, reads = _objects(given.leaves, given.moving), self.reads
        before = self._moving.get(key, ())
        while len(self._moving) > _EXACT:
            self._moving.popitem(last=False)
        if program.program.calls or program.program.tells or any(map(random.is_generator, given.objects)):
            return program, given, record
        expected = _evaluated(program, given)
        for chosen in choices_of(changed):
            spots = {space.spot for space in chosen}
            others = [read for read in before if read[1].spot not in spots]
            self._moving[key] = (*others, *((space.name, space) for space in chosen))
            try:
                found = self._trial(given, call)
                if found is not None and agree(expected, _evaluated(*found[:2])):
                    return found
            except Exception:  # noqa: BLE001, S110 (the other program is right)
                pass
            self._moving[key], self.reads, self._leaves = before, reads, False
        self._constant |= {space.spot for space in changed}
        return program, given, record

    def _trial(self, given: Given, call: Any) -> tuple[Specialisation, Given, Record] | None:
        """The program with the inputs that there are now; None where it does not hold for more than this call."""
        self._unfollowed = 0
        before, wide = self.record(call), self._among(given.leaves, given.moving, given.build)
        program, wide = self.specialise(wide)
        record = self.record(call)
        known = not (self._leaves or before.why or record.why or before.changed() or record.changed())
        return (program, wide, record) if known else None

    def record(self, call: Any) -> Record:
        """What a call can read, as it is now."""
        if self._unfollowed:
            self._unfollowed -= 1
            return UNKNOWN
        reads = self.reads
        if self._moving:
            leaves = self._flattened(*call)[0]
            reads = (*reads, *self._moving_of(leaves, [is_moving(v) for v in leaves]))
        return record_of(self.roots, constants_of(call), reads, is_moving)

    def _whole(self, call: Any) -> Record:
        """The same with the elements of large arrays, and without what NumPy's generators know: a trace changes nothing of that."""
        return record_of(self.roots, constants_of(call), self.reads, is_moving, fixed=True, generators=False)

    def followed(self, before: Record, call: Any) -> Record:
        """What a trace has read, with the reads that it has found; not to be followed where the trace has changed that."""
        changed = "a value that it leaves in an object" if self._leaves else before.why or before.changed()
        record = Record((), changed) if before.why else self.record(call)
        if changed or record.why:
            self._unfollowed = self._unfollowed or _AGAIN
            return Record((), changed or record.why)
        return record

    def specialise(self, given: Given) -> tuple[Specialisation, Given]:
        """Trace for these values; again, where names that are read from outside have to be known before."""
        with young():
            found, given = self._traced(given)
        closed = session.close_over(found.results, found.leaves, found.guards, use_values=False)
        extra = [leaf for leaf in closed.leaves if leaf not in found.leaves]
        return Specialisation(
            closed.graph,
            session.executable(closed.graph, self.math),
            found.build,
            extra,
            is_single(len(found.results) - len(found.stores.inputs), found.build),
            found.stores,
            found.raising,
            found.caught,
            tuple([str(leaf["source"]) if leaf.op is INPUT else "" for leaf in closed.leaves]),
        ), given

    def _traced(self, given: Given) -> tuple[Trace, Given]:
        mark, values = wrap(constant(0)), dict[Node, Any]()
        while True:
            count = sum(given.moving)
            labels = [self.parameters[k] if k < len(self.parameters) else f"argument {k + 1}" for k in range(count)]
            with config.using(math=self.math), session.working("capturing"):
                found = trace(self.body, given, [*labels, *(n for n, _ in given.reads)], self.name, self._complex)
            values |= found.values
            known = set(map(place_of, self.reads))
            self.reads = (*self.reads, *(read for read in found.new if place_of(read) not in known))
            given = given.with_reads(found.new)
            if not found.again:
                break
        left = left_behind(mark, known=self._leaves)
        if left:
            held = held_by(found.build)
            left = [v for v in left if id(v) not in held]
        refuse_kept(left, found.inside, self.name)
        self._leaves = bool(left)
        give_values(left, values, self.name)
        return found, given

    def _key(self, given: Given) -> tuple[Any, ...]:
        """What a program depends on beside the types of its inputs."""
        fixed = tuple([_fixed(v) for v, m in zip(given.leaves, given.moving, strict=True) if not m])
        held = tuple([place_of(read) for read in given.reads])
        return choices(self.math), tuple(given.moving), fixed, held, random.pattern(given.objects)

    def graph(self, *args: Any, **options: Any) -> Graph:
        """The graph for arguments of these types, before rewriting."""
        return self.specialise(self._given(*self._completed(args, options)))[0].graph


def _objects(leaves: Sequence[Any], moving: Sequence[bool]) -> tuple[Any, ...]:
    """The arguments that are no inputs, as a key."""
    return tuple([_fixed(v) for v, m in zip(leaves, moving, strict=True) if not m])


def _evaluated(program: Specialisation, given: Given) -> list[Any]:
    """What the graph of a program gives, without its stores."""
    return program.results(program.sizes(given.values), program.whole(given.values))


def _own_arrays(args: tuple[Any, ...], options: dict[str, Any], given: Given) -> list[Any]:
    """The caller's arrays, and those that are read from outside."""
    return [*flatten((args, options))[0], *(value for _, value in given.held)]


def is_single(count: int, build: Callable[[Any], Any]) -> bool:
    """Whether results are put together to the one that there is."""
    marker = object()
    return count == 1 and build(iter([marker])) is marker


def _signature(value: Any) -> Any:
    return (value.dtype, value.shape) if isinstance(value, np.ndarray) else type(value)


def _kind(value: Any) -> Any:
    return (value.dtype, tuple([min(n, 2) for n in value.shape])) if isinstance(value, np.ndarray) else type(value)


def _fixed(value: Any) -> Any:
    """A key of a value that becomes no input: equal where it is the same in every respect."""
    if type(value) in _PLAIN:
        return (type(value), value)
    if type(value) is tuple:
        return tuple([_fixed(v) for v in value])
    if type(value) in {range, slice}:
        return type(value), _fixed(value.start), _fixed(value.stop), _fixed(value.step)
    found = bits(value)
    return ("object", id(value)) if found is None else (type(value), found)


_OWN = {np.ndarray, float, complex, np.float64, np.float32}  # inputs that are taken as they are
_PLAIN = {type(None), bool, int, str, bytes, type(...)}


def _fits(program: Specialisation, values: Sequence[Any]) -> bool:
    try:
        program.sizes(values)
    except GuardError:
        return False
    return True


# functions of the user ------------------------------------------------------------------------------------------------


def _by_position(function: types.FunctionType) -> Completing:
    """Arguments by position, as the function takes them when it is called."""
    known: list[Any] = [None, None]  # what the signature was made of, and it

    def complete(args: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        now = function.__code__, function.__defaults__, tuple(function.__kwdefaults__ or ())
        if known[0] != now:
            known[:] = now, inspect.signature(function, follow_wrapped=False)
        bound = known[1].bind(*args, **options)
        return bound.args, bound.kwargs

    return complete


def _of_function(function: types.FunctionType, lasting: bool) -> Function:
    body = captured_body(function, lasting=lasting)
    reads = reads_of(function) if lasting else ()
    made = Function(body, function.__name__, parameters_of(function), _by_position(function), reads, roots=(function,))
    functools.update_wrapper(made, function, updated=())
    return made


def of_callable(function: Any) -> Function:
    """The captured function of any callable."""
    if isinstance(function, Function):
        return function
    if isinstance(function, types.FunctionType):
        capture = context.current()
        beside = None if capture is None else capture.beside.get(function)
        return _of_function(function, capture is None if beside is None else beside.lasting)
    if callable(function):
        label = getattr(function, "__name__", type(function).__name__)
        return Function(called_body(function), label, roots=(function,))
    raise CaptureError(f"{type(function).__name__} is not a function", "Pass a function of arrays.")


def _unless_met_again(error: KindError) -> None:
    """Raise what no other trace mends."""
    if error.site < 0:
        raise error


__all__ = ["Function", "Specialisation", "of_callable"]
