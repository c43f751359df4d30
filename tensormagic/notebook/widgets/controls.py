"""What views have in common: the style sheets of sliders and buttons, and of pictures that go on beyond their frames."""

from __future__ import annotations

from pathlib import Path

# JupyterLab breaks the lines of messages and plain values within words, which a narrow page shows all the time
MESSAGES = ".jp-OutputArea-output.jp-RenderedText pre { word-break: normal; overflow-wrap: anywhere; }\n"

_EDGES = Path(__file__).with_name("edges.css").read_text(encoding="utf-8")
_SHEET = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")


def edges(scope: str) -> str:
    """Return the style sheet that marks the sides where a picture can be scrolled, restricted to ``scope``."""
    return _EDGES.replace(".tm-view", scope)


def controls(scope: str) -> str:
    """Return the style sheet of a view, of its sliders and of its buttons, inside ``scope`` of a page; the view's own comes after it."""
    return _SHEET.replace(".tm-view", scope)
