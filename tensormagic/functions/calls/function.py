"""Functions over arrays, traced once for each kind of arguments: ``tm.tensor`` of functions, derivatives and batches of them."""

from __future__ import annotations

import inspect
import operator
import types
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import process_time
from typing import Any, ClassVar

import numpy as np

from tensormagic import session
from tensormagic.capture import context
from tensormagic.capture.errors.traces import drop_from_context, raised_by_user, users_alone
from tensormagic.capture.random import generators
from tensormagic.capture.staging.messages.raising import checked
from tensormagic.capture.tree import flatten, structure
from tensormagic.capture.values.value import Tensor
from tensormagic.config import config
from tensormagic.functions.calls import first_call
from tensormagic.functions.calls.argument_stores import committed
from tensormagic.functions.calls.as_written import Written
from tensormagic.functions.calls.call_inputs import Given, signature
from tensormagic.functions.calls.printing import NOT, run_at_once
from tensormagic.functions.calls.program import Known, Specialisation
from tensormagic.functions.calls.python_is_quicker import Quicker
from tensormagic.functions.calls.quick_key import NUMBERS, ByPosition, Seen, known_by, matcher, no_form
from tensormagic.functions.calls.repeated_calls import but_for, may_not_be_pythons
from tensormagic.functions.calls.specialised import EXACT, STATES, Specialised
from tensormagic.functions.reads.arrays_in_objects import as_values, not_again, taken_back
from tensormagic.functions.reads.changed_containers import Halfway
from tensormagic.functions.reads.function_attributes import Attributed
from tensormagic.functions.reads.reading import Body, is_moving
from tensormagic.functions.reads.recaptured import Recaptured
from tensormagic.functions.reads.record import Record
from tensormagic.functions.travel import sealed
from tensormagic.ir.errors import ArgumentError, CaptureError, DTypeError, ForeignError, KindError, TensorError
from tensormagic.ir.graph import Graph
from tensormagic.ops.effects.outside import Changed, Log, logged
from tensormagic.ops.effects.telling import heard
from tensormagic.transform.rewriting import choices, installed


@dataclass(frozen=True, repr=False)
class _Held:
    """The default for an argument that is left out: the variable of that name."""

    name: str

    def __repr__(self) -> str:
        return self.name


_REAL = frozenset[int]()  # assumed complex results whose dtype depends on values: none


class _Unseen(Exception):  # noqa: N818
    """Raised by a call of a form not seen before; ``printed`` is what it has printed until then."""

    def __init__(self, printed: str = "") -> None:
        super().__init__()
        self.printed = printed


@sealed
@dataclass(eq=False, repr=False)
class Function(Attributed, Specialised):
    """A captured function: a call traces it for the types of its arguments, and runs the graph.

    Called on lazy arrays, or inside a captured cell, it returns lazy arrays; on NumPy arrays it returns NumPy arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from tensormagic import grad, tensor
    >>> square = tensor(lambda x: x * x)
    >>> square(np.array([1.0, 3.0]))
    array([1., 9.])
    >>> isinstance(square, Function) and isinstance(grad(square), Function)
    True
    """

    offered: ClassVar[tuple[str, ...]] = ("forget", "graph", "math", "name", "source")

    inside: Body = field(
        init=False, repr=False
    )  # the body for calls in other captured code, to which its checks and effects belong
    quick: Seen = field(default_factory=Seen, repr=False)
    _exact: OrderedDict[Any, list[Known]] = field(default_factory=OrderedDict, repr=False)
    _begun: set[Any] = field(default_factory=set[Any], repr=False)  # kinds of arguments of earlier calls
    _pythons: set[Any] = field(default_factory=set[Any], repr=False)  # kinds whose calls Python always runs
    _quicker: Quicker = field(default_factory=Quicker, repr=False)
    _recaptured: Recaptured = field(default_factory=Recaptured, repr=False)
    _written: Written = field(default_factory=Written, repr=False)
    _kept: dict[frozenset[int], Any] = field(default_factory=dict[frozenset[int], Any], repr=False)

    def __post_init__(self) -> None:
        self.inside, self.body = self.body, checked(self.body)
        self.__doc__ = f"The captured function {self.name}: NumPy arrays in, NumPy arrays out; lazy ones on lazy ones."
        if self.fills:  # any argument may be left out
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            given = [inspect.Parameter(name, kind, default=_Held(name)) for name in self.parameters]
            self.__signature__ = inspect.Signature(given)  # no dataclass field, as `inspect` looks for it

    def __repr__(self) -> str:
        return f"<captured function {self.name}({', '.join(self.parameters) or '...'})>"

    @property
    def _users(self) -> Any:
        own: Any = self
        return own.__wrapped__

    @property
    def __defaults__(self) -> tuple[Any, ...] | None:
        """The defaults of the user's function."""
        return self._users.__defaults__

    @__defaults__.setter
    def __defaults__(self, values: tuple[Any, ...] | None) -> None:
        self._users.__defaults__ = values

    @property
    def __kwdefaults__(self) -> dict[str, Any] | None:
        """The keyword-only defaults of the user's function."""
        return self._users.__kwdefaults__

    @__kwdefaults__.setter
    def __kwdefaults__(self, values: dict[str, Any] | None) -> None:
        self._users.__kwdefaults__ = values

    @property
    def follows(self) -> tuple[Any, ...] | None:
        """The functions and code that a function calling this one can reach."""
        return self.roots

    def forget(self) -> None:
        """Forget all programs."""
        super().forget()
        self.quick.clear()
        self._exact.clear()
        self._kept.clear()
        self._pythons.clear()
        self._quicker.clear()
        self._written.kinds.clear()

    def __call__(self, *args: Any, **options: Any) -> Any:
        __tracebackhide__ = True  # IPython leaves this frame out of tracebacks
        device, policy = self.placed
        if device and (config.device, config.transfers) != (device, policy or config.transfers):
            with config.using(device=device, transfers=policy):
                return self(*args, **options)
        if context.current() is not None:
            args, options = self.completed(args, options)
            return self._leveled(args, options)
        printed = ""
        if not self.fills:
            try:
                return self._quickly(args, options)
            except _Unseen as unseen:
                printed = unseen.printed
            except Changed as changed:
                return self._again(args, options, changed.log)
        args, options = self.completed(args, options)
        try:
            with logged(), but_for(printed):
                try:
                    return self._of_kind(args, options)
                except Changed as changed:
                    return self._again(args, options, changed.log)
        except BaseException as error:  # noqa: BLE001 (raised again)
            raise users_alone(error)  # noqa: B904 (the same one)

    def _begins(self, args: tuple[Any, ...]) -> bool:
        """Return whether this is the first call of its kind and Python may run it: no other level, tier or device is set."""
        own = not self.math and not self.fills and type(self.plain) is types.FunctionType and self.plain is self._users
        if not own or not first_call.may(config.tier, config.device, config.level("")) or installed:
            return False
        kind = first_call.kind_of(args)
        if kind is None or kind in self._begun:
            return kind in self._pythons or self._quicker.is_pythons(args)
        self._begun.add(kind)
        return not self._asked

    def _stays(self, args: tuple[Any, ...], options: dict[str, Any], refused: TensorError) -> Any:
        """Return the result of a refused call; if Python ran the first one of its kind, it runs all of them."""
        kind = first_call.kind_of(args)
        if not isinstance(refused, CaptureError) or options or kind is None or kind not in self._begun:
            return self._as_written(args, options, refused)
        self._pythons.add(kind)
        result = first_call.result_of(self._users, args) if self._begins(args) else first_call.NOT
        if result is first_call.NOT:
            self._pythons.discard(kind)
            return self._as_written(args, options, refused)
        return result

    def _as_written(self, args: tuple[Any, ...], options: dict[str, Any], refused: TensorError) -> Any:
        """Return Python's result of a refused call if nothing has been changed by then; else raise the refusal.

        If Python raises an error of the same class, ours is raised.
        """
        undone = refused is self._failed and self._undone and config.device == "cpu"
        if self.plain is None or not (undone and refused.pythons):
            raise refused
        try:
            result = self.plain(*args, **options)
        except Exception as error:
            if isinstance(error, AttributeError):
                ours = hasattr(Tensor, error.name or "") and isinstance(error.obj, np.ndarray | np.generic)
            else:
                ours = not isinstance(refused, CaptureError | ForeignError) and isinstance(refused, type(error))
            if ours:  # our error says more, or the code needs what lazy arrays alone have
                raise refused from None
            drop_from_context(error, refused)
            raise
        given = None if isinstance(refused, ForeignError) else self._given(args, options)
        self._written.add(given, self.name, refused)
        return result

    def _quickly(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Return the result, if a call of exactly this form was seen before; else raise _Unseen."""
        known: Known | None = None
        ran = False
        printed = ""
        try:
            known, values = (None if options else self._as_last(args)) or self._at_a_glance(args, options)
            if known.holds():
                values = known.values(values) if known.reads else values
                ran = True
                return known.run(values)
        except (AttributeError, KeyError, TypeError) as error:
            if (
                known is not None and ran and known.program.acts
            ):  # the error is the code's own, and its effects have happened
                return self._after_failing(known, args, options, error)
        except KindError as error:
            _unless_met_again(error)
            printed = error.printed
        except Changed:
            raise
        except Exception as error:
            if known is None:
                raise
            return self._after_failing(known, args, options, error)
        raise _Unseen(printed)

    def _after_failing(self, known: Known, args: tuple[Any, ...], options: dict[str, Any], error: Exception) -> Any:
        """Return Python's result of a call that fails on its data, if nothing has been changed; else raise the error."""
        if not self._is_as_it_was(known.program, None, error):
            raise error
        return self._as_python(known.program, args, options, error)

    def _again(self, args: tuple[Any, ...], options: dict[str, Any], log: Log | None) -> Any:
        """Return the result, traced anew because an outside call has returned something of another kind.

        If an argument's memory layout differs, there may be a trace for that; nothing has run then, and there is no
        log.
        """
        if log is None:
            self.quick.clear()
            return self._of_kind(*self.completed(args, options))
        with logged(log):
            self.forget()
            return self._of_kind(args, options)

    def _of_kind(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Return the result; if a result assumed real turns out complex, or vice versa, the call is traced again accordingly.

        Traces are kept for each combination, so that alternating values are traced once each. A trace that fails
        under the assumptions of another call does not count: it starts anew.
        """
        tried, met, printed = {self._complex}, not self._complex, ""
        while True:
            try:
                with but_for(printed):
                    return self._general(args, options)
            except KindError as error:
                printed = max(printed, error.printed, key=len)
                other = self._complex ^ {error.site}
                if error.site < 0 or (met and other in tried):  # both occur, in the iterations of a loop
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
        """Return the body's result for lazy arguments: lazy values of its own level."""
        capture = context.current()
        if (printed := run_at_once(self, self.plain, args, options)) is not NOT:
            return printed
        body = self.inside if capture is not None and capture.abstract else self.body
        if not self.math:
            return body(*args, **options)
        with config.using(math=self.math):
            return body(*args, **options)

    def _as_last(self, args: tuple[Any, ...]) -> tuple[Known, Sequence[Any]] | None:
        """Return the program of the last call and the values of the inputs, or None if this call has another form."""
        match, known, (level, _, device) = self.quick.last or _NEVER
        if installed or level != config.level(self.math) or device != config.device:
            return None
        values = match(args)
        return None if values is None else (known, values)

    def _at_a_glance(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Known, Sequence[Any]]:
        """Return the program for a call of a form seen before, and the values of its inputs; raise KeyError for a new form."""
        chosen, named = choices(self.math), bool(options)
        if options and self.complete is not None:
            if not isinstance(self.complete, ByPosition):
                raise KeyError
            args, options = self.complete.quickly(args, options)
        key, values = known_by(chosen, args, options)
        known = self.quick[key]
        if not named:
            match = matcher(args) if known.match is None else known.match
            known.match = match or no_form
            self.quick.last = (known.match, known, chosen)
        return known, values

    def positional(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """Return all arguments by position, as compiled code takes them."""
        args, rest = self.completed(args, named)
        if rest:
            raise ArgumentError(
                f"{', '.join(rest)} of {self.name} cannot be given by name here",
                "Pass the arguments before it, too, or fix it with functools.partial.",
            )
        return args

    def completed(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return arguments by position, and those that can be given by name alone."""
        return self.complete(args, options) if self.complete and (options or self.fills) else (args, options)

    def _general(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if not options and self._begins(args):
            result = self._quicker.by_python(self._users, args)
            if result is not first_call.NOT:
                return result
        try:
            lazy = any(isinstance(v, Tensor) for v in self._flattened(args, options)[0])
        except ForeignError as refused:
            return self._stays(args, options, refused)
        if lazy:
            with context.capturing(
                context.Capture(self.name)
            ) as capture:  # control flow on these is staged, as in a cell
                result = self._leveled(args, options)
            drawn = generators.advanced(capture)
            generators.commit(drawn, session.compute([g.buffer.node for g in drawn]))
            committed(capture, self.name)
            return result
        try:
            return self._on_values(args, options)
        except TensorError as refused:
            return self._stays(args, options, refused)

    def _on_values(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Return the result for arrays and numbers, by an existing or a new program."""
        given, key = self.kind(args, options)
        known = next((k for k in self._exact.get(key, ()) if k.program.fits(given) and k.holds()), None)
        if known is not None:
            program, sizes, before = known.program, known.sizes, None
        else:
            begun = process_time()
            if self._written.has(given):
                return self.plain(*args, **options)  # type: ignore[misc]  (it is there)
            found = self.captured(key, given, (args, options))
            if isinstance(found, Halfway):  # Python's run raises no error, so it is reported here
                result = self.plain(*args, **options)  # type: ignore[misc]  (it is there)
                self._written.met(given, self.name, found.met)
                return result
            program, given, record, before = found
            sizes = program.sizes(given.values)
            if record.why:
                self._recaptured.add(self.name, record.why, process_time() - begun)
            else:
                reads = tuple([(r, signature(v)) for r, v in given.held if is_moving(v)])
                self._remember(args, options, given, Known(program, sizes, record.holds, given.leaves, reads))
        callers = program.gives.kept((args, options))  # determined before the call changes them
        try:
            result = program.run(sizes, given.values, _own_arrays(program, args, options, given), (args, options))
        except KindError:
            if (
                before is not None and not taken_back(before) and self.roots is not None
            ):  # which no body of this package has
                raise not_again(self.name, before) from None
            raise
        except Exception as error:
            if not self._is_as_it_was(program, before, error):
                raise
            return self._as_python(program, args, options, error)
        made, program.gives.made = program.gives.made, {}
        if program.left or callers or made:
            as_values({**program.left, **callers}, self.passing((args, options)), program.objects, made)
        return result

    def _is_as_it_was(self, program: Specialisation, before: Record | None, error: Exception) -> bool:
        """Return whether Python should and can run a call that failed on its data, undoing what its capture has changed."""
        if self.plain is None or (before is not None and before.why):
            if before is not None and isinstance(error, CaptureError):
                taken_back(before)
            return False
        if before is None or not before.changed():
            again = program.commits or program.program.tells or may_not_be_pythons(program.graph, error)
            return isinstance(error, CaptureError | DTypeError) or (again and not isinstance(error, Changed))
        return taken_back(before)

    def _as_python(
        self, program: Specialisation, args: tuple[Any, ...], options: dict[str, Any], error: Exception
    ) -> Any:
        """Return Python's result of a call that failed on its data, with the changes that the body makes before it fails.

        Python may not fail: a graph computes the text of an error even where Python raises none.
        What has been printed is not printed again; what ``finally`` prints is.
        """
        if self.plain is None:
            raise error
        try:
            with but_for(heard() if program.program.tells else ""):
                result = self.plain(*args, **options)
        except Exception as own:  # noqa: BLE001 (the same one, as a rule)
            same = isinstance(own, type(error)) and str(own) == str(error)
            pythons = program.commits or program.program.tells or raised_by_user(own)
            tells_more = not pythons and isinstance(error, TensorError) and isinstance(error, type(own))
            raise (error if same or tells_more else own) from None
        if isinstance(error, CaptureError):
            self._written.tell(self.name, error)
        return result

    def _remember(self, args: tuple[Any, ...], options: dict[str, Any], given: Given, known: Known) -> None:
        key = structure((args, options)), *self._key(given), tuple([signature(v) for v in given.values])
        found = self._exact.setdefault(key, [])
        found.insert(0, known)
        del found[STATES:]
        with suppress(KeyError):  # arguments of another kind that look alike have no key
            glanced, values = known_by(choices(self.math), args, options)
            own = [v for v, m in zip(given.leaves, given.moving, strict=True) if m]
            alike = len(own) == len(values) and all(map(operator.is_, own, values))
            if (
                alike
                and not known.program.gives.by_call
                and all(type(v) is np.ndarray or type(v) in NUMBERS for v in given.objects)
            ):
                self.quick[glanced] = known
                if not options:
                    self._quicker.begin(known, args, self.quick, glanced)
        while len(self._exact) > EXACT:
            self._exact.popitem(last=False)
        while len(self.quick) > EXACT:
            del self.quick[next(iter(self.quick))]

    def graph(self, *args: Any, **options: Any) -> Graph:
        """Return the graph for arguments of these types, before rewriting.

        Parameters
        ----------
        *args, **options
            As in a call; their values are read only where Python branches on them.

        Returns
        -------
        Graph
            With symbolic sizes: it holds for other lengths, too.

        Raises
        ------
        TensorError
            The error that a call with these arguments would raise during capture.

        Examples
        --------
        >>> import numpy as np, tensormagic as tm
        >>> "contract" in str(tm.tensor(lambda a, b: a @ b).graph(np.ones((2, 3)), np.ones(3)))
        True
        """
        try:
            return self.specialise(self._given(*self.completed(args, options)))[0].graph
        except TensorError as error:
            raise users_alone(error)  # noqa: B904 (the same one)


_NEVER: tuple[Any, ...] = (no_form, None, ("", (), ""))  # in place of the last call, before there was one


def _own_arrays(program: Specialisation, args: tuple[Any, ...], options: dict[str, Any], given: Given) -> list[Any]:
    """Return the caller's arrays and those read from outside, if the program stores into some."""
    return [*flatten((args, options))[0], *(value for _, value in given.held)] if program.stores else []


def _unless_met_again(error: KindError) -> None:
    """Raise an error that no other trace avoids."""
    if error.site < 0:
        raise error
