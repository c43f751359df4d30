"""Traces, and programs for one kind of arguments: the results of a body for abstract arguments, and how the graph is run."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensormagic import session
from tensormagic.capture import context
from tensormagic.capture.context import Capture
from tensormagic.capture.errors import errstate, floating
from tensormagic.capture.hooks import hooks
from tensormagic.capture.random import generators
from tensormagic.capture.records import Complexes, Numbers, Order
from tensormagic.capture.staging.loops.watched_containers import refuse_changed
from tensormagic.capture.staging.messages.refusals import refusing
from tensormagic.capture.staging.trials.abandoned_generators import ending_generators
from tensormagic.capture.stores.place import Buffer
from tensormagic.capture.values.abstract import abstract_tensor
from tensormagic.capture.values.unused_values import Unused
from tensormagic.capture.values.value import Tensor
from tensormagic.functions.calls.argument_stores import Stores, same_of, stores_of
from tensormagic.functions.calls.call_inputs import Given, signature
from tensormagic.functions.calls.caller_objects import Gives, gives_of
from tensormagic.functions.calls.result_sources import shows_layout, twins_in
from tensormagic.functions.calls.results import refuse_tables, results_of
from tensormagic.functions.reads.arrays_in_objects import Inside, placed
from tensormagic.functions.reads.changed_containers import Containers, Halfway
from tensormagic.functions.reads.left_in_objects import rescued, tell_until
from tensormagic.functions.reads.name_reads import place_of
from tensormagic.functions.reads.reading import Body, Read
from tensormagic.ir import site
from tensormagic.ir.errors import CaptureError, GuardError, KindError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ops.effects.outside import logged
from tensormagic.ops.effects.telling import MOST_HEARD, hear, heard


@dataclass(frozen=True, eq=False)
class Trace:
    """The outcome of tracing: nodes of arguments, results and stores, how results are assembled, and the assumptions made.

    ``new`` are the reads that were not known before.
    """

    leaves: list[Node]
    results: list[Node]
    stores: Stores
    build: Callable[[Any], Any]
    guards: list[Any]
    new: list[Read]
    raising: bool  # whether the code asks for floating-point errors
    caught: bool  # whether the code catches floating-point errors in a `try`
    values: dict[Node, Any]  # the value of each input
    inside: list[Buffer]  # buffers of arrays inside containers and objects, which have no derivatives
    objects: list[Any]  # returned objects that were made in this call
    gives: Gives
    noted: Capture  # the capture, which knows the classes of numbers
    gave: list[Any]  # the results that are arrays, and the places of lazy ones


def refuse_stores(tensors: Sequence[Tensor], label: str) -> None:
    """Raise if a function has stored into an argument."""
    for tensor in tensors:
        if tensor.place.buffer.version:
            name = tensor.place.buffer.name
            places = site.of(tensor.place.buffer.node)
            raise CaptureError(
                f"{f'{places[-1]}: ' if places else ''}{label} stores into its argument {name}, which is not captured in functions yet",
                f"Begin with {name} = {name}.copy(), and return it.",
            )


@contextmanager
def _no_halves(capture: Capture, containers: Containers, tensors: Sequence[Tensor]) -> Generator[None]:
    """Raise ``Halfway`` if the user's error comes after a change of an argument, a print or a check."""
    try:
        yield
    except (CaptureError, GuardError):
        raise
    except Exception as error:
        changed = containers.is_changed() or any(t.place.buffer.stored for t in tensors)
        if changed or capture.output.told:
            raise Halfway(
                changed=changed, tell=lambda: tell_until(capture.output.until, capture.inputs.values)
            ) from error
        raise


def _is_given_up(error: Exception) -> bool:
    """Return whether an error is not the user's own: then Python may run the call, or nobody."""
    return isinstance(error, (CaptureError, GuardError, Halfway))


def _fresh(capture: Capture, given: Given) -> tuple[list[Read], list[Tensor]]:
    """Return the reads of a trace that were not given to it, and lazy arrays for them."""
    known = {place_of(read) for read, _ in given.held}
    new = [read for place, read in capture.names.noted.items() if place not in known]
    return new, [t for p in map(place_of, new) if isinstance(t := capture.names.lifted.get(p), Tensor)]


def trace(
    body: Body,
    given: Given,
    names: Sequence[str],
    label: str,
    complex_sites: frozenset[int] = frozenset(),
    users: bool = False,
    there: Mapping[int, Any] | None = None,
) -> Trace:
    """Return the trace of ``body`` (the user's code, or made of it), run over abstract arguments with the types of the given values."""
    capture = Capture(label, abstract=True, complexes=Complexes(complex_sites), order=Order(whole=users))
    tensors = [abstract_tensor(v, n) for v, n in zip(given.values, names, strict=True)]
    leaves = [t.node for t in tensors]
    capture.inputs.values.update(zip(leaves, given.values, strict=True))
    count = sum(given.moving)
    seen = [generators.over(o, t, capture) for o, t in zip(given.objects, tensors, strict=True)]
    capture.names.lifted.update(zip(map(place_of, given.reads), seen[count:], strict=True))
    own = iter(seen[:count])
    with context.capturing(capture), placed(given.reads, seen[count:]):
        args, options = given.build(
            iter([next(own) if m else v for v, m in zip(given.leaves, given.moving, strict=True)])
        )
        with refusing(label), rescued(capture.inputs.values):
            containers = Containers((args, options), there, label)
            capture.callers.containers = containers.callers(given.call)
            with ending_generators(_is_given_up), _no_halves(capture, containers, tensors):
                result = body(*args, **options)
            refuse_changed(0)
            changed = containers.changed()
        given_back = (result, *(now for _, now in changed)) if changed else result
        gave = results_of(given_back, label, there or {}, containers.special)
        if users:
            refuse_tables(gave.leaves, label)
        new, fresh = _fresh(capture, given)
        tensors += fresh
        found = [t.place.buffer.first for t in fresh]  # their contents before stores
        leaves += found
        if capture.layouts.ordered and shows_layout(gave.leaves):
            capture.stored()
        matters = capture.layouts.asked or (capture.layouts.stores and capture.layouts.ordered)
        known = [*given.values, *(capture.inputs.values[node] for node in found)]
        same = same_of(known) if capture.callers.alike else ()
        stores = stores_of(label, tensors, known if matters else None, capture.outside.looked_at, same)
        gives = gives_of(label, gave.leaves, tensors, containers, changed, users=users)
        if users:
            gives.unknown = gives.unknown or twins_in(given_back, gave.leaves) or capture.callers.unsure or None
        gives.halfway = capture.attempts.changing
        gives.identities = capture.callers.identities
        gives.same = containers.same(given.call) if capture.callers.alike else {}
        nodes = gives.with_more(gave.nodes)
    gives.copies = containers.released(given.build(iter(given.leaves)))
    nodes += [tensors[k].place.buffer.node for k in stores.inputs]
    unused = Unused(capture, leaves, nodes)
    if users:  # of a function made by the package, one part may need the others
        nodes = unused.before(nodes)
    noted = Capture(label, abstract=True, classes=Numbers(capture.classes.of, capture.classes.types))
    return Trace(
        leaves, nodes, stores, gave.build, [*capture.guards, *unused.guards()], new,
        capture.attempts.raising, capture.attempts.caught, capture.inputs.values,
        [t.place.buffer for t, r in zip(tensors[count:], given.reads, strict=False) if isinstance(r[1], Inside) and not r[1].apart],
        gave.objects, gives, noted, [_of_array(v) for v in gave.leaves],
    )  # fmt: skip


def _of_array(value: Any) -> Any:
    if isinstance(value, Tensor):  # if kept, it would seem to be left behind by the trace
        return value.place if value.type.form == "array" else None
    return value if isinstance(value, np.ndarray) else None


@dataclass(eq=False)
class Specialisation:
    """A function for one kind of arguments."""

    graph: Graph
    program: session.Executable
    build: Callable[[Any], Any]
    extra: list[Node]
    single: bool
    stores: Stores
    gives: Gives
    lens: site.Lens | None  # if the code itself asks for floating-point errors; else None
    caught: bool
    names: tuple[str, ...] = ()
    held: list[Any] | None = None  # the values of ``extra``
    left: Mapping[int, Any] = field(
        default_factory=dict[int, Any]
    )  # values that Python would have left in objects in place of lazy ones
    objects: list[Any] = field(default_factory=list[Any])  # returned objects that one call has made

    def whole(self, values: Sequence[Any]) -> Sequence[Any]:
        """Return the values of all parameters of the graph, given ``values`` of arguments and reads."""
        if not self.extra:
            return values
        if self.held is None:
            self.held = [*map(session.value_of, self.extra)]
        return [*values, *self.held]

    def sizes(self, values: Sequence[Any]) -> dict[Any, int]:
        """Return the sizes of a call."""
        return self.graph.bind([np.shape(v) for v in self.whole(values)])

    def bound(self, sizes: dict[Any, int]) -> Callable[[Sequence[Any]], Any] | None:
        """Return a function that runs the machine code for these sizes, or None if more is to be done, or it is not compiled yet."""
        return None if self.stores or self.gives or self.lens is not None or self.caught else self.program.bound(sizes)

    def fits(self, given: Given) -> bool:
        """Return whether arguments have the required memory layout, and are identical objects where they must be."""
        return self.stores.fits(given.values) and self.gives.fits(given.call)

    @property
    def acts(self) -> bool:
        """Whether a run prints, or calls functions outside of the graph."""
        return self.program.tells or bool(self.program.calls)

    @property
    def commits(self) -> bool:
        """Whether a run changes the caller's data, after success or before it raises an error."""
        return bool(self.stores.inputs) or bool(self.gives.changed) or self.gives.halfway

    def run(self, sizes: dict[Any, int], values: Sequence[Any], given: Sequence[Any], call: Any = None) -> Any:
        """Return the function's result, with stores into the ``given`` arrays and the containers of the ``call``."""
        values = self.whole(values)
        if not (self.stores or self.gives):
            asks = self.lens is not None or self.caught or floating.raises()
            results = None if asks else self.program.plainly(sizes, values)
            if results is None:
                results = self.results(sizes, values)
            return results[0] if self.single else self.gives.together(self.build, results, call)
        if self.program.tells:
            hear()  # also here, as a refused call has printed nothing
        self.stores.check(values, given)
        self.gives.check(call)
        computed = self.results(sizes, values)
        self.gives.refuse_without_axes(computed)
        results = self.gives.arrays(self.stores.commit(computed, values), values)
        return results[0] if self.single else self.gives.together(self.build, results, call)

    def results(self, sizes: dict[Any, int], values: Sequence[Any]) -> list[Any]:
        """Return the graph's results, by the tier that is ready; by NumPy if floating-point errors are to be raised."""
        if not self.program.calls:
            return self._results(sizes, values)
        with logged():
            return self._results(sizes, values)

    def _results(self, sizes: dict[Any, int], values: Sequence[Any]) -> list[Any]:
        if self.program.tells:
            hear()
        try:
            if self.caught:
                self._refuse_errors()
            if self.lens is not None:
                with floating.inside(self.lens):
                    return self.program.by_numpy(sizes, *values)
            if floating.raises():
                return self.program.by_numpy(sizes, *values)
            return self.program.run(sizes, *values, names=self.names)
        except BaseException as error:
            if isinstance(error, KindError) and self.program.tells:
                error.printed = heard()
                if len(error.printed) >= MOST_HEARD:
                    error.site = -1  # printed text must not be printed twice
            hooks.failed(error)
            raise

    def _refuse_errors(self) -> None:
        """Raise for a call that asks for floating-point errors, which a ``try`` of the function would catch."""
        if floating.raises():
            raise context.uncaught()


@dataclass(eq=False)
class Known:
    """A program for known types and shapes: its sizes, a check of what must be unchanged, objects kept alive for keys, and its reads."""

    program: Specialisation
    sizes: dict[Any, int]
    holds: Callable[[], bool]
    kept: list[Any]
    reads: tuple[tuple[Read, Any], ...]
    bound: Callable[[Sequence[Any]], Any] | None = None  # machine code for these sizes
    match: Callable[[tuple[Any, ...]], Any] | None = None  # recognises the form of its arguments

    def run(self, values: Sequence[Any]) -> Any:
        """Return the result for ``values`` of the inputs and reads."""
        program = self.program
        if self.bound is None:
            self.bound = program.bound(self.sizes)
        elif not errstate.raises():
            results = self.bound(program.whole(values) if program.extra else values)
            if results is not None:
                return results[0] if program.single else program.gives.together(program.build, results, None)
        return program.run(self.sizes, values, values)

    def values(self, args: Sequence[Any]) -> list[Any]:
        """Return the arguments and the values of the reads; raise KeyError if one is of another kind."""
        found = list(args)
        for (name, space), before in self.reads:
            value = space[name]
            if signature(value) != before:
                raise KeyError(name)
            found.append(value)
        return found


def evaluated(program: Specialisation, given: Given) -> list[Any]:
    """Return the results of a program's graph, without its stores."""
    return program.results(program.sizes(given.values), program.whole(given.values))


def fits(program: Specialisation, values: Sequence[Any]) -> bool:
    """Return whether a program was made for the sizes of these values."""
    try:
        program.sizes(values)
    except GuardError:
        return False
    return True
