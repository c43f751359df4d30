"""Backpropagation in words: what a node computes in terms of its operands, and the formula of what an operand gets."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, make, topological
from tensormagic.ir.operation import Operation
from tensormagic.ir.size import Symbol, evaluate, nodes_of
from tensormagic.notebook.backprop.calls import Call, Places
from tensormagic.notebook.backprop.frame import told
from tensormagic.notebook.backprop.passes import Local, is_stretched, root
from tensormagic.notebook.pictures.labels import SYMBOLS, clean
from tensormagic.notebook.pictures.naming import KEPT, Place, Written
from tensormagic.ops.contract import CONTRACT
from tensormagic.ops.fold import MAX, MIN, SUM
from tensormagic.ops.form import FORM
from tensormagic.ops.indices.gather import GATHER
from tensormagic.ops.leaf import CONSTANT, PARAMETER, SIZE
from tensormagic.ops.move import BROADCAST, RESHAPE, SLICE, TRANSPOSE
from tensormagic.ops.opaque import ITEM
from tensormagic.ops.pointwise import ASTYPE
from tensormagic.ops.products import product
from tensormagic.ops.regions.control import COND, WHILE, Region
from tensormagic.ops.scalars.scalar import (
    add,
    divide,
    maximum,
    minimum,
    multiply,
    negative,
    reciprocal,
    square,
    subtract,
)
from tensormagic.transform.rewriting import rewrite_nodes

LONGEST = 48  # characters of a formula on an arrow

_LONGEST = 80  # of a formula
_INSIDE = 20  # of an operand's own expression inside another
_KEPT = 36  # and of one that keeps its axes, since it has a word more
_NAME = 24  # of a name
_INDEX = 24  # of an index
_SHORT_INDEX = 22  # of one on an arrow
_CONSTANT = "const"
_DOT = "\N{MIDDLE DOT}"
_SEEN_THROUGH = (FORM, BROADCAST, ASTYPE, RESHAPE)
_MINUS = "\N{MINUS SIGN}"
_REPEATED = ", repeated"
_REGIONS: dict[Operation, str] = {COND: "branch", WHILE: "while loop"}
_CHOSEN: dict[Operation, str] = {MAX: "largest", MIN: "smallest"}
_COMPARED: dict[Operation, str] = {maximum: ">", minimum: "<"}


class Headings:
    """The names of nodes, and the formulas that they compute: ``z``, and ``1 + exp(−z)``.

    Parameters
    ----------
    nodes
        The nodes that are shown, in topological order.
    graph
        Their graph, which knows the names of inputs.
    names
        The variables that hold nodes.
    sizes
        The values of its symbolic sizes.
    calls
        The calls that are shown as one node.
    expressions
        The places of a node, with the calls and indexing expressions there.
    spelt
        The name that the user's text has for a node's operation, if it has several names.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        graph: Graph,
        names: Mapping[Node, str],
        sizes: Mapping[Symbol, int],
        calls: Mapping[Node, Call] = MappingProxyType({}),
        expressions: Callable[[Node], Places] = lambda _: {},
        spelt: Callable[[Node, str], str] = lambda _, name: name,
    ) -> None:
        self.sizes = sizes
        self._calls, self._expressions = calls, expressions
        self.called = {n: clean(graph.names[n["index"]], _NAME) for n in nodes if n.op is PARAMETER}
        self.called |= {n: clean(name, _NAME) for n, name in names.items()}
        self.computes: dict[Node, str] = {}
        for node in nodes:
            if node in calls:
                self.computes[node] = self._filled(calls[node])
            elif part := self._part(node):
                self.computes[node] = self._filled(Call(part, "", frozenset({node}), (node.args[0],)))
            elif node.op is not PARAMETER:
                self.computes[node] = _expression(node, self.operand, spelt(node, node.op.name))

    def operand(self, node: Node) -> str:
        """Return a node inside an expression: its name, its value, or its formula if that is short."""
        node = root(node)
        while is_stretched(node) and node not in self.called and node not in self.computes:
            node = root(node.args[0])
        found = self.called.get(node) or self.constant(node) or self.computes.get(node, _CONSTANT)
        most = _KEPT if KEPT in found else _INSIDE
        return found if len(found) <= most or node in self.called else _DOT

    def of(self, node: Node) -> str:
        """Return a node as an equation: ``z = x × w``."""
        name, computes = self.called.get(node, ""), self.computes.get(node, "")
        return f"{name} = {computes}" if name and computes else name or computes

    def _part(self, node: Node) -> Written | None:
        """Return how the user wrote a part of an array that is one node."""
        found = self._expressions(node).values() if node.op in {SLICE, GATHER} else ()
        return next((w for w in found if w is not None and w.text.startswith(f"{_DOT}[")), None)

    def _filled(self, call: Call) -> str:
        """Return a call with its operands in it: ``mean(z)``, ``clip(z, 0, 1)``, ``p[rows, t]``."""
        written, operands = call.written, call.operands
        texts = [self._slot(call, slot) for slot in written.slots]
        if len(operands) == 1 and len(texts) == 1:
            texts = [self.operand(operands[0])]
        if written.text.startswith(f"{_DOT}["):
            return f"{_bracketed(texts[0])}{written.text[1:] if len(written.text) <= _INDEX else '[…]'}"
        told_ = {self.operand(a) for a in operands}
        if written.receiver is not None and (of := self._slot(call, written.receiver)) in told_:
            return f"{of}.{_in_place(written.text, texts)}"
        return _in_place(written.text, texts)

    def _slot(self, call: Call, slot: tuple[Place, str]) -> str:
        """Return the text at a place of a call: the operand that was written there, or the given text."""
        place, text = slot
        here = [a for a in call.operands if (call.cell, place) in self._expressions(a)]
        if here:
            return self.operand(here[0])
        return text if len(text) <= _INSIDE else _DOT

    def put(self, node: Node) -> str:
        """Return what the array that a node is a part of gets: ``adjoint, added at [2] of x``; nothing for other nodes."""
        call = self._calls.get(node)
        written = call.written if call else self._part(node)
        text = written.text if written else ""
        if not text.startswith(f"{_DOT}["):
            return ""
        of = self._slot(call, written.slots[0]) if call and written else self.operand(node.args[0])
        array = f" of {_bracketed(of)}" if of != _DOT else ""
        return f"adjoint, added at {text[1:] if len(text) <= _SHORT_INDEX else '[…]'}{array}"

    def chosen(self, local: Local) -> str:
        """Return the formula for a maximum or minimum along axes: ``adjoint where z is largest``; empty for other nodes."""
        call = self._calls.get(local.target)
        parts = call.parts if call else {local.target}
        words = [_CHOSEN[part.op] for part in parts if part.op in _CHOSEN]
        if len(words) != 1 or not all(n.op in _CHOSEN or is_stretched(n) for n in parts):
            return ""
        return f"adjoint where {self.operand(local.source).replace(_DOT, 'it')} is {words[0]}"

    def larger(self, local: Local) -> str:
        """Return the formula for the larger or smaller of two: ``adjoint where z > 0, half where equal``; empty for other nodes."""
        node = local.target
        if (node in self._calls and len(self._calls[node].parts) > 1) or node.op not in _COMPARED:
            return ""
        actual = local.source
        one, other = (root(_unstretched(a)) for a in node.args)
        texts = [self.operand(a) for a in node.args]
        if one is other or (actual not in node.args and actual not in {one, other}):
            return ""
        texts = texts if actual in {node.args[0], one} else texts[::-1]
        return f"adjoint where {texts[0]} {_COMPARED[node.op]} {texts[1]}, half where equal"

    def constant(self, node: Node) -> str:
        """Return the value of a number or of a size, seen through broadcasts; nothing for what depends on inputs."""
        while node.op in _SEEN_THROUGH:
            node = node.args[0]
        if node.op is CONSTANT and not node.type.shape:
            value = node["bits"].array()
            return told(float(value)) if value.dtype.kind in "iuf" else str(value)
        if node.op is CONSTANT:
            return _CONSTANT
        if node.op is SIZE and not nodes_of(node["size"]):
            return str(evaluate(node["size"], self.sizes.__getitem__))
        return ""


def _unstretched(node: Node) -> Node:
    """Return the node that a broadcast node is stretched from."""
    while is_stretched(node):
        node = root(node.args[0])
    return node


def _in_place(text: str, texts: Sequence[str]) -> str:
    """Return a text with others in place of its dots."""
    pieces = text.split(_DOT)
    return "".join(
        f"{piece}{told}" for piece, told in itertools.zip_longest(pieces, texts[: len(pieces) - 1], fillvalue="")
    )


def _whole(node: Node, operand: Callable[[Node], str]) -> str:
    """Return what a node is a result of: a loop is long to write."""
    return f"the {_REGIONS.get(node.op, node.op.name)}" if isinstance(node.op, Region) else operand(node)


def _reads(operands: Sequence[str]) -> str:
    """Return the operands of a loop or a branch, in brackets."""
    read = [a for a in dict.fromkeys(operands) if a[0].isalpha() and a != _CONSTANT]
    return f"({', '.join(read[:3])}{', …' if len(read) > 3 else ''})" if read else ""


def _expression(node: Node, operand: Callable[[Node], str], called: str = "") -> str:
    """Return a node as an expression of its operands' texts; its operation as the user has called it."""
    name = called or node.op.name
    if node.op is ITEM:
        return f"result {node['index'] + 1} of {_whole(node.args[0], operand)}"
    args = [operand(a) for a in node.args]
    if isinstance(node.op, Region):
        return f"{_REGIONS.get(node.op, name)}{_reads(args)}"
    if node.op is CONTRACT:
        return product(node["subscripts"], [_bracketed(a) for a in args])
    sign = SYMBOLS.get(name)
    if sign and len(args) == 2:
        return _infix(node, sign, args)
    if index := _index(node):
        return f"{_bracketed(args[0])}[{index}]"
    if node.op is negative:
        return f"{_MINUS}{args[0] if _is_product(args[0]) else _bracketed(args[0])}"
    if node.op is square:  # as most people write it; NumPy has this function for it
        return f"{_bracketed(args[0])} ** 2"
    if node.op is TRANSPOSE and len(node.type.shape) == 2:
        return f"{_bracketed(args[0])}.T"
    axes = node.params.get("axes")
    if axes and node.type.shape:
        args = [*args[:2], f"axis={axes[0] if len(axes) == 1 else axes}"]
    return f"{name}({', '.join(args[:3])}{', …' if len(args) > 3 else ''})"


def _infix(node: Node, sign: str, args: Sequence[str]) -> str:
    bare = node.op in {add, subtract} or (node.op in {multiply, divide} and _is_product(args[0].removeprefix(_MINUS)))
    left = args[0] if bare else _bracketed(args[0])
    closer = _is_product(args[1]) and (node.op is subtract or not {"×", "/"} & {*args[1]})
    return f"{left} {sign} {args[1] if node.op is add or closer else _bracketed(args[1])}"


def _is_product(text: str) -> bool:
    """Return whether a text is a name, or products and quotients: before `×` it needs no brackets, and Python's minus binds closer."""
    depth, signs = 0, ""
    for character in text:
        depth += (character in "([") - (character in ")]")
        signs += character if not depth and not (character.isalnum() or character in "_.)]") else ""
    return not signs.replace(" × ", "").replace(" / ", "").replace(" ** ", "").replace(_DOT, "").replace("…", "")


def _index(node: Node) -> str:
    """Return the index of an indexing node, or of a reshape that only inserts or removes axes of size 1; empty for other nodes."""
    if node.op is not RESHAPE:
        return "…" if node.op in {SLICE, GATHER} else ""
    inside, outside = node.args[0].type.shape, node.type.shape
    if not is_stretched(node) or (1 in inside) == (1 in outside):
        return ""
    larger, put = (outside, "None") if 1 in outside else (inside, "0")
    return ", ".join(put if s == 1 else ":" for s in larger)


def _bracketed(text: str) -> str:
    """Return an expression in brackets, where it is a sum or the like."""
    depth = 0
    for k, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if not depth and (character == " " or (character == _MINUS and not k)):
            return f"({text})"
    return text


def formulas(locals_: Sequence[Local | None], headings: Headings) -> list[str]:
    """Return what operands get, as expressions of the adjoint and of values: ``adjoint × cos(x)``; nothing where one is long."""
    known = [local for local in locals_ if local is not None]
    nodes = [n for local in known for n in (local.sketch, local.again)]
    simple, _ = rewrite_nodes(nodes, "exact") if known else ([], None)
    pairs = zip(known, simple[::2], simple[1::2], strict=True)
    texts = iter([_in_words(local, headings) or _fitting(local, new, again, headings) for local, new, again in pairs])
    return [next(texts) if local is not None else "" for local in locals_]


def _in_words(local: Local, headings: Headings) -> str:
    """Return what an operand gets, where that is shorter said than as an expression, or nothing."""
    if local.kind not in {"matrix", "row", "elements"}:
        return ""
    return headings.put(local.target) or headings.chosen(local) or headings.larger(local)


def _fitting(local: Local, pulled: Node, again: Node, headings: Headings) -> str:
    """Return the formula; where it is too long for an arrow and gets short enough by it, with a dot for the operand."""
    operands = {stand: headings.operand(actual) for stand, actual in local.stands.items()}
    whole = _formula(local, pulled, again, headings, operands)
    if 0 < len(whole) <= LONGEST:
        return whole
    operands = {stand: text if len(text) <= _INSIDE else _DOT for stand, text in operands.items()}
    shorter = _formula(local, pulled, again, headings, operands)
    return shorter if 0 < len(shorter) <= LONGEST and list(operands.values()).count(_DOT) == 1 else whole


def _formula(local: Local, pulled: Node, again: Node, headings: Headings, operands: Mapping[Node, str]) -> str:
    texts: dict[Node, str] = {local.cotangent: "adjoint"}
    if local.target in headings.called and again is not pulled:  # e * adjoint, where e is what this node is called
        texts[again] = headings.called[local.target]
    texts |= operands
    for node in topological([pulled], stop=texts.__contains__):
        if node in texts:
            continue
        if isinstance(node.op, Region) or len(node.types) > 1:
            return ""
        name = headings.called.get(node) or headings.constant(node)
        if node.op in _SEEN_THROUGH and node.op is not RESHAPE and node.args:
            name = texts[node.args[0]]
        elif not name and not node.args:
            name = node.op.name
        texts[node] = name or _simplified(node, texts) or _expression(_adjoint_first(node, texts), texts.__getitem__)
        if len(texts[node]) > _LONGEST:
            return ""
    return f"{_keeping(texts[pulled], pulled)}{_REPEATED if _only_repeats(local.cotangent, pulled) else ''}"


def _only_repeats(cotangent: Node, pulled: Node) -> bool:
    """Return whether what an operand gets is made of the adjoint and of constants alone, and some elements of that several times."""
    order = topological([pulled])
    return (
        any(n.op is BROADCAST and cotangent in topological([n]) for n in order)
        and pulled.type.shape != cotangent.type.shape
        and not any(not n.args and n is not cotangent and n.op not in {CONSTANT, SIZE} for n in order)
    )


def _simplified(node: Node, texts: Mapping[Node, str]) -> str:
    """Return a quotient in a product, and a minus in a sum, as one writes them by hand; nothing for other nodes."""
    if node.op is multiply and "adjoint" in texts[node.args[0]] + texts[node.args[1]]:
        one, other = _adjoint_first(node, texts).args
        left, right = texts[one], texts[other]
        if other.op in {multiply, divide, reciprocal} and _is_product(left.removeprefix(_MINUS)) and _is_product(right):
            return f"{left} / {right[4:]}" if right.startswith("1 / ") else f"{left} × {right}"
    if node.op is multiply and node.args[0] is node.args[1]:
        return f"{_bracketed(texts[node.args[0]])} ** 2"
    if node.op is SUM and texts[node.args[0]].startswith(_MINUS):
        inside = texts[node.args[0]]
        if _is_product(inside[1:]):
            return _MINUS + _expression(node, lambda a: {node.args[0]: inside[1:]}.get(a) or texts[a])
    return ""


def _keeping(text: str, pulled: Node) -> str:
    """Return a sum that is given its axes of one element back by an index, as most write it: ``sum(x, axis=1, keepdims=True)``."""
    index = _index(pulled) if pulled.op is RESHAPE else ""
    summed = root(pulled.args[0]) if index else pulled
    summed = root(summed.args[0]) if summed.op is negative else summed
    bare = text.removesuffix(f"[{index}]")
    if summed.op is not SUM or bare == text or not bare.strip("()").startswith(("sum(", f"{_MINUS}sum(")):
        return text
    if tuple(k for k, one in enumerate(index.split(", ")) if one == "None") != tuple(summed.params["axes"]):
        return text
    bare = bare[1:-1] if bare.startswith("(") else bare
    return f"{bare[:-1]}, {KEPT})"


def _adjoint_first(node: Node, texts: Mapping[Node, str]) -> Node:
    """Return a product as one reads it: the adjoint, times the local derivative."""
    if node.op is multiply and "adjoint" in texts[node.args[1]] and "adjoint" not in texts[node.args[0]]:
        return make(node.op, node.args[::-1], **node.params)
    return node
