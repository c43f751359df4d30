"""The body of a loop, and how it is staged: unchanged, or with lists of data-dependent length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tensormagic.capture.errors.refusal import values_are_there
from tensormagic.capture.staging.loops.carries import Names
from tensormagic.capture.staging.loops.growing_lists import growing, retyped
from tensormagic.capture.staging.loops.grown_lists import Untyped
from tensormagic.capture.staging.loops.left_to_python import PlainPython
from tensormagic.capture.staging.messages import raising
from tensormagic.capture.staging.trials.needs_python import Grows, NeedsPython
from tensormagic.capture.staging.trials.trial import attempt
from tensormagic.capture.staging.trials.world import Journaled, World
from tensormagic.ir.errors import REFUSALS, TensorError
from tensormagic.ir.node import Node

Thunk = Callable[[], Any]
UNROLLED = 32  # iterations up to which Python runs a loop in which arrays change their length


def never() -> bool:
    """Return the test of a ``for`` that is never left early: False."""
    return False


@dataclass(frozen=True, eq=False)
class Body:
    """Represents the body of a loop: a ``for``, ``while`` or comprehension.

    Parameters
    ----------
    iteration
        Runs one iteration; for a ``for``, given the item.
    asked
        Called before each iteration: for a ``while``, whether to go on; for a ``for``, whether it is left.
    names
        What the syntax says of its names.
    lists
        Further lists that iterations append to, beside those in the syntax.
    beside
        Further functions that an iteration calls.
    """

    iteration: Callable[..., None]
    asked: Thunk = never
    names: Names = field(default_factory=Names)
    lists: Sequence[list[Any] | Journaled] = ()
    beside: Sequence[Callable[..., Any]] = ()

    @property
    def early(self) -> bool:
        """Return whether the loop may be left before its end."""
        return self.asked is not never

    @property
    def functions(self) -> list[Callable[..., Any]]:
        """Return the functions that the loop calls."""
        return [self.iteration, *([self.asked] if self.early else [])]

    @property
    def users(self) -> list[Any]:
        """Return the user's functions behind these, from which the loop's reach is found."""
        return [getattr(self.iteration, "__wrapped__", self.iteration), *self.functions[1:], *self.beside]


def staged_as_needed(stage: Callable[[bool], None], body: Body, *, long: bool) -> Exception | None:
    """Stage a loop; return the error that prevents it, or None.

    If Python cannot run it (or not well, since it is ``long``), arrays may change their length in it, and lists get a
    data-dependent length.
    """
    found: Exception
    try:
        retyped(lambda: stage(False))
    except Exception as error:  # noqa: BLE001 (Python runs the loop, and meets the same error, if it is one)
        found = error
    else:
        raising.settle()
        return None
    if isinstance(found, PlainPython) or not isinstance(found, NeedsPython | TensorError) or not long:
        return found
    computes = values_are_there()
    if computes and not isinstance(found, Grows):
        return found  # Python runs the rest
    return _staged_with_lists(lambda: stage(not computes), body, found)


def _staged_with_lists(stage: Thunk, body: Body, failed: Exception) -> Exception | None:
    try:
        lists = growing(body.users, body.names.lists, stage)
        if values_are_there():
            lists.listed()
    except Untyped as error:
        return error
    except Exception as error:  # noqa: BLE001 (what it failed for at first says more, but of lists)
        return error if isinstance(failed, Grows) and isinstance(error, NeedsPython) else failed
    raising.settle()
    return None


def begins_otherwise(failed: Exception | None, known: int | None) -> bool:
    """Return whether the first iteration of a long loop in a cell may differ from the rest: it binds what was None or unbound."""
    later = isinstance(failed, NeedsPython) and not isinstance(failed, PlainPython | Grows)
    return later and known is not None and known > UNROLLED and values_are_there()


def iterations_raise(failed: Exception, ran: Node, first: Thunk, functions: Sequence[Any]) -> bool:
    """Let the graph raise the error of a loop's ``first`` iteration, if one has ``ran``; return whether the error is deferred."""
    if raising.place_of(failed) is None or isinstance(failed, REFUSALS):
        return False
    world = World([getattr(f, "__wrapped__", f) for f in functions])
    if attempt(world, first, may_raise=True).raised is None:
        raise NeedsPython(
            f"values of the first iteration cause an error in a later one, and the number of iterations depends on data ({failed})",
            "Let each iteration leave numbers and arrays of the same dtypes and shapes.",
        ) from failed
    return raising.iterations_raise(failed, ran)
