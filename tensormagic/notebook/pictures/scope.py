"""A graph as the reader sees it: names of its parameters, operations and sizes, and the values of sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tensormagic.ir.errors import TensorError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, Symbol, atom, evaluate, nodes_of
from tensormagic.ir.substituting import substitute
from tensormagic.ir.text import extents
from tensormagic.ir.type import Type
from tensormagic.notebook.pictures.naming import Naming, unfolded
from tensormagic.notebook.pictures.passes import carried_for_derivatives, numbered
from tensormagic.ops.contract import CONTRACT, split
from tensormagic.ops.form import FORM
from tensormagic.ops.leaf import CONSTANT, IOTA, PARAMETER, SIZE, constant
from tensormagic.ops.opaque import ITEM
from tensormagic.ops.products import product
from tensormagic.ops.regions.control import COND, LOOP, WHILE

WORDS = {"cond": "branch", IOTA.name: "arange"}  # operations by other names than their own
REGIONS = (LOOP, WHILE, COND)  # that give the user's variables
_LONGEST = 14  # of a name inside an expression
_SYMBOL = re.compile(r"\bn\d+\b")  # of a size, as captured graphs have them


@dataclass(frozen=True)
class Scope:
    """A graph with the names of its parameters, and the values of its symbolic sizes as far as they are known."""

    graph: Graph
    names: tuple[str, ...]
    number: Callable[[Size], int] | None
    called: Mapping[Node, str] = field(default_factory=dict[Node, str])
    fixed: Mapping[int, Node] = field(default_factory=dict[int, Node])  # the constants that parameters stand for
    _texts: dict[Type, str] = field(default_factory=dict[Type, str], compare=False, repr=False)
    _carried: dict[Node, tuple[str, ...]] = field(
        default_factory=dict[Node, tuple[str, ...]], compare=False, repr=False
    )

    def type_text(self, t: Type) -> str:
        """Return a type as text with the sizes of this run: ``float64[569, 30]``, or with symbols where these are unknown."""
        text = self._texts.get(t)
        if text is None:
            text = self._texts[t] = self._type_text(t)
        return text

    def _type_text(self, t: Type) -> str:
        if self.number is not None:
            with suppress(KeyError, TensorError):
                return str(t.with_shape(tuple(self.number(s) for s in t.shape), t.form))
        return str(t)

    def label(self, node: Node) -> str:
        """Return the name of an input, the value of a constant, the name of an op; of a loop also how often it runs."""
        if node.op is PARAMETER:
            return self.names[node["index"]]
        if node.op is CONSTANT:
            return short(node["bits"].array()[()])
        if node.op is CONTRACT:
            return self._product(node)
        if node.op is LOOP and (count := self.fixed_by(node.args[0])) is not None:
            return f"loop × {short(count['bits'].array()[()])}"
        return self.size_text(node["size"]) if node.op is SIZE else WORDS.get(node.op.name, node.op.name)

    def _product(self, node: Node) -> str:
        """Return the label of a contraction: ``@``, with its operands where one is transposed or they are swapped."""
        names = [self._operand(a) for a in node.args]
        text = product(node["subscripts"], names)
        plain = text.startswith("einsum(") or text == f"{names[0]} @ {names[1]}"
        return _contraction(node["subscripts"]) if plain else text

    def _operand(self, node: Node) -> str:
        """Return the name of an operand inside an expression; a dot for one that has none, or a long one."""
        while node.op is FORM:
            node = node.args[0]
        name = self.label(node) if node.op is PARAMETER else self.called.get(node, "")
        return name if name.isidentifier() and len(name) <= _LONGEST else "·"

    def fixed_by(self, node: Node) -> Node | None:
        """Return the number that a node hands on: a constant, or a size of this run."""
        source = unfolded(node)
        if source.op is SIZE and self.number is not None:
            with suppress(KeyError, TensorError):
                return constant(self.number(source["size"]))
        return source if source.op is CONSTANT else None

    def size_text(self, size: Size) -> str:
        """Return the number that a size is in this run; its symbol where that is not known, and a dot for what the graph computes."""
        if self.number is not None:
            with suppress(KeyError, TensorError):
                return str(self.number(size))
        return str(substitute(size, dict.fromkeys(nodes_of(size), atom(Symbol("·")))))

    @cached_property
    def extents(self) -> Mapping[str, str]:
        """Return the expression that the user would write for each symbol of a size."""
        return extents(self.names, self.graph.parameters)

    def symbolic(self, t: Type) -> str:
        """Return a type with sizes as the user would write them: ``float64[len(x)]``, or "" where one cannot be written."""
        if not t.shape:
            return str(t)
        dtype, bracket, rest = str(t).partition("[")
        names = set(_SYMBOL.findall(rest))
        if not names <= self.extents.keys():
            return ""
        return dtype + bracket + _SYMBOL.sub(lambda found: self.extents[found[0]], rest)

    def constant(self, node: Node) -> Node | None:
        """Return the constant that a parameter of a graph inside stands for, if it does."""
        return self.fixed.get(node["index"]) if node.op is PARAMETER else None

    def inner(
        self, node: Node, graph: Graph, naming: Naming, called: Mapping[Node, str], given_as: Mapping[int, str]
    ) -> Scope:
        """Return the scope of a graph inside a node: its parameters have the names of their operands, or of the user's variables.

        ``given_as`` has names of the node's results in this scope.
        """
        first = len(node.args) - len(graph.parameters)  # the predicate of a branch is no operand of its graphs
        given = node.args[max(first, 0) :]
        numbers = self._numbers(graph, given) if first >= 0 else None
        if first < 0:
            given = ()
        carries, counted = int(node.params.get("carries", 0)), node.op is LOOP
        results = node["body"].results if carries else ()  # of the body for the test before it, too
        names: list[str] = []
        unnamed: dict[int, str] = {}
        fixed: dict[int, Node] = {}
        for k, parameter in enumerate(graph.parameters):
            if counted and not k:
                names.append(naming.counter(node) or "index")
                continue
            operand, iteration = given[k] if k < len(given) else None, k - counted
            if 0 <= iteration < carries:
                result = results[iteration]
                names.append(naming.ends_as(result, called) or given_as.get(iteration, ""))
                if not names[-1]:
                    unnamed[k] = self._handed(parameter, operand, naming, carried=True) or f"carried {iteration + 1}"
                continue
            names.append(self._handed(parameter, operand, naming, carried=False) or f"operand {k + 1}")
            if operand is not None and (source := self.fixed_by(operand)) is not None:
                fixed[k] = source
        if unnamed:
            own = carried_for_derivatives(node, names, naming, called)
            names = [name or own[k] or unnamed[k] for k, name in enumerate(names)]
        self._carried[node] = numbered(names)
        return Scope(graph, self._carried[node], numbers, called, fixed, _carried=self._carried)

    def _handed(self, parameter: Node, operand: Node | None, naming: Naming, *, carried: bool) -> str:
        """Return the name of a parameter of a graph inside: that of its operand, or ``tape`` for a tape."""
        given = "" if operand is None else self.given(operand, naming, carried=carried)
        return given or ("tape" if parameter.type.form == "tape" else "")

    def given(self, node: Node, naming: Naming, *, carried: bool = False) -> str:
        """Return the label of an operand: its name, or its expression; for a loop's carry its name alone."""
        if node in self.called:
            return self.called[node]
        source = unfolded(node)
        if source.op is PARAMETER or (source.op is CONSTANT and not carried):
            return self.label(source)
        if source.op is SIZE and not carried:
            text = str(source["size"])
            known = set(_SYMBOL.findall(text)) <= self.extents.keys()
            return _SYMBOL.sub(lambda found: self.extents[found[0]], text) if known else self.label(source)
        if source.op in REGIONS:
            return naming.given_by(source, node) or self._carried_by(source, node)
        return self.called.get(source, "") or ("" if carried else naming.written(source))

    def _carried_by(self, loop: Node, node: Node) -> str:
        """Return the name that a loop, once drawn, has for a result."""
        while node is not loop and node.op is not ITEM:
            node = node.args[0]
        names, number = self._carried.get(loop, ()), 0 if node is loop else int(node["index"])
        return names[number + (loop.op is LOOP)] if number + (loop.op is LOOP) < len(names) else ""

    def _numbers(self, graph: Graph, given: Sequence[Node]) -> Callable[[Size], int] | None:
        if self.number is None:
            return None
        with suppress(KeyError, TensorError):
            sizes: Mapping[Any, int] = graph.bind([tuple(self.number(s) for s in n.type.shape) for n in given])
            return lambda size: evaluate(size, sizes.__getitem__)
        return None

    def symbolics(self, types: Sequence[Type]) -> str:
        """Return :meth:`symbolic` of several types."""
        found = [self.symbolic(t) for t in types]
        return ", ".join(found) if all(found) else ""


def short(value: Any, items: int = 3) -> str:
    """Return a value in a few characters.

    >>> short(np.arange(10.0))
    '[0, 1, 2, …]'
    """
    array = np.asarray(value)
    if not array.ndim:
        return f"{array.item():.6g}" if array.dtype.kind in "fc" else str(array.item())
    told = [f"{v:.4g}" if array.dtype.kind in "fc" else str(v) for v in array.flat[:items].tolist()]
    return f"[{', '.join(told)}{', …' if array.size > items else ''}]"


def _contraction(subscripts: str) -> str:
    """Return the name of a contraction: ``@`` of matrices or vectors, ``vdot`` of all elements of two arrays, else ``einsum``."""
    (left, right), out = split(subscripts)
    if len((set(left) & set(right)) - set(out)) == 1:
        return "@"
    return "vdot" if left == right and len(set(left)) == len(left) and not out else "einsum"
