"""Two values of different types, one of which a region returns: both become optional values, or alternatives."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from types import FunctionType, MethodType
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse_python
from tensormagic.capture.numbers.alternatives import LazyText, OneOf, is_fixed, same
from tensormagic.capture.numbers.optional import Perhaps, PerhapsNumber, PerhapsOther
from tensormagic.capture.staging.branches.merged_values import apart, is_number
from tensormagic.capture.staging.branches.slots import UNBOUND
from tensormagic.capture.staging.regions import zeros_of
from tensormagic.capture.stores.place import Buffer, Place
from tensormagic.capture.tree import flatten, holds_deferred, is_container, items_of, with_items
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import constant
from tensormagic.ops.scalars import scalar


def aligned(first: Any, second: Any, said: str = "") -> tuple[Any, Any]:
    """Return two values in one form, if one of them, or a part, is or may be None; else unchanged.

    In cells, both stay unchanged: values can be computed there, or Python takes over.
    """
    if context.in_cell() or first is UNBOUND or second is UNBOUND:
        return first, second
    return _aligned(first, second, said)


def _aligned(first: Any, second: Any, said: str) -> tuple[Any, Any]:
    if isinstance(first, Perhaps) or isinstance(second, Perhaps) or (first is None) is not (second is None):
        inner = [v.inner if isinstance(v, Perhaps) else v for v in (first, second)]
        if not all(v is None or _may_be_none(v) for v in inner):
            return _as_one_of(first, second, said)
        if all(v is not None for v in inner):
            inner = list(_aligned(inner[0], inner[1], said))
        return _lifted(first, inner[0], inner[1], said), _lifted(second, inner[1], inner[0], said)
    if not is_container(first) or not is_container(second) or _kind_of(first) != _kind_of(second):
        return _as_one_of(first, second, said)
    pairs = [_aligned(a, b, said) for a, b in zip(items_of(first), items_of(second), strict=True)]
    if all(p is a and q is b for (p, q), a, b in zip(pairs, items_of(first), items_of(second), strict=True)):
        return first, second
    return with_items(first, [p for p, _ in pairs]), with_items(second, [q for _, q in pairs])


def _as_one_of(first: Any, second: Any, said: str) -> tuple[Any, Any]:
    """Return two values of different forms as alternatives of one form; unchanged if that cannot represent them."""
    options = [list(v.options) if isinstance(v, OneOf) else [v] for v in (first, second)]
    if not all(map(_may_be_one, [*options[0], *options[1]])) or _alike(first, second):
        return first, second
    forms: list[Any] = []
    for option in (*options[0], *options[1]):
        if not any(_alike(option, form) for form in forms):
            forms.append(option)
    return _among(first, options[0], forms, said), _among(second, options[1], forms, said)


def _among(value: Any, options: Sequence[Any], forms: Sequence[Any], said: str) -> OneOf:
    """Return a value as one of several forms, given the ``options`` it may be."""
    own = [next((k for k, v in enumerate(options) if _alike(v, form)), None) for form in forms]
    places = [own.index(k) for k in range(len(options))]
    code = constant(places[0])
    if isinstance(value, OneOf):
        code = value.code.node
        if places != list(range(len(places))):
            code = reduce(
                lambda rest, k: scalar.where(scalar.equal(value.code.node, constant(k)), constant(places[k]), rest),
                range(len(places)),
                constant(places[0]),
            )
    held = [
        form if is_fixed(form) else _zeros(form) if k is None else options[k]
        for k, form in zip(own, forms, strict=True)
    ]
    _note()
    within = Tensor(Place(Buffer(to_form(code, "python"))))  # the code around does not see it
    return OneOf(within, held, (value.said if isinstance(value, OneOf) else "") or said)


def _may_be_one(value: Any) -> bool:
    """Return whether a value may be an alternative: it is a number, fixed, a text with numbers in it, or a container of such."""
    if is_fixed(value) or is_number(value) or isinstance(value, LazyText):
        return True
    if not isinstance(value, Perhaps) and not is_container(value):
        return False
    return all(is_fixed(v) or is_number(v) for v in flatten(value)[0])


def _alike(first: Any, second: Any) -> bool:
    """Return whether two values are of one form."""
    if is_fixed(first) or is_fixed(second):
        return same(first, second)
    return apart(first).form == apart(second).form


def _lifted(value: Any, inner: Any, like: Any, said: str) -> Any:
    """Return a value that may be None: ``inner`` if it is not None, else zeros in the form of ``like``."""
    if isinstance(value, Perhaps):
        return value if inner is value.inner else _made(value.flag, inner, value.said or said)
    return _made(wrap(constant(value is not None)), _zeros(like) if inner is None else inner, said)


def _made(flag: Tensor, inner: Any, said: str) -> Perhaps:
    _note()
    if is_number(inner):
        return PerhapsNumber(flag, inner if isinstance(inner, Tensor) else wrap(node_of(inner)), said)
    return PerhapsOther(flag, inner, said)


def _may_be_none(value: Any) -> bool:
    """Return whether a region can represent that a value of this kind is None."""
    if isinstance(value, Perhaps):
        return True
    leaves, _ = flatten(value)
    if not any(map(is_number, leaves)) or not (is_number(value) or is_container(value)):
        return False
    return all(is_number(v) or is_fixed(v) for v in leaves)


def _zeros(like: Any) -> Any:
    leaves, build = flatten(like)
    return build(iter([wrap(zeros_of(node_of(v).type)) if is_number(v) else v for v in leaves]))


def _kind_of(container: Any) -> Any:
    """Return the class of a container, and its keys or number of items."""
    keys = tuple(container) if isinstance(container, dict) else len(items_of(container))
    return type(container), keys


def _note() -> None:
    """Note that there are values about which Python's own `is None` and `==` would be wrong."""
    capture = context.current()
    if capture is not None:
        capture.refusals.deferred = True


def unstaged(function: Any) -> Any:
    """Return a function that is not staged, made to refuse data-dependent optional values, about which Python would be wrong."""
    capture = context.current()
    if capture is None or not capture.refusals.deferred or not isinstance(function, FunctionType | MethodType):
        return function
    if str(function.__module__).partition(".")[0] == "tensormagic":
        return function

    def refusing(*args: Any, **options: Any) -> Any:
        if holds_deferred((*args, *options.values())):
            refuse_python(
                f"{function.__name__} gets a value that is None, or another one, depending on data, and it",
                "Ask `is None`, or decide by the numbers that it depends on, before the call.",
            )
        return function(*args, **options)

    return refusing
