"""Repeats warnings of kept values: a cell that needs the value again, and contains the line it came from, is warned again."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, NamedTuple
from weakref import ReferenceType, WeakKeyDictionary, ref

from tensormagic.capture.python import usercode
from tensormagic.ir import site
from tensormagic.ir.node import Node
from tensormagic.ir.site import Lens, Site

_What = tuple[str, type[Warning]]  # a message, and its category


class _Warning(NamedTuple):
    """A warning about a line, identified by the node built there, or by one built some lines above and the line's text."""

    what: _What
    kind: str  # as np.errstate names it
    text: str
    above: int
    built: ReferenceType[Node]


_MOST = 256
_registries: dict[
    tuple[str, int], tuple[dict[Any, Any], set[tuple[_What, int]]]
] = {}  # the warnings that each run of a cell was given
_of: WeakKeyDictionary[Node, dict[_Warning, None]] = WeakKeyDictionary()
_met: ContextVar[dict[_Warning, None] | None] = ContextVar("met", default=None)


@contextmanager
def kept_for(nodes: list[Node], made_of: Iterable[Node]) -> Generator[None]:
    """Record warnings in the block for ``nodes``, which are computed from the values of others."""
    met: dict[_Warning, None] = {}
    token = _met.set(met)
    try:
        yield
    finally:
        _met.reset(token)
    follow(nodes, made_of, met)


def follow(nodes: list[Node], made_of: Iterable[Node], met: dict[_Warning, None] | None = None) -> None:
    """Repeat the warnings about the values that ``nodes`` are computed from, and keep them for ``nodes`` with those in ``met``."""
    found = dict(met or {})
    for leaf in made_of if _of else ():
        again(leaf)
        found.update(_of.get(leaf, {}))
    if found:
        for node in nodes:
            _of[node] = found


def remember(what: _What, kind: str, place: Site, lens: Lens) -> None:
    """Record a warning about a line; ``lens`` tells which node was built there."""
    met = _met.get()
    if met is not None:
        built, above = lens.built_near(place)
        text = _text(place) if above else ""
        met.update(dict.fromkeys(_Warning(what, kind, text, above, ref(node)) for node in built))


def again(node: Node) -> None:
    """Repeat earlier warnings about the value of ``node`` for the running cell, if that has built the node itself."""
    found = _of.get(node) if _of else None
    if not found:
        return
    run = usercode.newest_run()
    for known in found:
        built = known.built()
        for span in site.of(built) if built is not None else ():
            if span.run == run and span.role == "value" and known.kind not in span.quiet:
                place = replace(span, line=span.line + known.above)
                said = (known.what, place.line) in _warnings_given(place)[
                    1
                ]  # Python forgets these where its filters change
                if not said and (not known.above or _text(place) == known.text):
                    warn(known.what, place)


def _text(place: Site) -> str:
    """Return the text of the line in a running cell; empty if there is none."""
    cell = next((c for c in usercode.cells.values() if (c.label, c.run) == (place.cell, place.run)), None)
    lines = [] if cell is None else cell.source.splitlines()
    return lines[place.line - 1].strip() if 0 < place.line <= len(lines) else ""


def warn(what: _What, span: Site) -> None:
    """Warn about a line, once in each run of its cell."""
    registry, said = _warnings_given(span)
    said.add((what, span.line))
    try:
        warnings.warn_explicit(*what, span.cell, span.line, registry=registry)
    except Warning as error:  # warnings are errors here
        said.clear()
        error.tensor_site = span  # type: ignore[attr-defined]
        raise


def _warnings_given(span: Site) -> tuple[dict[Any, Any], set[tuple[_What, int]]]:
    """Return the warnings that a run of a cell was given: Python's registry, and ours."""
    while len(_registries) > _MOST:
        del _registries[next(iter(_registries))]
    return _registries.setdefault((span.cell, span.run), ({}, set()))
