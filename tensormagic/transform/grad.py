"""Derivatives as graphs: forward mode, and reverse mode as the transpose of forward mode."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tensormagic.ir import site
from tensormagic.ir.errors import DifferentiationError
from tensormagic.ir.node import Node, make, topological
from tensormagic.ir.stored import is_stored
from tensormagic.ops.draws.random import DRAW, check_discrete
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import constant
from tensormagic.ops.move import broadcast
from tensormagic.ops.op import Leaf, Tangent
from tensormagic.ops.opaque import ITEM, item, items
from tensormagic.ops.pointwise import astype
from tensormagic.ops.regions.control import Derivatives, Region, install_derivatives
from tensormagic.ops.update import accumulate, zeros_like
from tensormagic.transform.following import followed

_INSTEAD = {"c": "Take its real part, or its absolute value."}
_STEPS = "Whole numbers and truth values change in steps and have no slope: differentiate what they were computed from."

SEED = Leaf(name="seed", doc="A tangent, while a gradient is being built.")
Tangents = dict[Node, Any]


def jvp(results: Sequence[Node], tangents: dict[Node, Node]) -> list[Tangent]:
    """Return the tangents of ``results`` for given tangents of some nodes, or None for zero.

    Parameters
    ----------
    results
        The nodes to differentiate.
    tangents
        The tangent of each node that moves, of the node's own type.
    """
    return push(results, tangents)[1]


def push(results: Sequence[Node], tangents: dict[Node, Node]) -> tuple[list[Node], list[Tangent]]:
    """Return :func:`jvp` preceded by the results, over regions that compute values and tangents at once."""
    known: Tangents = dict(tangents)
    wider: dict[Node, Node] = {}
    for node in topological(results, stop=lambda n: n in tangents):
        if node not in known:
            known[node] = _tangent(node, known, wider)
    found = [known[r] for r in results]
    return _followed(results, found, wider)


def _tangent(node: Node, known: Tangents, wider: dict[Node, Node]) -> Any:
    if node.op is ITEM:
        group = known[node.args[0]]
        return None if group is None else group[node["index"]]
    given = [known[a] for a in node.args]
    if all(t is None for t in given):
        return None
    if not isinstance(node.op, Region):
        return _derivative(node, given)
    new, tangents = node.op.push(node, given)
    wider.update((old, end) for old, end in zip(items(node), new, strict=True) if old is not end)
    return tangents if len(tangents) > 1 else tangents[0]


def _derivative(node: Node, given: Sequence[Any]) -> Any:
    """Return the tangent of a node; an error names its source line."""
    try:
        return node.op.jvp(node, given)
    except DifferentiationError as error:
        places = site.of(node)
        if places and not error.placed:
            error.message, error.placed = f"{error.message} ({places[0]})", True
        raise


def _followed(
    results: Sequence[Node], found: Sequence[Tangent], wider: dict[Node, Node]
) -> tuple[list[Node], list[Tangent]]:
    """Return results and derivatives with each region replaced by the wider one that computes both."""
    rest = iter(followed([*results, *(t for t in found if t is not None)], wider))
    return [next(rest) for _ in results], [None if t is None else next(rest) for t in found]


def vjp(results: Sequence[Node], cotangents: Sequence[Tangent], wrt: Sequence[Node]) -> list[Tangent]:
    """Return the cotangents of ``wrt`` for given cotangents of ``results``, or None for zero.

    Each node's tangent is linear in those of its operands: it is built once for seeds, and transposed.
    """
    return pull(results, cotangents, wrt)[1]


def pull(
    results: Sequence[Node], cotangents: Sequence[Tangent], wrt: Sequence[Node]
) -> tuple[list[Node], list[Tangent]]:
    """Return :func:`vjp` preceded by the results, over regions that also return what their derivatives read."""
    targets = set(wrt)
    active = _active(results, wrt)
    order = [n for n in topological(results, stop=targets.__contains__) if n in active]
    gathered: dict[Node, Any] = {}
    wider: dict[Node, Node] = {}
    for result, cotangent in zip(results, cotangents, strict=True):
        if cotangent is not None and result in active:
            gathered[result] = accumulate(gathered.get(result), cotangent)
    for node in reversed(order):
        cotangent = gathered.get(node)
        if cotangent is None or node in targets:
            continue
        if node.op is ITEM:
            _to_group(gathered, node, cotangent)
            continue
        if isinstance(node.op, Region):
            _pull_region(node, cotangent, active, gathered, wider)
            continue
        for arg, part in _pull(node, cotangent, active).items():
            site.inherit(part, node, "adjoint")
            gathered[arg] = accumulate(gathered.get(arg), part)
            site.inherit(gathered[arg], node, "adjoint")
    return _followed(results, [gathered.get(node) for node in wrt], wider)


def _pull_region(
    node: Node, cotangent: Any, active: set[Node], gathered: dict[Node, Any], wider: dict[Node, Node]
) -> None:
    """Add the cotangents of a region's operands; sums gathered so far are passed in if the region adds to them."""
    given = cotangent if len(node.types) > 1 else [cotangent]
    wanted = [a in active and a.type.inexact for a in node.args]
    sums = [
        gathered.get(a) if w and a not in node.args[:k] else None
        for k, (a, w) in enumerate(zip(node.args, wanted, strict=True))
    ]
    pulled = node.op.pull(node, given, wanted, sums)  # type: ignore[attr-defined]
    wider.update((old, new) for old, new in zip(items(node), pulled.results, strict=True) if old is not new)
    for k, (arg, part) in enumerate(zip(node.args, pulled.cotangents, strict=True)):
        if part is None:
            continue
        site.inherit(part, node, "adjoint")
        gathered[arg] = part if k in pulled.summed and sums[k] is not None else accumulate(gathered.get(arg), part)
        site.inherit(gathered[arg], node, "adjoint")


def _to_group(gathered: dict[Node, Any], node: Node, cotangent: Node) -> None:
    """Add the cotangent of one of several results to the list for their node."""
    group = gathered.setdefault(node.args[0], [None] * len(node.args[0].types))
    group[node["index"]] = accumulate(group[node["index"]], cotangent)


def _active(results: Sequence[Node], wrt: Sequence[Node]) -> set[Node]:
    """Return the nodes between ``wrt`` and ``results`` that carry derivatives."""
    active = set(wrt)
    for node in topological(results, stop=lambda n: n in active):
        if node not in active and any(a in active for a in node.args) and any(t.inexact for t in node.types):
            active.add(node)
        elif node.op is ITEM and node.args[0].op is DRAW and node["index"]:
            check_discrete(node.args[0], active)
    return active


def _pull(node: Node, cotangent: Any, active: set[Node]) -> dict[Node, Node]:
    """Return the cotangents of the active operands of ``node``."""
    seeds: list[Tangent] = []
    by_seed: dict[Node, Node] = {}
    for position, arg in enumerate(node.args):
        wanted = arg in active and all(t.inexact for t in arg.types)
        seed = _seed(position, arg) if wanted else None
        seeds.append(seed)
        if isinstance(seed, tuple):
            by_seed.update({s: item(arg, k) for k, s in enumerate(seed)})
        elif seed is not None:
            by_seed[seed] = arg
    tangent = _derivative(node, seeds)
    pairs = zip(tangent, cotangent, strict=True) if isinstance(tangent, tuple) else [(tangent, cotangent)]
    found = transpose([(t, c) for t, c in pairs if t is not None and c is not None], set(by_seed), {node, *node.needs})
    pulled: dict[Node, Node] = {}
    for seed, part in found.items():
        arg = by_seed[seed]
        pulled[arg] = accumulate(pulled.get(arg), part)
    return pulled


def _seed(position: int, arg: Node) -> Any:
    if len(arg.types) > 1:
        return tuple(make(SEED, type=t, position=position, index=k) for k, t in enumerate(arg.types))
    return make(SEED, type=arg.type.with_shape(arg.type.shape), position=position, index=0)


def transpose(outputs: Iterable[tuple[Node, Node]], seeds: set[Node], primal: Iterable[Node] = ()) -> dict[Node, Node]:
    """Return the cotangents of the seeds for cotangents of expressions that are linear in them.

    Nothing below the nodes ``primal`` depends on the seeds; not visiting it keeps a gradient linear in the size of
    its graph.
    """
    outputs = list(outputs)
    ends = seeds.union(primal)
    order = topological([t for t, _ in outputs], stop=ends.__contains__)
    linear = set(seeds)
    for node in order:
        if any(a in linear for a in node.args):
            linear.add(node)
    gathered: dict[Node, Any] = {}
    for node, cotangent in outputs:
        gathered[node] = accumulate(gathered.get(node), cotangent)
    for node in reversed(order):
        if node in seeds or node not in linear or node not in gathered:
            continue
        if node.op is ITEM:
            _to_group(gathered, node, gathered.pop(node))
            continue
        wanted = [a in linear for a in node.args]
        parts = node.op.transpose(node, gathered.pop(node), wanted)
        for arg, part in zip(node.args, parts, strict=True):
            if part is not None and arg in linear:
                gathered[arg] = accumulate(gathered.get(arg), part)
    return {s: c for s, c in gathered.items() if s in seeds}


def gradient(result: Node, wrt: Sequence[Node]) -> list[Node]:
    """Return the gradient of a real rank-0 ``result``; zeros for nodes it does not depend on.

    Raises
    ------
    DifferentiationError
        If the result is not a real scalar, or a node of ``wrt`` is not a float.
    """
    return value_and_gradient(result, wrt)[1]


def value_and_gradient(result: Node, wrt: Sequence[Node]) -> tuple[Node, list[Node]]:
    """Return :func:`gradient` preceded by the result, over loops that also record what the gradient reads."""
    t = result.type
    if t.shape:
        alike = any(node.type.shape == t.shape for node in wrt)  # the user may have meant a derivative at each element
        each = "; tm.vmap(tm.grad(f)) takes the slope at each element." if alike else "."
        raise DifferentiationError(
            f"a gradient is of one number, but this is {t}", f"Take its sum or mean, or use tm.jacobian{each}"
        )
    if t.dtype.kind != "f" and not is_stored(t.dtype):
        raise DifferentiationError(
            f"a gradient is of a real float, but this is {t}", _INSTEAD.get(t.dtype.kind, _STEPS)
        )
    for node in wrt:
        if not node.type.inexact:
            raise DifferentiationError(
                f"there is no derivative with respect to {node.type}", "Convert it to a float array."
            )
    one = constant(t.dtype.type(1))
    (value,), found = pull([result], [one], wrt)
    return value, [_shaped(c, node) for c, node in zip(found, wrt, strict=True)]


def _shaped(cotangent: Tangent, node: Node) -> Node:
    if cotangent is None:
        cotangent = zeros_like(node)
    shaped = broadcast(astype(cotangent, node.type.dtype), node.type.shape)
    return shaped if node.type.shape else to_form(shaped, node.type.form)


def depends(results: Iterable[Node], node: Node) -> bool:
    """Return whether some result depends on ``node``."""
    return node in set(topological(results, stop=lambda n: n is node))


install_derivatives(Derivatives(push=push, pull=pull, active=_active, gradient=gradient))
