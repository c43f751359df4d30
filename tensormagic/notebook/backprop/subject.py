"""What a view of backpropagation is about: a closed graph of one number, the values of its inputs, and where it was written."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import linecache
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tensormagic import session
from tensormagic.capture.random import generators
from tensormagic.capture.tree import flatten
from tensormagic.capture.values.value import Tensor
from tensormagic.config import config
from tensormagic.functions.calls.callables import of_callable
from tensormagic.functions.calls.function import Function
from tensormagic.functions.calls.program import trace
from tensormagic.ir import site
from tensormagic.ir.closing import Closed
from tensormagic.ir.errors import CaptureError, DifferentiationError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.plain_texts import key_text
from tensormagic.notebook.pictures.adaptor import source_of
from tensormagic.notebook.pictures.naming import Naming, parsed


@dataclass(frozen=True, eq=False)
class Subject:
    """A number, as a graph over inputs.

    Parameters
    ----------
    name
        The name of the number.
    graph
        The graph as it was captured, not rewritten.
    values
        The values of its parameters.
    lens
        Tells where its nodes were written.
    file
        The file of the captured function, if it is not in a cell.
    wanted
        The inputs whose gradients are asked for; empty for all of them.
    """

    name: str
    graph: Graph
    values: tuple[Any, ...]
    lens: site.Lens
    file: str = ""
    wanted: frozenset[str] = frozenset()

    def wants(self, node: Node) -> bool:
        """Return whether the gradient with respect to an input is asked for: that of each input, if none was named."""
        name = self.graph.names[node["index"]]
        return not self.wanted or name in self.wanted or re.split(r"[.\[]", name)[0] in self.wanted

    def site(self, node: Node) -> site.Site | None:
        """Return where a node was written, first in the latest run, or None for inputs and for constants."""
        return min(self._spans(node), key=lambda s: (s.line, s.column), default=None)

    def _spans(self, node: Node) -> list[site.Site]:
        """Return the spans of a node in the cell that has met it last: equal nodes of earlier cells may have had other names."""
        spans = [s for s in self.lens.of(node) if s.role == "value"] if node.args else []
        return [s for s in spans if s.run == max(s.run for s in spans)]

    def text_of(self, cell: str) -> str:
        """Return the text of a cell, or of the function's own file; nothing where it is not known."""
        own = self.file if self.file.rpartition("/")[2] == cell else ""
        return source_of(cell) or "".join(linecache.getlines(own))

    def naming(self) -> Naming:
        """Return the names and expressions that the user's texts have for the nodes."""
        return Naming(self._spans, self.text_of)

    def names(self, nodes: Sequence[Node]) -> dict[Node, str]:
        """Return the variables that the user's code binds to nodes: those whose place is just what an assignment assigns."""
        found: dict[Node, str] = {}
        bound: dict[str, dict[tuple[int, ...], str]] = {}
        for node, span in [(n, s) for n in nodes for s in self._spans(n)]:
            if span.cell not in bound:
                bound[span.cell] = dict(_assigned(self.text_of(span.cell)))
            name = bound[span.cell].get((span.line, span.column, span.end_line, span.end_column))
            if name is not None:
                found[node] = name  # of several nodes that one expression made the last one is its value
        last = {name: node for node, name in found.items()}
        return {node: name for node, name in found.items() if last[name] is node}


def _assigned(source: str) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield the spans of assigned expressions, and the names that they are bound to."""
    tree = parsed(source)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, spans = node.targets[0], [node.value]
        elif isinstance(node, ast.AugAssign):
            target, spans = node.target, [node]
        else:
            continue
        if isinstance(target, ast.Name):
            for part in spans:
                yield (part.lineno, part.col_offset, part.end_lineno or 0, part.end_col_offset or 0), target.id


def of_function(fun: Any, args: tuple[Any, ...]) -> Subject:
    """Return a function of arrays at some arguments; variables that it reads are inputs, too.

    Raises
    ------
    CaptureError
        If it stores into an argument.
    DifferentiationError
        If it does not return exactly one value.
    """
    function = of_callable(fun)
    leaves, build = flatten(args)
    args = build(iter([v.numpy() if isinstance(v, Tensor) else v for v in leaves]))
    options: dict[str, Any] = {}
    if function.complete is not None:
        args, options = function.complete(args, options)
    given, _ = function.kind(args, options)
    _, given = function.specialise(given)
    names = [n for n, moving in zip(_names(function, args, options), given.moving, strict=True) if moving]
    with config.using(math=function.math):
        found = trace(function.body, given, [*names, *(name for name, _ in given.reads)], function.name)
    if found.stores.inputs:
        raise CaptureError(
            f"{function.name} changes its arguments, or draws from a generator outside it, "
            "and the view would do so at every step",
            "Work on a copy, or make the generator inside the function.",
        )
    results = found.results[: len(found.gave)]  # without the results that hold the classes of numbers
    if len(results) != 1:
        raise DifferentiationError(
            f"{function.name} returns {len(results)} values, but a gradient is that of one number",
            "Return one value.",
        )
    closed = session.close_over(results, found.leaves, found.guards, use_values=False)
    known = dict(zip(found.leaves, given.values, strict=True))
    values = [known[leaf] if leaf in known else session.value_of(leaf) for leaf in closed.leaves]
    file = getattr(getattr(inspect.unwrap(function), "__code__", None), "co_filename", "")
    return _subject(function.name if function.name.isidentifier() else "value", closed, values, file)


def _names(function: Function, args: tuple[Any, ...], options: dict[str, Any]) -> list[str]:
    """Return a name for each leaf of the arguments, in order."""
    found: list[str] = []
    for k, value in enumerate(args):
        name = function.parameters[k] if k < len(function.parameters) else f"argument {k + 1}"
        found += _leaf_names(name, value)
    for name, value in options.items():
        found += _leaf_names(name, value)
    return found


def _leaf_names(name: str, value: Any) -> list[str]:
    fields: Any = getattr(value, "_fields", None)  # of a named tuple
    if isinstance(value, dict):
        parts = [(f"{name}[{key_text(key)}]", part) for key, part in value.items()]
    elif isinstance(value, tuple) and fields is not None:
        parts = [(f"{name}.{key}", part) for key, part in zip(fields, value, strict=True)]
    elif isinstance(value, tuple | list):
        parts = [(f"{name}[{k}]", part) for k, part in enumerate(value)]
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = [(f"{name}.{f.name}", getattr(value, f.name)) for f in dataclasses.fields(value)]
    else:
        return [name] * len(flatten(value)[0])
    return [leaf for part_name, part in parts for leaf in _leaf_names(part_name, part)]


def _subject(name: str, closed: Closed, values: Sequence[Any], file: str = "") -> Subject:
    if " = tell(" in closed.graph.text:
        raise CaptureError(
            "this prints, and the view would print at every step", "Remove the print from the captured loop."
        )
    drawn = [generators.state_of(v) if generators.is_generator(v) else v for v in values]
    return Subject(name, closed.graph, tuple(drawn), site.Lens(closed.mapping), file)
