"""What a view of backpropagation shows: nodes and uses with their numbers, the steps of both passes, sliders, and words."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from tensormagic.ir.node import Node, topological
from tensormagic.ir.site import Lens
from tensormagic.notebook.backprop.frame import MINUS, Quantity, described, told
from tensormagic.notebook.backprop.passes import Found, Passes
from tensormagic.notebook.backprop.subject import Subject
from tensormagic.notebook.backprop.wording import LONGEST, Headings, formulas
from tensormagic.notebook.live.ranges import Parameter, parameter
from tensormagic.notebook.pictures.carrying import CARRYING
from tensormagic.notebook.pictures.joining import MOST_SAYING
from tensormagic.notebook.pictures.labels import clean
from tensormagic.notebook.pictures.views import kind_of
from tensormagic.ops.leaf import PARAMETER

_FLOATS = 16_000  # of all rays
_POINTS = {
    41: 0.3,
    21: 0.3,
    11: 2.0,
}  # along a ray, each among those of the ones before; and how many seconds all may take
_MOST_SLIDERS = 6
SQUARES = "Squares: elements, of a large array some; the stronger the colour, the further from 0; negative ones are blue and drawn smaller."
_NAME = 24  # of the gradient's target
_TERMS = 3  # of a sum that are written out


@dataclass(frozen=True)
class Slot:
    """A quantity, and where its floats begin in the frame."""

    quantity: Quantity
    at: int

    def text(self, frame: Sequence[float], digits: int = 5) -> str:
        """Return the value's text in a frame."""
        return self.quantity.text(frame[self.at : self.at + self.quantity.size], digits)


@dataclass(frozen=True)
class Shown:
    """A node with its label, formula and value, and the uses that add to its adjoint, in the order of the backward pass."""

    node: Node
    heading: str
    kind: str
    type: str
    place: str
    line: int | None
    value: Slot
    adjoint: Slot | None
    uses: tuple[int, ...]


@dataclass(frozen=True)
class Used:
    """A use of a node: what flows back through it."""

    source: int
    target: int
    port: int
    part: Slot | None
    local: Slot | None
    kind: str  # of the local derivative
    sizes: tuple[int, int]  # elements of the target and of the source
    formula: str
    why: str

    @property
    def in_words(self) -> bool:
        """Return whether the formula stands on the card: where it is short, and the numbers are too many."""
        many = self.kind == "matrix" or (self.local is not None and self.local.quantity.is_many)
        return many and 0 < len(self.formula) <= LONGEST


@dataclass(frozen=True)
class Line:
    """A line of the user's code."""

    place: str
    text: str


Step = tuple[str, int]  # "value" and a node, "seed" and the result, "use" and a use, "done" and the result


@dataclass
class _Slots:
    """Quantities, one after another."""

    size: int = 0
    found: list[Slot] = field(default_factory=list[Slot])

    def add(self, value: Any) -> Slot:
        slot = Slot(described(value), self.size)
        self.size += slot.quantity.size
        self.found.append(slot)
        return slot


class Sheet:
    """Both passes of a number, ready to be drawn.

    Parameters
    ----------
    subject : Subject
        The number.
    ranges : mapping
        ``(low, high)`` or ``(low, high, step)`` for inputs that get sliders. Default: every number among the inputs.

    Raises
    ------
    TypeError
        If a range belongs to something that is no floating-point number among the inputs.
    """

    def __init__(self, subject: Subject, ranges: Mapping[str, Any] | None = None) -> None:
        self.subject = subject
        self.passes = Passes(subject)
        self._floats = floats_of(subject)
        self.parameters = self._parameters(ranges or {})
        found = self.passes.run(self.values_at(self.start))
        self._slots = _Slots()
        nodes, graph = self.passes.nodes, self.passes.graph
        sizes = graph.bind([np.shape(v) for v in subject.values])
        naming = subject.naming()
        names = subject.names(nodes)
        self._headings = Headings(nodes, graph, names, sizes, self.passes.calls, naming.expressions, naming.spelt)
        self.lines: list[Line] = []
        self._index = {n: k for k, n in enumerate(self.passes.nodes)}
        self.nodes = list(self._nodes(found))
        self.uses = list(self._uses(found))
        self.frame = self._packed(found)
        self.notes = self._notes(found)
        self.subject = self.passes.subject = replace(subject, lens=Lens({}))  # which is large, and has told its part

    # what is shown ----------------------------------------------------------------------------------------------------

    def _nodes(self, found: Found) -> Iterator[Shown]:
        places = {n: s for n in self.passes.nodes if (s := self.subject.site(n)) is not None}
        written = {(s.run, s.cell, s.line) for s in places.values()}
        headed = {(run, cell, 1) for run, cell, _ in written if self.subject.text_of(cell).startswith("%%")}
        order = sorted(written | headed)
        self.lines = [Line(f"{cell} line {line}", _line(self.subject.text_of(cell), line)) for _, cell, line in order]
        users: dict[Node, list[int]] = {}
        for k, use in enumerate(self.passes.uses):
            if use.part is not None:
                users.setdefault(use.source, []).append(k)
        for node in self.passes.nodes:
            place = places.get(node)
            number = order.index((place.run, place.cell, place.line)) if place is not None else None
            value = found.values[node]
            yield Shown(
                node,
                self._heading(node),
                "input" if node.op is PARAMETER else _kind(self.passes.parts(node)),
                _type(node, value),
                self.lines[number].place if number is not None else "input" if node.op is PARAMETER else "",
                number,
                self._slots.add(value),
                self._slots.add(found.adjoints[node]) if node in found.adjoints else None,
                tuple(users.get(node, ())),
            )

    def _heading(self, node: Node) -> str:
        found = self._headings.of(node)
        named = node is not self.passes.result or " = " in found
        return found if named else f"{clean(self.subject.name, 60)} = {found}"

    def _uses(self, found: Found) -> Iterator[Used]:
        texts = formulas([u.local for u in self.passes.uses], self._headings)
        for use, part, local, text in zip(self.passes.uses, found.parts, found.locals, texts, strict=True):
            sizes = [_size(found.values[n]) for n in (use.target, use.source)]
            yield Used(
                self._index[use.source],
                self._index[use.target],
                use.port,
                self._slots.add(part) if part is not None else None,
                self._slots.add(local) if local is not None else None,
                use.local.kind if use.local is not None else "",
                (sizes[0], sizes[1]),
                text,
                use.why,
            )

    @cached_property
    def steps(self) -> list[Step]:
        """Return the steps of both passes: the values in order, the seed, each contribution to an adjoint, and the end."""
        forward: list[Step] = [("value", k) for k, shown in enumerate(self.nodes) if shown.kind != "input"]
        result = self._index[self.passes.result]
        back: list[Step] = [("use", k) for k, use in enumerate(self.uses) if use.part is not None]
        return [*forward, ("seed", result), *back, ("done", result)]

    @property
    def result(self) -> Shown:
        """Return the number that the passes are of."""
        return self.nodes[self._index[self.passes.result]]

    # numbers ----------------------------------------------------------------------------------------------------------

    def _packed(self, found: Found) -> list[float]:
        values: list[Any] = []
        for shown in self.nodes:
            values.append(found.values[shown.node])
            values += [found.adjoints[shown.node]] if shown.adjoint is not None else []
        for use, part, local in zip(self.uses, found.parts, found.locals, strict=True):
            values += [part] if use.part is not None else []
            values += [local] if use.local is not None else []
        return [
            number
            for slot, value in zip(self._slots.found, values, strict=True)
            for number in slot.quantity.pack(value)
        ]

    def values_at(self, point: Sequence[float]) -> list[Any]:
        """Return the values of the inputs where the sliders stand at ``point``."""
        values = list(self.subject.values)
        for p, number in zip(self.parameters, point, strict=True):
            k = self._floats[p.name]
            values[k] = _in_place_of(values[k], number)
        return values

    def at(self, point: Sequence[float]) -> tuple[list[float], str]:
        """Return the frame at a point, and its notes."""
        found = self.passes.run(self.values_at(point))
        return self._packed(found), self._notes(found)

    def _notes(self, found: Found) -> str:
        """Return where ``tm.grad`` gives another gradient: it rewrites before it differentiates."""
        told_: list[str] = []
        for node, expected in found.rewritten.items():
            here = np.asarray(found.adjoints[node])
            scale = float(np.max(np.abs(expected), initial=0.0, where=np.isfinite(expected)))
            if not np.allclose(here, expected, rtol=1e-6, atol=1e-9 * scale, equal_nan=True):
                slot = described(expected)
                text = slot.text(slot.pack(expected))
                told_.append(f"{self._headings.of(node)}: tm.grad gives {text}, since it rewrites the graph first")
        return "; ".join(told_)

    # sliders ----------------------------------------------------------------------------------------------------------

    def _parameters(self, ranges: Mapping[str, Any]) -> list[Parameter]:
        for name in ranges:
            if name not in self._floats:
                known = ", ".join(clean(n, 60) for n in self._floats) or "none"
                raise TypeError(
                    f"{name} is no floating number among the inputs of {self.subject.name}; there are: {known}"
                )
        wanted = list(ranges) or list(self._floats)[:_MOST_SLIDERS]
        if len(wanted) > _MOST_SLIDERS:
            raise ValueError(
                f"a view of backpropagation has at most {_MOST_SLIDERS} sliders, and these are {len(wanted)}"
            )
        found: list[Parameter] = []
        for name in wanted:
            start = float(self.subject.values[self._floats[name]])
            reach = max(1.0, abs(start))
            found.append(parameter(name, ranges.get(name, (start - reach, start + reach)), start))
        return found

    @property
    def start(self) -> list[float]:
        """Return where the sliders stand at first: where the inputs are, or at the nearer end of a range."""
        return [p.start[0] for p in self.parameters]

    def star(self, point: Sequence[float], seconds: float) -> tuple[list[int], list[float]]:
        """Frames along each slider, with the others at ``point``: how many, then for each slider the axis and its frames.

        ``seconds`` is how long one frame takes; nothing where the rays would be too coarse.
        """
        rays = len(self.parameters) or 1
        fits = [
            count
            for count, most in _POINTS.items()
            if count * rays * len(self.frame) <= _FLOATS and count * rays * seconds <= most
        ]
        if not fits:
            return [], []
        along = max(fits)
        axes = [p.spans[0].grid(along) for p in self.parameters]
        floats: list[float] = []
        for k, axis in enumerate(axes):
            floats += axis.tolist()
            for number in axis.tolist():
                floats += self._frame_at([*point[:k], number, *point[k + 1 :]])
        return [len(a) for a in axes], floats

    def _frame_at(self, point: Sequence[float]) -> list[float]:
        try:
            return self._packed(self.passes.run(self.values_at(point)))
        except Exception:  # noqa: BLE001 (there is no value at this point: a gap; where the sliders stand, it is told)
            return [math.nan] * len(self.frame)

    def message(self) -> dict[str, Any]:
        """Return the message that the page gets once: everything but numbers."""
        return {
            "name": clean(self.subject.name, 60),
            "title": self.title,
            "legend": self.legend,
            "nodes": [
                {
                    "heading": clean(n.heading, 200),
                    "type": n.type,
                    "line": n.line,
                    "value": _slot_message(n.value),
                    "adjoint": _slot_message(n.adjoint),
                    "uses": list(n.uses),
                }
                for n in self.nodes
            ],
            "uses": [
                {
                    "source": u.source,
                    "target": u.target,
                    "part": _slot_message(u.part),
                    "local": _slot_message(u.local),
                    "kind": u.kind,
                    "sizes": list(u.sizes),
                    "formula": u.formula,
                    "inWords": u.in_words,
                    "why": clean(u.why, 300),
                    "repeats": self._repeats(u),
                }
                for u in self.uses
            ],
            "lines": [[clean(line.place, 80), line.text] for line in self.lines],
            "steps": [list(step) for step in self.steps],
            "sliders": [
                {"name": clean(s.name, 60), "low": s.low, "high": s.high, "steps": s.steps, "step": s.step}
                for p in self.parameters
                for s in p.spans
            ],
        }

    def _repeats(self, use: Used) -> int:
        """Into how many elements of the target each element of the source goes, where that is broadcast; else 0."""
        target, source = use.sizes
        stretched = self.nodes[use.target].kind == "pointwise" and use.part is not None and target > source > 0
        return target // source if stretched else 0

    # words ------------------------------------------------------------------------------------------------------------

    @property
    def title(self) -> str:
        """Return ``backprop of loss = 0.25: 7 nodes``."""
        count = len(self.nodes)
        what = f"{clean(self.subject.name, 60)} = {self.result.value.text(self.frame)}"
        return f"backprop of {what}: {count} node{'s' * (count != 1)}"

    def sum_text(self, shown: Shown, frame: Sequence[float]) -> str:
        """``= 0.5 + 0.25``: what the adjoint is the sum of, where it has several parts."""
        slots = [slot for k in shown.uses if (slot := self.uses[k].part) is not None]
        if len(slots) < 2:
            return ""
        if shown.adjoint is None or shown.adjoint.quantity.kind != "number":
            return f"sum of what {len(slots)} arrows pass up"
        more = f" + … ({len(slots)})" if len(slots) > _TERMS else ""
        terms = " + ".join(slot.text(frame, 4) for slot in slots[:_TERMS])
        return f"= {terms}{more}".replace(f"+ {MINUS}", f"{MINUS} ")

    def local_text(self, use: Used, frame: Sequence[float]) -> str:
        """Return the local derivative as a number if there are few, ``× 0.25``; else as a formula, ``adjoint × e``."""
        if use.in_words:
            return use.formula
        if use.kind == "matrix":
            norm = f" norm {told(frame[use.local.at])}" if use.local is not None else ""
            return f"× J ({use.sizes[0]}, {use.sizes[1]}){norm}"
        if use.local is not None:
            return f"× {use.local.text(frame)}"
        return "× 1, one result of several" if not use.why and use.part is not None and not use.kind else ""

    def card_text(self, use: Used, frame: Sequence[float]) -> str:
        """Return the text on the arrow: ``adjoint × 0.25`` if the derivative is a number. The page writes the same."""
        text = self.local_text(use, frame)
        if not text or use.in_words:
            return text
        return f"sum(adjoint {text})" if use.kind == "column" else f"adjoint {text}"

    @property
    def legend(self) -> str:
        """Return the explanation of the words and signs in the picture."""
        name = clean(self.subject.name, _NAME)
        words = [
            "value: computed forward, from the inputs above to the result below.",
            f"adjoint: the gradient of {name} with respect to a box, passed back up the orange arrows; at an input it is the gradient.",
            "A dashed box: what the box below it passes to the box above; adjoint there is that of the box below.",
        ]
        cards = [self.card_text(use, self.frame) for use in self.uses if use.part is not None]
        many = any(n.value.quantity.is_many for n in self.nodes)
        if many and any("×" in text for text in (*cards, *(u.formula for u in self.uses))):
            words.append("×: element by element, as * in NumPy.")
        if any("·" in text for text in (*(n.heading for n in self.nodes), *(u.formula for u in self.uses))):
            words.append("·: what comes in by an arrow.")
        if many:
            words.append("norm: the root of the sum of squares. repeated: broadcast to each element.")
            words.append(SQUARES)
        return " ".join(words)

    def table(self) -> str:
        """Return both passes as a table of text."""
        rows = [("node", "where", "value", "adjoint", "")]
        for shown in self.nodes:
            adjoint = "–" if shown.adjoint is None else shown.adjoint.text(self.frame)
            heading = clean(shown.heading, 44)
            rows.append((heading, shown.place, shown.value.text(self.frame), adjoint, self.sum_text(shown, self.frame)))
        wide = [max(len(row[k]) for row in rows) for k in range(5)]
        lines = ["  ".join(cell.ljust(n) for cell, n in zip(row, wide, strict=True)).rstrip() for row in rows]
        return "\n".join([self.title, *lines, *([self.notes] if self.notes else [])])


def _slot_message(slot: Slot | None) -> dict[str, Any] | None:
    return None if slot is None else slot.quantity.message(slot.at)


def floats_of(subject: Subject) -> dict[str, int]:
    """Return the inputs that are floats, by names that are theirs alone: their places among the values."""
    names = subject.graph.names
    read = set(topological(subject.graph.results))
    return {
        name: k
        for k, (name, node) in enumerate(zip(names, subject.graph.parameters, strict=True))
        if node in read and node.type.dtype.kind == "f" and not node.type.shape
        if names.count(name) == 1 and math.isfinite(subject.values[k])
    }


def _line(text: str, line: int) -> str:
    lines = text.splitlines()
    return clean(lines[line - 1].strip(), 200) if 0 < line <= len(lines) else ""


def _kind(parts: Collection[Node]) -> str:
    """Return the outline of a box: that of its most telling part. Parts that only carry values count if there are no others."""
    kinds = {kind_of(part) for part in parts if part.op not in CARRYING} or {kind_of(part) for part in parts}
    return next((kind for kind in MOST_SAYING if kind in kinds), "opaque")


def _type(node: Node, value: Any) -> str:
    if len(node.types) > 1:
        return f"{len(node.types)} results"
    t = node.type
    return str(t.with_shape(np.shape(value), t.form)) if t.shape else str(t)


def _size(value: Any) -> int:
    return sum(int(np.size(v)) for v in value) if isinstance(value, tuple) else int(np.size(value))


def _in_place_of(old: Any, number: float) -> Any:
    """Return a number of the kind that the old one is."""
    return number if isinstance(old, float) and not isinstance(old, np.floating) else np.asarray(old).dtype.type(number)
