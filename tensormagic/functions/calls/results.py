"""The results of a function: values that a graph computes, values that stay as they are, and objects returned as such."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensormagic.capture.errors.refusal import refuse_python
from tensormagic.capture.inputs.door import is_itself, package_of
from tensormagic.capture.numbers.deferred import Deferred
from tensormagic.capture.numbers.optional import PerhapsNumber
from tensormagic.capture.staging.loops.comprehensions import Generated
from tensormagic.capture.staging.loops.ranges import Items, LazyIterator
from tensormagic.capture.stores.flat import Flat
from tensormagic.capture.tree import Rest, Special, computed, holds_deferred, items_of, with_items
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.errors import CaptureError, DTypeError
from tensormagic.ir.node import Node
from tensormagic.ops.effects.raising import after, check
from tensormagic.ops.leaf import constant


@dataclass(frozen=True, eq=False)
class Results:
    """The results of a body.

    Attributes
    ----------
    leaves
        The arrays and numbers, in order.
    nodes
        Their nodes.
    build
        Rebuilds the result with other leaves.
    objects
        Returned objects that were made in this call: the body runs at each call.
    """

    leaves: list[Any]
    nodes: list[Node]
    build: Callable[[Iterator[Any]], Any]
    objects: list[Any]


@dataclass(frozen=True, slots=True, eq=False)
class _Object:
    """An object whose contents are not examined."""

    value: Any


def results_of(result: Any, label: str, there: Mapping[int, Any], special: Special) -> Results:
    """Take a function's return value apart.

    Parameters
    ----------
    result
        The return value.
    label
        The function, for messages.
    there
        The objects that existed before the call, by identity.
    special
        Takes containers apart.

    Raises
    ------
    CaptureError
        For an iterator: its items would be computed after the call, without a capture.
    """
    found, build = computed(result, special)
    nodes = [_node(v, label) for v in found]
    if None not in nodes:
        return Results(found, nodes, build, objects=[])  # type: ignore[arg-type]  (there is none)
    objects = [None if n is not None else _Object(v) for v, n in zip(found, nodes, strict=True)]

    def completed(rest: Iterator[Any]) -> Any:
        every = [next(rest) if one is None else one.value for one in objects]
        return build(Rest(every, getattr(rest, "run", None)))

    leaves = [v for v, n in zip(found, nodes, strict=True) if n is not None]
    made = [one.value for one in objects if one is not None and id(one.value) not in there]
    return Results(leaves, [n for n in nodes if n is not None], completed, objects=made)


def refuse_tables(values: Sequence[Any], label: str) -> None:
    """Raise for tables among the results, or among values left behind by a call: these are pandas objects, not arrays."""
    found: Any = next((v for v in values if isinstance(v, Tensor) and v.has_labels), None)
    if found is not None:
        kind = "Series" if found.columns is None else "DataFrame"
        refuse_python(f"a {kind} that {label} returns or keeps", "Return its values: s.to_numpy().")


def numbers_in(result: Any, label: str) -> Any:
    """Return the numeric value of a result; one that may be None is checked when the graph runs.

    Raises
    ------
    CaptureError
        For a text with numbers in it, and for a data-dependent choice of other values.
    """
    if isinstance(result, PerhapsNumber):
        message = f"{result.said} is None, for these data, where {label} has to give a number"
        there = check(constant(0), result.flag.node, TypeError, [("value", message)])
        return wrap(after(there, result.inner.node))
    if isinstance(result, Deferred):
        raise CaptureError(
            f"{label} returns a value that is None, a text or another one depending on data, where numbers are needed",
            "Return a number in its place, or leave it out.",
        )
    if not holds_deferred(result):
        return result
    return with_items(result, [numbers_in(v, label) for v in items_of(result)])


def numbers_alone(results: Sequence[Any], label: str) -> list[Node]:
    """Return the nodes of results that must be arrays and numbers.

    Raises
    ------
    CaptureError
        For any other object, which belongs to one call.
    """
    nodes = [_node(v, label) for v in results]
    for value, node in zip(results, nodes, strict=True):
        if node is None:
            raise CaptureError(
                f"{label} returns an object of class {type(value).__name__}, where arrays and numbers are needed",
                "Return its arrays, in a tuple or a dictionary; only functions made by tm.tensor can return objects.",
            )
    return [n for n in nodes if n is not None]


def _node(value: Any, label: str) -> Node | None:
    """Return the node of an array or number, or None for any other object, such as a list with attributes of its own."""
    if isinstance(value, list | tuple | dict) or is_itself(value):
        return None
    if isinstance(value, Flat):
        raise CaptureError(
            f"{label} returns x.flat, an iterator over an array", "Return x.ravel(), or np.array(x.flat)."
        )
    try:
        return node_of(value)
    except DTypeError:
        if isinstance(value, Iterator | Items | LazyIterator | Generated):
            kind = "an iterator" if isinstance(value, Items | LazyIterator) else "a generator"
            name = f"an iterator of class {type(value).__name__}" if isinstance(value, Iterator) else kind
            raise CaptureError(
                f"{label} returns {name}, which would run after the call, outside of captured code",
                "Return a list or an array instead.",
            ) from None
        if package_of(type(value)) == "tensormagic":
            raise CaptureError(
                f"{label} returns an object of class {value.__class__.__name__} made from captured values",
                "Make the object outside, and pass it as an argument.",
            ) from None
        return None
