"""The display of a call over a cluster: the graph by places, and the report's tables."""

from __future__ import annotations

from typing import Any

from IPython.core.display_functions import publish_display_data

from tensormagic.distributed.report import Report, in_bytes, text_of
from tensormagic.notebook.display.shown import Bundle, Views, bundle
from tensormagic.notebook.pictures.placed import Crossing, headline, placed

LEGEND = "A frame is a place where the function is computed; between frames stands what moved in this call, and how many bytes."
_HEAD = ("what moved", "direction", "times", "bytes")


def bundle_of(report: Report, views: Views, *, rich: bool) -> tuple[Bundle, dict[str, Any]]:
    """Return a report in every form; where a page can show it, the graph is shown before it."""
    made = placed(report)
    if made is None:
        return {"text/plain": repr(report), "text/html": report._repr_html_()}, {}  # pyright: ignore[reportPrivateUsage] (IPython's name)
    line = headline(report)
    text = text_of(line, [(_HEAD, [_told(one) for one in made.crossings])])
    if rich:
        picture, metadata = bundle(f"{line}\n{LEGEND}", made.scene, views, rich=True, expanded=True)
        publish_display_data({**picture, "text/plain": f"{line}\n"}, metadata)  # the table says the rest
    return {"text/plain": f"{report!r}\n{text}", "text/html": report._repr_html_()}, {}  # pyright: ignore[reportPrivateUsage] (as above)


def _told(one: Crossing) -> tuple[str, str, str, str]:
    return one.what, one.way, f"{one.times:,}", in_bytes(one.bytes)
