"""Show what a warning offers: rewritten cells, and a button that inserts them into the notebook."""

from __future__ import annotations

import html

from IPython.core.display_functions import publish_display_data

from tensormagic.notebook.display.shown import Views
from tensormagic.notebook.warnings.stale import Offer
from tensormagic.notebook.widgets.strips import Rewrite


def show(offer: Offer, views: Views) -> None:
    """Show a button that rewrites cells; without widgets, show the new texts as an expandable section."""
    cells = [{"cell": cell.known, "now": cell.text, "better": better} for cell, better in offer.cells]
    strip = Rewrite(offer.words, offer.after, cells)
    views.add(strip)
    publish_display_data({**strip.live(), "text/html": _page(cells), "text/plain": offer.words}, {})


def _page(cells: list[dict[str, str]]) -> str:
    return (
        "<details><summary>The cell, rewritten</summary>"
        + "".join(f"<pre>{html.escape(each['better'].strip())}</pre>" for each in cells)
        + "</details>"
    )
