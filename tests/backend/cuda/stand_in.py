"""As much of CuPy as the scripts for a card use, in this process's memory, with kernels run by the emulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from tests.backend.cuda.emulator import launch, parse


class Array(np.ndarray):
    """An array of the stand-in."""

    def get(self) -> np.ndarray:
        """A copy on the host."""
        return np.array(self)


class _Module:
    def load(self, image: bytes) -> None:
        self.program = parse(image.decode())

    def get_function(self, name: str) -> Any:
        del name
        return self._launch

    def _launch(self, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], shared: int = 0) -> None:
        given = [np.asarray(a).reshape(-1).view(np.uint8) if isinstance(a, np.ndarray) else a for a in args]
        report = launch(self.program, grid[0], block[0], shared, given)
        assert not report.issues, report.issues


class _Event:
    def record(self) -> None:
        """Everything is done."""

    def synchronize(self) -> None:
        """Everything is done."""


def _as_arrays(function: Callable[..., np.ndarray]) -> Callable[..., Array]:
    return lambda *args, **options: function(*args, **options).view(Array)


def stand_in() -> ModuleType:
    """The module."""
    rng = np.random.default_rng(0)
    made = ModuleType("cupy")
    made.__dict__.update(
        {name: _as_arrays(getattr(np, name)) for name in ("zeros", "asarray", "ascontiguousarray")},
        empty=lambda size, dtype: np.full(size, 1, dtype).view(
            Array
        ),  # whole rooms, so that arrays of the scripts are large enough
        copyto=np.copyto,
        int64=np.int64,
        __version__="0",
        get_default_memory_pool=lambda: SimpleNamespace(free_all_blocks=lambda: None),
        random=SimpleNamespace(
            uniform=lambda low, high, size, dtype: rng.uniform(low, high, size).astype(dtype).view(Array),
            standard_normal=lambda size, dtype: rng.standard_normal(size).astype(dtype).view(Array),
            randint=lambda low, high, size, dtype: rng.integers(low, high, size).astype(dtype).view(Array),
        ),
        cuda=SimpleNamespace(
            Device=lambda: SimpleNamespace(compute_capability="90", synchronize=lambda: None),
            Stream=SimpleNamespace(null=SimpleNamespace(synchronize=lambda: None)),
            Event=_Event,
            get_elapsed_time=lambda begin, end: 1.0,
            function=SimpleNamespace(Module=_Module),
            runtime=SimpleNamespace(
                getDeviceProperties=lambda number: {"name": b"a device without a card"}, driverGetVersion=lambda: 13000
            ),
        ),
    )
    return made
