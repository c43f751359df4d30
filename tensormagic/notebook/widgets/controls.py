"""What views with sliders and buttons have in common: the style sheet of these."""

from __future__ import annotations

from pathlib import Path

__all__ = ["controls"]

_SHEET = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")


def controls(scope: str) -> str:
    """The style sheet of a view, of its sliders and of its buttons, inside ``scope`` of a page; the view's own comes after it."""
    return _SHEET.replace(".tm-view", scope)
