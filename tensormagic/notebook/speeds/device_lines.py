"""Measure the time of each line of a cell on the device, in one run that synchronises between kernels and library calls."""

from __future__ import annotations

from typing import Any

from tensormagic import residence, session
from tensormagic.backend.cuda import clock
from tensormagic.backend.cuda.device import current
from tensormagic.backend.cuda.transfers import asked_for
from tensormagic.config import config
from tensormagic.ir import site
from tensormagic.ir.node import Node
from tensormagic.notebook.pictures.adaptor import Portrait
from tensormagic.notebook.pictures.views import places


def device_lines(shown: Portrait) -> dict[int, float]:
    """Return the seconds that each line takes, gradients included. Time of shared kernels is divided among their lines.

    The first run compiles, or has the library compute nodes without kernels; the second is measured.
    """
    tier = "numba" if config.tier != "numpy" else "numpy"
    with asked_for(), config.using(device="gpu", tier=tier):
        program = session.executable(shown.graph, shown.level)
        given: list[Any] = [residence.resident(v) for v in shown.values]
        program.resident(given)
        with clock.timed(current()) as measured:
            program.resident(given)
    spans, found = places(shown.lens, shown.cell), dict[int, float]()

    def line_of(node: Node) -> int | None:
        return min((s.line for s in (*spans(node), *site.of(node)) if s.cell == shown.cell), default=None)

    for nodes, seconds in measured.seconds.items():
        lines = {line for line in map(line_of, nodes) if line is not None}
        for line in lines:
            found[line] = found.get(line, 0.0) + seconds / len(lines)
    return found
