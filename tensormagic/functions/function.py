"""Functions over arrays, traced once for each kind of arguments: ``tm.tensor`` on functions, and what is made of them."""

from __future__ import annotations

import functools
import inspect
import io
import math
import operator
import types
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout, suppress
from dataclasses import dataclass, field
from time import process_time
from typing import Any, ClassVar

import numpy as np

from tensormagic import session
from tensormagic.capture import context, door, random
from tensormagic.capture.staging.raising import checked
from tensormagic.capture.stores.place import Place
from tensormagic.capture.traces import users_alone
from tensormagic.capture.tree import flatten, structure
from tensormagic.capture.value import Tensor, wrap
from tensormagic.config import config
from tensormagic.functions import first
from tensormagic.functions.footprint import UNKNOWN, constants_of, record_of
from tensormagic.functions.given import Given, fixed_of, held, kind_of, signature
from tensormagic.functions.gives import Halfway, refused
from tensormagic.functions.glance import NUMBERS, ByPosition, Completing, Seen, known_by, matcher
from tensormagic.functions.inside import Inside, arrays_in, as_values, refuse_kept, taken_back
from tensormagic.functions.left import give_values, held_by, left_behind, young
from tensormagic.functions.moving import agree, arrays_of, choices_of, moved
from tensormagic.functions.program import Known, Specialisation, Trace, evaluated, fits, trace
from tensormagic.functions.reading import (
    Body,
    Read,
    called_body,
    captured_body,
    is_moving,
    parameters_of,
    reads_of,
)
from tensormagic.functions.recaptured import Recaptured
from tensormagic.functions.record import Record
from tensormagic.functions.space import place_of
from tensormagic.functions.stores import committed
from tensormagic.functions.travel import Made, sealed
from tensormagic.ir.errors import CaptureError, ForeignStoreError, KindError, ValueNeededError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ops.effects.outside import Changed, Log, logged
from tensormagic.ops.leaf import INPUT, constant
from tensormagic.transform.rewriting import choices, installed

_REAL = frozenset[int]()  # of results of which values decide: all as it is likely
_EXACT = 128  # argument shapes whose sizes are remembered
_ASKED = 4096  # kinds of arguments of which it is known that they were traced
_STATES = 8  # states of what is read for which programs are kept, for one kind of arguments
_COPIED = 2**18  # bytes of arrays that are copied at each call of a kind that changes what it reads, to take that back
_AGAIN = 15  # calls that trace again, where what is read could not be followed, before that is asked anew


@sealed
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
    quick: Seen = field(default_factory=Seen, repr=False)
    _exact: OrderedDict[Any, list[Known]] = field(default_factory=OrderedDict, repr=False)
    _kinds: OrderedDict[Any, list[tuple[Specialisation, Record]]] = field(default_factory=OrderedDict, repr=False)
    _unfollowed: int = field(
        default=0, repr=False
    )  # calls until it is asked again whether what is read can be followed
    _moving: OrderedDict[Any, tuple[tuple[str, Inside], ...]] = field(
        default_factory=OrderedDict, repr=False
    )  # places in objects that are inputs, by the arguments that are none
    _constant: set[Any] = field(default_factory=set[Any], repr=False)  # places in objects that cannot be inputs
    plain: Callable[..., Any] | None = field(default=None, repr=False)  # the user's own code, where that is all of it
    _begun: set[Any] = field(default_factory=set[Any], repr=False)  # kinds of arguments of which there was a call
    _pythons: set[Any] = field(default_factory=set[Any], repr=False)  # kinds of which Python runs all calls
    _asked: set[Any] = field(default_factory=set[Any], repr=False)  # kinds of arguments that were traced
    _met: set[Any] = field(
        default_factory=set[Any], repr=False
    )  # kinds of arguments that were traced with arrays inside
    _changing: set[Any] = field(default_factory=set[Any], repr=False)  # kinds whose traces have changed what they read
    _leaves: bool = False  # whether its last trace has left values in objects
    _recaptured: Recaptured = field(default_factory=Recaptured, repr=False)
    _complex: frozenset[int] = frozenset()
    _failed: Exception | None = None  # what its last trace that failed has raised
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
        self._asked.clear()
        self._met.clear()
        self._changing.clear()
        self._pythons.clear()

    def __call__(self, *args: Any, **options: Any) -> Any:
        __tracebackhide__ = True  # IPython leaves this frame out of tracebacks
        device, policy = self.placed
        if device and (config.device, config.transfers) != (device, policy or config.transfers):
            with config.using(device=device, transfers=policy):
                return self(*args, **options)
        if context.current() is not None:
            args, options = self._completed(args, options)
            return self._leveled(args, options)
        if not self.fills:
            try:
                return self._quickly(args, options)
            except KeyError:
                pass  # not seen before in just this form
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

    def _begins(self, args: tuple[Any, ...]) -> bool:
        """Whether this is the first call of its kind, and Python may run it: no other level, tier or device is asked for."""
        own = not self.math and not self.fills and type(self.plain) is types.FunctionType and self.plain is self._users
        if not own or not first.may(config.tier, config.device, config.level("")) or installed:
            return False
        kind = first.kind_of(args)
        if kind is None or kind in self._begun:
            return kind in self._pythons
        self._begun.add(kind)
        return not self._asked

    def _stays(self, args: tuple[Any, ...], options: dict[str, Any], refused: CaptureError) -> Any:
        """The result of a call that is refused, where Python ran the first one of its kind: then it runs all of them."""
        kind = first.kind_of(args)
        if options or kind is None or kind not in self._begun:
            raise refused
        self._pythons.add(kind)
        result = first.result_of(self._users, args) if self._begins(args) else first.NOT
        if result is first.NOT:
            self._pythons.discard(kind)
            raise refused
        return result

    def _quickly(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """The result, where a call was seen before in just this form; a KeyError else."""
        known: Known | None = None
        try:
            known, values = (None if options else self._as_last(args)) or self._at_a_glance(args, options)
            if known.holds():
                return known.run(values)
        except (AttributeError, KeyError, TypeError):
            pass
        except KindError as error:
            _unless_met_again(error)
        except Changed:
            raise
        except Exception as error:
            if known is None or not self._is_as_it_was(known.program, None, error):
                raise
            return self._as_python(known.program, args, options, error)
        raise KeyError

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
        A trace that fails, as another call went, does not say that this call goes that way: it begins anew.
        """
        tried, met = {self._complex}, not self._complex
        while True:
            try:
                return self._general(args, options)
            except KindError as error:
                other = self._complex ^ {error.site}
                if error.site < 0 or (met and other in tried):  # both, in the iterations of a loop
                    raise
                if other in tried:
                    tried, met, other = set[frozenset[int]](), True, _REAL
            except Exception as error:
                if met or error is not self._failed:
                    raise
                tried, met, other = set[frozenset[int]](), True, _REAL
            tried.add(other)
            self._kept[self._complex] = self.quick, self._exact, self._kinds
            self._complex, self._failed = other, None
            self.quick, self._exact, self._kinds = self._kept.pop(other, (Seen(), OrderedDict(), OrderedDict()))

    def _leveled(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """What the body gives for lazy arguments: lazy values of its own level."""
        capture = context.current()
        body = self.inside if capture is not None and capture.abstract else self.body
        if not self.math:
            return body(*args, **options)
        with config.using(math=self.math):
            return body(*args, **options)

    def _as_last(self, args: tuple[Any, ...]) -> tuple[Known, Sequence[Any]] | None:
        """The program of the last call and the values of the inputs, where this call has the same form."""
        match, known, (level, _, device) = self.quick.last or _NEVER
        if installed or level != config.level(self.math) or device != config.device:
            return None
        values = match(args)
        return None if values is None else (known, values)

    def _at_a_glance(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Known, Sequence[Any]]:
        """The program for a call that was seen before in just this form, and the values of its inputs; a KeyError else."""
        chosen, named = choices(self.math), bool(options)
        if options and self.complete is not None:
            if not isinstance(self.complete, ByPosition):
                raise KeyError
            args, options = self.complete.quickly(args, options)
        key, values = known_by(chosen, args, options)
        known = self.quick[key]
        if not named:
            match = matcher(args) if known.match is None else known.match
            known.match = match or _no_form
            self.quick.last = (known.match, known, chosen)
        return known, values

    def _completed(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self.complete(args, options) if self.complete and (options or self.fills) else (args, options)

    def _general(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if not options and self._begins(args) and (result := first.result_of(self._users, args)) is not first.NOT:
            return result
        if any(isinstance(v, Tensor) for v in self._flattened(args, options)[0]):
            with context.capturing(
                context.Capture(self.name)
            ) as capture:  # as in a cell: control flow on them is staged
                result = self._leveled(args, options)
            drawn = random.advanced(capture)
            random.commit(drawn, session.compute([g.buffer.node for g in drawn]))
            committed(capture, self.name)
            return result
        try:
            return self._on_values(args, options)
        except CaptureError as refused:
            return self._stays(args, options, refused)

    def _on_values(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """The result for arrays and numbers, by a program that is there or a new one."""
        given, key = self.kind(args, options)
        known = next((k for k in self._exact.get(key, ()) if k.program.stores.fits(given.values) and k.holds()), None)
        if known is not None:
            program, sizes, before = known.program, known.sizes, None
        else:
            begun = process_time()
            try:
                program, given, record, before = self._specialise(key, given, (args, options))
            except Halfway:
                return self.plain(*args, **options)  # type: ignore[misc]  (it is there)
            sizes = program.sizes(given.values)
            if record.why:
                self._recaptured.add(self.name, record.why, process_time() - begun)
            else:
                reads = tuple([(r, signature(v)) for r, v in given.held if is_moving(v)])
                self._remember(args, options, given, Known(program, sizes, record.holds, given.leaves, reads))
        try:
            result = program.run(sizes, given.values, _own_arrays(program, args, options, given), (args, options))
        except KindError:
            if before is not None:
                taken_back(before)  # it is captured again
            raise
        except Exception as error:
            if not self._is_as_it_was(program, before, error):
                raise
            return self._as_python(program, args, options, error)
        if program.left:
            made, program.gives.made = program.gives.made, {}
            as_values(program.left, self._whole((args, options), None), program.objects, made)
        return result

    def _is_as_it_was(self, program: Specialisation, before: Record | None, error: Exception) -> bool:
        """Whether a call that failed on its data is to be Python's, and can be: what its capture has changed is taken back."""
        if self.plain is None or (before is not None and before.why):
            return False
        if before is None or not before.changed():
            return program.commits and not isinstance(error, CaptureError | Changed)
        return taken_back(before)

    def _as_python(
        self, program: Specialisation, args: tuple[Any, ...], options: dict[str, Any], error: Exception
    ) -> Any:
        """What Python itself makes of a call that failed on its data: what the body changes before it fails is changed, and no more."""
        if self.plain is None:
            raise error
        try:
            with redirect_stdout(io.StringIO()) if program.program.tells else nullcontext():  # that has been printed
                return self.plain(*args, **options)
        except Exception as own:  # noqa: BLE001 (the same one, as a rule)
            raise (error if isinstance(own, type(error)) else own) from None

    def kind(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Given, Any]:
        """The values of a call, and the key of the programs for values of their types and shapes."""
        given = self._given(args, options)
        return given, (structure((args, options)), *self._key(given), tuple([signature(v) for v in given.values]))

    def stored(self, args: tuple[Any, ...]) -> tuple[Given, bool]:
        """The values of a call, with all that it reads, and whether it stores into some of these."""
        given, key = self.kind(args, {})
        program, given, *_ = self._specialise(key, given, (args, {}))
        return given, bool(program.stores.inputs)

    def whole(self, args: tuple[Any, ...]) -> Record:
        """What a call with these arguments can read, with which what it changes can be taken back."""
        return self._whole((args, {}), math.inf)

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
        return Given(leaves, moving, build, [(read, held(read)) for read in reads if read[0] in read[1]])

    def _moving_of(self, leaves: list[Any], moving: list[bool]) -> tuple[Read, ...]:
        """The places in objects that are inputs of calls with these arguments."""
        return self._moving.get(fixed_of(leaves, moving), ())

    def _remember(self, args: tuple[Any, ...], options: dict[str, Any], given: Given, known: Known) -> None:
        key = structure((args, options)), *self._key(given), tuple([signature(v) for v in given.values])
        found = self._exact.setdefault(key, [])
        found.insert(0, known)
        del found[_STATES:]
        with suppress(KeyError):  # what only looks like something else has no key
            glanced, values = known_by(choices(self.math), args, options)
            own = [v for v, m in zip(given.leaves, given.moving, strict=True) if m]
            alike = len(own) == len(values) and all(map(operator.is_, own, values))
            if (
                alike
                and not known.program.gives.by_call
                and all(type(v) is np.ndarray or type(v) in NUMBERS for v in given.objects)
            ):
                self.quick[glanced] = known
        while len(self._exact) > _EXACT:
            self._exact.popitem(last=False)
        while len(self.quick) > _EXACT:
            del self.quick[next(iter(self.quick))]

    def _specialise(self, key: Any, given: Given, call: Any) -> tuple[Specialisation, Given, Record, Record]:
        """The program for values of this kind, one that is there or a new one; what it has read, and what was there before its capture."""
        kind = (*key[:-1], tuple([kind_of(v) for v in given.values]))
        for program, record in self._kinds.get(kind, ()):
            if program.stores.fits(given.values) and record.holds() and fits(program, given.values):
                return program, given, record, UNKNOWN  # nothing is captured
        objects = fixed_of(given.leaves, given.moving)
        before, reads = self.record(call, ahead=True), (self.reads, self._moving.get(objects))
        asked = kind not in self._asked or (kind in self._met and kind not in self._changing)
        whole = self._whole(call, math.inf if asked else _COPIED) if asked or kind in self._changing else before
        try:
            before, program, given = self._specialised(given, before, whole, call)
        except (CaptureError, KindError) as error:
            self._failed = error
            taken_back(whole)  # what was refused has not been
            raise
        except Exception as error:  # Python's own, after what it reads or is given has been changed
            self._failed = error
            if self.plain is not None and (isinstance(error, Halfway) or whole.changed()) and taken_back(whole):
                raise Halfway from error
            if isinstance(error, Halfway):
                raise refused(self.name) from error.__cause__
            raise
        if len(self._asked) > _ASKED:
            self._asked.clear()
        self._asked.add(kind)
        known = (
            (self.reads, self._moving.get(objects)) == reads
            and not self._leaves
            and not before.why
            and not before.partial
            and not before.changed()
        )
        record = before if known else self.followed(before, call)
        changed = self._moved(kind, program, whole)
        if changed:
            program, given, record = self._opened(changed, program, given, record, call)
            taken_back(whole)
        if not record.why:
            self._keep(key, program, given, record)
        return program, given, record, whole

    def _specialised(
        self, given: Given, before: Record, whole: Record, call: Any
    ) -> tuple[Record, Specialisation, Given]:
        """A new program; with inputs for arrays in objects, where the body stores into such, or takes elements that data choose."""
        try:
            return before, *self.specialise(given, whole)
        except (ForeignStoreError, ValueNeededError) as error:
            objects = fixed_of(given.leaves, given.moving)
            inside = arrays_in(whole) if taken_back(whole) else ()
            moving = [read for read in self._moving.get(objects, ()) if read[1].moving]
            known = {space.spot for _, space in moving}
            inside = [read for read in inside if read[1].spot not in known]
            if not inside:
                raise
            former, self._moving[objects] = self._moving.get(objects, ()), (*moving, *inside)
            before, given = self.record(call, ahead=True), self._among(given.leaves, given.moving, given.build)
            try:
                return before, *self.specialise(given, whole)
            except CaptureError:
                self._moving[objects] = former
                if isinstance(error, ForeignStoreError):
                    raise
                raise error from None

    def _keep(self, key: Any, program: Specialisation, given: Given, record: Record) -> None:
        kind = (key[0], *self._key(given), tuple([kind_of(v) for v in given.values]))
        found = self._kinds.setdefault(kind, [])
        found.insert(0, (program, record))
        del found[_STATES:]
        while len(self._kinds) > _EXACT:
            self._kinds.popitem(last=False)

    def _moved(self, kind: Any, program: Specialisation, before: Record) -> tuple[Inside, ...]:
        """The places in objects that may be inputs: whose values alone have changed since the last trace of this kind, or that hold arrays.

        Those of arrays are asked for at the second trace. There are none where the trace has changed what it reads, or where that is not
        known: to try them the body runs again, and would change it twice.
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
        """The program with inputs for these places in objects, where it is to be had; else the one that there is."""
        key, reads = fixed_of(given.leaves, given.moving), self.reads
        before = self._moving.get(key, ())
        while len(self._moving) > _EXACT:
            self._moving.popitem(last=False)
        if program.program.calls or program.program.tells or any(map(random.is_generator, given.objects)):
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
        """The program with the inputs that there are now; None where it does not hold for more than this call."""
        self._unfollowed = 0
        before, wide = self.record(call), self._among(given.leaves, given.moving, given.build)
        program, wide = self.specialise(wide, before)
        record = self.record(call)
        known = not (self._leaves or before.why or record.why or before.changed() or record.changed())
        return (program, wide, record) if known else None

    def record(self, call: Any, *, ahead: bool = False) -> Record:
        """What a call can read, as it is now; ``ahead`` of a trace that may find more inputs."""
        if self._unfollowed:
            self._unfollowed -= 1
            return UNKNOWN
        reads = self.reads
        if self._moving:
            leaves = self._flattened(*call)[0]
            reads = (*reads, *self._moving_of(leaves, [is_moving(v) for v in leaves]))
        return record_of(self.roots, constants_of(call), reads, is_moving, ahead=ahead)

    def _whole(self, call: Any, largest: float | None) -> Record:
        """The same with the elements of large arrays, and without what NumPy's generators know: a trace changes nothing of that."""
        roots, given = self.roots, constants_of(call)
        return record_of(roots, given, self.reads, is_moving, fixed=True, generators=False, largest=largest)

    def followed(self, before: Record, call: Any) -> Record:
        """What a trace has read, with the reads that it has found; not to be followed where the trace has changed that."""
        changed = "a value that it leaves in an object" if self._leaves else before.why or before.changed()
        record = Record((), changed) if before.why else self.record(call)
        if changed or record.why:
            self._unfollowed = self._unfollowed or _AGAIN
            return Record((), changed or record.why)
        return record

    def specialise(self, given: Given, before: Record = UNKNOWN) -> tuple[Specialisation, Given]:
        """Trace for these values; again, where names that are read from outside have to be known before.

        What the first of two runs of the body has changed is taken back, to what ``before`` says.
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
            found.stores,
            found.gives,
            found.raising,
            found.caught,
            tuple([str(leaf["source"]) if leaf.op is INPUT else "" for leaf in closed.leaves]),
            left=left,
            objects=found.objects,
        ), given

    def _traced(self, given: Given, before: Record) -> tuple[Trace, Given, dict[int, tuple[Tensor, Any]]]:
        mark, values = wrap(constant(0)), dict[Node, Any]()
        while True:
            count = sum(given.moving)
            labels = [self.parameters[k] if k < len(self.parameters) else f"argument {k + 1}" for k in range(count)]
            with config.using(math=self.math), session.working("capturing"):
                names = [*labels, *(n for n, _ in given.reads)]
                found = trace(self.body, given, names, self.name, self._complex, self.plain is not None, before.there())
            values |= found.values
            known = set(map(place_of, self.reads))
            self.reads = (*self.reads, *(read for read in found.new if place_of(read) not in known))
            given = given.with_reads(found.new)
            if not found.again:
                break
            taken_back(before)
        left = left_behind(mark, known=self._leaves)
        if left:
            held = held_by(found.build)
            left = [v for v in left if id(v) not in held]
        refuse_kept(left, found.inside, self.name)
        self._leaves = bool(left) or bool(found.objects)
        found.gives.own.update(_arrays_there(found.gave, before.there(), kept=not self._leaves))
        found.gives.keeps = bool(left)
        values, memory = give_values(left, values, self.name, found.noted)
        parts = {k: memory.part(v) for k, v in enumerate(found.gave) if isinstance(v, Place)}
        found.gives.own.update({k: part for k, part in parts.items() if part is not None})
        return found, given, values

    def _key(self, given: Given) -> tuple[Any, ...]:
        """What a program depends on beside the types of its inputs."""
        places = tuple([place_of(read) for read in given.reads])
        fixed = fixed_of(given.leaves, given.moving)
        return choices(self.math), tuple(given.moving), fixed, places, random.pattern(given.objects)

    def graph(self, *args: Any, **options: Any) -> Graph:
        """The graph for arguments of these types, before rewriting."""
        return self.specialise(self._given(*self._completed(args, options)))[0].graph


def _arrays_there(results: Sequence[Any], there: Mapping[int, Any] | None, *, kept: bool) -> dict[int, Any]:
    """Which results are arrays that were there, or parts of such, by number; all that are no lazy ones, for a trace of one call."""
    arrays = {k: v for k, v in enumerate(results) if type(v) is np.ndarray}
    if not arrays or there is None or not kept:
        return arrays
    known = [v for v in there.values() if isinstance(v, np.ndarray)]
    return {k: v for k, v in arrays.items() if any(np.may_share_memory(v, a) for a in known)}


def _no_form(_args: tuple[Any, ...]) -> None:
    """There is no function that tells a form."""


_NEVER: tuple[Any, ...] = (_no_form, None, ("", (), ""))  # the last call, where there was none


def _own_arrays(program: Specialisation, args: tuple[Any, ...], options: dict[str, Any], given: Given) -> list[Any]:
    """The caller's arrays, and those that are read from outside, where the program stores into some."""
    return [*flatten((args, options))[0], *(value for _, value in given.held)] if program.stores else []


# functions of the user ------------------------------------------------------------------------------------------------


def _of_function(function: types.FunctionType, lasting: bool) -> Function:
    body = captured_body(function, lasting=lasting)
    reads = reads_of(function) if lasting else ()
    made = Function(
        body, function.__name__, parameters_of(function), ByPosition(function), reads, roots=(function,), plain=function
    )
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
        return Function(called_body(function), label, roots=(function,), plain=function)
    raise CaptureError(f"{type(function).__name__} is not a function", "Pass a function of arrays.")


def _unless_met_again(error: KindError) -> None:
    """Raise what no other trace mends."""
    if error.site < 0:
        raise error


__all__ = ["Function", "of_callable"]
