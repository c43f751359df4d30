"""Measure the cell on a device, beside NumPy and the CPU: with its data there, and with copies of the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensormagic import residence, session
from tensormagic.backend.cuda.compiling import compiler
from tensormagic.backend.cuda.device import current
from tensormagic.backend.cuda.planned import planned
from tensormagic.backend.cuda.transfers import asked_for
from tensormagic.config import config
from tensormagic.notebook.pictures.adaptor import Portrait

THERE = "on the device"
COPIES = "with copies"


class OnDevice:
    """The graph of a cell on the device, to be measured.

    Parameters
    ----------
    shown
        The graph, and the values that it is computed of.
    """

    def __init__(self, shown: Portrait) -> None:
        self.device = current()
        with config.using(device="gpu"):
            self.program = session.executable(shown.primal, shown.level)
        self.hosted = [
            np.asarray(v.host()) if isinstance(v, residence.Resident) else v for v in map(_asked, shown.values)
        ]
        self.there = [residence.resident(v) for v in self.hosted]
        with asked_for():
            for value in self.there:
                if isinstance(value, residence.Resident):
                    value.device()

    @property
    def is_compiled(self) -> bool:
        """Return whether kernels of our own run: they are compiled here."""
        found = planned(self.program.graph)
        if config.tier == "numpy" or not compiler.is_there() or found is None or not found.has_kernels:
            return False
        found.codes.start(self.device.capability)
        return found.codes.wait()

    def run(self) -> list[Any]:
        """Return the results, which stay there, when all is done."""
        tier = "numba" if self.is_compiled else config.tier
        with asked_for(), config.using(tier=tier):
            found = self.program.resident(self.there)
        self.device.synchronize()
        return found

    def with_copies(self) -> list[Any]:
        """Return the results on the host, of values of the host."""
        self.there = [residence.resident(v) for v in self.hosted]
        return self.results(self.run)

    def results(self, run: Callable[[], list[Any]]) -> list[Any]:
        """Return the results of a run on the host."""
        with asked_for():
            return [r.host() if isinstance(r, residence.Resident) else r for r in run()]

    @property
    def launched(self) -> str:
        """Return a description of what a run launches."""
        found = planned(self.program.graph)
        kernels = sum(len(launches) for launches in found.launches.values() if launches) if found is not None else 0
        return f"{kernels} kernel{'s' * (kernels != 1)}" if kernels and self.is_compiled else "the library's calls"


def _asked(value: Any) -> Any:
    if isinstance(value, residence.Resident):
        with asked_for():
            value.host()
    return value
