"""Draw one box for each call of a library and each part of an array: all nodes of ``np.mean`` or ``p[rows, t]`` are one vertex.

It is labelled as it was written. The nodes of a call are joined where nothing else reads them, and no rule has
changed them. Index arithmetic may have been changed; where others read it, as a gradient does, it has a box of its
own, ``[rows, t]``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tensormagic.notebook.pictures.carrying import CARRIES
from tensormagic.notebook.pictures.naming import STORED

if TYPE_CHECKING:
    from tensormagic.notebook.pictures.scene import Edge, Vertex, View


# the outline of a call: that of its most telling part
MOST_SAYING = ("region", "opaque", "contract", "fold", "update", "move", "pointwise")


def joined(view: View) -> View:
    """Return a view with the parts of each call joined into one vertex; graphs inside regions are unchanged."""
    return _Joining(view).view()


class _Joining:
    """One view, and which vertices go into which."""

    def __init__(self, view: View) -> None:
        self.whole = view
        self.vertex = {v.id: v for v in view.vertices}
        self.given: dict[str, list[Edge]] = defaultdict(list)
        self.users: dict[str, list[str]] = defaultdict(list)
        for edge in view.edges:
            if edge.source in self.vertex:
                self.given[edge.target].append(edge)
                self.users[edge.source].append(edge.target)
        self.fixed: set[str] = set()  # numbers, and what is made of numbers alone: several calls may have the same
        for v in view.vertices:
            made = all(edge.source in self.fixed for edge in self.given[v.id])
            if made and ("[" not in v.type if v.kind == "constant" else v.is_op and self.given[v.id] and not v.name):
                self.fixed.add(v.id)
        self.within: dict[str, str] = {}  # the last part of its call, of each part
        self.calls: dict[str, str] = {}  # the call, of each last part
        self.held: dict[str, list[str]] = {}  # its parts, the last one first

    def view(self) -> View:
        """Return the view, joined."""
        for v in reversed(self.whole.vertices):
            if v.calls and v.id not in self.within:
                self.join(v)
        if not self.calls:
            return self.whole
        shown: list[Vertex] = []
        edges: list[Edge] = []
        used = {*self.whole.outputs}
        for v in reversed(self.whole.vertices):
            if self.within.get(v.id, v.id) != v.id or (v.id in self.fixed and v.id not in used):
                continue
            shown.append(self.made(v))
            given = self.operands(v)
            edges += given
            used |= {edge.source for edge in given}
        return replace(self.whole, vertices=tuple(reversed(shown)), edges=tuple(reversed(edges)))

    def join(self, last: Vertex) -> None:
        """Join the parts of the call that ends in this vertex."""
        for call in last.calls:
            if call.startswith("\n"):  # no call
                continue
            parts, called = self.parts(last, call), call
            if not parts and self.is_index(last, call):
                parts, called = self.reached(last, call), _index(call)
            drawn = [v.label for v in map(self.vertex.__getitem__, parts) if v.is_op and v.label not in CARRIES]
            if len(drawn) > 1 and not repeats(drawn):
                self.within |= dict.fromkeys(parts, last.id)
                self.calls[last.id] = called
                self.held[last.id] = parts
                return

    def parts(self, last: Vertex, call: str) -> list[str]:
        """Return the vertices of a call, the last one first, or [] where they cannot be one box."""
        users = [v for v in map(self.vertex.__getitem__, self.users[last.id]) if v.label not in CARRIES]
        if any(call in v.calls for v in users) or not self.is_part(last, last, call):
            return []
        found = self.reached(last, call)
        return found if self.is_whole(call, dict.fromkeys(found)) else []

    def reached(self, last: Vertex, call: str) -> list[str]:
        """Return the vertices that belong to a call and to nothing else, from the last one back."""
        found = {last.id: None}
        stack = [last.id]
        while stack:
            for edge in self.given[stack.pop()]:
                v = self.vertex[edge.source]
                if v.id in self.within or v.id in self.fixed or any(user not in found for user in self.users[v.id]):
                    continue
                inside = call in v.calls or (v.kind == "constant" and _is_part_of_array(call))
                if inside and not v.name and v.id not in self.whole.outputs and self.is_part(v, last, call):
                    found[v.id] = None
                    stack.append(v.id)
        return list(found)

    def is_index(self, last: Vertex, call: str) -> bool:
        """Return whether a vertex gives the places that a part of an array is read from, or stored at."""
        users = [v for v in map(self.vertex.__getitem__, self.users[last.id]) if call in v.calls]
        return (
            _is_part_of_array(call)
            and last.kind == "pointwise"
            and _counts(last)
            and bool(users)
            and not any(v.kind == "pointwise" for v in users)
        )

    def is_whole(self, call: str, found: Mapping[str, None]) -> bool:
        """Return whether no other vertex belongs to the call, except numbers and vertices shared with other calls."""
        for ways in (lambda key: (edge.source for edge in self.given[key]), lambda key: self.users[key]):
            stack, seen = list(found), {*found}
            while stack:
                for other in ways(stack.pop()):
                    v = self.vertex[other]
                    if other in seen or other in self.fixed:
                        continue
                    if v.label in CARRIES:  # a call may go on behind it
                        if not v.calls or call in v.calls:
                            seen.add(other)
                            stack.append(other)
                    elif call in v.calls and len(v.calls) == 1:
                        return False
        return True

    def is_part(self, v: Vertex, last: Vertex, call: str) -> bool:
        """Return whether a vertex may stand in one box with the last one."""
        places = _is_part_of_array(call) and _counts(v)
        if v.kind == "constant":
            return places
        same = (v.kernel, v.yellow, v.role) == (last.kernel, last.yellow, last.role)
        return v.kind in MOST_SAYING[1:] and (places or (not v.rules and same))

    def made(self, v: Vertex) -> Vertex:
        """Return a vertex; the last part of a call as all of it."""
        if v.id not in self.calls:
            return v
        parts = [self.vertex[key] for key in self.held[v.id]]
        kinds = {part.kind for part in parts if part.label not in CARRIES}
        kind = next(kind for kind in MOST_SAYING if kind in kinds)
        numbers = tuple(part.number for part in parts if part.is_op)
        label = self.calls[v.id].partition("\n")[0]
        if v.kind == "update" and label.endswith(STORED):
            kind = v.kind
        elif label.endswith(STORED) or label.startswith("["):
            label, v = _index(label), replace(v, name="")
        return replace(v, label=label, kind=kind, written="", calls=(), meaning="", number=-v.number, parts=numbers)

    def operands(self, v: Vertex) -> list[Edge]:
        """Return the edges into a vertex; for a call, those from outside, each once, without numbers that its label shows."""
        if v.id not in self.calls:
            return self.given[v.id]
        sources = {
            edge.source: None
            for key in reversed(self.held[v.id])
            for edge in sorted(self.given[key], key=lambda edge: edge.port)
            if self.within.get(edge.source) != v.id
        }
        first = self.given[v.id][0]
        kept = [key for key in sources if key not in self.fixed]
        return [replace(first, source=key, target=v.id, port=port) for port, key in enumerate(kept)]


def _is_part_of_array(call: str) -> bool:
    """Return whether a text is that of a part of an array, and not of a call: ``p[rows, t]``, with its place in a second line."""
    return call.partition("\n")[0].removesuffix(STORED).endswith("]")


def _index(call: str) -> str:
    r"""Return the index of a part of an array, in its brackets.

    >>> _index("f(x)[rows[0], t]\nIn[1] (1, 2, 3, 4)")
    '[rows[0], t]'
    """
    text = call.partition("\n")[0].removesuffix(STORED)
    depth = 0
    for k, character in reversed(list(enumerate(text))):
        depth += (character == "]") - (character == "[")
        if not depth:
            return text[k:]
    return text


def _counts(v: Vertex) -> bool:
    """Return whether a vertex is of integers or of truth values, as places in arrays are."""
    return v.type.startswith(("int", "uint", "bool"))


def repeats(labels: list[str]) -> bool:
    """Return whether a list of operations repeats a shorter one: such as the passes of a loop inside one call.

    >>> repeats(["sin", "sin"]), repeats(["sum", "divide", "subtract", "sum", "divide"])
    (True, False)
    """
    count = len(labels)
    return any(count % k == 0 and labels == labels[:k] * (count // k) for k in range(1, count // 2 + 1))
