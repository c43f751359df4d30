"""The speed view: bars of all candidates, time by line, and the roofline. As a picture, a page's panel, and text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, isfinite, isnan, log10
from xml.sax.saxutils import escape

from tensormagic.backend.planning.costs import Cost
from tensormagic.config import config
from tensormagic.functions.explaining import FLOPS
from tensormagic.notebook.cells.outcome import Outcome
from tensormagic.notebook.display.forms import Drawn, bytes_text, count_text, seconds_text, table
from tensormagic.notebook.pictures.adaptor import Portrait
from tensormagic.notebook.pictures.labels import width
from tensormagic.notebook.speeds import strip
from tensormagic.notebook.speeds.measure import Party, Speed, measure
from tensormagic.notebook.speeds.on_device import COPIES, THERE
from tensormagic.notebook.speeds.sheet import MARGIN, SCOPE, WIDE, Sheet, style
from tensormagic.notebook.speeds.strip import Part

_NARROW = 250.0
_ULP = 2e-16
_SMALL = 1 << 20  # bytes that are in a cache
_NONE = "–"
_TITLE = "speed of the cell's value, without gradients"
_LINES = "where NumPy's {} go, line by line: estimated from one profiled run"
_FIRST_LINES = "time of each line in NumPy: the first seconds of one profiled run"
_ROOF = "roofline: the limits of one core, and the speed that was reached"
_EXACT = 0.1  # a relative spread above which a ratio has two digits
_GROUPS = 4  # of steps at the same time, and names in one, that are told
_SAME = 0.95  # a ratio from here to its inverse is called the same
_NEAR = 2.0  # what the fastest runs and the means say is told apart beyond it
_BAR, _LONG = 130.0, 420.0  # where the bars of a run begin, and how long the longest is


def speed(outcome: Outcome, shown: Portrait) -> Drawn:
    """Measure, and show."""
    named = zip(shown.graph.names, shown.graph.parameters, strict=True)
    inputs = tuple(f"{name} {shown.type_text(p.type)}" for name, p in named if p.type.shape)
    found = replace(measure(outcome, shown), inputs=inputs)
    return drawn(found, outcome.source, own_first=bool(outcome.gradients))


def drawn(found: Speed, source: str, *, own_first: bool = False) -> Drawn:
    """Return the measurements, drawn in every form.

    Parameters
    ----------
    found
        The figures.
    source
        The cell's text.
    own_first
        Whether tensormagic's first result came with gradients.
    """
    parts = _lines(found, source)
    text = _text(found, parts, own_first=own_first)
    sheet = Sheet(WIDE)
    y = _sentences(sheet, _said(found), _two_bars(sheet, found, MARGIN + 12) + 18)
    strip.draw(sheet, parts, y + 14)
    page = (
        f'<div class="{SCOPE}"><style>{style(page=True)}</style>{_bars_page(found)}{strip.page(parts)}'
        "<details><summary>first result, memory, accuracy, the machine's limits</summary>"
        f"{_table(found)[0]}{_notes(_figured(found, own_first=own_first))}{_roofline(found)}</details></div>"
    )
    return Drawn(page, text, sheet.picture(_headline(found), text))


def _lines(found: Speed, source: str) -> list[Part]:
    """Return the lines with their shares of the time shown by NumPy's bar, as the single profiled run may be slower or quicker."""
    seconds = found.run(found.numpy)
    if not found.lines.whole or not seconds:
        return strip.parts(_FIRST_LINES, found.lines, source)
    return strip.parts(_LINES.format(seconds_text(seconds)), found.lines.shared_out(seconds), source)


# words ----------------------------------------------------------------------------------------------------------------

_HEAD = ("", "a run", "first result", "compiling", "memory", "launches", "error")


def _cells(party: Party, doubt: float) -> list[str]:
    """Return a row of the table."""
    name = f"{party.name}, {party.how}" if party.how else party.name
    if party.refused:
        return [name, f"cannot run the cell unchanged: {party.refused}", "", "", "", "", ""]
    return [
        name,
        *(_NONE if t is None else seconds_text(t) for t in (party.call, party.first, party.compiling)),
        _NONE if party.memory is None else bytes_text(party.memory),
        party.launched or _NONE,
        _NONE if party.error is None else _error(party.error, doubt),
    ]


def _error(error: float, doubt: float) -> str:
    if error < doubt and doubt > _ULP and isfinite(doubt):
        return f"< {doubt:.1e}"
    return f"{error:.1e}" if error else "0"


def _table(found: Speed) -> tuple[str, str]:
    """Return the figures: a column for each who has run the cell on a page, which may be narrow, and a row in text."""
    rows = [_cells(p, found.doubt) for p in found.parties if not p.refused]
    first, *figures = zip(_HEAD, *rows, strict=True)
    page, text = table(_TITLE, first, figures)[0], table(_TITLE, _HEAD, rows)[1]
    told = [f"{p.name} cannot run the cell unchanged: {p.refused}" for p in found.parties if p.refused]
    return page + "".join(f"<p>{escape(line)}</p>" for line in told), "\n".join([text, *told])


def _headline(found: Speed) -> str:
    """Return ``3.4 times faster than NumPy``, with as many digits as the spread allows; for wide spreads by the fastest runs."""
    if found.is_done:
        return "a run has nothing left to compute"
    about = "about " if found.doubtful > _EXACT else ""
    ratio = found.times_faster(found.own)
    text = _compared(ratio, f"{about}{{}} than NumPy", 2 if about else 3)
    if not found.varies:
        return text
    means = found.numpy.mean / found.own.mean if found.numpy.mean and found.own.mean else ratio
    alike = _NEAR > ratio / means > 1 / _NEAR
    if alike and (min(ratio, means) > 1 / _SAME or max(ratio, means) < _SAME):
        return f"{text}, by the fastest runs"
    return _apart({"fastest runs": ratio, "means": means})


def _apart(ratios: Mapping[str, float]) -> str:
    """Return how much faster two ways of measuring say a run is, where they disagree, the smaller ratio first."""
    less, more = sorted(ratios, key=lambda by: max(ratios[by], 1 / ratios[by]))
    low, high = ratios[less], ratios[more]
    return f"{_compared(low, '{} than NumPy', 2)} by the {less}, {_compared(high, '{}', 2)} by the {more}"


def _compared(ratio: float, text: str, digits: int) -> str:
    if _SAME < ratio < 1 / _SAME:
        return "as fast as NumPy"
    return text.format(f"{_times(ratio, digits)} times {'faster' if ratio > 1 else 'slower'}")


def _times(ratio: float, digits: int) -> str:
    """Return how many times faster, or slower."""
    times = max(ratio, 1 / ratio)
    return f"{times:.{digits}g}" if times < 10**digits else f"{float(f'{times:.{digits}g}'):,.0f}"


def _about(runs: int) -> str:
    """Return a number of runs with the digits that a measurement has."""
    return f"{runs}" if runs < 100 else f"about {float(f'{runs:.2g}'):,.0f}"


def _called(party: Party) -> str:
    """Return the label of a bar."""
    return party.how if party.how in {"with gradients", THERE, COPIES} else party.name


def _run(found: Speed, party: Party) -> str:
    """Return the time at the end of a bar: ``1.21 ms ± 40 µs`` like ``%%timeit``, or the fastest run where the runs vary."""
    if party.mean is None or found.varies:
        return _NONE if party.call is None else seconds_text(party.call)
    return _usual(party)


def _usual(party: Party) -> str:
    return f"{seconds_text(party.mean or 0.0)} ± {seconds_text(party.spread)}"


def _nearness(difference: float | None) -> str:
    """Return how near the results of both are."""
    if not difference:
        return "the results are equal to the last digit"
    if not isfinite(difference):
        return "the results differ: one is infinite or nan where the other is a number"
    return f"largest relative difference of the results: {difference:.2g}"


def _said(found: Speed) -> list[str]:
    """Return the sentences beside the two bars: when compiling pays, and how close the results are."""
    own, told = found.own, list[str]()
    if found.is_done:
        told.append("each result is an input or a constant, by what rewriting has found")
    elif own.compiling:
        pays = found.pays_after
        after = (
            f"pays off after {_about(pays)} run{'s' * (pays != 1)}"
            if pays
            else "does not pay off: a run takes longer than with NumPy"
        )
        told.append(f"compiling took {seconds_text(own.compiling)} and {after}")
    elif own.compiling is not None or own.how == "on NumPy":
        told.append("nothing is compiled: the rewritten graph runs in NumPy")
    told.append(_nearness(own.apart))
    if found.inputs:
        some = ", ".join([*found.inputs[:4], *["…"] * (len(found.inputs) > 4)])
        told.append(f"for {some}; large compiled loops use up to {config.threads} thread{'s' * (config.threads > 1)}")
    there = [p for p in found.parties if p.how in {THERE, COPIES}]
    if there:
        beside = (f"{p.how} {_compared(found.times_faster(p), '{}', 2)}" for p in there)
        told.append(f"than NumPy: on the CPU {_compared(found.times_faster(found.own), '{}', 2)}, {', '.join(beside)}")
    counted = [
        f"{p.name} {f'{_usual(p)}, ' if found.varies else ''}{p.batches} runs, {p.runs} loop{'s' * (p.runs != 1)} each"
        for p in (found.numpy, own)
        if p.runs
    ]
    if found.varies:
        told.append("the runs vary much, as when the machine does other work: the bars are the fastest single runs")
    told.append(f"mean ± standard deviation as in %%timeit: {'; '.join(counted)}" if counted else _TITLE)
    if counted and any(p.how == "with gradients" for p in found.parties):
        told.append("the first two bars are the value alone")
    return told


def _figured(found: Speed, *, own_first: bool) -> list[str]:
    """Return sentences that explain the further figures."""
    told = [
        f"error: compared with the same cell computed with {int(found.digits * log10(2))} digits in place of 15"
        if found.digits
        else "error: not known, because NumPy's floats of more digits cannot tell, or would take too long"
    ]
    with_them = ", with gradients" if own_first else ""
    return [
        *told,
        f"a run: the fastest; first result: {found.own.name}'s is of this run of the cell, captured and computed{with_them}",
        "launches: what a run calls one after the other; a kernel is a compiled function that does the work of several ops",
    ]


def _work(name: str, cost: Cost) -> str:
    least = "" if cost.known else "at least "
    told = f"{name}: {least}{count_text(cost.flops)} flops, {bytes_text(cost.moved)} moved"
    return f"{told}, {cost.flops / cost.moved:.2g} flops a byte" if cost.moved else told


def _roof_words(found: Speed) -> list[str]:
    can = found.machine
    told = [FLOPS, "moved: bytes that are read and written"]
    told += [_work("NumPy", found.by_numpy), _work("tensormagic", found.by_plan)]
    point = _point(found.by_plan, found.own)
    if point is not None:
        rate = point.rate
        roof, which = _roof(found, point.intensity, can.memory), "memory"
        if rate > roof or found.by_plan.moved < _SMALL:
            roof, which = _roof(found, point.intensity, can.cached), "the cache"
        told.append(
            f"tensormagic does {_a_second(rate, 'flop')}, {100 * rate / roof:.0f} % of what one core can do with data in {which}"
        )
    told.append(
        f"one core, measured by {can.by}: {_a_second(can.flops, 'flop')}; "
        f"{_a_second(can.cached, 'B')} from the cache, {_a_second(can.memory, 'B')} from memory"
    )
    if config.threads > 1:
        told.append(f"large loops run on up to {config.threads} threads (tm.config.threads)")
    if found.at_once:
        told.append(
            f"at the same time: {'; '.join(map(_group, found.at_once[:_GROUPS]))}{'; …' * (len(found.at_once) > _GROUPS)}"
        )
    return told


def _group(names: Sequence[str]) -> str:
    """Return names as a list: ``svd and svd``, ``@, @ and kernel 2``, ``@ and 7 more``."""
    if len(names) > _GROUPS:
        return f"{names[0]} and {len(names) - 1} more"
    return " and ".join([", ".join(names[:-1]), names[-1]])


def _a_second(number: float, unit: str) -> str:
    """Return a rate as text: ``58.8 Gflop/s``."""
    text = count_text(round(number))
    return f"{text}{' ' if text[-1].isdigit() else ''}{unit}/s"


def _text(found: Speed, shown: Sequence[Part], *, own_first: bool) -> str:
    """Return the whole as text."""
    wide = max(14, *(len(_called(p)) for p in found.parties))
    runs = [f"  {_called(p):{wide}} {_run(found, p)}" for p in found.parties if not p.refused]
    parts = [_headline(found), *runs, *_said(found), *strip.words(shown)]
    return "\n".join([*parts, _table(found)[1], *_figured(found, own_first=own_first), *_roof_words(found)])


# bars -----------------------------------------------------------------------------------------------------------------


def _two_bars(sheet: Sheet, found: Speed, y: float) -> float:
    """Return the headline, and a bar for a run of each party, from zero."""
    sheet.text(MARGIN, y + 4, _headline(found), "ink bold")
    ran = [p for p in found.parties if not p.refused]
    most = max((found.run(p) for p in ran), default=0.0)
    y += 2
    for party in found.parties:
        y += 26
        sheet.text(MARGIN, y, _called(party), "ink")
        if party.refused:
            sheet.text(_BAR, y, f"cannot run the cell unchanged: {party.refused}", "soft", room=640)
            continue
        length = _LONG * found.run(party) / most if most else 0.0
        sheet.bar(_BAR, y - 12, max(length, 1.5), 16, {"NumPy": "numpy", "tensormagic": "own"}.get(party.name, "other"))
        sheet.text(_BAR + length + 8, y, _run(found, party), "ink")
    return y + 8


def _bars_page(found: Speed) -> str:
    """Return the headline, the bars and the sentences, as rows that fold on a narrow page."""
    most = max((found.run(p) for p in found.parties if not p.refused), default=0.0) or 1.0
    rows: list[str] = []
    for party in found.parties:
        name = escape(_called(party))
        if party.refused:
            rows.append(
                f'<div class="run"><span>{name}</span><span>cannot run the cell unchanged: {escape(party.refused)}</span></div>'
            )
            continue
        kind = {"NumPy": "numpy", "tensormagic": "own"}.get(party.name, "other")
        bar = f'<b class="{kind}" style="width:{65 * found.run(party) / most:.1f}%"></b>'
        rows.append(
            f'<div class="run"><span>{name}</span><span class="long">{bar}<span>{_run(found, party)}</span></span></div>'
        )
    told = [
        f'<p class="{"said" if line.startswith("compil") else "note"}">{escape(_held(line))}</p>'
        for line in _said(found)
    ]
    return f'<p class="bold">{_headline(found)}</p>{"".join(rows)}{"".join(told)}'


def _sentences(sheet: Sheet, told: Sequence[str], y: float) -> float:
    for k, line in enumerate(told):
        sheet.text(MARGIN, y, line, "ink" if k == 0 and line.startswith("compil") else "soft small")
        y += 18
    return y


# lines ----------------------------------------------------------------------------------------------------------------


_Box = tuple[float, float, float, float]

# roofline -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Point:
    """Flops a byte, and flops a second."""

    intensity: float
    rate: float


def _point(cost: Cost, party: Party) -> _Point | None:
    if not cost.moved or not cost.flops or not party.call or isnan(party.call):
        return None
    return _Point(cost.flops / cost.moved, cost.flops / party.call)


def _roof(found: Speed, intensity: float, bandwidth: float) -> float:
    return min(found.machine.flops, bandwidth * intensity)


@dataclass(frozen=True)
class _Axes:
    """A chart with two logarithmic axes."""

    left: float
    top: float
    wide: float
    tall: float
    x: tuple[int, int]
    y: tuple[int, int]

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the position of a point in the picture."""
        right = (log10(x) - self.x[0]) / (self.x[1] - self.x[0])
        up = (log10(y) - self.y[0]) / (self.y[1] - self.y[0])
        return self.left + right * self.wide, self.top + (1 - up) * self.tall


def _roofline(found: Speed) -> str:
    """Return a roofline chart of the achieved rates with sentences beside it, or below it on a narrow page."""
    points = [
        (n, _point(c, p))
        for n, c, p in (("NumPy", found.by_numpy, found.numpy), ("tensormagic", found.by_plan, found.own))
    ]
    known = [(n, point) for n, point in points if point is not None]
    chart = Sheet(_NARROW)
    if known:
        _chart(chart, found, known, MARGIN + 30)
    drawn = chart.inline(_ROOF) if known else ""
    told = [*_roof_words(found), *(["slanted lines: from memory (solid), from the cache (dashed)"] if known else [])]
    return f'<p class="bold">{_ROOF}</p><div class="beside">{drawn}<div>{_notes(told)}</div></div>'


def _notes(told: Sequence[str]) -> str:
    return "".join(f'<p class="note">{escape(_held(line))}</p>' for line in told)


_HELD = "\N{NO-BREAK SPACE}"
_TOGETHER = re.compile(
    r" (?=±)|(?<=±) |(?<=\d) (?=(?:ns|µs|ms|s|min|h|B|[kMGT]?B/s|[kMGT]?flop/s|%)(?!\w))"
)  # a number and its unit


def _held(line: str) -> str:
    """Return a line of a page that does not end within a number and its unit."""
    return _TOGETHER.sub(_HELD, line)


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return low, max(high, low + 1)


def _chart(sheet: Sheet, found: Speed, points: list[tuple[str, _Point]], y: float) -> None:
    can = found.machine
    ridges = [can.flops / can.memory, can.flops / can.cached]
    across = _decades([*(p.intensity for _, p in points), min(ridges) / 4, max(ridges) * 4])
    low = 10.0 ** across[0]
    up = _decades([*(p.rate for _, p in points), can.flops * 1.5, can.memory * low * 4])
    axes = _Axes(44, y, _NARROW - 54, 160, across, up)
    _grid(sheet, axes)
    high = 10.0 ** across[1]
    for bandwidth, kind in ((can.memory, "roof thick"), (can.cached, "roof thick dashed")):
        ridge = can.flops / bandwidth
        start = max(low, 10.0 ** up[0] / bandwidth)
        stops = [(start, bandwidth * start), (ridge, can.flops), (high, can.flops)]
        d = "".join(f"{'L' if k else 'M'}{px:.1f} {py:.1f}" for k, (px, py) in enumerate(axes.at(*s) for s in stops))
        sheet.path(d, kind)
    places = {name: axes.at(point.intensity, point.rate) for name, point in points}
    _limit(sheet, axes.at(high, can.flops), _a_second(can.flops, "flop"), list(places.values()))
    for name, at in places.items():
        _mark(sheet, name, at)
    _legend(sheet, axes, list(places))


def _limit(sheet: Sheet, at: tuple[float, float], text: str, points: Sequence[tuple[float, float]]) -> None:
    """Draw the label of the roof, above its right end or where no point is in the way."""
    (x, top), long = at, width(text, 12)
    taken = [(px - 6, py - 6, px + 6, py + 6) for px, py in points]
    beside = [(x - 4 - long - k, y - 12, x - 4 - k, y + 4) for y in (top - 6, top + 16) for k in (0, 24, 48)]
    chosen = next((box for box in beside if not any(_meet(box, other) for other in taken)), beside[0])
    sheet.text(chosen[0], chosen[3] - 4, text, "soft small")


def _grid(sheet: Sheet, axes: _Axes) -> None:
    for k in range(axes.x[0], axes.x[1] + 1):
        x, bottom = axes.at(10.0**k, 10.0 ** axes.y[0])
        sheet.path(f"M{x:.1f} {axes.top:.1f}V{bottom:.1f}", "grid")
        sheet.text(x, bottom + 15, f"{10.0**k:g}", "soft small", anchor="middle")
    for k in range(axes.y[0], axes.y[1] + 1):
        left, y = axes.at(10.0 ** axes.x[0], 10.0**k)
        sheet.path(f"M{left:.1f} {y:.1f}H{left + axes.wide:.1f}", "grid")
        sheet.text(left - 6, y + 4, f"{count_text(10**k) if k >= 0 else f'{10.0**k:g}'}", "soft small", anchor="end")
    sheet.text(axes.left + axes.wide / 2, axes.top + axes.tall + 32, "flops a byte", "soft small", anchor="middle")
    sheet.text(axes.left, axes.top - 8, "flop/s", "soft small")


def _mark(sheet: Sheet, name: str, at: tuple[float, float]) -> None:
    """Draw a point: a circle for NumPy, a square for tensormagic."""
    x, y = at
    if name == "NumPy":
        sheet.path(f"M{x - 5:.1f} {y:.1f}a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z", "numpy")
    else:
        sheet.bar(x - 5, y - 5, 10, 10, "own", round_by=1)


def _legend(sheet: Sheet, axes: _Axes, names: Sequence[str]) -> None:
    """Draw the points' names above the chart, each behind its mark; inside the chart they would cover its lines."""
    left, base = axes.left, axes.top - 28  # above what the axis upwards is of
    for name in names:
        _mark(sheet, name, (left + 5, base - 4))
        sheet.text(left + 14, base, name, "ink small bold")
        left += width(name, 12, bold=True) + 32


def _meet(one: _Box, other: _Box) -> bool:
    """Return whether two boxes (left, top, right, bottom) have anything in common."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
