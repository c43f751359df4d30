"""``assert`` and ``raise`` where data decide and no value is there: kept as checks of the graph, in the order of the program."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from functools import wraps
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.staging.merged import is_number
from tensormagic.capture.staging.trial import CHECKS, NeedsPython, Outcome, spoil, trial
from tensormagic.capture.stores.place import Buffer, Place
from tensormagic.capture.tree import flatten
from tensormagic.capture.value import Tensor, node_of, wrap
from tensormagic.ir.errors import GuardError, TensorError
from tensormagic.ir.node import Node
from tensormagic.ir.site import Site
from tensormagic.ops import scalar
from tensormagic.ops.raising import after, check

_PLAIN = (str, int, float, bool, type(None), bytes)


class Text(str):  # noqa: SLOT000 (has its pieces beside it)
    """A text that holds lazy values: what it says is known when the graph runs."""

    pieces: list[Any]


def formatted(*pieces: Any) -> str:
    """An f-string in the arguments of an exception: each piece a text, or a value, its conversion and its format."""
    lazy = [p for p in pieces if not isinstance(p, str) and isinstance(p[0], Tensor)]
    if not lazy or (trial() is None and not _abstract()):
        return "".join(p if isinstance(p, str) else format(_converted(p[0], p[1]), p[2]) for p in pieces)
    made = Text("".join(p if isinstance(p, str) else "{}" for p in pieces))
    made.pieces = list(pieces)
    return made


def _converted(value: Any, conversion: str) -> Any:
    return {"": lambda v: v, "r": repr, "s": str, "a": ascii}[conversion](value)


def _abstract() -> bool:
    capture = context.current()
    return capture is None or capture.abstract


# what is being caught -------------------------------------------------------------------------------------------------


@contextmanager
def attempting() -> Generator[None]:
    """The body of a ``try``: which error is met decides what runs then, so none can wait for the graph to run."""
    capture = context.current()
    if capture is None:
        yield
        return
    capture.attempts += 1
    try:
        yield
    finally:
        capture.attempts -= 1


def may_wait() -> bool:
    """Whether an exception may be raised when the graph runs."""
    capture = context.current()
    return capture is not None and not capture.attempts


# raising --------------------------------------------------------------------------------------------------------------


def raising(error: Any) -> Any:
    """The exception of a ``raise``, of which the code that is tried out takes note."""
    running = trial()
    made = error() if isinstance(error, type) and issubclass(error, BaseException) else error
    if running is not None and may_wait() and isinstance(made, Exception):
        running.raised = made
        running.place = _place()
    return made


def _place() -> tuple[Any, ...]:
    frame = context.user_frame()
    return () if frame is None else _fields(context.span(frame))


def _fields(site: Site) -> tuple[Any, ...]:
    return astuple(site)[:6]


def wait(holds: Node, error: Exception, place: tuple[Any, ...] = (), before: Any = None) -> Any:
    """Have the graph raise ``error`` unless ``holds``; gives what stands for all checks so far."""
    told, details = _told(error)
    token = _checks()[CHECKS] if before is None else before
    node = check(node_of(token), holds, type(error), told, details, place or _place())
    return wrap(context.record(node))


def note(token: Any) -> None:
    """What stands for all checks so far."""
    _checks()[CHECKS] = token


def _checks() -> dict[str, Any]:
    capture = context.current()
    if capture is None:
        raise AssertionError
    return capture.checks


def _told(error: Exception) -> tuple[list[Any], list[Node]]:
    """The arguments of an exception, and the lazy values in them."""
    details: list[Node] = []
    parts: list[Any] = []

    def operand(value: Tensor) -> int:
        details.append(value.node)
        return len(details) - 1

    for value in error.args:
        if isinstance(value, Text):
            pieces = [
                (p,) if isinstance(p, str) else (operand(p[0]), *p[1:]) if isinstance(p[0], Tensor) else (_shown(p),)
                for p in value.pieces
            ]
            parts.append(("text", pieces))
        elif isinstance(value, Tensor):
            parts.append(("operand", operand(value)))
        elif type(value) in _PLAIN:
            parts.append(("value", value))
        else:
            raise NeedsPython(
                f"{type(error).__name__} is raised as data say, and holds a {type(value).__name__}",
                "Give it texts, numbers and arrays.",
            )
    return parts, details


def _shown(piece: Any) -> str:
    return format(_converted(piece[0], piece[1]), piece[2])


def only_raises(outcomes: Sequence[Outcome]) -> int | None:
    """Which of two ways raises an exception; None where neither does."""
    raised = [k for k, o in enumerate(outcomes) if o.raised is not None]
    if len(raised) == 2:
        raise spoil(
            "each way of a branch on data raises an exception", "Raise one exception, with what differs in its text."
        )
    return raised[0] if raised else None


def way_raised(predicate: Node, way: int, outcome: Outcome, choose: Callable[[Any, Any], Any]) -> None:
    """Have the graph raise what one way of a branch raises; ``choose`` gives one of two values, as the predicate says."""
    holds = scalar.logical_not(predicate) if way == 0 else predicate
    checks = _checks()
    before = next((v for s, v in outcome.slots.items() if s.holder is checks), None)
    if outcome.raised is None:
        raise AssertionError
    if before is None:
        note(wait(holds, outcome.raised, outcome.place))
        return
    own = wait(holds, outcome.raised, outcome.place, before)
    note(choose(*((own, checks[CHECKS]) if way == 0 else (checks[CHECKS], own))))


def settle() -> None:
    """At the top level of a cell, what a region has left to be checked is checked at once: the cell ends where it fails."""
    capture = context.current()
    if capture is None or capture.abstract or capture.trials:
        return
    token = capture.checks[CHECKS]
    if isinstance(token, Tensor):
        try:
            token.numpy()
        except GuardError:  # in a function that is differentiated, or batched: the values are not there
            return
        capture.checks[CHECKS] = 0


def known(condition: Node) -> bool | None:
    """The value of a condition; None where it hangs on arguments that have no values."""
    try:
        return bool(wrap(condition).numpy())
    except GuardError:
        return None


# functions ------------------------------------------------------------------------------------------------------------


def checked(body: Callable[..., Any]) -> Callable[..., Any]:
    """``body``, whose results are there once everything has been checked in it."""

    @wraps(body, updated=())
    def run(*args: Any, **options: Any) -> Any:
        capture = context.current()
        if capture is None:
            return body(*args, **options)
        outer, capture.checks[CHECKS] = capture.checks[CHECKS], 0
        given = {t.place.buffer: t.place.buffer.version for t in flatten((args, options))[0] if isinstance(t, Tensor)}
        try:
            result = body(*args, **options)
            token = capture.checks[CHECKS]
        finally:
            capture.checks[CHECKS] = outer
        return result if not isinstance(token, Tensor) else _after(token.node, result, given)

    return run


def _after(token: Node, result: Any, given: dict[Buffer, int]) -> Any:
    """A result behind its checks, and what the function has stored into its arguments too."""
    leaves, build = flatten(result)
    changed = [b for b, version in given.items() if b.version != version]
    for buffer in changed:
        buffer.put(after(token, buffer.node))
    numbers = [v for v in leaves if is_number(v)]
    if not numbers and not changed:
        raise TensorError(
            "a function that only checks data gives nothing that could wait for the checks",
            "Return what was checked, and go on with that.",
        )

    def behind(value: Any) -> Any:
        if not is_number(value) or (isinstance(value, Tensor) and value.place.buffer in changed):
            return value
        return Tensor(Place(Buffer(after(token, node_of(value)))))

    return build(iter([behind(v) for v in leaves]))
