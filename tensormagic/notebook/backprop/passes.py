"""The two passes over a small graph: each node's value and adjoint, and what each use of it adds to that adjoint.

The graph is the one that was captured, so the pass is the one that a student would do by hand: from the result back,
the adjoint of a node times the local derivative in an operand is added to the adjoint of that operand.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tensormagic.functions.gradients.gradient_nodes import gradient_nodes
from tensormagic.ir.errors import DifferentiationError
from tensormagic.ir.graph import sizer
from tensormagic.ir.node import Node, make, substitute, topological
from tensormagic.ir.type import Type, atoms, evaluate
from tensormagic.notebook.backprop.calls import Call, Places, calls
from tensormagic.notebook.backprop.subject import Subject
from tensormagic.ops.effects.checks import REQUIRE
from tensormagic.ops.form import FORM
from tensormagic.ops.leaf import PARAMETER, Source, constant, input_node
from tensormagic.ops.move import BROADCAST, RESHAPE, broadcast
from tensormagic.ops.opaque import ITEM, items
from tensormagic.ops.pointwise import Pointwise
from tensormagic.ops.update import accumulate
from tensormagic.transform import grad as modes

MOST_NODES = 60
MOST_ELEMENTS = 200_000  # of the largest array: every value and every adjoint is held at once
_MOST_JACOBIAN = 256  # entries of a Jacobian that is computed whole
_MOST_ROWS = 16


class LargeViewError(ValueError):
    """A graph has more nodes than a view of backpropagation shows."""


@dataclass(frozen=True, eq=False)
class Local:
    """The derivative of a node in one of its operands.

    Parameters
    ----------
    kind
        ``"number"``: of a number in a number. ``"elements"``: one slope for each element. ``"row"``: of a number in an
        array. ``"column"``: of an array in a number. ``"matrix"``: of an array in an array, where each element of the
        one may depend on each of the other.
    node
        The derivative itself, unless it is a matrix.
    pulled, cotangent
        The cotangent of the operand, and the placeholder for the node's cotangent that it is computed from.
    sketch, stands
        The same computed over placeholders for the operands, and the operand that each placeholder stands for.
    target, again
        The node, and the same over the placeholders.
    source
        The operand.
    """

    kind: str
    node: Node | None
    pulled: Node
    cotangent: Node
    sketch: Node
    stands: Mapping[Node, Node]
    target: Node
    again: Node
    source: Node


@dataclass(frozen=True, eq=False)
class Use:
    """Operand number ``port`` of ``target``, which contributes a term to the adjoint of ``source``.

    Parameters
    ----------
    part
        The term; None if there is none.
    local
        The local derivative; None if the target has several results, or no derivative.
    why
        Why there is no derivative, if the op gives a reason.
    """

    source: Node
    target: Node
    port: int
    part: Node | None = None
    local: Local | None = None
    why: str = ""


@dataclass(frozen=True, eq=False)
class Found:
    """The numbers of one run, by node and by use. An adjoint is None where no derivative flows."""

    values: Mapping[Node, Any]
    adjoints: Mapping[Node, Any]
    parts: Sequence[Any]
    locals: Sequence[Any]
    rewritten: Mapping[Node, Any]


def root(node: Node) -> Node:
    """Return the node behind changes of rank-0 form, and behind questions whether a value is allowed, which a picture leaves out."""
    while node.op is FORM or node.op is REQUIRE:
        node = node.args[0]
    return node


def is_stretched(node: Node) -> bool:
    """Return whether a node only repeats elements, or puts in axes of one element: steps that NumPy code does not write."""
    if node.op is not RESHAPE:
        return node.op is BROADCAST
    inside, outside = ([s for s in n.type.shape if s != 1] for n in (node.args[0], node))
    return inside == outside


def _origin(operand: Node, named: Collection[Node]) -> Node:
    """Return the node that an operand is broadcast from, by steps without a name of the user's, else the operand itself."""
    found, node = operand, operand
    while node not in named:
        if is_stretched(node):
            found = node.args[0]
        elif node.op is not FORM and node.op is not REQUIRE:
            break
        node = node.args[0]
    return found


class Passes:
    """The forward and the backward pass of a number.

    Parameters
    ----------
    subject : Subject
        The number.

    Attributes
    ----------
    nodes : list of Node
        The nodes that depend on the inputs, in topological order.
    active : set of Node
        Those of them that carry derivatives.
    uses : list of Use
        The operands among ``nodes``, in the order of the backward pass.

    Raises
    ------
    DifferentiationError
        If the value is not a real number.
    ValueError
        If the graph has more than `MOST_NODES` nodes, or an array has more than `MOST_ELEMENTS` elements.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.graph = subject.graph
        self.result = root(self.graph.results[0])
        t = self.result.type
        if t.shape or t.dtype.kind != "f":
            raise DifferentiationError(
                f"backpropagation starts from one real number, but {subject.name} is {self._actual(t)}",
                "Take its sum or mean.",
            )
        named = subject.names(self.graph.nodes)
        naming = subject.naming()
        # by the user, or the end of what the user has written: these are shown
        self._named = {n for n in self.graph.nodes if is_stretched(n) and (n in named or _ends(n, naming.expressions))}
        self.calls: dict[Node, Call] = {}
        self.calls = calls(self._moving(), self._operands, naming.expressions, {*named, self.result})
        self.nodes = self._moving()
        if self.result not in self.nodes:
            raise DifferentiationError(
                f"{subject.name} is computed from no variable that was there before",
                "Assign the array in an earlier cell, or name it: --grad x.",
            )
        if len(self.nodes) > MOST_NODES:
            raise LargeViewError(
                f"a view of backpropagation shows at most {MOST_NODES} nodes, and {subject.name} has {len(self.nodes)}; "
                "show the graph of it, or a smaller part"
            )
        self.active = self._active()
        self.uses: list[Use] = []
        self.adjoints: dict[Node, Any] = {}
        self._pull()
        inputs = [n for n in self.nodes if n.op is PARAMETER and n in self.active]
        self._rewritten = dict(zip(inputs, self._as_grad_gives(inputs), strict=True))

    def parts(self, node: Node) -> Collection[Node]:
        """Return the nodes of one box: a node, or all of a call."""
        return self.calls[node].parts if node in self.calls else {node}

    def _moving(self) -> list[Node]:
        """Return the nodes that depend on the inputs, operands first."""
        everything = topological([self.result], needs=self._operands)
        moving = set[Node]()
        for node in everything:
            if node.op is PARAMETER or any(a in moving for a in self._operands(node)):
                moving.add(node)
        return [n for n in everything if n in moving]

    def _operands(self, node: Node) -> list[Node]:
        call = self.calls.get(node)
        return list(call.operands) if call else [root(_origin(a, self._named)) for a in node.args]

    def _read(self, node: Node, port: int) -> Node:
        """Return an operand before broadcasting: the derivative in it is the derivative in what it was broadcast from."""
        call = self.calls.get(node)
        return call.operands[port] if call else _origin(node.args[port], self._named)

    def _actual(self, t: Type) -> Type:
        """Return a type with its symbolic sizes replaced by those of these inputs; unchanged if they do not determine them."""
        sizes = self.graph.bind([np.shape(v) for v in self.subject.values])
        known = all(a in sizes for s in t.shape for a in atoms(s))
        return t.with_shape(tuple(evaluate(s, sizes.__getitem__) for s in t.shape), t.form) if known else t

    def _active(self) -> set[Node]:
        active = set[Node]()
        for node in self.nodes:
            own = node.op is PARAMETER and self.subject.wants(node)
            moves = own or any(a in active for a in self._operands(node))
            if moves and any(t.inexact for t in node.types):
                active.add(node)
        return active

    def _as_grad_gives(self, inputs: Sequence[Node]) -> list[Node]:
        """Return the gradient as ``tm.grad`` gives it: of the graph after rewriting."""
        try:
            return gradient_nodes(self.graph.results[0], inputs) if inputs else []
        except DifferentiationError:  # it has no derivative in some input
            return [self._total(n) for n in inputs]

    def _total(self, node: Node) -> Node:
        found = self.adjoints.get(node)
        return constant(node.type.dtype.type(0)) if found is None else found

    # the backward pass, as nodes --------------------------------------------------------------------------------------

    def _pull(self) -> None:
        gathered: dict[Node, Any] = {self.result: constant(self.result.type.dtype.type(1))}
        for node in reversed(self.nodes):
            for use in self._uses(node, gathered.get(node) if node in self.active else None):
                self.uses.append(use)
                if use.part is not None and node.op is ITEM:
                    group = gathered.setdefault(use.source, [None] * len(use.source.types))
                    group[node["index"]] = accumulate(group[node["index"]], use.part)
                elif use.part is not None:
                    gathered[use.source] = accumulate(gathered.get(use.source), use.part)
        self.adjoints = {n: gathered[n] for n in self.nodes if n in gathered}

    def _uses(self, node: Node, adjoint: Any) -> list[Use]:
        shown = set(self.nodes)
        ports = [(port, a) for port, a in enumerate(self._operands(node)) if a in shown]
        if node.op is ITEM:
            return [Use(a, node, port, adjoint) for port, a in ports]
        pulled: dict[int, Node] = {}
        whys: dict[int, str] = {}
        locals_: dict[int, Local] = {}
        if adjoint is not None and ports:
            wanted = [port for port, a in ports if a in self.active and self._read(node, port).type.inexact]
            if wanted:
                pulled, whys = self._pulled(node, adjoint if len(node.types) > 1 else [adjoint], wanted)
            locals_ = self._locals(node, sorted(pulled)) if len(node.types) == 1 else {}
        return [Use(a, node, port, pulled.get(port), locals_.get(port), whys.get(port, "")) for port, a in ports]

    # what operands get -------------------------------------------------------------------------------------------------

    def _pulled(
        self, node: Node, cotangents: Sequence[Any], ports: Sequence[int]
    ) -> tuple[dict[int, Node], dict[int, str]]:
        """Return what each of the operands gets for cotangents of the results; and for those that have no derivative, why."""
        try:
            _, stands, found = self._local_pull(node, cotangents, ports)
        except DifferentiationError as error:
            if len(ports) == 1:
                return {}, {ports[0]: str(error.args[0])}
            pulled: dict[int, Node] = {}
            whys: dict[int, str] = {}
            for port in ports:
                own, why = self._pulled(node, cotangents, [port])
                pulled |= own
                whys |= why
            return pulled, whys
        actual = {stand: self._read(node, port) for port, stand in stands.items()}
        opened = iter(substitute([f for f in found if f is not None], actual))
        return {port: next(opened) for port, f in zip(ports, found, strict=True) if f is not None}, {}

    def _local_pull(
        self, node: Node, cotangents: Sequence[Any], ports: Sequence[int]
    ) -> tuple[Node, dict[int, Node], list[Any]]:
        """As :meth:`_pulled`, over nodes that stand for the operands, so that one that is used twice is pulled twice."""
        call = self.calls.get(node)
        wanted = (
            [port for port, a in enumerate(call.operands) if a in self.active] if call else ports
        )  # one may be made of another
        origins = {port: self._read(node, port) for port in wanted}
        stands = {port: input_node(Source(f"operand {port}"), origin.type) for port, origin in origins.items()}
        if call:
            new = substitute([node], {origin: stands[port] for port, origin in origins.items()})[0]
        else:
            args = list(node.args)
            for port, origin in origins.items():
                args[port] = substitute([args[port]], {origin: stands[port]})[0]
            new = make(node.op, args, **node.params)
        return new, stands, modes.vjp(items(new), cotangents, [stands[port] for port in ports])

    def _locals(self, node: Node, ports: Sequence[int]) -> dict[int, Local]:
        """Return the local derivatives in operands."""
        if not ports:
            return {}
        t = node.type
        cotangent = input_node(Source("adjoint"), t.with_shape(t.shape))
        new, stands, found = self._local_pull(node, [cotangent], ports)
        actual = {stand: self._read(node, port) for port, stand in stands.items()}
        locals_: dict[int, Local] = {}
        for port, pulled in zip(ports, found, strict=True):
            if pulled is None:
                continue
            stand = stands[port]
            kind = _kind(node, self.parts(node), stand.type)
            own: Node | None = None
            if kind in {"number", "row", "elements"}:
                own = substitute([pulled], {cotangent: broadcast(constant(t.dtype.type(1)), t.shape)})[0]
            elif kind == "column":
                own = modes.jvp([new], {stand: constant(stand.type.dtype.type(1))})[0]
            whole = substitute([pulled, *([own] if own is not None else [])], actual)
            local = whole[1] if own is not None else None
            locals_[port] = Local(kind, local, whole[0], cotangent, pulled, actual, node, new, actual[stand])
        return locals_

    # numbers ----------------------------------------------------------------------------------------------------------

    @cached_property
    def _order(self) -> list[Node]:
        """Return every node that is evaluated once, operands first."""
        wanted: list[Node] = [*self.nodes, *self._rewritten.values()]
        for adjoint in self.adjoints.values():
            wanted += [a for a in (adjoint if isinstance(adjoint, list) else [adjoint]) if a is not None]
        for use in self.uses:
            wanted += [n for n in (use.part, use.local and use.local.node) if n is not None]
            if use.local is not None and use.local.node is None:
                wanted += self._matrix_order(use.local)[0]
        return topological(wanted)

    def _matrix_order(self, local: Local) -> tuple[list[Node], list[Node]]:
        """Return the nodes that a pulled cotangent reads, and those that depend on the cotangent and so are computed for each row."""
        order = topological([local.pulled])
        linear = {local.cotangent}
        for node in order:
            if any(a in linear for a in node.needs):
                linear.add(node)
        return [n for n in order if n not in linear], [n for n in order if n in linear and n is not local.cotangent]

    def run(self, values: Sequence[Any]) -> Found:
        """Both passes for these values of the inputs.

        Raises
        ------
        ValueError
            Where an array is too large to be shown.
        """
        symbols = self.graph.bind([np.shape(v) for v in values])
        table: dict[Node, Any] = dict(zip(self.graph.parameters, values, strict=True))
        size = sizer(symbols, table)
        with np.errstate(all="ignore"):
            _evaluate(self._order, table, size)
            return self._found(table, size)

    def _found(self, table: dict[Node, Any], size: sizer) -> Found:
        adjoints: dict[Node, Any] = {}
        for node in self.nodes:
            if node in self.active:
                adjoints[node] = self._adjoint(node, table)
        parts = [None if u.part is None else _like(table[u.part], self._end(u), table) for u in self.uses]
        locals_ = [self._local(u, table, size) for u in self.uses]
        rewritten = {n: _like(table[g], n, table) for n, g in self._rewritten.items()}
        return Found({n: table[n] for n in self.nodes}, adjoints, parts, locals_, rewritten)

    def _adjoint(self, node: Node, table: Mapping[Node, Any]) -> Any:
        adjoint = self.adjoints.get(node)
        if isinstance(adjoint, list):
            return tuple(None if a is None else table[a] for a in adjoint)
        if len(node.types) > 1:
            return (None,) * len(node.types)
        return _like(0.0 if adjoint is None else table[adjoint], node, table)

    @staticmethod
    def _end(use: Use) -> Node:
        """Return the node that a use belongs to: the operand, or one result of several."""
        return use.target if use.target.op is ITEM else use.source

    def _local(self, use: Use, table: dict[Node, Any], size: sizer) -> Any:
        local = use.local
        if local is None:
            return None
        if local.kind == "elements":
            return _like(table[local.node], use.source, table)  # type: ignore[index] (kinds but "matrix" have a node)
        if local.node is not None:
            end = {"row": use.source, "column": use.target}.get(local.kind)
            return table[local.node] if end is None else _like(table[local.node], end, table)
        rows, columns = np.size(table[use.target]), np.size(table[use.source])
        if "c" in {use.target.type.dtype.kind, use.source.type.dtype.kind}:
            return None  # linear in the real and in the imaginary part alone
        if rows > _MOST_ROWS or not 0 < rows * columns <= _MOST_JACOBIAN:
            return None
        return self._matrix(use, table, size)

    def _matrix(self, use: Use, table: dict[Node, Any], size: sizer) -> np.ndarray:
        """Return the Jacobian, a row for each element of the target."""
        local: Local = use.local  # type: ignore[assignment] (the caller has looked)
        _, order = self._matrix_order(local)
        out = np.asarray(table[use.target])
        rows: list[np.ndarray] = []
        for k in range(out.size):
            basis = np.zeros(out.shape, out.dtype)
            basis.flat[k] = 1
            mine: MutableMapping[Node, Any] = ChainMap({local.cotangent: basis}, table)
            _evaluate(order, mine, sizer(size.symbols, mine))
            rows.append(np.ravel(_like(mine[local.pulled], use.source, table)))
        return np.stack(rows)


def _evaluate(order: Sequence[Node], table: MutableMapping[Node, Any], size: sizer) -> None:
    """Fill in the values of nodes, by NumPy."""
    for node in order:
        if node not in table:
            table[node] = node.op.evaluate(node, [table[a] for a in node.args], size)
            if isinstance(table[node], np.ndarray) and table[node].size > MOST_ELEMENTS:
                raise ValueError(
                    f"a view of backpropagation holds arrays of at most {MOST_ELEMENTS} elements, and {node.op.name} "
                    f"gives {table[node].size}; a few rows of the data show the same"
                )


def _like(value: Any, node: Node, table: Mapping[Node, Any]) -> Any:
    """Return a derivative broadcast to the shape of its node: one number may stand for equal elements."""
    return np.broadcast_to(np.asarray(value), np.shape(table[node]))


def _ends(node: Node, expressions: Callable[[Node], Places]) -> bool:
    """Return whether a step that only changes axes is the last of an expression that does more: the `[0]` of `w[0]`."""
    inside = root(node.args[0])
    if is_stretched(inside):
        return False
    there = expressions(inside)
    return any(written and place in there for place, written in expressions(node).items())


def _kind(node: Node, parts: Collection[Node], inside: Type) -> str:
    outside = node.type
    if "c" in {inside.dtype.kind, outside.dtype.kind}:
        return "matrix"  # of a complex number the derivative need not be one number
    if not outside.shape:
        return "row" if inside.shape else "number"
    if not inside.shape:
        return "column"
    each = all(isinstance(part.op, Pointwise) for part in parts)
    return "elements" if each and inside.shape == outside.shape else "matrix"
