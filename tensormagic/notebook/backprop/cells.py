"""An array as a strip of small squares: the fuller the colour, the larger; negative ones are half as wide, and blue."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tensormagic.notebook.backprop.frame import HEAD, Quantity

SIDE = 7.0  # of a square, with the gap to the next; the page draws the same


def extent(quantity: Quantity) -> tuple[float, float]:
    """Return the width and the height of a strip; zeros for a quantity that is written as text."""
    if quantity.kind != "array" or quantity.few:
        return 0.0, 0.0
    return len(quantity.columns) * SIDE, len(quantity.rows) * SIDE


def strip(quantity: Quantity, floats: Sequence[float], left: float, top: float, name: str) -> str:
    """Return the squares of the floats of an array."""
    cells = floats[HEAD:]
    most = max((abs(v) for v in cells if math.isfinite(v)), default=0.0) or 1.0
    columns = len(quantity.columns)
    squares = "".join(
        _square(value / most, left + SIDE * (k % columns), top + SIDE * (k // columns)) for k, value in enumerate(cells)
    )
    return f'<g class="cells" data-c="{name}" data-x="{left:.1f}" data-y="{top:.1f}">{squares}</g>'


def _square(share: float, x: float, y: float) -> str:
    side = SIDE - 1 if not share < 0 else SIDE / 2
    inset = (SIDE - side) / 2
    fullness = 0.12 + 0.88 * min(abs(share), 1.0) if math.isfinite(share) else 0.0
    kind = "below" if share < 0 else "above"
    return (
        f'<rect class="{kind}" x="{x + inset:.1f}" y="{y + inset:.1f}" width="{side:.1f}" height="{side:.1f}" '
        f'fill-opacity="{fullness:.2f}"/>'
    )
