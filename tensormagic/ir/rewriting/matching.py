"""Matches patterns in NumPy notation against nodes, and builds replacements; both are compiled once. Knows ops by their facts alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from tensormagic.ir.errors import RuleError
from tensormagic.ir.facts import above_zero, is_finite, is_regular, not_negative, unsigned
from tensormagic.ir.node import Bits, Node, make
from tensormagic.ir.node import is_constant as holds_bits
from tensormagic.ir.operation import Operation
from tensormagic.ir.rewriting.roundings import below as plain
from tensormagic.ir.type import Type

CAPTURED = "Write both sides with NumPy's functions, SciPy's special functions, and your own functions of these."


class _Symbol(Operation):
    """The op of nodes that occur only in patterns."""

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
        return args[0].type

    def evaluate(self, node: Node, values: Any, size: Callable[[Any], int]) -> Any:
        del node, values, size
        raise RuleError(
            "a function that is not captured is called with a variable of a rule, which has no value", CAPTURED
        )


WILD = _Symbol(name="wild")


def bare(node: Node) -> Node:
    """Return the node below changes of shape and form, and below checks; ``node`` itself if it is none of these."""
    below = node.below
    return node if below is None else below


def is_constant(node: Node) -> bool:
    """Return whether ``node`` is a single known number, perhaps broadcast."""
    node = plain(node)
    return holds_bits(node) and not node.type.shape


ONLY: Mapping[str, Callable[[Node], bool]] = {
    "Constant": is_constant,
    "Positive": not_negative,
    "Unsigned": unsigned,
    "Above": above_zero,
    "Finite": is_finite,
    "Regular": is_regular,
}
"""What the annotations of variables require of the nodes they match."""

# finding --------------------------------------------------------------------------------------------------------------

Parts = tuple[tuple[Node, Node], ...]
Match = tuple[dict[str, Node], Parts]
_Found = list[Any]  # the node at each position of a pattern, in preorder
_Step = Callable[[_Found], bool]  # whether a position and all later ones match


def find(pattern: Node, node: Node) -> Match | None:
    """Return what each variable of ``pattern`` is bound to in ``node``, and the node of each of its ops, or None if it does not match.

    Broadcasts, changes of form and checks are skipped, commutative ops match in either order, constants match by value.
    None if the pattern does not match.
    """
    return matcher(pattern)(node)


@lru_cache(maxsize=4096)
def matcher(pattern: Node) -> Callable[[Node], Match | None]:
    """Return a function for a pattern that does what :func:`find` does: one step per position, backtracking over the order of operands."""
    places: list[tuple[Node, int, tuple[int, ...]]] = []
    _lay_out(pattern, places)
    first: dict[str, int] = {}
    for part, k, _ in places:
        if part.op is WILD:
            first.setdefault(part["name"], k)
    step: _Step = _nothing_left
    for part, k, below in reversed(places):
        if below:
            step = (_either_way if part.op.commutative else _in_order)(part.op, k, below, step)
        elif part.op is not WILD:
            step = _number(part, k, step)
        elif first[part["name"]] == k:
            step = _variable(part, k, step)
        else:
            step = _again(first[part["name"]], k, step)
    ops = [(part, k) for part, k, below in places if below]
    names, count, root = list(first.items()), len(places), pattern.op

    def match(node: Node) -> Match | None:
        if node.op is not root:
            return None
        found: _Found = [None] * count
        found[0] = node
        if not step(found):
            return None
        return {name: found[k] for name, k in names}, tuple([(part, found[k]) for part, k in ops])

    return match


def _lay_out(pattern: Node, places: list[tuple[Node, int, tuple[int, ...]]]) -> int:
    """Append the positions of a pattern to ``places``, an op before its operands, and return its own number."""
    k = len(places)
    places.append((pattern, k, ()))
    places[k] = pattern, k, tuple(_lay_out(arg, places) for arg in pattern.args)
    return k


def _nothing_left(found: _Found) -> bool:
    del found
    return True


def _in_order(op: Operation, k: int, below: tuple[int, ...], then: _Step) -> _Step:
    first, rest = below[0], tuple(enumerate(below))[1:]

    def step(found: _Found) -> bool:
        node = found[k]
        if node.op is not op:
            node = node.below
            if node is None or node.op is not op:
                return False
            found[k] = node
        args = node.args
        found[first] = args[0]
        for j, place in rest:
            found[place] = args[j]
        return then(found)

    return step


def _either_way(op: Operation, k: int, below: tuple[int, ...], then: _Step) -> _Step:
    left, right = below

    def step(found: _Found) -> bool:
        node = found[k]
        if node.op is not op:
            node = node.below
            if node is None or node.op is not op:
                return False
            found[k] = node
        a, b = node.args
        found[left], found[right] = a, b
        if then(found):
            return True
        if a is b:
            return False
        found[left], found[right] = b, a
        return then(found)

    return step


def _variable(wild: Node, k: int, then: _Step) -> _Step:
    only, is_truth = ONLY.get(wild["only"]), wild.type.dtype.kind == "b"
    if only is None and not is_truth:
        return then

    def step(found: _Found) -> bool:
        node = found[k]
        if is_truth and node.type.dtype.kind != "b":
            return False
        return (only is None or only(node)) and then(found)

    return step


def _again(first: int, k: int, then: _Step) -> _Step:
    def step(found: _Found) -> bool:
        return bare(found[first]) is bare(found[k]) and then(found)

    return step


def _number(constant: Node, k: int, then: _Step) -> _Step:
    op, bits = constant.op, constant["bits"] if holds_bits(constant) else None

    def step(found: _Found) -> bool:
        node = plain(found[k])
        return node.op is op and not node.type.shape and _same_bits(bits, node["bits"]) and then(found)

    return step


@lru_cache(maxsize=4096)
def _same_bits(pattern: Bits, number: Bits) -> bool:
    wanted, given = pattern.array(), number.array()
    return bool(wanted == given) and wanted.astype(given.dtype).tobytes() == given.tobytes()


# building -------------------------------------------------------------------------------------------------------------


def build(template: Node, bound: Mapping[str, Node]) -> Node:
    """Return ``template`` with its variables replaced by their bindings; numbers become weak, so that dtypes stay."""
    return builder(template)(bound)


def builder(template: Node) -> Callable[[Mapping[str, Node]], Node]:
    """Return a function for a template that does what :func:`build` does."""
    if template.op is WILD:
        name = template["name"]
        return lambda bound: bound[name]
    if holds_bits(template):
        number = make(template.op, type=Type(template.type.dtype, (), "python"), **template.params)
        return lambda bound: number
    op, args = template.op, [builder(a) for a in template.args]
    if not callable(op):
        params = template.params
        return lambda bound: make(op, [a(bound) for a in args], **params)
    if len(args) == 1:
        (only,) = args
        return lambda bound: op(only(bound))
    if len(args) == 2:
        left, right = args
        return lambda bound: op(left(bound), right(bound))
    return lambda bound: op(*[a(bound) for a in args])


def looked_through(node: Node) -> Iterator[Node]:
    """Yield the operands of ``node``, and the nodes below their broadcasts, changes of form and checks."""
    for arg in node.args:
        yield arg
        while arg.op.hands_on:
            yield from arg.args
            arg = arg.args[0]  # noqa: PLW2901 (going down)
