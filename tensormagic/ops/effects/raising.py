"""``raise`` and ``assert`` on data: checks form a chain of token values, each of which is available once its condition has been checked."""

from __future__ import annotations

import ast
import builtins
import importlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, make, topological
from tensormagic.ir.site import Site
from tensormagic.ir.type import Size, Type
from tensormagic.ops.effects.checks import REQUIRE, SETTLED
from tensormagic.ops.move import lead
from tensormagic.ops.op import Tangent, Value, as_form
from tensormagic.ops.opaque import Opaque, items
from tensormagic.ops.rows import common_axis

_classes: dict[str, type[BaseException]] = {}  # the user's classes by their names in params
_CONVERSIONS = {"": lambda v: v, "r": repr, "s": str, "a": ascii}


def name_of(kind: type[BaseException]) -> str:
    """Return the text that names a class of exceptions in params; distinct for classes of the same name."""
    plain = f"{kind.__module__}:{kind.__qualname__}"
    name, serial = plain, 1
    while _classes.setdefault(name, kind) is not kind:
        serial += 1
        name = f"{plain}:{serial}"
    return name


@lru_cache(maxsize=256)
def _imported(module: str, name: str) -> Any:
    found: Any = builtins if module == "builtins" else importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _class(name: str) -> type[BaseException]:
    if name in _classes:
        return _classes[name]
    module, qualified = name.split(":")[:2]
    found: Any = _imported(module, qualified)
    if not (isinstance(found, type) and issubclass(found, BaseException)):
        raise TypeError(f"{name} is not an exception class")
    return found


def is_everywhere(name: str) -> bool:
    """Return whether an exception class, by its name in params, is Python's, NumPy's or ours, so that every process has it."""
    module = name.partition(":")[0]
    return module == "builtins" or module.partition(".")[0] in {"numpy", "tensormagic"}


def put(value: Any, conversion: str, form: str) -> str:
    """Return a value formatted for a text, by a conversion and a format spec; ``%`` and ``%%`` format as the ``%`` operator does."""
    if conversion == "%%":
        return form % value
    return form % (value,) if conversion == "%" else format(_CONVERSIONS[conversion](value), form)


def argument(part: Any, details: Sequence[Any]) -> Any:
    """Build an argument of an exception from its description and the operands."""
    kind, *rest = part
    if kind == "value":
        return rest[0]
    if kind == "operand":
        return details[rest[0]]
    if kind == "list":  # a list of numbers, or of arrays, in a given form
        return details[rest[0]].tolist() if rest[1] == "python" else [*details[rest[0]]]
    if kind == "classes":  # a list of numbers, whose classes another list selects
        own = [rest[2][int(code)] for code in details[rest[1]]]
        return [as_form(np.asarray(v).astype(d), f) for v, (d, f) in zip(details[rest[0]], own, strict=True)]
    if kind == "one of":
        return argument(rest[1][int(details[rest[0]])], details)
    if kind == "method":  # a method of a text
        return getattr(argument(rest[0], details), rest[1])(*rest[2])
    if kind == "perhaps":
        return argument(rest[1], details) if details[rest[0]] else None
    return "".join(
        p[0] if len(p) == 1 else put(argument(p[0], details), p[1], p[2])
        for p in rest[0]  # text, or an operand
    )


def _first(value: Value, holds: Value) -> Value:
    """Return of a batched value the part that belongs to the first failing element; other values stay."""
    held, found = np.asarray(holds), np.asarray(value)
    if not held.ndim or found.ndim < held.ndim:
        return value
    place = np.unravel_index(int(np.argmin(held)), held.shape)
    own = found[place]
    return own if isinstance(value, np.ndarray) and own.ndim else own.item() if isinstance(own, np.generic) else own


def _check(token: Value, holds: Value, *details: Value, error: str, told: str, place: tuple[Any, ...]) -> Value:
    if not np.all(holds):
        raise made(error, told, place, [_first(v, holds) for v in details])
    return token


def made(error: str, told: str, place: tuple[Any, ...], details: Sequence[Value]) -> BaseException:
    """Return the exception of a failed check, with the place in the user's code if it is known."""
    raised = _class(error)(*(argument(part, details) for part in ast.literal_eval(told)))
    if place:
        raised.tensor_sites = (Site(*place),)  # type: ignore[attr-defined]
    return raised


def _type(args: tuple[Node, ...], _params: Mapping[str, Any]) -> Type:
    return args[0].type


def _stacked(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
    return make(CHECK, (lead(args[0], batched[0], size), *args[1:]), **node.params)


CHECK = Opaque(
    name="check",
    raises=True,
    types=_type,
    numpy=_check,
    tangent=lambda _node, tangents: tangents[0],
    stacked=_stacked,
    holds="{1}",
    doc="The first operand, if the second is true; otherwise an exception when the graph runs, with the others as its arguments.",
    names={"error": is_everywhere},
)


def check(
    token: Node, holds: Node, error: type[BaseException], told: Any, details: Sequence[Node] = (), place: Any = ()
) -> Node:
    """Return ``token``, after checking that ``holds`` is true.

    Parameters
    ----------
    token
        Stands for the checks before this one: a number without a meaning.
    holds
        The condition.
    error
        The class of the exception that is raised otherwise.
    told
        Its arguments, each one of ``("value", constant)``; ``("operand", k)``; ``("perhaps", k, argument)``, which is None if
        operand k is false; ``("method", argument, name, args)``, the result of a text's method; ``("classes", k, l, types)``,
        the numbers of operand k in a list, of the types that operand l selects; ``("one of", k, arguments)``, of which operand
        k selects one; or ``("text", pieces)`` with pieces ``(text,)`` and ``(argument, conversion, format)``.
    details
        The operands that ``told`` refers to by number.
    place
        The fields of the :class:`Site` that the exception belongs to.
    """
    return make(CHECK, (token, holds, *details), error=name_of(error), told=repr(told), place=tuple(place))


def _after_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    return None if tangents[1] is None else after(node.args[0], tangents[1])


def _after_back(node: Node, cotangent: Node, _linear: Sequence[bool]) -> Sequence[Tangent]:
    return None, after(node.args[0], cotangent)


def _after_stacked(_node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
    return make(AFTER, (args[0], lead(args[1], batched[1], size)))


AFTER = Opaque(
    name="after",
    split_rows=lambda _node, axes, _rows: common_axis(axes[1:]),
    types=lambda args, _params: args[1].type,
    numpy=lambda _token, value: value,
    tangent=_after_tangent,
    back=_after_back,
    stacked=_after_stacked,
    doc="The second operand, once the first is there: no value leaves a function before its checks.",
)


def after(token: Node, value: Node) -> Node:
    """Return ``value``, which waits for the checks that ``token`` stands for."""
    return make(AFTER, (token, value))


def behind_checks(found: Sequence[Node], values: Sequence[Node]) -> list[Node]:
    """Make ``found``, such as derivatives of ``values``, wait for the checks that ``values`` wait for.

    A derivative that does not read its value, as of a constant or a logarithm, would otherwise skip them.
    """
    inside = topological(values)
    tokens = dict.fromkeys(n.args[0] for n in inside if n.op is AFTER)
    checks = [n for n in inside if n.op in _CHECKS and not n.type.shape]  # derivatives read checked arrays themselves
    checks += [one for n in inside if any(map(_checks, _graphs(n))) for one in items(n)]
    if not tokens and not checks:
        return list(found)
    behind: list[Node] = []
    for node in found:
        read = set(topological([node]))
        for token in (
            *(t for t in tokens if t not in read),
            *reversed(checks),
        ):  # the first check is to be computed first
            node = after(token, node)  # noqa: PLW2901 (behind one more)
        behind.append(node)
    return behind


def _checks(graph: Graph) -> bool:
    """Return whether a graph, or a graph inside it, checks something."""
    return any(n.op in _CHECKS or any(map(_checks, _graphs(n))) for n in graph.nodes)


def _graphs(node: Node) -> Iterator[Graph]:
    return (graph for _, graph in node.param_items if isinstance(graph, Graph))


_CHECKS = {REQUIRE, SETTLED}
