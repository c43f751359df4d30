"""What a cell shows: one line (value, type, gradients), the graph behind a click, panels."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import Any, Protocol, cast
from xml.sax.saxutils import escape

import numpy as np
from IPython.core.display_functions import publish_display_data

from tensormagic import session
from tensormagic.backend.cuda.transfers import asked_for
from tensormagic.capture.summary import is_computed, is_on_device
from tensormagic.capture.tree import tensors_in
from tensormagic.capture.value import Tensor
from tensormagic.ir import site
from tensormagic.ir.plain_texts import holds_users, plain_text
from tensormagic.ir.type import hint
from tensormagic.notebook.beneath import as_html, beneath, is_numbers, plainly, told
from tensormagic.notebook.forms import Drawn
from tensormagic.notebook.outcome import Outcome
from tensormagic.notebook.pairs import pairs_told
from tensormagic.notebook.pictures import svg
from tensormagic.notebook.pictures.adaptor import Portrait, newest, portrait, source_of
from tensormagic.notebook.pictures.labels import clean, digits_text, width, wrapped
from tensormagic.notebook.pictures.scene import Scene
from tensormagic.notebook.widgets.graph import GraphView

__all__ = ["Report", "Reporting", "ShownTensor", "Views", "headline", "value_text"]

MOST_COPIED = 1 << 16  # bytes of a value on the device that are copied to be shown
WIDGET = "application/vnd.jupyter.widget-view+json"
MOST_ROWS = 20  # items of a container, a row each
MOST_UNBROKEN = 40  # characters of what is kept on one line of a narrow page
NO_BREAK = "\N{NO-BREAK SPACE}"
MOST_BESIDE = 4  # gradients on the line itself
_FEW = 4  # elements of a gradient that are written out
Bundle = dict[str, Any]


class View(Protocol):
    """A widget that can be taken off the page."""

    def close(self) -> None:
        """Take it off the page, and free it."""


class Views:
    """The live widgets of each cell: when a cell runs again, those of its last run are closed."""

    def __init__(self) -> None:
        self._live: dict[str, list[View]] = {}
        self._cell = ""

    def begin(self, cell: str) -> None:
        """A cell runs: what it showed before goes."""
        self._cell = cell
        for view in self._live.pop(cell, ()):
            view.close()

    def add(self, view: View) -> None:
        """Keep a widget until its cell runs again."""
        self._live.setdefault(self._cell, []).append(view)

    def follow(self) -> None:
        """A cell has run: views of functions that read the notebook's variables look whether these have changed."""
        for view in [v for views in self._live.values() for v in views]:
            follow = getattr(view, "follow", None)
            if follow is not None:
                follow()

    def close(self) -> None:
        """Close all."""
        for cell in list(self._live):
            self.begin(cell)


# text -----------------------------------------------------------------------------------------------------------------


def value_text(value: Any, most: int = 72, digits: int = 10) -> str:
    """A value on one line: numbers with ten ``digits``, arrays with their first and last elements."""
    if isinstance(value, np.ndarray) and value.ndim and not (value.dtype.hasobject and holds_users(value)):
        for edge in (3, 2, 1) if value.ndim == 1 else (2, 1):
            if len(text := _array_text(value, edge)) <= most:
                return text
        first, last = (value_text(v[0], digits=6) for v in (value.flat[:1], value.flat[-1:]))
        return clean(f"{'[' * value.ndim}{first}, …, {last}{']' * value.ndim}", most)
    plain = np.asarray(value)[()] if isinstance(value, np.ndarray) else value
    if isinstance(plain, np.generic):
        plain = plain.item()
    if type(plain) in {float, complex}:
        return f"{plain:.{digits}g}"
    return clean(plain_text(plain), most)


def _array_text(value: np.ndarray[Any, Any], edge: int) -> str:
    """An array with so many elements at each end of an axis."""
    text = np.array2string(
        value, separator=", ", precision=6, threshold=2 * edge, edgeitems=edge, max_line_width=10_000
    )
    return re.sub(r"(?<=\[) | (?=[,\]])", "", re.sub(r"\s+", " ", text)).replace("...", "…")


def extremes(value: Any) -> str:
    """The least and the greatest element of an array of which some are not shown, and how many are no number.

    >>> extremes(np.array([3.0, np.nan, -1.0]))
    'min -1, max 3, nan: 1'
    """
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iuf" or not value.size:
        return ""
    missing = int(np.isnan(value).sum()) if value.dtype.kind == "f" else 0
    if missing == value.size:
        return "all nan"
    low, high = (value_text(f.reduce(value, axis=None), digits=6) for f in (np.fmin, np.fmax))
    return f"min {low}, max {high}" + (f", nan: {missing}" if missing else "")


def actual_type(value: Any) -> str:
    """``float64[569, 30]``, for a value that is there."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
    return str(value.dtype) if isinstance(value, np.generic) else type(value).__name__


def norm_text(value: Any) -> str:
    """The shape of a gradient, as NumPy says it, and its Euclidean norm."""
    array = np.asarray(value)
    shape = f"shape {array.shape}, " if array.shape else ""
    with np.errstate(all="ignore"):
        return f"{shape}norm {np.linalg.norm(array.ravel()):.5g}"


def seen(value: Tensor) -> Any:
    """The value on the host, which who has it shown has asked for."""
    with asked_for():
        return value.numpy()


def stays_away(value: Tensor) -> bool:
    """Whether a value on the device is not copied to be shown: it is large, or nothing may be copied."""
    if not is_on_device(value):
        return False
    size = hint(value.type.size)
    return value.placed[1] == "refuse" or size is None or size * value.dtype.itemsize > MOST_COPIED


def norm_of(gradient: Tensor) -> str:
    """:func:`norm_text` of a gradient; of one on the device, computed there."""
    if not is_on_device(gradient):
        return norm_text(gradient.numpy())
    if gradient.placed[1] == "refuse":
        return repr(gradient).removeprefix("Tensor(").removesuffix(")")
    shape = f"shape ({', '.join(map(str, gradient.shape))}{',' * (gradient.ndim == 1)}), " if gradient.ndim else ""
    with gradient.leveled():
        return f"{shape}norm {session.norm_of(gradient.node):.5g}"


def gradient_text(gradient: Tensor) -> str:
    """``= -2`` of a gradient that is a number, ``= [-2, 1]`` of a few; of others the shape and the norm."""
    away = is_on_device(gradient)  # of an array there no more than its norm is copied
    few = not gradient.ndim or (not away and 0 < (hint(gradient.type.size) or 0) <= _FEW)
    if not few or (away and gradient.placed[1] == "refuse"):
        return norm_of(gradient)
    return f"= {value_text(seen(gradient), digits=6)}"


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
    """The line: value, type, each gradient (``of`` another name), a word where rules changed digits; of containers a row an item.

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
    """A gradient and what is told of it; the shape beside the name of another value would look like an element of that."""
    return f"{name}, {text}" if " of " in name and text.startswith("shape") else f"{name} {text}"


def _items(value: Any, labels: Sequence[str] = ()) -> list[tuple[str, Any]]:
    """The items of a container that holds lazy values, each with what it is called."""
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
    """A container inside a container, on one line."""
    parts = [_inline(item, computed).partition(" · ")[0] for _, item in _items(value)]
    if not parts:
        return _value_part(value, computed)
    if isinstance(value, dict):
        keys = map(plain_text, cast("dict[Any, Any]", value))
        return clean(f"{{{', '.join(f'{key}: {text}' for key, text in zip(keys, parts, strict=True))}}}", 200)
    return clean(f"({', '.join(parts)})" if isinstance(value, tuple) else f"[{', '.join(parts)}]", 200)


def _value_part(value: Any, computed: bool) -> str:
    if isinstance(value, Tensor):
        if (not computed and not is_computed(value)) or stays_away(value):
            return repr(value).removeprefix("Tensor(").removesuffix(")")
        found = seen(value)
        text = value_text(found)
        return " · ".join(filter(None, [text, actual_type(found), extremes(found) if "…" in text else ""]))
    if type(value) is np.ndarray and is_numbers(value):
        text = value_text(value)
        return " · ".join(filter(None, [text, actual_type(value), extremes(value) if "…" in text else ""]))
    return value_text(value) if value is not None else ""


# reports --------------------------------------------------------------------------------------------------------------


class Report:
    """What a cell gave, as it is shown.

    Parameters
    ----------
    outcome
        The run of the cell.
    views
        Where live widgets are kept.
    panels
        Further parts that are shown, each as HTML and as text.
    new
        What a page says below the line, once.
    graph
        Whether the graph is shown.
    rich
        Whether there is a page that can show it; else text alone is given.
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

    def __repr__(self) -> str:
        return self.line

    @cached_property
    def portrait(self) -> Portrait | None:
        """The graph behind the value and its gradients, where there is one."""
        return portrait_of(self.outcome)

    @property
    def line(self) -> str:
        """The one line."""
        out = self.outcome
        computed = out.shown and not out.options.quiet
        value = None if self.foreign else self.value
        labels = out.rows if value is not None else ()
        text = headline(
            out.name,
            value,
            out.gradients,
            self.portrait,
            computed=computed,
            of=out.options.of,
            labels=labels,
            formed=out.formed,
        )
        stored = f"stored into {', '.join(out.stored)}" if out.stored else ""
        others = out.results if self.portrait is not None and self.portrait.computes else {}
        plain = plainly(value, actual_type(value), others) if self.is_plain and is_numbers(value) else ""
        line = " · ".join(filter(None, [text, plain, stored, self.note]))
        return "\n".join(filter(None, [line, self._slip if computed else ""]))

    @cached_property
    def _slip(self) -> str:
        """A word of caution about a loss over all pairs of rows."""
        out = self.outcome
        if not isinstance(out.target, Tensor):
            return ""
        return pairs_told(out.target.node, out.moving.values(), out.code.cell.label)

    def bundle(self) -> tuple[Bundle, Bundle]:
        """The display in every form."""
        out, shown = self.outcome, self.portrait
        drawn = shown is not None and self._graph and (shown.computes or out.options.opened)
        scene = shown.scene(out.source) if shown is not None and drawn else None
        made = bundle(
            self.line, scene, self._views, self._rich, self._panels, expanded=out.options.opened, new=self._new
        )
        self.__dict__.pop("portrait", None)  # IPython keeps every report, and the graph's picture is large
        return made

    @property
    def is_plain(self) -> bool:
        """Whether the cell ends in a value that holds nothing lazy."""
        return self.outcome.code.last is not None and not tensors_in(self.value) and not self.outcome.gradients

    @property
    def foreign(self) -> bool:
        """Whether that is no number: it is shown as in any cell, and what the cell is about beside it."""
        return self.is_plain and not is_numbers(self.value)

    @property
    def says_more(self) -> bool:
        """Whether there is anything to show beside a value of another kind."""
        shown = self.portrait
        return bool(self._panels or self.outcome.gradients or self.line or (shown is not None and shown.computes))

    def _repr_mimebundle_(self, **_: Any) -> tuple[Bundle, Bundle]:
        return self.bundle()


class ShownTensor(Tensor):
    """The lazy value that a cell ends in: it is shown with what the cell was asked to show."""

    __slots__ = ("report",)

    def __init__(self, value: Tensor, report: Report) -> None:
        super().__init__(value.place)
        self.report = report


class Reporting:
    """What a cell gives is its value, as in any cell; what is shown in its place, or beside it, is the report."""

    def __init__(self) -> None:
        self._pending: Report | None = None

    def end(self) -> None:
        """A cell has run: no value is shown any more."""
        self._pending = None

    def given(self, report: Report, *, marked: bool, silent: bool) -> Any:
        """What the magic returns for a report; ``marked`` says that it was asked for, ``silent`` that it is not shown."""
        value = report.value
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
        """The display of a value that a cell has given, in IPython's place."""
        report, self._pending = self._pending, None
        if report is None or report.given is not value:
            return usual(value)
        if not report.foreign:
            return report.bundle()
        if report.says_more:
            publish_display_data(*report.bundle())
        return beneath(usual(value), told(report.outcome))


def portrait_of(outcome: Outcome) -> Portrait | None:
    """The graph of an outcome: of its value, or of the lazy values that the cell has bound."""
    results = {name: tensor.node for name, tensor in outcome.results.items()}
    if not results:
        return None
    return portrait(
        results,
        {f"grad_{n}": t.node for n, t in outcome.gradients.items()},
        outcome.code.cell.label,
        outcome.options.math or None,
        outcome.options.device,
    )


class Page:
    """Something that is shown once: its display in every form, made when it is shown."""

    def __init__(self, made: Callable[[], tuple[Bundle, Bundle]]) -> None:
        self._made = made

    def _repr_mimebundle_(self, **_: Any) -> tuple[Bundle, Bundle]:
        return self._made()


def tensor_bundle(value: Tensor, views: Views, *, rich: bool, note: str = "") -> tuple[Bundle, Bundle]:
    """The display of a lazy value: its value, type, where it comes from, a note, and the graph."""
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
    return bundle(" · ".join(words), shown.scene(source) if shown.computes else None, views, rich)


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
    """One line, a graph, and panels, in every form that a page may ask for."""
    words = [line, *(text for _, text in panels)]
    line = f"{line}\n{new}" if new else line
    if not rich:
        return {"text/plain": "\n".join(words)}, {}
    if scene is None or not scene.views:
        made: Bundle = {"text/plain": "\n".join(words)}
        made["text/html"] = "".join([as_html(_unbroken(line)), *(page for page, _ in panels)])
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
    """The line with spaces that do not break within what it says, where that is short."""
    facts = (fact.replace(" ", NO_BREAK) if len(fact) <= MOST_UNBROKEN else fact for fact in line.split(" · "))
    return f"{NO_BREAK}· ".join(facts)


_ROOT = re.compile(r'<svg xmlns="http://www.w3.org/2000/svg" width="([\d.]+)" height="([\d.]+)"[^>]*>')


def with_heading(picture: str, line: str) -> str:
    """A picture with the one line above it: pages without widgets show nothing else."""
    found = _ROOT.match(picture)
    if found is None:
        return picture
    wide, tall = max(float(found[1]), svg.NARROW + 2 * svg.MARGIN), float(found[2])
    rows = [row for one in line.split("\n") for row in wrapped(_unbroken(clean(one, 600)), wide - 2 * svg.MARGIN, 14)]
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
