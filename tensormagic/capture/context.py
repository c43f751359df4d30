"""The current capture, and where in the user's code it is: cells by file name, spans from frames, refusals at the user's line."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from weakref import WeakSet

from tensormagic.capture import limits
from tensormagic.capture.errors import errstate
from tensormagic.capture.errors.try_blocks import decided
from tensormagic.capture.hooks import hooks
from tensormagic.capture.python import usercode
from tensormagic.capture.python.recursion_depth import as_deep_as_python
from tensormagic.capture.records import (
    Attempts,
    Callers,
    Complexes,
    Effort,
    Heap,
    Inputs,
    Layouts,
    Names,
    Numbers,
    Order,
    Output,
    Outside,
    Refusals,
    Running,
)
from tensormagic.ir import site
from tensormagic.ir.errors import CaptureError, TensorError, ValueNeededError
from tensormagic.ir.graph import Guard
from tensormagic.ir.node import Node, substitute, topological
from tensormagic.ir.size import is_at_least, nodes_of
from tensormagic.ir.type import Size, hint
from tensormagic.ops.effects.failing import computes_floats, may_fail

_OFTEN = 64  # nodes built, after which computed ones that nothing needs are freed


at_once: list[Callable[[Node], None]] = []  # computes a node in a cell where errors or warnings are caught


@dataclass
class Capture:
    """Represents one capture of a cell or a function.

    Parameters
    ----------
    label
        What is captured, for messages.
    abstract
        Whether the inputs have no values, so that nothing may be computed during the capture.
    effort, attempts, classes, outside, layouts, callers, output, names, heap, inputs, order, running, complexes,
    refusals
        Records by subject: see `capture/records.py`.
    guards
        Sizes that the code has turned into numbers.
    formed
        The levels of the rules by which formulas of numbers were computed.
    generators
        Whether the code has made random generators.
    """

    label: str
    abstract: bool = False
    effort: Effort = field(default_factory=Effort)
    attempts: Attempts = field(default_factory=Attempts)
    classes: Numbers = field(default_factory=Numbers)
    outside: Outside = field(default_factory=Outside)
    layouts: Layouts = field(default_factory=Layouts)
    callers: Callers = field(default_factory=Callers)
    output: Output = field(default_factory=Output)
    names: Names = field(default_factory=Names)
    heap: Heap = field(default_factory=Heap)
    inputs: Inputs = field(default_factory=Inputs)
    order: Order = field(default_factory=Order)
    running: Running = field(default_factory=Running)
    complexes: Complexes = field(default_factory=Complexes)
    refusals: Refusals = field(default_factory=Refusals)
    guards: list[Guard] = field(default_factory=list)
    formed: set[str] = field(default_factory=set[str])
    generators: bool = False

    def actual(self, node: Node) -> Node:
        """Return ``node`` with stand-ins replaced by the arguments that the function was called with."""
        behind = self.inputs.behind
        while behind and (found := substitute([node], behind)[0]) is not node:
            node = found
        return node

    def specialise(self, size: Size) -> int | None:
        """Return the number that ``size`` was, recorded as something that the graph depends on; None if it is data-dependent."""
        number = hint(size)
        if number is not None and not isinstance(size, int):
            self.guards.append((size, "==", number))
        return number

    def decides(self, guard: Guard) -> None:
        """Note a relation of sizes that decides whether NumPy makes a view: once something is stored, the graph depends on it."""
        left, relation, right = guard
        known = is_at_least(left - right, 0) if relation == ">=" else left == right
        if not known and not nodes_of(left) and not nodes_of(right):
            (self.guards if self.layouts.stores else self.layouts.deciding).append(guard)

    def stored(self) -> None:
        """Note that something is stored into, or read in memory order."""
        self.layouts.stores = True
        self.guards += self.layouts.deciding
        self.layouts.deciding.clear()


def settle(size: Size) -> Size:
    """Return a size for new axes: 0 and 1 become numbers, as they behave differently, on which a function then depends."""
    number = hint(size)
    if isinstance(size, int) or number is None:
        return size
    capture = _current.get()
    if number > 1:
        if capture is not None and capture.abstract and not is_at_least(size, 2) and not nodes_of(size):
            capture.guards.append((size, ">=", 2))
        return size
    if capture is not None:
        capture.specialise(size)
    return number


_current: ContextVar[Capture | None] = ContextVar("capture", default=None)


def current() -> Capture | None:
    """Return the current capture, or None."""
    return _current.get()


def in_cell() -> bool:
    """Return whether a cell is being captured, whose inputs have values."""
    capture = _current.get()
    return capture is not None and not capture.abstract


def stand_for(inputs: Iterable[Node], nodes: Iterable[Node]) -> None:
    """Note that inputs stand for nodes in a part of the code."""
    capture = _current.get()
    if capture is not None:
        capture.inputs.behind.update(zip(inputs, nodes, strict=True))


def stands_in(node: Node) -> None:
    """Note an input that stands for an argument inside a function that the code calls."""
    capture = _current.get()
    if capture is not None:
        (capture.heap.trials[-1] if capture.heap.trials else capture.inputs).stand_ins.append(node)


@contextmanager
def standing() -> Generator[None]:
    """Mark, for the block, that code is given inputs without values."""
    capture = _current.get()
    if capture is None:
        yield
        return
    capture.inputs.standing += 1
    try:
        yield
    except (TypeError, ValueError) as error:  # the error that NumPy makes of a refusal
        if isinstance(error, TensorError) or not isinstance(error.__cause__, TensorError) or capture.abstract:
            raise
        raise error.__cause__ from None
    finally:
        capture.inputs.standing -= 1


def trying() -> bool:
    """Return whether code without values is on trial, which may not run: a branch, or an iteration of a loop."""
    capture = _current.get()
    return capture is not None and capture.abstract and bool(capture.heap.trials) and not capture.attempts.depth


def is_driven() -> bool:
    """Return whether Python runs an iteration and computes values during it, so that each iteration has another graph."""
    capture = _current.get()
    return capture is not None and capture.effort.driven > 0


@contextmanager
def capturing(capture: Capture) -> Generator[Capture]:
    """Make ``capture`` the current one."""
    token = _current.set(capture)
    try:
        with as_deep_as_python():
            yield capture
            for chosen in capture.heap.chosen:
                chosen.check()
    finally:
        _current.reset(token)


def record(node: Node) -> Node:
    """Record that the user's current expression built ``node``; return it."""
    frame = usercode.user_frame()
    capture = _current.get()
    if capture is not None and capture.classes.of:
        node = hooks.by_class(node)
    if frame is not None:
        place, quiet = usercode.span(frame), _quiet(capture)
        site.record_new(node, place.with_quiet(quiet) if quiet else place)
    if capture is None:
        if errstate.raises():  # lazy values of plain code
            _compute(node)
    else:
        if capture.attempts.depth and not (
            node in capture.attempts.safe and not capture.abstract and _wants_errors(capture)
        ):
            node = tried(node)
        elif not capture.abstract and _wants_errors(capture):
            _compute(node)
        capture.attempts.safe.add(node)
        _keep(capture, node)
        for found in capture.order.within:
            found.add(node)
        limits.built(capture)
    _built.add(node)
    return node


def _quiet(capture: Capture | None) -> tuple[str, ...]:
    """Return the floating-point errors that code ignores, or that a function is to raise, other than by default."""
    errors = errstate.asked()
    quiet = tuple([kind for kind, how in errors.items() if how == "ignore" and kind != "under"])
    if capture is None or "raise" not in errors.values():
        return quiet
    raised = tuple(f"raise {k}" for k, how in errors.items() if how == "raise" != capture.attempts.errors.get(k))
    capture.attempts.raising |= bool(raised)
    return quiet + raised if capture.abstract else quiet


_built: WeakSet[Node] = WeakSet()  # the results of expressions


def is_built(node: Node) -> bool:
    """Return whether ``node`` is the result of an expression, and not of a part of one."""
    return node in _built


def built_before(node: Node, computed: Callable[[Node], bool]) -> list[Node]:
    """Return the uncomputed results of other expressions on which an expression depends."""
    inside = topological([node], stop=lambda n: n is not node and (n in _built or computed(n)))
    return [n for n in inside if n is not node and n in _built and not computed(n)]


def keep(nodes: Iterable[Node] = (), stand_ins: Iterable[Node] = ()) -> None:
    """Keep values and stand-ins of code on trial that has run."""
    capture = _current.get()
    for node in nodes if capture is not None else ():
        _keep(capture, node)  # type: ignore[arg-type]  (it is there)
    for node in stand_ins:
        stands_in(node)


def checked_in_try(node: Node) -> Node:
    """Return a value after :func:`tried`, whether or not the code uses it."""
    capture = _current.get()
    if capture is None:
        return node
    if capture.attempts.depth:
        node = tried(node)
    _keep(capture, node)
    return node


def _keep(capture: Capture, node: Node) -> None:
    """Keep a computed node, used or not: in functions every one, in cells those that may raise when the graph runs."""
    if capture.heap.trials:
        capture.heap.trials[-1].made.append(node)
        return
    if not (capture.abstract or _is_new_and_may_fail(capture, node)):
        return
    capture.order.made.append(node)
    if not capture.abstract and len(capture.order.made) % _OFTEN == 0:
        capture.order.made[:] = [n for n in capture.order.made if not hooks.is_computed(n)]  # these have not raised


def _is_new_and_may_fail(capture: Capture, node: Node) -> bool:
    """Return whether an expression may raise in an operation that is not part of another expression."""
    if all(_is_known(capture, n) for n in node.needs):
        return may_fail(node)
    inside = topological([node], stop=lambda n: n is not node and _is_known(capture, n))
    new = [n for n in inside if n is node or not _is_known(capture, n)]
    capture.order.looked.update(new)
    return any(map(may_fail, new))


def _is_known(capture: Capture, node: Node) -> bool:
    return not node.needs or node in _built or node in capture.order.looked


def tried(node: Node) -> Node:
    """Compute a value that may fail in a ``try``; without values, decide by assumption, or refuse.

    A failure decides what runs next: every value that code computes goes through here.
    """
    capture = _current.get()
    if capture is None or not capture.attempts.depth or node in capture.attempts.safe:
        return node
    floats = errstate.raises()
    fails = _has_new_that_may_fail(capture, node, floats=floats)
    if fails and capture.abstract and not capture.heap.trials and not floats:
        found = decided(node, may_fail, capture.attempts.safe, capture.complexes.of_site, capture.order.checks)
        fails, node = found is None, found or node
    if fails and (capture.abstract or capture.heap.trials):
        error = uncaught()
        for running in capture.heap.trials[-1:]:  # the code may catch it
            running.failure = running.failure or error
        raise error
    if capture.abstract:
        capture.attempts.caught = capture.attempts.caught or _has_new_that_may_fail(capture, node, floats=True)
    elif fails or _wants_errors(capture):
        _compute(node)
    capture.attempts.safe.add(node)
    return node


def uncaught() -> CaptureError:
    """Return the refusal of a ``try`` whose errors would be raised after it."""
    return ValueNeededError(
        "a `try` around code that may fail only when the function runs, and not while it is captured, is not supported",
        "Check beforehand whether it would fail, with `if` instead of `try` and `except`.",
    )


def _wants_errors(capture: Capture) -> bool:
    """Return whether code wants floating-point errors raised, or catches warnings."""
    return errstate.raises() or warnings.filters is not capture.attempts.filters


def _compute(node: Node) -> None:
    for compute in at_once:
        compute(node)


def _has_new_that_may_fail(capture: Capture, node: Node, *, floats: bool) -> bool:
    """Return whether anything built in a ``try`` may raise when the graph runs; ``floats`` includes floating-point errors."""
    pending, seen = [node], set[Node]()
    while pending:
        one = pending.pop()
        if one in seen or one in capture.attempts.safe:
            continue
        seen.add(one)
        given = [] if one.op.kind == "fold" else [t for a in one.args for t in a.types]
        sized = any(nodes_of(s) for t in (*one.types, *given) for s in t.shape)
        if sized or may_fail(one) or (floats and computes_floats(one)):
            return True
        pending += one.needs
    return False
