"""What a cell shows: one line (value, type, gradients), the graph behind a click, panels."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol, cast
from xml.sax.saxutils import escape

import numpy as np
from IPython.core.display_functions import publish_display_data

from tensormagic import session
from tensormagic.capture.tree import tensors_in
from tensormagic.capture.values.summary import is_computed
from tensormagic.capture.values.value import Tensor
from tensormagic.ir import site
from tensormagic.ir.graph import every_node
from tensormagic.ir.plain_texts import plain_text
from tensormagic.notebook.cells.outcome import Outcome
from tensormagic.notebook.display.forms import Drawn
from tensormagic.notebook.display.other_objects import as_html, beneath, is_numbers, plainly, told
from tensormagic.notebook.display.value_texts import actual_type, extremes, gradient_text, seen, stays_away, value_text
from tensormagic.notebook.pictures import svg
from tensormagic.notebook.pictures.adaptor import Portrait, newest, portrait, source_of
from tensormagic.notebook.pictures.labels import clean, digits_text, width, wrapped
from tensormagic.notebook.pictures.scene import Scene
from tensormagic.notebook.warnings.all_pairs import pairs_told
from tensormagic.notebook.widgets.graph import GraphView

__all__ = ["Report", "Reporting", "ShownTensor", "Views", "headline", "value_text"]

WIDGET = "application/vnd.jupyter.widget-view+json"
MOST_ROWS = 20  # items of a container, a row each
MOST_UNBROKEN = 40  # characters kept together on one line of a narrow page
NO_BREAK = "\N{NO-BREAK SPACE}"
MOST_BESIDE = 4  # gradients on the line itself
_MOST_UNASKED = 500  # nodes of a graph that is drawn without being asked for: more take half a second
Bundle = dict[str, Any]


class View(Protocol):
    """A widget that can be taken off the page."""

    def close(self) -> None:
        """Take it off the page, and free it."""


class Views:
    """The live widgets of each cell; those of its last run are closed when it runs again."""

    def __init__(self) -> None:
        self._live: dict[str, list[View]] = {}
        self._cell = ""

    def begin(self, cell: str) -> None:
        """Close the live views that this cell has shown before, now that it runs again."""
        self._cell = cell
        for view in self._live.pop(cell, ()):
            view.close()

    def add(self, view: View) -> None:
        """Keep a widget until its cell runs again."""
        self._live.setdefault(self._cell, []).append(view)

    def follow(self) -> None:
        """Update the views of functions that read the notebook's variables, after a cell has run."""
        for view in [v for views in self._live.values() for v in views]:
            follow = getattr(view, "follow", None)
            if follow is not None:
                follow()

    def close(self) -> None:
        """Close all."""
        for cell in list(self._live):
            self.begin(cell)


# text -----------------------------------------------------------------------------------------------------------------


def headline(
    name: str,
    value: Any,
    gradients: Mapping[str, Tensor],
    shown: Portrait | None,
    *,
    computed: bool,
    of: str = "",
    labels: Sequence[str] = (),
    formed: AbstractSet[str] = frozenset(),
) -> str:
    """Return the line: value, type, each gradient (``of`` another name), a word where rules changed digits; of containers a row an item.

    Many gradients, of what a container or an object holds, have a row each.
    """
    of = f" of {of}" if of and of != name else ""
    items = _items(value, labels)
    rows = [_row(label, item, computed) for label, item in items[:MOST_ROWS]]
    rows += [f"… {len(items) - MOST_ROWS} more"] if len(items) > MOST_ROWS else []
    parts = [] if items else [_value_part(value, computed)]
    slopes = [_slope(f"grad_{n}{of}", gradient_text(g)) if computed else f"grad_{n}{of}" for n, g in gradients.items()]
    below = slopes if len(slopes) > MOST_BESIDE else []
    parts += [] if below else slopes
    parts.append(session.reasons.get(value.node, "") if isinstance(value, Tensor) else "")
    parts.append(shown.digits(formed) if shown is not None else digits_text(formed))
    text = " · ".join(part for part in parts if part)
    below = [*below[:MOST_ROWS], *([f"… {len(below) - MOST_ROWS} more"] if len(below) > MOST_ROWS else [])]
    if not items:
        return "\n".join([f"{name} = {text}" if name else text, *below])
    return "\n".join(filter(None, [f"{name}:" if name else "", *rows, text, *below]))


def _slope(name: str, text: str) -> str:
    """Return a gradient's name and description; a shape right behind the name of another value would look like an index."""
    return f"{name}, {text}" if " of " in name and text.startswith("shape") else f"{name} {text}"


def _items(value: Any, labels: Sequence[str] = ()) -> list[tuple[str, Any]]:
    """Return the items of a container that holds lazy values, each with its label."""
    if isinstance(value, dict) and tensors_in(value):
        return [(f"[{plain_text(key)}]", item) for key, item in cast("dict[Any, Any]", value).items()]
    if isinstance(value, tuple | list) and (tensors_in(value) or (type(value) is tuple and is_numbers(value))):
        parts = cast("tuple[Any, ...] | list[Any]", value)
        fields: Sequence[str] = getattr(parts, "_fields", ())
        known = labels if len(labels) == len(parts) else fields if len(fields) == len(parts) else [""] * len(parts)
        return [(name or f"[{k}]", item) for k, (name, item) in enumerate(zip(known, parts, strict=True))]
    return []


def _row(label: str, item: Any, computed: bool) -> str:
    text = _inline(item, computed) if _items(item) else _value_part(item, computed)
    label = clean(label, 40)
    return text if text.partition(" · ")[0] == label else f"{label} = {text}"  # a number says itself


def _inline(value: Any, computed: bool) -> str:
    """Return a container inside a container, on one line."""
    parts = [_inline(item, computed).partition(" · ")[0] for _, item in _items(value)]
    if not parts:
        return _value_part(value, computed)
    if isinstance(value, dict):
        keys = map(plain_text, cast("dict[Any, Any]", value))
        return clean(f"{{{', '.join(f'{key}: {text}' for key, text in zip(keys, parts, strict=True))}}}", 200)
    return clean(f"({', '.join(parts)})" if isinstance(value, tuple) else f"[{', '.join(parts)}]", 200)


NAN = "%tensor_nan tells where the nan came from"


def _value_part(value: Any, computed: bool) -> str:
    if isinstance(value, Tensor):
        if (not computed and not is_computed(value)) or stays_away(value):
            return repr(value).removeprefix("Tensor(").removesuffix(")")
        found = seen(value)
        text = value_text(found)
        told = " · ".join(filter(None, [text, actual_type(found), extremes(found) if "…" in text else ""]))
        return f"{told} · {NAN}" if "nan" in told else told
    if type(value) is np.ndarray and is_numbers(value):
        text = value_text(value)
        return " · ".join(filter(None, [text, actual_type(value), extremes(value) if "…" in text else ""]))
    return value_text(value) if value is not None else ""


# reports --------------------------------------------------------------------------------------------------------------


class Report:
    """The display of a cell's result.

    Parameters
    ----------
    outcome
        The run of the cell.
    views
        The registry of live widgets.
    panels
        Further parts to show, each as HTML and as text.
    new
        A note that a page shows below the line, once.
    graph
        Whether the graph is shown.
    rich
        Whether the frontend can show it; else only text is given.
    """

    def __init__(
        self,
        outcome: Outcome,
        views: Views,
        *,
        graph: bool,
        rich: bool,
        panels: tuple[tuple[str, str], ...] = (),
        new: str = "",
    ) -> None:
        self.outcome = outcome
        self.value = outcome.result
        self.given = outcome.result if outcome.given is None else outcome.given
        self._views = views
        self._graph = graph
        self._rich = rich
        self._panels = panels
        self._new = new
        self.note = ""  # what has changed since
        self.asked = False  # whether the cell itself has asked for a graph

    def __repr__(self) -> str:
        return self.line

    @cached_property
    def portrait(self) -> Portrait | None:
        """Return the graph of the value and its gradients, or None if there is none."""
        return portrait_of(self.outcome)

    @property
    def line(self) -> str:
        """Return the one line."""
        out = self.outcome
        computed = out.shown and not out.options.quiet
        value = None if self.foreign else self.value
        labels = out.rows if value is not None else ()
        shown = self.portrait
        text = headline(
            out.name,
            value,
            out.gradients,
            None if shown is None or (self._large and not shown.is_rewritten) else shown,
            computed=computed,
            of=out.options.of,
            labels=labels,
            formed=out.formed,
        )
        stored = f"stored into {', '.join(out.stored)}" if out.stored else ""
        others = out.results if shown is not None and shown.computes else {}
        plain = plainly(value, actual_type(value), others) if self.is_plain and is_numbers(value) else ""
        line = " · ".join(filter(None, [text, plain, stored, self._large, "" if plain else self._bare, self.note]))
        return "\n".join(filter(None, [line, self._slip if computed else ""]))

    @property
    def _large(self) -> str:
        """Return the note on a graph that is drawn only on request, as it is large."""
        shown = self.portrait
        if shown is None or not self._graph or self.outcome.options.opened:
            return ""
        count = sum(1 for _ in every_node(shown.graph))  # those of loops and branches are drawn, too
        if count <= _MOST_UNASKED:
            return ""
        more = "" if shown.is_rewritten else ", and tells what rules did to it"
        return f"a graph of {count:,} nodes, which %%tensor --show graph draws{more}"

    @property
    def _bare(self) -> str:
        """Return the note where a graph was requested and there is none."""
        out, shown = self.outcome, self.portrait
        if not self.asked or not self._graph or out.options.opened or (shown is not None and shown.computes):
            return ""
        if self.foreign:  # which says it below
            return ""
        bare = (isinstance(self.value, Tensor) or type(self.value) is np.ndarray) and not out.gradients
        return "nothing is computed here, so there is no graph" if bare else ""

    @cached_property
    def _slip(self) -> str:
        """Return a word of caution about a loss over all pairs of rows."""
        out = self.outcome
        if not isinstance(out.target, Tensor):
            return ""
        return pairs_told(out.target.node, out.moving.values(), out.code.cell.label)

    def bundle(self) -> tuple[Bundle, Bundle]:
        """Return the display in every form."""
        out, shown = self.outcome, self.portrait
        drawn = shown is not None and self._graph and (shown.computes or out.options.opened) and not self._large
        opened = out.options.opened
        scene = (shown.scene if opened else shown.begun)(out.source) if shown is not None and drawn else None
        made = bundle(self.line, scene, self._views, self._rich, self._panels, expanded=opened, new=self._new)
        self.__dict__.pop("portrait", None)  # IPython keeps every report, and the graph's picture is large
        return made

    @property
    def is_plain(self) -> bool:
        """Return whether the cell ends in a value that holds nothing lazy."""
        return self.outcome.code.last is not None and not tensors_in(self.value) and not self.outcome.gradients

    @property
    def foreign(self) -> bool:
        """Return whether the value is neither a number nor lazy: it is displayed as in any cell, with the report beside it."""
        return self.is_plain and not is_numbers(self.value)

    @property
    def says_more(self) -> bool:
        """Return whether there is anything to show beside a value of another kind."""
        shown = self.portrait
        return bool(self._panels or self.outcome.gradients or self.line or (shown is not None and shown.computes))

    def _repr_mimebundle_(self, **_: Any) -> tuple[Bundle, Bundle]:
        return self.bundle()


class ShownTensor(Tensor):
    """The display of the lazy value that a cell ends in, with everything the cell was asked to show."""

    __slots__ = ("report",)

    def __init__(self, value: Tensor, report: Report) -> None:
        super().__init__(value.place)
        self.report = report


class Reporting:
    """The display of a cell: its value, as in any cell, or the report instead or beside it."""

    def __init__(self) -> None:
        self._pending: Report | None = None

    def end(self) -> None:
        """Forget the pending value after a cell has run."""
        self._pending = None

    def given(self, report: Report, *, marked: bool, silent: bool) -> Any:
        """Return the magic's return value for a report; ``marked``: the report was asked for; ``silent``: nothing is shown."""
        value = report.value
        report.asked = marked
        if report.outcome.code.last is None or value is None:
            if marked and not silent and report.says_more:
                publish_display_data(*report.bundle())
            return None
        if not marked and report.is_plain:
            return value
        if type(report.given) is Tensor:
            return ShownTensor(value, report)
        self._pending = report
        return report.given

    def formats(self, usual: Callable[[Any], Any], value: Any) -> Any:
        """Return the display of a value that a cell has given, in IPython's place."""
        report, self._pending = self._pending, None
        if report is None or report.given is not value:
            return usual(value)
        if not report.foreign:
            return report.bundle()
        if report.says_more:
            publish_display_data(*report.bundle())
        return beneath(usual(value), told(report.outcome))


def portrait_of(outcome: Outcome) -> Portrait | None:
    """Return the graph of an outcome: of its value, or of the lazy values that the cell has bound."""
    results = {name: tensor.node for name, tensor in outcome.results.items()}
    if not results:
        return None
    found = portrait(
        results,
        {f"grad_{n}": t.node for n, t in outcome.gradients.items()},
        outcome.code.cell.label,
        outcome.options.math or None,
        outcome.options.device,
    )
    return replace(found, chosen=chosen_in(outcome)) if outcome.chosen else found


def chosen_in(outcome: Outcome) -> tuple[str, ...]:
    """Return one sentence for each branch of the cell that was decided during capture, so that the graph holds only the branch taken."""
    lines, found = outcome.source.splitlines(), dict[tuple[int, str], list[int]]()
    for place, counts in outcome.chosen.items():
        text = lines[place.line - 1].strip() if 0 < place.line <= len(lines) else ""
        if place.cell == outcome.code.cell.label and (test := _TEST.search(text)):
            known = found.setdefault((place.line, test[1]), [0, 0])
            known[:] = [a + b for a, b in zip(known, counts, strict=True)]
    return tuple(f"line {line}, if {test}: {_sides(*counts)}" for (line, test), counts in sorted(found.items()))


_TEST = re.compile(r"(?<!\w)(?:el)?if\b\s*(.{1,80}?)\s*(?::\s|:$|\belse\b|$)")


def _sides(no: int, yes: int) -> str:
    """Return which side of a branch was taken."""
    if no + yes == 1:
        return f"{'true' if yes else 'false'} here, so the graph has that side alone"
    return f"true {yes} of {no + yes} times here, and the graph has the side that was taken each time"


class Page:
    """Something that is shown once: its display in every form, made when it is shown."""

    def __init__(self, made: Callable[[], tuple[Bundle, Bundle]]) -> None:
        self._made = made

    def _repr_mimebundle_(self, **_: Any) -> tuple[Bundle, Bundle]:
        return self._made()


def tensor_bundle(value: Tensor, views: Views, *, rich: bool, note: str = "") -> tuple[Bundle, Bundle]:
    """Return the display of a lazy value: its value, type, origin, a note, and the graph."""
    if isinstance(value, ShownTensor):
        value.report.note = note
        return value.report.bundle()
    with value.leveled():
        session.have([value.node])
    every = site.of(value.node)
    spans = [s for s in every if s.role == "value"] or [s for s in every if s.role == "adjoint"]
    place = newest(spans) if spans else None
    shown = portrait({"value": value.node}, {}, place.cell if place is not None else "", value.level)
    line = headline("", value, {}, shown, computed=True)
    source = source_of(shown.cell)
    words = [line, *([f"from {place}"] if place is not None else []), *([note] if note else [])]
    return bundle(" · ".join(words), shown.begun(source) if shown.computes else None, views, rich)


def bundle(
    line: str,
    scene: Scene | None,
    views: Views,
    rich: bool,
    panels: tuple[tuple[str, str], ...] = (),
    *,
    expanded: bool = False,
    new: str = "",
) -> tuple[Bundle, Bundle]:
    """Return one line, a graph, and panels, in every form that a page may ask for."""
    words = [line, *(text for _, text in panels)]
    line = f"{line}\n{new}" if new else line
    if not rich:
        return {"text/plain": "\n".join(words)}, {}
    if scene is None or not scene.views:
        made: Bundle = {"text/plain": "\n".join(words)}
        made["text/html"] = "".join([as_html(line), *(page for page, _ in panels)])
        if panels:
            pictures = [panel.picture for panel in panels if isinstance(panel, Drawn)]
            made |= {"image/svg+xml": pictures[0]} if len(pictures) == 1 else {}
        return made, {}
    view = GraphView(scene, expanded=expanded, line=line)
    views.add(view)
    live, metadata = view._repr_mimebundle_()  # pyright: ignore[reportPrivateUsage] (IPython's name)
    return {
        WIDGET: live[WIDGET],
        "text/plain": "\n".join(filter(None, [*words, scene.told])),
        "image/svg+xml": with_heading(live["image/svg+xml"], line),
    }, metadata


def _unbroken(line: str) -> str:
    """Return the line with no-break spaces inside its short facts, so that it breaks between facts only."""
    facts = (fact.replace(" ", NO_BREAK) if len(fact) <= MOST_UNBROKEN else fact for fact in line.split(" · "))
    return f"{NO_BREAK}· ".join(facts)


_ROOT = re.compile(r'<svg xmlns="http://www.w3.org/2000/svg" width="([\d.]+)" height="([\d.]+)"[^>]*>')


def with_heading(picture: str, line: str) -> str:
    """Return a picture with the one line above it: pages without widgets show nothing else."""
    found = _ROOT.match(picture)
    if found is None:
        return picture
    wide, tall = max(float(found[1]), svg.NARROW + 2 * svg.MARGIN), float(found[2])
    rows = [row for one in line.split("\n") for row in wrapped(_unbroken(clean(one, 600)), wide - 2 * svg.MARGIN, 14)]
    rows = [row.removesuffix(f"{NO_BREAK}·") for row in rows]  # no sign between two parts at the end of a line
    wide = max(wide, *(16 + width(row, 14, bold=True) + svg.MARGIN for row in rows))
    top = 20.0 * len(rows) + 8
    texts = "".join(
        f'<text class="view" x="16" y="{20 * k + 22}">{escape(row.replace(NO_BREAK, " "))}</text>'
        for k, row in enumerate(rows)
    )
    inner = (
        found[0]
        .replace(f'width="{found[1]}"', f'y="{top:g}" width="{found[1]}"', 1)
        .replace(' style="max-width:100%;height:auto"', "")
    )
    size = f'width="{wide:g}" height="{tall + top:g}" viewBox="0 0 {wide:g} {tall + top:g}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" class="tm-still" style="max-width:100%;height:auto">'
    ground = '<rect class="ground" width="100%" height="100%" rx="6" fill="#ffffff"/>'
    return f"{head}{ground}{texts}{inner}{picture[found.end() :].rstrip()}</svg>\n"
