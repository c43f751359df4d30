"""Programs for each kind of arguments of a function: traced, kept with what they have read, and used again while that holds."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from tensormagic import session
from tensormagic.capture.errors.traces import raised_on_purpose
from tensormagic.capture.inputs import door
from tensormagic.capture.random import generators
from tensormagic.capture.staging.calls import special_methods
from tensormagic.capture.stores.place import Place
from tensormagic.capture.tree import flatten, is_container, structure
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.config import config
from tensormagic.functions.calls.call_inputs import Given, fixed_of, held, kind_of, signature
from tensormagic.functions.calls.constants import constants_of
from tensormagic.functions.calls.program import Specialisation, Trace, evaluated, fits, trace
from tensormagic.functions.calls.quick_key import Completing
from tensormagic.functions.calls.results import refuse_tables
from tensormagic.functions.gradients.objects import reads_in
from tensormagic.functions.reads.arrays_in_objects import (
    HOLDING,
    Inside,
    arrays_in,
    memory_in,
    not_again,
    refuse_kept,
    refuse_shared,
    taken_back,
)
from tensormagic.functions.reads.changed_containers import Halfway, refused
from tensormagic.functions.reads.changing_values import agree, arrays_of, choices_of, moved
from tensormagic.functions.reads.footprint import LIMIT, UNKNOWN, record_of
from tensormagic.functions.reads.left_in_objects import give_values, held_by, left_behind, looked_at, young
from tensormagic.functions.reads.name_reads import place_of
from tensormagic.functions.reads.reading import Body, Read, is_moving
from tensormagic.functions.reads.record import Record
from tensormagic.functions.travel import Made
from tensormagic.ir.errors import CaptureError, ForeignStoreError, KindError, TensorError, ValueNeededError
from tensormagic.ir.site import Lens
from tensormagic.ops.leaf import INPUT, constant
from tensormagic.transform.rewriting import choices

EXACT = 128  # argument shapes whose sizes are kept
_ASKED = 4096  # kinds of arguments that are known as traced
STATES = 8  # states of the values read for which programs are kept, for one kind of arguments
_COPIED = 2**18  # bytes of arrays that are copied to undo changes, at each call of a kind that changes what it reads
_AGAIN = 15  # calls that are traced anew before it is tested again whether reads can be followed


@dataclass(eq=False, repr=False)
class Specialised(Made):
    """A function of which programs are kept, one for each kind of arguments and for each state of what it reads.

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
    apart
        Which of the arguments a derivative is with respect to, with their names: what objects among them hold are inputs.
    """

    body: Body
    name: str
    parameters: tuple[str, ...] = ()
    complete: Completing | None = None
    reads: tuple[Read, ...] = ()
    fills: bool = False
    roots: tuple[Any, ...] | None = None
    math: str = ""
    placed: tuple[str, str] = ("", "")
    apart: Callable[[tuple[Any, ...]], Sequence[tuple[str, Any]]] | None = None
    _kinds: OrderedDict[Any, list[tuple[Specialisation, Record]]] = field(default_factory=OrderedDict, repr=False)
    _unfollowed: int = field(default=0, repr=False)  # calls until it is tested again whether reads can be followed
    _moving: OrderedDict[Any, tuple[tuple[str, Inside], ...]] = field(
        default_factory=OrderedDict, repr=False
    )  # places in objects that are inputs, by the arguments that are no inputs
    _constant: set[Any] = field(default_factory=set[Any], repr=False)  # places in objects that cannot be inputs
    plain: Callable[..., Any] | None = field(
        default=None, repr=False
    )  # the user's own code, if that is all of the body
    _asked: set[Any] = field(default_factory=set[Any], repr=False)  # kinds of arguments that were traced
    _met: set[Any] = field(
        default_factory=set[Any], repr=False
    )  # kinds of arguments that were traced with arrays inside
    _changing: set[Any] = field(default_factory=set[Any], repr=False)  # kinds whose traces have changed what they read
    _changes: bool = False  # whether the last trace has changed what it reads: the next one may find that unchanged
    _leaves: bool = False  # whether the last trace has left values in objects
    _complex: frozenset[int] = frozenset()
    _failed: Exception | None = None  # the error of the last trace that failed
    _undone: bool = False  # whether everything is restored after the last refused trace

    def forget(self) -> None:
        """Forget all programs."""
        self._kinds.clear()
        self._moving.clear()
        self._constant.clear()
        self._asked.clear()
        self._met.clear()
        self._changing.clear()

    def kind(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Given, Any]:
        """Return the values of a call, and the key of the programs for values of their types and shapes."""
        given = self._given(args, options)
        return given, (structure((args, options)), *self._key(given), tuple([signature(v) for v in given.values]))

    def stored(self, args: tuple[Any, ...]) -> tuple[Given, bool]:
        """Return the values of a call, with all that it reads, and whether it stores into some of these."""
        given, key = self.kind(args, {})
        found = self.captured(key, given, (args, {}))
        if isinstance(found, Halfway):  # Python could run the call, but a graph is wanted here
            raise found.__cause__ or refused(self.name)
        program, given, *_ = found
        return given, bool(program.stores.inputs)

    def whole(self, args: tuple[Any, ...]) -> Record:
        """Return a record of all that a call with these arguments can read, by which its changes can be undone."""
        return self._whole((args, {}), math.inf)

    def _flattened(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[list[Any], Callable[[Any], Any]]:
        """Return the leaves of the arguments, and a function that rebuilds them; an error names the argument concerned."""
        try:
            return flatten((args, options))
        except door.RefusedError as error:
            refusal = door.RefusedError(error.value, door.name_of(error.value, args, options, self.parameters))
            self._failed, self._undone = refusal, True  # no code has run
            raise refusal from None

    def _given(self, args: tuple[Any, ...], options: dict[str, Any]) -> Given:
        leaves, build = self._flattened(args, options)
        moving = [is_moving(v) for v in leaves]
        if self.apart is not None:
            self._take_apart(reads_in(self.apart(args)), fixed_of(leaves, moving))
        return self._among(leaves, moving, build, (args, options))

    def _take_apart(self, reads: tuple[tuple[str, Inside], ...], objects: Any) -> None:
        """Make the places in objects with respect to which a derivative is taken inputs of calls with these objects."""
        before = self._moving.get(objects, ())
        if reads or before:
            spots = {space.spot for _, space in reads}
            self._moving[objects] = (*(r for r in before if not r[1].apart and r[1].spot not in spots), *reads)

    def _among(self, leaves: list[Any], moving: list[bool], build: Callable[[Any], Any], call: Any) -> Given:
        reads = (*self.reads, *self._moving_of(leaves, moving)) if self._moving else self.reads
        return Given(leaves, moving, build, [(read, held(read)) for read in reads if read[0] in read[1]], call)

    def _moving_of(self, leaves: list[Any], moving: list[bool]) -> tuple[Read, ...]:
        """Return the places in objects that are inputs of calls with these arguments."""
        return self._moving.get(fixed_of(leaves, moving), ())

    def _specialise(self, key: Any, given: Given, call: Any) -> tuple[Specialisation, Given, Record, Record | None]:
        """Return the program for values of this kind, what it has read, and the state before its capture (None for an existing program)."""
        kind = (*key[:-1], tuple([kind_of(v) for v in given.values]))
        for program, record in self._kinds.get(kind, ()):
            if program.fits(given) and record.holds() and fits(program, given.values):
                return program, given, record, None
        objects = fixed_of(given.leaves, given.moving)
        before, reads = self.record(call, ahead=True), (self.reads, self._moving.get(objects))
        asked = kind not in self._asked or (kind in self._met and kind not in self._changing)
        known = not (asked or kind in self._changing or before.why)
        whole = before if known else self._whole(call, math.inf if asked else _COPIED)
        found = self._attempted(given, before, whole, call)
        if isinstance(found, Exception):  # raised here, so that it has no other error as its context
            raise found
        before, program, given = found
        if len(self._asked) > _ASKED:
            self._asked.clear()
        self._asked.add(kind)
        same = (self.reads, self._moving.get(objects)) == reads
        record = self._record_after(program, before, call, same_reads=same)
        changed = self._moved(kind, program, whole)
        if changed:
            program, given, record = self._opened(changed, program, given, record, call)
            taken_back(whole)
        if not record.why:
            program.gives.copies.clear()  # nobody holds a copy
            program.gives.keeps = False
            self._keep(key, program, given, record)
        return program, given, record, whole

    def captured(self, key: Any, given: Given, call: Any) -> Any:
        """Return the result of :meth:`_specialise`, or the ``Halfway`` if Python must run the call."""
        try:
            return self._specialise(key, given, call)
        except Halfway as halfway:
            return halfway

    def _attempted(
        self, given: Given, before: Record, whole: Record, call: Any
    ) -> tuple[Record, Specialisation, Given] | Exception:
        """Return a new program, or the error to raise instead, if it is one of Python's own."""
        try:
            return self._specialised(given, before, whole, call)
        except (CaptureError, KindError) as error:
            self._failed = error
            self._undone = taken_back(whole)  # what was refused has not been
            if isinstance(error, KindError) and not self._undone and self.roots is not None:
                raise not_again(self.name, whole) from None
            raise
        except Exception as error:  # noqa: BLE001 (told by who calls this)
            return self._failing(error, whole)

    def _failing(self, error: Exception, whole: Record) -> Exception:
        """Return the error to raise for a trace that met one of Python's own errors; Halfway if Python must run the call."""
        cause = error.__cause__ if isinstance(error, Halfway) else None
        own = cause if isinstance(cause, Exception) and isinstance(error, Halfway) and not error.changed else error
        self._failed, self._undone = own, not (whole.unseen() or whole.changed())
        met = None if isinstance(own, Halfway | TensorError) or raised_on_purpose(own) else own
        asked = isinstance(error, Halfway) or whole.changed() or met is not None
        if self.plain is not None and asked and not whole.unseen() and taken_back(whole):
            again = Halfway(met=met)
            again.__cause__ = own
            return again
        if isinstance(own, Halfway):
            refusal = refused(self.name)
            refusal.__cause__ = cause
            return refusal
        try:  # not run a second time, as its state cannot be followed
            if isinstance(error, Halfway):
                error.tell()
        except Exception as earlier:  # noqa: BLE001 (what Python meets first)
            return earlier
        return own

    def _specialised(
        self, given: Given, before: Record, whole: Record, call: Any
    ) -> tuple[Record, Specialisation, Given]:
        """Return a new program.

        Arrays in objects become inputs, where the body stores into them, or takes elements at data-dependent places.
        """
        try:
            return before, *self._apart(given, whole)
        except (ForeignStoreError, ValueNeededError) as error:
            objects = fixed_of(given.leaves, given.moving)
            inside = arrays_in(whole) if taken_back(whole) else ()
            moving = [read for read in self._moving.get(objects, ()) if read[1].moving]
            known = {space.spot for _, space in moving}
            inside = [read for read in inside if read[1].spot not in known]
            if not inside:
                raise
            former, self._moving[objects] = self._moving.get(objects, ()), (*moving, *inside)
            before, given = (
                self.record(call, ahead=True),
                self._among(given.leaves, given.moving, given.build, given.call),
            )
            try:
                return before, *self._apart(given, whole)
            except CaptureError:
                self._moving[objects] = former
                if isinstance(error, ForeignStoreError):
                    raise
                raise error from None

    def _apart(self, given: Given, whole: Record) -> tuple[Specialisation, Given]:
        """Return a new program, whose trace has not stored into an object that shares memory with an input."""
        found = self.specialise(given, whole)
        refuse_shared(whole, given.values, self.name)
        return found

    def _keep(self, key: Any, program: Specialisation, given: Given, record: Record) -> None:
        kind = (key[0], *self._key(given), tuple([kind_of(v) for v in given.values]))
        found = self._kinds.setdefault(kind, [])
        found.insert(0, (program, record))
        del found[STATES:]
        while len(self._kinds) > EXACT:
            self._kinds.popitem(last=False)

    def _moved(self, kind: Any, program: Specialisation, before: Record) -> tuple[Inside, ...]:
        """Return the places in objects that may become inputs: only their values have changed since the last trace, or they are arrays.

        Arrays are considered from the second trace on. There are none if the trace has changed what it reads, or that
        is not known: trying them runs the body again, which would change it twice.
        """
        if not before.why and before.changed():
            self._changing.add(kind)
            return ()
        found = () if before.why else tuple(s for _, record in self._kinds.get(kind, ())[:1] for s in moved(record))
        if not found and program.extra and not self._leaves:
            if kind in self._met:
                found = arrays_of(before)
            self._met.add(kind)
        known = {space.spot for space in found} - self._constant
        return tuple(space for space in found if space.spot in known)

    def _opened(
        self, changed: tuple[Inside, ...], program: Specialisation, given: Given, record: Record, call: Any
    ) -> tuple[Specialisation, Given, Record]:
        """Return the program with inputs for these places in objects, if that works, else the present one."""
        key, reads = fixed_of(given.leaves, given.moving), self.reads
        before = self._moving.get(key, ())
        while len(self._moving) > EXACT:
            self._moving.popitem(last=False)
        if program.program.calls or program.program.tells or any(map(generators.is_generator, given.objects)):
            return program, given, record
        expected = evaluated(program, given)
        for chosen in choices_of(changed):
            spots = {space.spot for space in chosen}
            others = [read for read in before if read[1].spot not in spots]
            self._moving[key] = (*others, *((space.name, space) for space in chosen))
            try:
                found = self._trial(given, call)
                if found is not None and agree(expected, evaluated(*found[:2])):
                    return found
            except Exception:  # noqa: BLE001, S110 (the other program is right)
                pass
            self._moving[key], self.reads, self._leaves = before, reads, False
        self._constant |= {space.spot for space in changed}
        return program, given, record

    def _trial(self, given: Given, call: Any) -> tuple[Specialisation, Given, Record] | None:
        """Return the program with the present inputs, or None if it only holds for this call."""
        self._unfollowed = 0
        before, wide = self.record(call), self._among(given.leaves, given.moving, given.build, given.call)
        program, wide = self.specialise(wide, before)
        record = self.record(call)
        known = not (self._leaves or before.why or record.why or before.changed() or record.changed())
        return (program, wide, record) if known else None

    def record(self, call: Any, *, ahead: bool = False) -> Record:
        """Return a record of what a call can read, as it is now; ``ahead`` of a trace that may find more inputs."""
        if self._unfollowed:
            self._unfollowed -= 1
            return UNKNOWN
        reads = self.reads
        if self._moving:
            leaves = self._flattened(*call)[0]
            reads = (*reads, *self._moving_of(leaves, [is_moving(v) for v in leaves]))
        return record_of(self.roots, constants_of(call), reads, is_moving, ahead=ahead)

    def _there(self, before: Record, call: Any) -> dict[int, Any] | None:
        """Return the objects that exist before a trace, by identity; if code cannot be followed, only if containers are given."""
        if not before.why or not any(map(is_container, (*call[0], *call[1].values()))):
            return before.there()
        return self.passing(call).there()

    def passing(self, call: Any) -> Record:
        """Return a record of what exists, as far as it can be examined; locks, files and the like are skipped."""
        roots, given = self.roots, constants_of(call)
        return record_of(roots, given, self.reads, is_moving, fixed=True, generators=False, largest=None, passing=True)

    def _memory(self, before: Record, given: Given) -> tuple[Any, ...]:
        """Return the objects with memory that a trace may have read without making them inputs."""
        return memory_in(self.passing(given.call) if before.why and given.call else before, given.inputs)

    def _whole(self, call: Any, largest: float | None) -> Record:
        """Return a record with the elements of large arrays, and without generators, which a trace does not change."""
        roots, given = self.roots, constants_of(call)
        look = partial(record_of, roots, given, self.reads, is_moving, fixed=True, generators=False, largest=largest)
        record = look()
        if record.why:
            record.rest = look(passing=True, most=5 * LIMIT)
        return record

    def _record_after(self, program: Specialisation, before: Record, call: Any, *, same_reads: bool) -> Record:
        """Return what a trace has read: the record ``before`` it, if that is complete and unchanged."""
        if program.gives.identities:
            return Record((), "which container an argument is")
        known = same_reads and not (self._leaves or before.why or before.partial or before.changed())
        return before if known else self.followed(before, call)

    def followed(self, before: Record, call: Any) -> Record:
        """Return what a trace has read, including the reads it found; the record cannot be checked if the trace has changed it."""
        changed = "a value that it leaves in an object" if self._leaves else before.why or before.changed()
        record = Record((), changed) if before.why else self.record(call)
        if changed or record.why:
            if self._changes or self._leaves or before.why or record.why:
                self._unfollowed = self._unfollowed or _AGAIN
            self._changes = True
            return Record((), changed or record.why)
        self._changes = False
        return record

    def specialise(self, given: Given, before: Record = UNKNOWN) -> tuple[Specialisation, Given]:
        """Return the program traced for these values; traced again if names read from outside must be known in advance.

        Changes by the first of two runs of the body are undone, to the state of ``before``.
        """
        with young():
            found, given, left = self._traced(given, before)
        closed = session.close_over(found.results, found.leaves, found.guards, use_values=False)
        extra = [leaf for leaf in closed.leaves if leaf not in found.leaves]
        return Specialisation(
            closed.graph,
            session.executable(closed.graph, self.math),
            found.build,
            extra,
            found.gives.is_single(len(found.results) - len(found.stores.inputs), found.build),
            replace(found.stores, held=self._memory(before, given) if found.stores.inputs else ()),
            found.gives,
            Lens(closed.mapping) if found.raising else None,
            found.caught,
            tuple([str(leaf["source"]) if leaf.op is INPUT else "" for leaf in closed.leaves]),
            left=left,
            objects=found.objects,
        ), given

    def _traced(self, given: Given, before: Record) -> tuple[Trace, Given, dict[int, tuple[Tensor, Any]]]:
        looked_at()
        mark = wrap(constant(0))
        with (
            config.using(math=self.math),
            session.working("capturing"),
            special_methods.staged_in((*(self.roots or ()), *given.leaves)),
        ):
            names = [*given.labels(self.parameters), *(n for n, _ in given.reads)]
            there = self._there(before, given.call)
            found = trace(self.body, given, names, self.name, self._complex, self.plain is not None, there)
        known = set(map(place_of, self.reads))
        self.reads = (*self.reads, *(read for read in found.new if place_of(read) not in known))
        given = given.with_reads(found.new)
        left = left_behind(mark, known=self._leaves)
        if left:
            held = held_by(found.build)
            left = [v for v in left if id(v) not in held]
        if self.plain is not None:
            refuse_tables(left, self.name)
        refuse_kept(left, found.inside, self.name)
        self._leaves = bool(left) or bool(found.objects)
        if left and there:  # the call may store into an object that it takes from objects, which others may hold
            found.objects.extend(v for v in there.values() if isinstance(v, HOLDING))
        once = self._leaves or bool(before.why or before.changed())  # then the program holds for this call alone
        found.gives.own.update(_arrays_there(found.gave, before.there(), kept=not once))
        found.gives.know_constants(found.gave)
        found.gives.keeps = True
        values, memory = give_values(left, found.values, self.name, found.noted)
        parts = {k: memory.part(v) for k, v in enumerate(found.gave) if isinstance(v, Place)}
        found.gives.own.update({k: part for k, part in parts.items() if part is not None})
        return found, given, values

    def _key(self, given: Given) -> tuple[Any, ...]:
        """Return what a program depends on apart from the types of its inputs."""
        places = tuple([place_of(read) for read in given.reads])
        fixed = fixed_of(given.leaves, given.moving)
        return choices(self.math), tuple(given.moving), fixed, places, generators.pattern(given.objects)


def _arrays_there(results: Sequence[Any], there: Mapping[int, Any] | None, *, kept: bool) -> dict[int, Any]:
    """Return the results that are existing arrays, or parts of such, by number; for a trace of a single call all non-lazy ones."""
    arrays = {k: v for k, v in enumerate(results) if type(v) is np.ndarray}
    if not arrays or there is None or not kept:
        return arrays
    known = [v for v in there.values() if isinstance(v, np.ndarray)]
    return {k: v for k, v in arrays.items() if any(np.may_share_memory(v, a) for a in known)}
