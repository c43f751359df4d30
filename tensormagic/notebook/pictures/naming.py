"""Name the nodes of a graph as the user does, by assignments in the text of cells."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from tensormagic.capture.staging.syntax.syntax_trees import walk
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.site import Site
from tensormagic.notebook.pictures.carrying import CARRYING
from tensormagic.ops.leaf import CONSTANT, SIZE
from tensormagic.ops.opaque import ITEM, Store
from tensormagic.transform.rewriting import Firing

STORED = " = ·"  # behind a part of an array that is stored into
KEPT = "keepdims=True"
MOST_PART = 28  # characters of a part of an array
MOST_WRITTEN = 18  # characters of an expression that stands for a name
Place = tuple[int, int, int, int]
Known = tuple[str, str, Place]  # an operation, the cell and the place in its text


@dataclass
class _Text:
    """One cell's text: the name that each expression is assigned to, the variable of each loop, and parts of arrays, by place."""

    lines: list[str]
    assigned: dict[Place, str] = field(default_factory=dict[Place, str])
    counted: dict[Place, str] = field(default_factory=dict[Place, str])
    parts: dict[Place, str] = field(default_factory=dict[Place, str])
    calls: dict[Place, str] = field(default_factory=dict[Place, str])
    operators: set[Place] = field(default_factory=set[Place])
    read: dict[Place, Written] = field(default_factory=dict["Place", "Written"])

    def made_of(self, place: Place) -> str:
        """Return the call or the indexing expression at a place, to which several operations may belong."""
        part = self.parts.get(place, "")
        return self.calls.get(place, "") or (f"{part}{STORED}" if part and place not in self.read else part)


@dataclass(frozen=True)
class Written:
    """A call, or a part of an array, with dots where operands stand: ``clip(·, 0, 1)``, ``·[2]``.

    Parameters
    ----------
    text
        The whole.
    slots
        What stands at the dots: its place, and its text.
    receiver
        What the method is of, where there are other operands; of a module's function, the module.
    """

    text: str
    slots: tuple[tuple[Place, str], ...]
    receiver: tuple[Place, str] | None = None


def parsed(source: str) -> ast.Module | None:
    r"""Return the syntax tree of a cell without its magics, or None if it is not valid Python.

    >>> [type(part).__name__ for part in parsed("%%tensor -t\nx = 1").body]
    ['Assign']
    """
    plain = "\n".join("" if line.startswith("%") else line for line in source.splitlines())
    try:
        return ast.parse(plain)
    except (SyntaxError, ValueError):  # a cell with a line for the shell, or of another language
        return None


def _place(part: ast.AST) -> Place:
    return (
        getattr(part, "lineno", 0),
        getattr(part, "col_offset", 0),
        getattr(part, "end_lineno", 0) or 0,
        getattr(part, "end_col_offset", 0) or 0,
    )


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.AST]]:
    """Yield names and the expressions that they are assigned."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        for one, part in zip(target.elts, value.elts, strict=False):
            yield from _pairs(one, part)


def _named(part: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the names that one statement assigns, each with the part of the text that is its value."""
    match part:
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name)) as target]):
            yield name, target
        case ast.AugAssign(target=ast.Subscript(value=ast.Name(id=name)) as target):
            yield from ((name, target), (name, part))
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _pairs(target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            yield from _pairs(target, value)
        case ast.AugAssign(target=ast.Name(id=name)):
            yield name, part
        case _:
            pass


@lru_cache(maxsize=64)
def _read(source: str) -> _Text:
    text, tree = _Text(source.splitlines()), parsed(source)
    for part in walk(tree) if tree is not None else ():
        text.assigned.update((_place(value), name) for name, value in _named(part))
        if isinstance(part, ast.For) and isinstance(part.target, ast.Name):
            text.counted[_place(part.iter)] = part.target.id
        if isinstance(part, ast.Subscript):
            text.parts[_place(part)] = _part(part)
            if isinstance(part.ctx, ast.Load):
                index = ast.unparse(ast.Subscript(ast.Name("x"), part.slice, part.ctx))[1:]
                text.read[_place(part)] = Written(f"·{index}", (_slot(part.value),))
        if isinstance(part, ast.BinOp | ast.UnaryOp | ast.BoolOp | ast.Compare):
            text.operators.add(_place(part))
        if isinstance(part, ast.Call) and (call := _call(part)):
            text.calls[_place(part)] = call
            text.read[_place(part)] = _written(part, call)
    return text


def _part(part: ast.Subscript) -> str:
    """Return a part of an array as it was written; if that is long, without the places."""
    whole = ast.unparse(part)
    short = f"{ast.unparse(part.value)}[…]"
    return next((text for text in (whole, short) if len(text) <= MOST_PART), "")


def _call(part: ast.Call) -> str:
    """Return the label of a call with its number arguments: ``mean``, ``clip(·, 0, 1)``."""
    name = (
        part.func.id
        if isinstance(part.func, ast.Name)
        else part.func.attr
        if isinstance(part.func, ast.Attribute)
        else ""
    )
    given = [_number(one) for one in part.args]
    named = {k.arg: f"{k.arg}={_number(k.value)}" for k in part.keywords if k.arg and _number(k.value)}
    if not any(given) and not named:
        return name
    values = [text or "·" for text in given]
    values = values if "·" in values else ["·", *values]
    shorter = [text for key, text in named.items() if key != "keepdims"]
    texts = [f"{name}({', '.join([*values, *more])})" for more in (named.values(), shorter)]
    return next((text for text in texts if len(text) <= MOST_PART), name)


def _slot(part: ast.expr) -> tuple[Place, str]:
    return _place(part), ast.unparse(part)


def _written(part: ast.Call, call: str) -> Written:
    """Return a call with its operands: of ``z.mean()`` as of ``np.mean(z)`` the array."""
    given = [p for p in [*part.args, *(k.value for k in part.keywords)] if not _number(p)]
    receiver = part.func.value if isinstance(part.func, ast.Attribute) else None
    slots = tuple(map(_slot, given or ([receiver] if receiver is not None else [])))
    text = call if "(" in call else f"{call}({', '.join('·' for _ in slots)})"
    text = f"{text[:-1]}, {KEPT})" if KEPT not in text and _keeps_axes(part) else text
    return Written(text, slots, _slot(receiver) if given and receiver is not None else None)


def _keeps_axes(part: ast.Call) -> bool:
    """Return whether a reduction has ``keepdims=True``, without which the written expression would have another shape."""
    kept = [k.value for k in part.keywords if k.arg == "keepdims"]
    return bool(kept) and _number(kept[0]) == "True"


def _number(part: ast.expr) -> str:
    """Return a number, or a text, as it was written in a call."""
    whole = part.operand if isinstance(part, ast.UnaryOp) else part
    return ast.unparse(part) if isinstance(whole, ast.Constant) else ""


def unfolded(node: Node) -> Node:
    """Return the node that makes the value which a node only passes on."""
    while node.op in CARRYING and node.args:
        node = node.args[0]
    return node


@dataclass
class Naming:
    """Reads names out of the texts of cells.

    Parameters
    ----------
    spans
        Gives the places that a node comes from.
    source_of
        Gives the text of a cell by its label.
    cell
        The label of the shown cell; empty for other functions.
    """

    spans: Callable[[Node], Sequence[Site]]
    source_of: Callable[[str], str]
    cell: str = ""
    texts: dict[str, _Text] = field(default_factory=dict[str, _Text])

    def names(self, graph: Graph) -> dict[Node, str]:
        """Return the nodes of a graph that a name is bound to; of several from one expression, the last."""
        found: dict[tuple[str, Place], Node] = {}
        for node in graph.nodes:
            # a number, or a size, is cast for something else in the same expression; several results are no value
            if not node.args or len(node.types) > 1 or unfolded(node).op in {CONSTANT, SIZE}:
                continue
            carries = node.op in CARRYING
            for _, cell, place in self._keys(node):
                name = self._text(cell).assigned.get(place)
                if carries and not self._is_made_in(unfolded(node), cell):
                    continue  # an earlier cell has cast or stretched the same value, for something else
                before = found.get((cell, place))
                if name is None:
                    continue
                if before is None and node.op in CARRYING and place in self._text(cell).operators:
                    continue  # what an operand is cast or stretched to; the operator itself may stand in a loop
                value = node
                if before is not None and node.op in CARRYING and before.op not in CARRYING:
                    value = unfolded(node)  # checks of it may have been made after it
                    if (value.op.name, cell, place) not in self._keys(value):
                        continue
                found[cell, place] = value
        return {node: self._text(cell).assigned[place] for (cell, place), node in found.items()}

    def _is_made_in(self, node: Node, cell: str) -> bool:
        """Return whether the node was last written in a cell; an input counts as written in the shown one."""
        cells = {s.cell for s in self._last(node)} if node.args else {self.cell or cell}
        return cell in cells or not cells

    def parts(self, nodes: Iterable[Node]) -> dict[Node, str]:
        """Return how indexing was written, ``image[i:i + 30]``; of several nodes from one expression, the last read or store."""
        found: dict[tuple[str, Place, bool], Node] = {}
        for node in nodes:
            if node.op not in CARRYING:
                stores = node.op.kind == "update" or isinstance(node.op, Store)
                found |= {(cell, place, stores): node for _, cell, place in self._keys(node)}
        texts = {node: self._text(cell).parts.get(place, "") for (cell, place, _), node in found.items()}
        return {node: text for node, text in texts.items() if text}

    def calls(self, node: Node) -> tuple[str, ...]:
        """Return the calls and the parts of arrays that a node is a part of, each with its place; of other expressions the place alone."""
        found = [(self._text(cell).made_of(place), cell, place) for _, cell, place in self._keys(node)]
        return (
            tuple(f"{call}\n{cell} {place}" for call, cell, place in found) if any(call for call, *_ in found) else ()
        )

    def spelt(self, node: Node, name: str) -> str:
        """Return the name of an operation as the user has called it, where NumPy has the same function under several: ``abs``."""
        known = getattr(np, name, None)
        for _, cell, place in self._keys(node) if isinstance(known, np.ufunc) else ():
            called = self._text(cell).calls.get(place, "").partition("(")[0]
            if called and getattr(np, called, None) is known:
                return called
        return name

    def expressions(self, node: Node) -> dict[tuple[str, Place], Written | None]:
        """Return the places of a node, each with the call or the part of an array there."""
        return {(cell, place): self._text(cell).read.get(place) for _, cell, place in self._keys(node)}

    def certain(self, graph: Graph, called: dict[Node, str]) -> dict[Known, str]:
        """Return names by operation and place where these identify a node, so that they hold in rewritten graphs, too."""
        count = Counter(key for n in graph.nodes for key in self._keys(n))
        return {key: name for node, name in called.items() for key in self._keys(node) if count[key] == 1}

    def rewritten(self, fired: Sequence[Firing], known: Mapping[Known, str]) -> dict[Known, str]:
        """Return known names, and those of nodes that rules have put in the place of named ones."""
        found = dict(known)
        for one in fired:
            for op, cell, place in [*self._keys(one.before), *self._keys(one.before, rules=True)]:
                name = found.get((op, cell, place)) or found.get((f"rewritten {op}", cell, place))
                if name is not None and one.after.args:
                    found[f"rewritten {one.after.op.name}", cell, place] = name
        return found

    def still(self, graph: Graph, known: Mapping[Known, str]) -> dict[Node, str]:
        """Return the names of nodes of a rewritten graph that are unchanged, or replaced a named node."""
        keys = {
            n: [*self._keys(n), *((f"rewritten {op}", *at) for op, *at in self._keys(n, rules=True))]
            for n in graph.nodes
        }
        count = Counter(key for own in keys.values() for key in own)
        return {n: known[key] for n, own in keys.items() for key in own if key in known and count[key] == 1}  # type: ignore[index]

    def ends_as(self, result: Node, called: Mapping[Node, str]) -> str:
        """Return the name of a result of a graph inside a region; for a loop in a loop, the name of its result."""
        source = unfolded(result)
        return called.get(result, "") or called.get(source, "") or self.given_by(source, result) or self.at(source)

    def at(self, node: Node) -> str:
        """Return the name that the expression of a node is assigned to, also for a node that rules have inserted."""
        return self._assigned(node, lambda role: role != "adjoint")

    def written_as(self, node: Node) -> str:
        """Return the name that is assigned a node as the user wrote it."""
        return self._assigned(node, lambda role: role == "value")

    def _assigned(self, node: Node, is_meant: Callable[[str], bool]) -> str:
        """Return the one name that is assigned at the places of a node in such a role."""
        spans = [s for s in self._last(node) if is_meant(s.role)] if node.args else []
        found = {self._text(s.cell).assigned.get(_of(s), "") for s in spans}
        return found.pop() if len(found) == 1 else ""

    def adjoint_of(self, loop: Node, carried: Node) -> str:
        """Return ``adjoint of h``, or ``adjoint``, for a carry of a backward loop, by the assignment that made its value."""
        if {s.role for s in self.spans(loop)} != {"adjoint"}:
            return ""
        users = [node for node in loop["body"].nodes if carried in node.args and node.op.signs != (1, 1)]
        names = {self._assigned(node, lambda role: role == "adjoint") for node in users} - {""}
        return f"adjoint of {names.pop()}" if len(names) == 1 else "adjoint"

    def given_by(self, region: Node, node: Node) -> str:
        """Return the variable that a loop or a branch gives, of several that which ``node`` takes."""
        while node is not region and node.op is not ITEM:
            node = node.args[0]
        return self.gives(region, 0 if node is region else int(node["index"]))

    def gives(self, region: Node, number: int) -> str:
        """Return the variable that a loop or a branch gives as the result of that number."""
        for body in ("body", "then", "otherwise"):
            graph = region.params.get(body)
            if isinstance(graph, Graph) and number < len(graph.results):
                found = self.ends_as(graph.results[number], self.names(graph))
                if found:
                    return found
        return ""

    def counter(self, loop: Node) -> str:
        """Return the variable that a loop counts with."""
        found = [self._text(s.cell).counted.get(_of(s), "") for s in self._last(loop)]
        return next(filter(None, found), "")

    def written(self, node: Node) -> str:
        """Return the expression that a node was written as, if it is short."""
        for span in sorted(self._last(node), key=lambda s: s.end_column - s.column):
            lines = self._text(span.cell).lines
            if span.role == "value" and span.line == span.end_line and 0 < span.line <= len(lines):
                text = lines[span.line - 1][span.column : span.end_column].strip()
                if 0 < len(text) <= MOST_WRITTEN:
                    return text
        return ""

    def _keys(self, node: Node, *, rules: bool = False) -> list[Known]:
        """Return the operation of a node with its places; or with those of what rules have put it in the place of."""
        spans = [s for s in self._last(node) if (s.role.startswith("rewritten ") if rules else s.role == "value")]
        return [(node.op.name, s.cell, _of(s)) for s in spans] if node.args else []

    def _last(self, node: Node) -> list[Site]:
        """Return the spans of a node in the cell that has met it last: equal nodes of earlier cells may have had other names."""
        spans = self.spans(node)
        last = max((s.run for s in spans), default=0)
        return [s for s in spans if s.run == last]

    def _text(self, cell: str) -> _Text:
        if cell not in self.texts:
            self.texts[cell] = _read(self.source_of(cell))
        return self.texts[cell]


def _of(span: Site) -> Place:
    return span.line, span.column, span.end_line, span.end_column
