"""What the tests of live views look at: the widgets that are open, and sweeps as numbers."""

from __future__ import annotations

import base64

import ipywidgets
import numpy as np

WIDGET = "application/vnd.jupyter.widget-view+json"


def widgets() -> set[str]:
    return set(ipywidgets.widgets.widget._instances)


def unpacked(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), "<f8")
