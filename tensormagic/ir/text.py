"""Graphs as text that can be read back: tests are files, and the cache key is text."""

from __future__ import annotations

import ast
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.ir.errors import ParseError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Bits, Node, make
from tensormagic.ir.size import Dim, Size, apply, atom, symbol
from tensormagic.ir.size import text as size_as_text
from tensormagic.ir.stored import dtype_of
from tensormagic.ir.type import Form, Type

_PYTHON = {"float": np.float64, "int": np.int64, "bool": np.bool_, "complex": np.complex128}
_APPLY = {"floordiv", "mod", "min", "max"}


def show(graph: Graph) -> str:
    """Return the text of ``graph``; its regions come first, numbered ``@0``, ``@1`` and so on."""
    regions: dict[Graph, str] = {}
    main = _show_one(graph, regions)
    return "\n".join([*(f"{name} = {_show_one(region, regions)}" for region, name in regions.items()), main])


def about(graph: Graph) -> str:
    """Return the names of parameters and sizes as a comment for above the text; empty if no names are known."""
    if len(graph.names) != len(graph.parameters) or not all(map(str.isidentifier, graph.names)):
        return ""
    called = [f"%{k} is {name}" for k, name in enumerate(graph.names)]
    sizes = [f"{symbol_} is {said}" for symbol_, said in extents(graph.names, graph.parameters).items()]
    told = ["a guard is what sizes of arguments have to satisfy"] if graph.guards else []
    return f"# {'; '.join(', '.join(part) for part in (called, sizes, told) if part)}\n" if called else ""


def extents(names: Sequence[str], parameters: Sequence[Node]) -> dict[str, str]:
    """Return how a user would write each symbol: as the axis of the first named input that has it."""
    found: dict[str, str] = {}
    for name, node in zip(names, parameters, strict=True):
        for axis, size in enumerate(node.type.shape if name.isidentifier() else ()):
            if str(size).isidentifier():
                found.setdefault(str(size), f"{name}.shape[{axis}]" if len(node.type.shape) > 1 else f"len({name})")
    return found


def _show_one(graph: Graph, regions: dict[Graph, str]) -> str:
    parameters = set(graph.parameters)
    rest = [n for n in graph.nodes if n not in parameters]
    numbers = {node: f"%{k}" for k, node in enumerate((*graph.parameters, *rest))}
    sizes = _Sizes(numbers, regions)
    head = ", ".join(f"{numbers[p]}: {sizes.type(p.type)}{sizes.within(p)}" for p in graph.parameters)
    lines = [f"graph({head}) {{"]
    lines += ["  " + _show_node(node, numbers, sizes) for node in rest]
    lines += [f"  guard {sizes.value(left)} {relation} {sizes.value(right)}" for left, relation, right in graph.guards]
    lines.append(f"  return {', '.join(numbers[r] for r in graph.results)}")
    return "\n".join([*lines, "}"])


def _show_node(node: Node, numbers: Mapping[Node, str], sizes: _Sizes) -> str:
    args = ", ".join(numbers[a] for a in node.args)
    params = "".join(f" {k}={sizes.value(v)}" for k, v in node.param_items)
    return f"{numbers[node]} = {node.op.name}({args}){params} : {', '.join(map(sizes.type, node.types))}"


_SIGNS = re.compile(r"\W")  # in symbols of a region that have no numbers


@dataclass(frozen=True, eq=False)
class _Sizes:
    """Writes the values of one graph as text: nodes and regions by their numbers."""

    numbers: Mapping[Node, str]
    regions: dict[Graph, str]

    def size(self, size: Size) -> str:
        return size_as_text(size, lambda a: self.numbers[a] if isinstance(a, Node) else _SIGNS.sub("_", str(a)))

    def type(self, t: Type) -> str:
        """Return a type as text, with its sizes as they are written, whatever sizes were seen at capture."""
        return f"{t.dtype}[{', '.join(map(self.size, t.shape))}]" if t.shape else f"{t}"

    def within(self, parameter: Node) -> str:
        """Return the known bounds of a parameter's value as text."""
        low, high = parameter.params.get("within") or (None, None)
        below = "" if low is None else f" from {self.value(low)}"
        return below if high is None else f"{below} below {self.value(high)}"

    def value(self, value: Any) -> str:
        if isinstance(value, Graph):
            for inner in value.nodes:
                for v in inner.params.values():
                    if isinstance(v, Graph):
                        self.value(v)
            return self.regions.setdefault(value, f"@{len(self.regions)}")
        if isinstance(value, Bits):
            if value.shape == () and _is_plain(value):
                return repr(value.array().item())
            return f"bits({value.dtype!r},{value.shape!r},{value.data.hex()!r})".replace(" ", "")
        if isinstance(value, Dim):
            return self.size(value).replace("^", "**").replace(" ", "")
        if isinstance(value, tuple):
            inner = ",".join(self.value(v) for v in value)
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        return repr(value).replace(" ", "\\x20") if isinstance(value, str) else repr(value)


def _is_plain(bits: Bits) -> bool:
    """Return whether Python's text of a number reads back as the same bits."""
    number = bits.array().item()
    return isinstance(number, int | float) and np.isfinite(number) and Bits.of(number) == bits


_LINE = re.compile(r"(%\d+) = (\w+)\(([^)]*)\)((?: \w+=\S+)*) : (.+)$")


def parse(text: str, ops: Mapping[str, Any]) -> Graph:
    """Read a graph from text; ``ops`` maps names to ops, and lines that begin with # are comments.

    Raises
    ------
    ParseError
        If the text is no graph; it names the line.
    """
    regions: dict[str, Graph] = {}
    block: list[str] = []
    graph: Graph | None = None
    for line in text.strip().splitlines():
        if line.startswith("#"):
            continue
        block.append(line)
        if line.strip() == "}":
            name, graph = _parse_one(block, ops, regions)
            if name:
                regions[name] = graph
            block = []
    if graph is None or block:
        raise ParseError("the text has no closed graph")
    return graph


def _parse_one(lines: list[str], ops: Mapping[str, Any], regions: Mapping[str, Graph]) -> tuple[str, Graph]:
    head = re.match(r"(?:(@\d+) = )?graph\((.*)\) \{$", lines[0].strip())
    if head is None:
        raise ParseError(f"not the head of a graph: {lines[0]!r}")
    with _reading(lines[0]):
        items = _split(head[2])
        nodes = {
            f"%{k}": _parse_parameter(k, item, ops, {})
            for k, item in enumerate(items)
            if len(_NUMBER.findall(item)) == 1
        }
        waiting = [k for k in range(len(items)) if f"%{k}" not in nodes]
        while waiting:  # after the parameters that their sizes and bounds mention
            k = next((k for k in waiting if set(_NUMBER.findall(items[k])[1:]) <= set(nodes)), waiting[0])
            nodes[f"%{k}"] = _parse_parameter(k, items[k], ops, nodes)
            waiting.remove(k)
    parameters = [nodes[f"%{k}"] for k in range(len(items))]
    results: tuple[Node, ...] = ()
    guards: list[tuple[Size, str, Size]] = []
    for line in map(str.strip, lines[1:-1]):
        with _reading(line):
            if line.startswith("return"):
                results = tuple(nodes[name] for name in line[6:].replace(" ", "").split(",") if name)
            elif line.startswith("guard "):
                left, relation, right = line[6:].split(" ")
                guards.append((_size(left, nodes), relation, _size(right, nodes)))
            else:
                name, node = _parse_node(line, nodes, ops, regions)
                nodes[name] = node
    return head[1] or "", Graph(tuple(parameters), results, tuple(guards))


@contextmanager
def _reading(line: str) -> Generator[None]:
    """Turn any error while reading a line into a ParseError that shows the line."""
    try:
        yield
    except ParseError:
        raise
    except (LookupError, TypeError, ValueError, SyntaxError) as error:
        raise ParseError(f"not a line of a graph: {line!r}: {error}") from None


_NUMBER = re.compile(r"%\d+")
_PARAMETER = re.compile(r"%\d+: (.*?)(?: from (\S+))?(?: below (\S+))?$")


def _parse_parameter(index: int, item: str, ops: Mapping[str, Any], nodes: Mapping[str, Node]) -> Node:
    found = _PARAMETER.match(item)
    if found is None:
        raise ParseError(f"not a parameter: {item!r}")
    ends = tuple(None if end is None else _size(end, nodes) for end in (found[2], found[3]))
    known: dict[str, Any] = {} if ends == (None, None) else {"within": ends}
    return make(ops["parameter"], type=_typed(found[1], nodes), index=index, **known)


def _parse_node(
    line: str, nodes: Mapping[str, Node], ops: Mapping[str, Any], regions: Mapping[str, Graph]
) -> tuple[str, Node]:
    found = _LINE.match(line)
    if found is None or found[2] not in ops:
        raise ParseError(f"not a node: {line!r}")
    params = {}
    for item in found[4].split():
        key, _, value = item.partition("=")
        given = regions[value] if value.startswith("@") else _read(value, nodes)
        params[key] = Bits.of(given) if found[2] == "constant" and isinstance(given, bool | int | float) else given
    args = [nodes[name] for name in found[3].replace(" ", "").split(",") if name]
    op = ops[found[2]]
    declared = None if args or op.kind != "leaf" else _typed(found[5], nodes)
    return found[1], make(op, args, type=declared, **params)


def _split(text: str) -> list[str]:
    """Return ``text`` split at the commas outside brackets."""
    parts, depth, begin = [], 0, 0
    for k, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if character == "," and not depth:
            parts.append(text[begin:k])
            begin = k + 1
    return [p.strip() for p in (*parts, text[begin:]) if p.strip()]


def parse_type(text: str) -> Type:
    """Return the type that a text such as ``float64[n, 3]`` names."""
    return _typed(text, {})


def _typed(text: str, nodes: Mapping[str, Node]) -> Type:
    text = text.strip()
    if text in _PYTHON:
        return Type(np.dtype(_PYTHON[text]), (), "python")
    name, bracket, sizes = text.partition("[")
    if bracket and not sizes.endswith("]"):
        raise ParseError(f"not a type: {text!r}")
    if name == "tape":
        return Type(dtype_of(sizes.removesuffix("]")), (), "tape")
    form: Form = "array" if bracket else "scalar"
    return Type(dtype_of(name.rstrip("_")), tuple(_size(s, nodes) for s in _split(sizes.removesuffix("]"))), form)


def _size(text: str, nodes: Mapping[str, Node]) -> Size:
    return _read(text.replace("^", "**"), nodes)


def _read(text: str, nodes: Mapping[str, Node]) -> Any:
    """Return the value of an expression; ``%3`` means node number 3 as a size."""
    if "'" not in text and '"' not in text:
        text = text.replace("%", _NODE)
    return _evaluate(ast.parse(text.strip(), mode="eval").body, nodes)


_NODE = "node_number_"


def _evaluate(tree: ast.AST, nodes: Mapping[str, Node]) -> Any:
    def inner(part: ast.AST) -> Any:
        return _evaluate(part, nodes)

    match tree:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return _named(name, nodes)
        case ast.Tuple(elts=items):
            return tuple(map(inner, items))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return inner(operand) * -1
        case ast.BinOp(left=left, op=op, right=right):
            return _binary(op, inner(left), inner(right))
        case ast.Call(func=ast.Name(id="bits"), args=[dtype, shape, data]):
            return Bits(inner(dtype), inner(shape), bytes.fromhex(inner(data)))
        case ast.Call(func=ast.Name(id=name), args=[left, right]) if name in _APPLY:
            return apply(name, inner(left), inner(right))
        case _:
            raise ParseError(f"not a parameter: {ast.unparse(tree) if isinstance(tree, ast.expr) else tree!r}")


def _named(name: str, nodes: Mapping[str, Node]) -> Size:
    """Return a symbol, or a node as a size; a symbol named ``any0`` may be 0 or 1."""
    if name.startswith(_NODE):
        return atom(nodes[f"%{name.removeprefix(_NODE)}"])
    return symbol(name, None, 0 if re.fullmatch(r"any\d+", name) else 2)


def _binary(op: ast.operator, left: Any, right: Any) -> Any:
    match op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.Pow():
            result: Any = 1
            for _ in range(right):
                result = left * result
            return result
        case _:
            raise ParseError("sizes are sums and products")
