"""Graphs as text that round-trips: tests are files, and the cache key is text."""

from __future__ import annotations

import ast
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from tensormagic.ir.errors import ParseError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Bits, Node, make
from tensormagic.ir.type import Dim, Form, Size, Type, apply, symbol

_PYTHON = {"float": np.float64, "int": np.int64, "bool": np.bool_, "complex": np.complex128}
_APPLY = {"floordiv", "mod", "min", "max"}


def show(graph: Graph) -> str:
    """The text of ``graph``; its regions come first, numbered ``@0``, ``@1`` and so on."""
    regions: dict[Graph, str] = {}
    main = _show_one(graph, regions)
    return "\n".join([*(f"{name} = {_show_one(region, regions)}" for region, name in regions.items()), main])


def _show_one(graph: Graph, regions: dict[Graph, str]) -> str:
    parameters = set(graph.parameters)
    rest = [n for n in graph.nodes if n not in parameters]
    numbers = {node: f"%{k}" for k, node in enumerate((*graph.parameters, *rest))}
    head = ", ".join(f"{numbers[p]}: {_type(p.type)}" for p in graph.parameters)
    lines = [f"graph({head}) {{"]
    lines += ["  " + _show_node(node, numbers, regions) for node in rest]
    lines += [
        f"  guard {_value(left, regions)} {relation} {_value(right, regions)}" for left, relation, right in graph.guards
    ]
    lines.append(f"  return {', '.join(numbers[r] for r in graph.results)}")
    return "\n".join([*lines, "}"])


def _show_node(node: Node, numbers: Mapping[Node, str], regions: dict[Graph, str]) -> str:
    args = ", ".join(numbers[a] for a in node.args)
    params = "".join(f" {k}={_value(v, regions)}" for k, v in node.param_items)
    return f"{numbers[node]} = {node.op.name}({args}){params} : {', '.join(map(_type, node.types))}"


def _type(t: Type) -> str:
    """A type with its sizes as they are written, whatever sizes were seen."""
    return f"{t.dtype}[{', '.join(map(str, t.shape))}]" if t.shape else f"{t}"


def _value(value: Any, regions: dict[Graph, str]) -> str:
    if isinstance(value, Graph):
        for inner in value.nodes:
            for v in inner.params.values():
                if isinstance(v, Graph):
                    _value(v, regions)
        return regions.setdefault(value, f"@{len(regions)}")
    if isinstance(value, Bits):
        return f"bits({value.dtype!r},{value.shape!r},{value.data.hex()!r})".replace(" ", "")
    if isinstance(value, Dim):
        return str(value).replace("^", "**").replace(" ", "")
    if isinstance(value, tuple):
        inner = ",".join(_value(v, regions) for v in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value).replace(" ", "\\x20") if isinstance(value, str) else repr(value)


_LINE = re.compile(r"(%\d+) = (\w+)\(([^)]*)\)((?: \w+=\S+)*) : (.+)$")


def parse(text: str, ops: Mapping[str, Any]) -> Graph:
    """The graph that ``text`` shows, with ``ops`` giving the op of each name.

    Raises
    ------
    ParseError
        Where the text is no graph, with the line.
    """
    regions: dict[str, Graph] = {}
    block: list[str] = []
    graph: Graph | None = None
    for line in text.strip().splitlines():
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
        parameters = [_parse_parameter(k, item, ops) for k, item in enumerate(_split(head[2]))]
    nodes = {f"%{k}": p for k, p in enumerate(parameters)}
    results: tuple[Node, ...] = ()
    guards: list[tuple[Size, str, Size]] = []
    for line in map(str.strip, lines[1:-1]):
        with _reading(line):
            if line.startswith("return"):
                results = tuple(nodes[name] for name in line[6:].replace(" ", "").split(",") if name)
            elif line.startswith("guard "):
                left, relation, right = line[6:].split(" ")
                guards.append((_size(left), relation, _size(right)))
            else:
                name, node = _parse_node(line, nodes, ops, regions)
                nodes[name] = node
    return head[1] or "", Graph(tuple(parameters), results, tuple(guards))


@contextmanager
def _reading(line: str) -> Generator[None]:
    """Whatever is wrong with a line is a ParseError that shows it."""
    try:
        yield
    except ParseError:
        raise
    except (LookupError, TypeError, ValueError, SyntaxError) as error:
        raise ParseError(f"not a line of a graph: {line!r}: {error}") from None


def _parse_parameter(index: int, item: str, ops: Mapping[str, Any]) -> Node:
    return make(ops["parameter"], type=parse_type(item.partition(": ")[2]), index=index)


def _parse_node(
    line: str, nodes: Mapping[str, Node], ops: Mapping[str, Any], regions: Mapping[str, Graph]
) -> tuple[str, Node]:
    found = _LINE.match(line)
    if found is None or found[2] not in ops:
        raise ParseError(f"not a node: {line!r}")
    params = {}
    for item in found[4].split():
        key, _, value = item.partition("=")
        params[key] = _parse_value(value, regions)
    args = [nodes[name] for name in found[3].replace(" ", "").split(",") if name]
    op = ops[found[2]]
    types = [parse_type(t) for t in _split(found[5])]
    declared = types[0] if not args and getattr(op, "kind", "") == "leaf" else None
    return found[1], make(op, args, type=declared, **params)


def _split(text: str) -> list[str]:
    """``text`` at the commas outside brackets."""
    parts, depth, begin = [], 0, 0
    for k, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if character == "," and not depth:
            parts.append(text[begin:k])
            begin = k + 1
    return [p.strip() for p in (*parts, text[begin:]) if p.strip()]


def parse_type(text: str) -> Type:
    """The type that ``float64[n, 3]`` says."""
    text = text.strip()
    if text in _PYTHON:
        return Type(np.dtype(_PYTHON[text]), (), "python")
    name, bracket, sizes = text.partition("[")
    if bracket and not sizes.endswith("]"):
        raise ParseError(f"not a type: {text!r}")
    form: Form = "array" if bracket else "scalar"
    return Type(np.dtype(name.rstrip("_")), tuple(_size(s) for s in _split(sizes.removesuffix("]"))), form)


def _parse_value(text: str, regions: Mapping[str, Graph]) -> Any:
    if text.startswith("@"):
        return regions[text]
    return _evaluate(ast.parse(text, mode="eval").body)


def _size(text: str) -> Size:
    return _evaluate(ast.parse(text.replace("^", "**").strip(), mode="eval").body)


def _evaluate(tree: ast.AST) -> Any:
    match tree:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return symbol(name)
        case ast.Tuple(elts=items):
            return tuple(_evaluate(i) for i in items)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _evaluate(operand) * -1
        case ast.BinOp(left=left, op=op, right=right):
            return _binary(op, _evaluate(left), _evaluate(right))
        case ast.Call(func=ast.Name(id="bits"), args=[dtype, shape, data]):
            return Bits(_evaluate(dtype), _evaluate(shape), bytes.fromhex(_evaluate(data)))
        case ast.Call(func=ast.Name(id=name), args=[left, right]) if name in _APPLY:
            return apply(name, _evaluate(left), _evaluate(right))
        case _:
            raise ParseError(f"not a parameter: {ast.unparse(tree) if isinstance(tree, ast.expr) else tree!r}")


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
