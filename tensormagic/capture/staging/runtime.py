"""The functions that staged code calls: each chooses between Python, where the needed values are known, and a region of the graph."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from functools import reduce, wraps
from types import FunctionType
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse, refuse_python, values_are_there
from tensormagic.capture.hooks import hooks, run_time
from tensormagic.capture.inputs.stand_ins import identity_of, original_of
from tensormagic.capture.numbers.alternatives import OneOf
from tensormagic.capture.numbers.classes import is_number, noted
from tensormagic.capture.numbers.optional import Perhaps, is_none, now
from tensormagic.capture.python import usercode
from tensormagic.capture.staging.branches.choices import both, chosen, either, is_settled, taken_for
from tensormagic.capture.staging.branches.conditional import staged_branch
from tensormagic.capture.staging.branches.merged_values import Partial
from tensormagic.capture.staging.branches.patterns import beside, between, is_mapping, is_of_class, is_sequence, member
from tensormagic.capture.staging.calls import special_methods
from tensormagic.capture.staging.calls.calls_back import CallbackScope
from tensormagic.capture.staging.calls.staged import called, indexed
from tensormagic.capture.staging.loops.comprehensions import comprehended, generated
from tensormagic.capture.staging.loops.growing_lists import growing, retyped
from tensormagic.capture.staging.loops.grown_lists import in_a_list
from tensormagic.capture.staging.loops.repeating import each
from tensormagic.capture.staging.loops.whiles import repeat
from tensormagic.capture.staging.messages import raising
from tensormagic.capture.staging.messages import value_texts as told
from tensormagic.capture.staging.numbers import compared_parts
from tensormagic.capture.staging.numbers.array_attributes import of_array
from tensormagic.capture.staging.numbers.kinds import class_of, interface_of
from tensormagic.capture.staging.numbers.number_formulas import formula, has_form
from tensormagic.capture.staging.numbers.truth import computed, decided, truth, unstaged
from tensormagic.capture.staging.trials.needs_python import Grows
from tensormagic.capture.staging.trials.trial import fail_trial, trial
from tensormagic.capture.stores.alias import may_share
from tensormagic.capture.stores.outside import callers_container, one_of_callers, whole_array
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.type import Type
from tensormagic.ops.form import to_form
from tensormagic.ops.scalars import scalar

Thunk = Callable[[], Any]

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "is": lambda a, b: identical(a, b),
    "is not": lambda a, b: negated(identical(a, b)),
    "in": lambda a, b: contained(a, b),
    "not in": lambda a, b: negated(contained(a, b)),
}


# branches -------------------------------------------------------------------------------------------------------------


def branch(test: Any, then: Thunk, otherwise: Thunk, told: tuple[Sequence[str], Sequence[str], Sequence[str]]) -> None:
    """Run an ``if`` statement."""
    if test is True or test is False:  # most often, and many times where Python runs a loop
        (then if test else otherwise)()
        return
    condition = decided(test)
    if not isinstance(condition, bool):
        try:
            retyped(lambda predicate=condition: staged_branch(predicate, (then, otherwise), *told[:2]))
        except Exception as error:  # noqa: BLE001 (raised below, where nothing else is to be done)
            failed = error
        else:
            raising.settle()
            return
        if values_are_there():
            unstaged(failed)
            condition = computed(condition)
        elif isinstance(failed, Grows):
            growing((then, otherwise), told[2], lambda: staged_branch(condition, (then, otherwise), *told[:2]))
            raising.settle()
            return
        elif is_settled(failed):  # a traceback is made for each path through a `try`
            condition = taken_for(condition)
        else:
            raise failed
    (then if condition else otherwise)()


def giving_arrays() -> Callable[[Any], Any]:
    """Return a decorator for ``__array__`` of a class, whose result for NumPy is never lazy.

    Captured code calls the method that is wrapped.
    """

    def wrapped(method: Any) -> Any:
        @wraps(method)
        def call(*args: Any, **options: Any) -> Any:
            found = method(*args, **options)
            return np.asarray(found) if isinstance(found, Tensor) else found

        return call

    return wrapped


def negated(value: Any) -> Any:
    """Return what ``not`` gives."""
    condition = truth(value)
    return not condition if isinstance(condition, bool) else wrap(to_form(scalar.logical_not(condition), "python"))


def compare(name: str, left: Any, right: Any) -> Any:
    """Return a comparison of values that may be lists or tuples."""
    return compared_parts.compared(name, _COMPARISONS[name], left, right)


def compared(names: Sequence[str], first: Any, *rest: Thunk) -> Any:
    """Return the result of a chain of comparisons."""

    def step(k: int, left: Any) -> Any:
        right = rest[k]()
        found = compare(names[k], left, right)
        return found if k == len(names) - 1 else both(found, lambda: step(k + 1, right))

    return step(0, first)


def identical(first: Any, second: Any) -> Any:
    """Return what ``is`` gives; raise where the identity of the values is not known."""
    if first is None or second is None:
        value = second if first is None else first
        if isinstance(value, OneOf):
            return value.mapped(lambda v: identical(v, None))
        return is_none(value) if isinstance(value, Perhaps) else value is None
    if isinstance(first, OneOf) or isinstance(second, OneOf):
        refuse("`is` with a value that is one of several, depending on the data,", "Compare with ==.")
    first, second = now(first), now(second)
    if first is not second and (known := one_of_callers(first, second)) is not None:
        return known
    first, second = callers_container(first), callers_container(second)
    for value, other in ((first, second), (second, first)):
        if isinstance(value, Tensor) and value.node.type == _OBJECTS.get(type(other)):
            truth_value = wrap(to_form(value.node, "python"))
            return truth_value if other else negated(truth_value)
    _refuse_of_several(first, second)
    if isinstance(first, Tensor) and isinstance(second, Tensor) and first.node.type == second.node.type in _TRUTHS:
        return wrap(to_form(scalar.equal(first.node, second.node), "python"))  # Python has one object for each
    _refuse_numbers(first, second)
    return _one_object(identity_of(original_of(first)), identity_of(original_of(second)))


def _refuse_numbers(first: Any, second: Any) -> None:
    """Raise for ``is`` between two numbers: Python may make new objects or pass on others, which their values do not show."""
    kinds = [_number_type(v) for v in (first, second)]
    if first is second or None in kinds or not any(isinstance(v, Tensor) for v in (first, second)):
        return
    sure = [not isinstance(v, Tensor) or noted(v.node) is None for v in (first, second)]
    if kinds[0] == kinds[1] or not all(sure):
        refuse_python("`is` between two numbers", "Compare with ==.")


def _number_type(value: Any) -> Type | None:
    """Return the class of a number, as a type; None for anything else."""
    if isinstance(value, Tensor):
        return value.type if is_number(value.type) else None
    return node_of(value).type if isinstance(value, int | float | complex | np.number) else None


def _refuse_of_several(*values: Any) -> None:
    """Raise for ``is`` with a container that is one of several, depending on data."""
    capture = context.current()
    stand_ins = () if capture is None else (m for one in capture.heap.chosen for m in one.made)
    if values[0] is not values[1] and any(m is v for m in stand_ins for v in values):
        refuse_python(
            "`is` with a container that is one of several, depending on the data,",
            "Compare the conditions that this depends on.",
        )


def _one_object(first: Any, second: Any) -> bool:
    if first is not second and isinstance(first, Tensor) and isinstance(second, Tensor):
        buffers = first.place.buffer, second.place.buffer
        if all(in_a_list(b) for b in buffers) or (any(b.alias.of for b in buffers) and may_share(*buffers)):
            refuse(
                "`is` between arrays that may be one, depending on the data,",
                "Compare the conditions that this depends on.",
            )
    if first is not second and _is_given(first, second) and _is_given(second, first):
        refuse("`is` between two arrays that are arguments of a function", "Compare them outside, and pass the answer.")
    return first is second or whole_array(first) is whole_array(second)


def contained(value: Any, container: Any) -> Any:
    """Return what ``in`` gives: a captured number is compared with a few known ones in one node."""
    if isinstance(container, OneOf):
        return container.mapped(lambda v: contained(value, v))
    if isinstance(value, OneOf):
        return value.mapped(lambda v: contained(v, container))
    if (own := special_methods.method_of(container, "__contains__")) is not None:
        found = truth(own(value))
        return found if isinstance(found, bool) else wrap(found)
    if (found := compared_parts.contained(value, container)) is not None:
        return found
    if not (isinstance(value, Tensor) and not value.ndim and type(container) in _FEW and 0 < len(container) <= _MOST):
        return value in container
    hashed = type(container) in _HASHED
    kinds = {int, bool} if hashed else {int, float, bool}
    known = all(type(v) in kinds and v == v for v in container)  # noqa: PLR0124 (nan, which is what it is)
    if not known or value.dtype.kind not in ("biu" if hashed else "biuf"):
        return value in container
    return wrap(to_form(reduce(scalar.logical_or, [node_of(value == v) for v in container]), "python"))


_HASHED = {set, frozenset}
_FEW, _MOST = {tuple, list, *_HASHED}, 16


def _is_given(value: Any, other: Any) -> bool:
    """Return whether a function is given an array, which may be ``other`` at another call."""
    capture = context.current()
    if capture is None or not capture.abstract:
        return False
    given = (
        isinstance(value, Tensor) and value.place.buffer.argument and value.place.parent is None
    )  # views are new objects
    return given or (type(value) is np.ndarray and isinstance(other, Tensor))


_TRUTH = Type(np.dtype(bool), (), "python")
_OBJECTS = {bool: _TRUTH, np.bool_: Type(np.dtype(bool), (), "scalar")}
"""Of which there is one object for each truth value."""
_TRUTHS = {*_OBJECTS.values()}


def asserted(test: Any, told: Thunk | None) -> None:
    """Run an ``assert`` statement."""
    condition = truth(test)
    known = condition if isinstance(condition, bool) else None
    if known is None and values_are_there():
        known = raising.known(condition)  # type: ignore[arg-type]
    if known is None and raising.settles():
        known = raising.assumed_to_hold(condition)  # type: ignore[arg-type]
    if known is None and not raising.can_defer():
        raise fail_trial("`assert` on data in a `try`", "Check it outside the `try`, or write `if` and `else`.")
    if known:
        return
    if known is None and told is not None:
        staged_branch(condition, (_holds, lambda: _fails(told)), (), (), (told,))  # type: ignore[arg-type]
        return
    error = AssertionError(*(() if told is None else (told(),)))
    if known is False:
        raise raising.raising(error)
    raising.note(raising.wait(condition, error))  # type: ignore[arg-type]


def _holds() -> None:
    """Do nothing: the condition of an ``assert`` holds."""


def _fails(told: Thunk) -> None:
    """Make the message of a failed ``assert``, and raise."""
    raise raising.raising(AssertionError(told()))


def attempted() -> None:
    """Begin a ``try`` statement; refuse one in a region, which cannot tell which error is raised, and where."""
    if trial() is not None:
        raise fail_trial("`try` around code that depends on data", "Write it outside the loop or the branch.")


def itself(function: Any, line: int) -> bool:
    """Return whether the name of a function means the function that is running, which begins at ``line``."""
    while not isinstance(function, FunctionType) and hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    frame = usercode.user_frame()
    if not isinstance(function, FunctionType) or frame is None or context.current() is None:
        return False
    code = function.__code__
    return (code.co_filename, code.co_firstlineno) == (frame.f_code.co_filename, line)


def there(value: Any) -> Any:
    """Return the value of a name that stands alone in a ``try``: if data decide whether it is bound, that is checked here."""
    if isinstance(value, Partial):
        context.tried(value.node)
    return value


run_time.module = sys.modules[__name__]
hooks.calls_back = CallbackScope
formatted, text = told.formatted, told.text
attempting, managed, raised = raising.Attempt, raising.managed, raising.raising

__all__ = [
    "asserted",
    "attempted",
    "attempting",
    "beside",
    "between",
    "both",
    "branch",
    "called",
    "chosen",
    "class_of",
    "compare",
    "compared",
    "comprehended",
    "contained",
    "each",
    "either",
    "formatted",
    "formula",
    "generated",
    "has_form",
    "indexed",
    "interface_of",
    "is_mapping",
    "is_of_class",
    "is_sequence",
    "managed",
    "member",
    "negated",
    "of_array",
    "raised",
    "repeat",
    "text",
    "there",
]
