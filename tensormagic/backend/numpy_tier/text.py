"""A graph as a function in plain NumPy, to be read, kept and run without this package."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tensormagic.backend.numpy_tier.helpers import helper_lines, is_lambda
from tensormagic.backend.numpy_tier.regions import TAPES, region_lines, results_text, scatter_lines, tape_text
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.graph import Graph, bare_symbol
from tensormagic.ir.node import Node
from tensormagic.ir.python_text import bracketed, python_text
from tensormagic.ir.size import atoms
from tensormagic.ir.stored import is_stored
from tensormagic.ir.type import Dim, Size
from tensormagic.ops.effects.checks import ERRORS, REQUIRE, without_value
from tensormagic.ops.effects.raising import AFTER
from tensormagic.ops.fold import ARGMAX, ARGMIN, SOFTMAX
from tensormagic.ops.form import FORM
from tensormagic.ops.indices.position import POSITION
from tensormagic.ops.leaf import CONSTANT, IOTA, SIZE
from tensormagic.ops.matrices.linalg import PINV
from tensormagic.ops.move import BROADCAST, CONCATENATE, RESHAPE, SLICE, TRANSPOSE
from tensormagic.ops.opaque import ASKED_BY, ITEM
from tensormagic.ops.pointwise import ASTYPE
from tensormagic.ops.products import product
from tensormagic.ops.reverse.tape import EMPTY
from tensormagic.ops.update import ADD_AT, SET


def numpy_source(graph: Graph) -> str:
    """Return the text of a function of the graph's parameters that computes its results with NumPy.

    Raises
    ------
    CaptureError
        If a node has no NumPy text.
    """
    imports, helpers, lines = numpy_parts(graph)
    return "\n".join([*imports, "", "", *(line for helper in helpers for line in (*helper, "", "")), *lines, ""])


def numpy_parts(graph: Graph, name: str = "f") -> tuple[list[str], list[tuple[str, ...]], list[str]]:
    """Return the parts of :func:`numpy_source`: imports, the lines of each helper function, and the function's own lines."""
    text = _Text(graph)
    results = text.written().results
    lines = text.lines_of(name, ", ".join(text.names[r] for r in results), checked=True)
    return sorted(text.imports), [text.helpers[k] for k in sorted(text.helpers)], lines


class _Text:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.names: dict[Node, str] = {}
        self.symbols: dict[str, str] = {}
        self.lines: list[str] = []
        self.imports = {"import numpy as np"}
        self.helpers: dict[str, tuple[str, ...]] = {}

    def function(self, graph: Graph, name: str) -> list[str]:
        """Return the lines of a function for an inner graph."""
        inner = _Text(graph)
        inner.imports, inner.helpers = self.imports, self.helpers
        results = inner.written().results
        return inner.lines_of(name, results_text([inner.names[r] for r in results], results))

    def written(self) -> Graph:
        """Write every statement; gives the graph."""
        for k, p in enumerate(self.graph.parameters):
            self._parameter(p, k)
        for node in self.graph.nodes:
            if node not in self.names:
                self._statement(node)
        return self.graph

    def lines_of(self, name: str, results: str, *, checked: bool = False) -> list[str]:
        """Return the function, after its statements are written; with ``checked``, it checks the sizes of its arguments."""
        parameters = ", ".join(self.names[p] for p in self.graph.parameters)
        body = [*(self._guards() if checked else ()), *self.lines, f"return {results}"]
        used = set(re.findall(r"\w+", " ".join(body)))
        body = [*(f"{symbol} = {origin}" for symbol, origin in self.symbols.items() if symbol in used), *body]
        return [f"def {name}({parameters}):", *(f"    {line}" for line in body)]

    def _guards(self) -> list[str]:
        """Checks of the sizes of the arguments that nothing else implies."""
        texts = [
            f"{self.names[p]}.shape[{axis}] == {size}"
            for p in self.graph.parameters
            for axis, size in enumerate(p.type.shape)
            if isinstance(size, int)
        ]
        own = [g for g in self.graph.guards if not any(isinstance(a, Node) for s in (g[0], g[2]) for a in atoms(s))]
        texts += [f"{self.size(left)} {relation} {self.size(right)}" for left, relation, right in own]
        return [f"if not {text}: raise ValueError({f'these arguments do not have {text}'!r})" for text in texts]

    def _parameter(self, node: Node, index: int) -> str:
        given = self.graph.names[index] if index < len(self.graph.names) else ""
        text = re.sub(r"\W", "_", given) or f"value{index}"
        text = f"{text}_" if keyword.iskeyword(text) or text in {"np", "scipy"} or text[0].isdigit() else text
        while text in self.names.values() or re.fullmatch(r"[nv]\d+", text):
            text += "_"
        self.names[node] = text
        for axis, size in enumerate(node.type.shape):
            symbol = bare_symbol(size)
            if symbol is not None:
                self.symbols.setdefault(str(symbol), f"{text}.shape[{axis}]")
        return text

    def _statement(self, node: Node) -> None:
        if node.op is CONSTANT and not node.type.shape:
            self.names[node] = _number(node, self.dtype(node))
        elif node.op is SIZE:
            self.names[node] = bracketed(self.size(node["size"]))
        elif node.op is ITEM:
            self.names[node] = f"{self.names[node.args[0]]}[{node['index']}]"
        elif node.op is AFTER:  # what it waits for has been written before
            self.names[node] = self.names[node.args[1]]
        elif node.op is REQUIRE:
            self.names[node] = self.names[node.args[0]]
            error = next(c.__name__ for c in ERRORS[node["error"]].__mro__ if c.__module__ == "builtins")
            self.lines.append(
                f"if not np.all({self.names[node.args[1]]}): raise {error}({without_value(node['message'])!r})"
            )
        elif node.op.kind == "region" or scatter_lines(node, "", [""] * 3) is not None:
            name = f"v{len(self.lines)}"
            given = [self.names[a] for a in node.args]
            self.lines += scatter_lines(node, name, given) or region_lines(self, node, name)
            self.names[node] = name
        else:
            text = self._expression(node)
            self.names[node] = f"v{len(self.lines)}"
            self.lines.append(f"{self.names[node]} = {text}")
            if node.op in {SET, ADD_AT}:
                sign = "=" if node.op is SET else "+="
                self.lines.append(f"{self.names[node]}[{self._slices(node)}] {sign} {self.names[node.args[1]]}")

    def _expression(self, node: Node) -> str:
        kind = node.op.kind
        write: Callable[[Node, list[str]], str | None] | None = getattr(self, f"_{kind}", None)
        text = write(node, [self.names[a] for a in node.args]) if write else None
        if text is None:
            raise CaptureError(f"{node.op.name} has no text in NumPy", "Use code('cpu').")
        return text

    def dtype(self, node: Node) -> str:
        """Return a node's dtype."""
        dtype = node.type.dtype
        if is_stored(dtype):
            self.imports.add("import ml_dtypes")
            return f"ml_dtypes.{dtype.name}"
        return f"np.{dtype.name}"

    # the kinds of op --------------------------------------------------------------------------------------------------

    def _leaf(self, node: Node, args: list[str]) -> str | None:
        if node.op is EMPTY:
            return tape_text(self, node, args)
        if node.op is CONSTANT:
            return f"np.array({node['bits'].array().tolist()!r}, dtype={self.dtype(node)})".replace(
                "nan", "np.nan"
            ).replace("inf", "np.inf")
        if node.op is IOTA:
            axis, rank = node["axis"], len(node["shape"])
            ramp = f"np.arange({self.size(node['shape'][axis])})"
            spread = ", ".join("-1" if k == axis else "1" for k in range(rank))
            return ramp if rank == 1 else f"np.broadcast_to({ramp}.reshape({spread}), {self.shape(node['shape'])})"
        return None

    def _called(self, node: Node, args: list[str], options: str = "") -> str | None:
        """Return a call of the NumPy or SciPy function of an op, or its formula, or None."""
        text: str = node.op.in_numpy
        if "scipy.special" in text:
            self.imports.add("import scipy.special")
        if "{" in text:
            return text.format(*args, **node.params)
        return f"{text}({', '.join(args)}{options})" if text else None

    def _pointwise(self, node: Node, args: list[str]) -> str | None:
        name = node.op.name
        if node.op is ASTYPE:
            return f"np.asarray({args[0]}).astype({self.dtype(node)}){'' if node.type.shape else '[()]'}"
        if sign := node.op.infix:
            return f"{args[0]} {sign} {args[1]}"
        if text := self._called(node, args):
            return text
        return f"np.{name}({', '.join(args)})" if hasattr(np, name) else self._helped(node, ", ".join(args))

    def _fold(self, node: Node, args: list[str]) -> str | None:
        name, axes = node.op.name, node["axes"]
        axis = f", axis={axes[0] if len(axes) == 1 else axes}"
        if node.op in {ARGMAX, ARGMIN} and len(axes) > 1:
            return None
        if node.op is not SOFTMAX or "whole" in node.params:
            if text := self._called(node, args, axis):
                return text
            if hasattr(np, name):
                return f"np.{name}({args[0]}{axis})"
        return self._helped(node, f"{args[0]}{axis}")

    def _move(self, node: Node, args: list[str]) -> str | None:
        if node.op is BROADCAST:
            return f"np.broadcast_to({args[0]}, {self.shape(node['shape'])})"
        if node.op is RESHAPE:
            return f"np.reshape({args[0]}, {self.shape(node['shape'])}){'' if node['shape'] else '[()]'}"
        if node.op is TRANSPOSE:
            return f"np.transpose({args[0]}, {node['permutation']})"
        if node.op is SLICE:
            return f"{args[0]}[{self._slices(node)}]"
        if node.op is CONCATENATE:
            return f"np.concatenate(({', '.join(args)}), axis={node['axis']})"
        if node.op is FORM:
            return {
                "array": f"np.asarray({args[0]})",
                "scalar": f"np.asarray({args[0]})[()]",
                "python": f"np.asarray({args[0]}).item()",
            }[node["form"]]
        return None

    def _update(self, _node: Node, args: list[str]) -> str:
        return f"np.array({args[0]})"

    def _contract(self, node: Node, args: list[str]) -> str:
        written = (
            product(node["subscripts"], args) if node.type.dtype.kind in "fc" and node.type.dtype.itemsize > 2 else ""
        )
        if written and not written.startswith("einsum("):
            return f"np.{written}" if written.startswith("outer(") else written
        return f"np.einsum({node['subscripts']!r}, {', '.join(args)}, optimize=True)"

    def _opaque(self, node: Node, args: list[str]) -> str | None:
        if node.op in TAPES:
            return tape_text(self, node, args)
        meant = [(k, v) for k, v in node.params.items() if k != ASKED_BY]
        options = "".join(f", {k}={self.size(v) if isinstance(v, Dim) else repr(v)}" for k, v in meant)
        if node.op is PINV and node["rcond"] == "size":
            options = ", rtol=None"
        if node.op is POSITION:  # counts from the front, and checks
            ramp = "np.arange" if node.type.shape else "range"
            return f"{ramp}({self.size(node['extent'])})[{args[0]}]"
        if text := self._called(node, args, options):
            return text
        return None if is_lambda(node.op.numpy) else self._helped(node, f"{', '.join(args)}{options}")

    def _helped(self, node: Node, given: str) -> str | None:
        """Return a call of a helper function in the text, or None if that needs more than NumPy."""
        name = f"{node.op.name}_"
        lines = helper_lines(node.op.numpy, name)
        if not lines:
            return None
        self.helpers[name] = lines
        if any("math." in line for line in lines):
            self.imports.add("import math")
        return f"{name}({given})"

    # sizes ------------------------------------------------------------------------------------------------------------

    def _slices(self, node: Node) -> str:
        parts: list[str] = []
        for start, length, step in node["slices"]:
            first, count = self.size(start), self.size(length)
            if isinstance(start, int) and isinstance(length, int):
                stop = start + length * step
                stride = f":{step}" if step != 1 else ""
                parts.append(f"{first}:{stop if stop >= 0 else ''}{stride}" if length else "0:0")
            elif step == 1:
                parts.append(f"{first}:{first} + {count}")
            elif step > 0:
                parts.append(f"{first}:{first} + ({count}) * {step}:{step}")
            else:
                parts.append(
                    f"np.arange({count}) * {step} + {first}"
                    if len(node["slices"]) == 1
                    else self._flipped(start, length, step)
                )
        return ", ".join(parts) or "()"

    def _flipped(self, start: Size, length: Size, step: int) -> str:
        """Return a backward slice; its stop is None if it lies before the axis."""
        stop = f"({self.size(start)}) + ({self.size(length)}) * {step}"
        return f"slice({self.size(start)}, ({stop}) if ({stop}) >= 0 else None, {step})"

    def shape(self, shape: tuple[Size, ...]) -> str:
        """Return a shape."""
        return f"({''.join(f'{self.size(s)}, ' for s in shape)})"

    def size(self, size: Size) -> str:
        """Return a size."""
        return python_text(size, self._atom)

    def _atom(self, atom: Any) -> str:
        return self.names[atom] if isinstance(atom, Node) else str(atom)


def _number(node: Node, dtype: str) -> str:
    value = node["bits"].array()[()].item()
    text = repr(value) if np.isfinite(value) else f"np.{value!r}" if value > 0 or value != value else "-np.inf"  # noqa: PLR0124 (nan)
    return f"({text})" if node.type.form == "python" else f"{dtype.replace('bool', 'bool_')}({text})"
