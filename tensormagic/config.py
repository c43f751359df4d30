"""What the user can set, from Python or by ``TENSORMAGIC_*`` variables of the environment."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from tensormagic.alike import alike


def _variable(name: str, default: str) -> str:
    return os.environ.get(f"TENSORMAGIC_{name}", default)


def _default_cache() -> Path:
    given = os.environ.get("TENSORMAGIC_CACHE_FOLDER")
    if given:
        return Path(given)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData/Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library/Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "tensormagic"


def processors() -> int:
    """How many processors this process may use, its group of processes has time on, and ``OMP_NUM_THREADS`` allows.

    Examples
    --------
    >>> processors() >= 1
    True
    """
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        count = min(count, max(1, -(-int(quota) // int(period))))
    except (OSError, ValueError, ZeroDivisionError):  # no such group, or no limit
        pass
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]  # what runs many processes sets it for each
    return min(count, int(asked)) if asked.isdecimal() and int(asked) else count


THEMES = (
    *(
        "constants",
        "structure",
        "assumed",
        "triples",
        "differences",
        "identities",
        "algebra",
        "explog",
        "ranges",
        "reductions",
        "remainders",
        "parts",
    ),
    *("structured", "linalg", "loops", "fusion"),
)
"""What can be switched off by name: the themes of rules, the making of loops into array code, and fused kernels."""
GROUPS = {"stability": ("differences", "identities", "explog", "ranges", "remainders", "triples"), "rules": THEMES[:-2]}
"""Names for several of them."""
_WITHOUT = " without "


def leveled(level: str, without: str = "") -> str:
    """A level with what is switched off there, as one text: the same one for the same choice.

    Raises
    ------
    ValueError
        For a name that is no theme.

    Examples
    --------
    >>> leveled("stable", "fusion,algebra")
    'stable without algebra,fusion'
    """
    names = [n.strip() for n in without.split(",") if n.strip()]
    wrong = [n for n in names if n not in THEMES and n not in GROUPS]
    if wrong:
        raise ValueError(f"only {', '.join((*THEMES, *GROUPS))} can be left out, not {wrong[0]!r}")
    whole = {name for n in names for name in GROUPS.get(n, (n,))}
    return level.partition(_WITHOUT)[0] + (f"{_WITHOUT}{','.join(sorted(whole))}" if whole else "")


def parted(level: str) -> tuple[str, frozenset[str]]:
    """The level itself, and the set of names that are switched off."""
    base, _, names = level.partition(_WITHOUT)
    return base, frozenset(filter(None, names.split(",")))


@dataclass
class Config:
    """Settings.

    Parameters
    ----------
    math
        ``"exact"``, ``"stable"`` or ``"real"``: which rewrites may be used; ``"stable without fusion,algebra"`` leaves some out,
        as ``without`` does: ``config.without = "fusion,algebra"``, and ``""`` for none.
    tier
        ``"auto"``: NumPy first, compiled code when it is ready; ``"numpy"`` and ``"numba"`` pin one.
    device
        ``"cpu"``, ``"gpu"``, or ``"auto"``, which chooses by sizes, and is the CPU where there is no GPU.
    transfers
        Copies between host and device that were not requested: ``"warn"`` warns once for each variable, ``"explicit"`` refuses
        those of arrays, ``"refuse"`` also those of numbers, and what only the host does.
    memory
        How many bytes a run may use at once; 0 for the memory that is free. A run that needs more is refused before it begins.
    threads
        How many threads share large loops of compiled code, and independent steps of a graph: by default as many as the process may
        use processors. No value depends on it.
    plain
        Run ``%%tensor`` cells as ordinary Python.
    cache_folder
        The folder for machine code, and for what first calls have found out about source texts.
    carried_folder
        A further folder, of GPU code that another machine has compiled; empty for none.

    Examples
    --------
    >>> Config(math="exact").math
    'exact'
    """

    math: str = field(default_factory=lambda: leveled(_variable("MATH", "stable"), _variable("WITHOUT", "")))
    tier: Literal["auto", "numpy", "numba"] = field(default_factory=lambda: _variable("TIER", "auto"))  # type: ignore[assignment,return-value]
    device: Literal["cpu", "gpu", "auto"] = field(default_factory=lambda: _variable("DEVICE", "cpu"))  # type: ignore[assignment,return-value]
    transfers: Literal["warn", "explicit", "refuse"] = field(default_factory=lambda: _variable("TRANSFERS", "warn"))  # type: ignore[assignment,return-value]
    memory: int = field(default_factory=lambda: int(_variable("MEMORY", "0") or 0))
    threads: int = field(default_factory=lambda: int(_variable("THREADS", "0") or 0) or processors())
    plain: bool = field(default_factory=lambda: _variable("PLAIN", "0") not in {"", "0"})
    cache_folder: Path = field(default_factory=_default_cache)
    carried_folder: str = field(default_factory=lambda: _variable("CARRIED_FOLDER", ""))

    ALLOWED: ClassVar[dict[str, set[str]]] = {
        "math": {"exact", "stable", "real"},
        "tier": {"auto", "numpy", "numba"},
        "device": {"cpu", "gpu", "auto"},
        "transfers": {"warn", "explicit", "refuse"},
    }

    def __post_init__(self) -> None:
        self._blocks: dict[str, list[tuple[object, Any]]]
        object.__setattr__(self, "_blocks", {})  # by name: the blocks that go on, and what was there before each

    own_level = 0  # how many blocks with a level of their own we are in
    own_devices = 0  # and with a device of their own

    def __setattr__(self, name: str, value: object) -> None:
        if name == "without":
            object.__setattr__(self, "math", leveled(self.math, str(value)))
            return
        allowed = self.ALLOWED.get(name)
        without = ""
        if name == "math":
            value, off = parted(str(value))
            without = ",".join(off) or self.without
        if allowed is not None and value not in allowed:
            message = f"config.{name} must be one of {', '.join(sorted(allowed))}, not {value!r}"
            raise ValueError(message)
        if name == "cache_folder":
            value = Path(str(value))
        if name == "threads" and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            message = f"config.threads is a number of threads, at least 1; not {value!r}"
            raise ValueError(message)
        if not hasattr(type(self), name) and name not in type(self).__annotations__:
            near = alike(name, type(self).__annotations__)
            message = f"config has no setting {name}{f'; did you mean {near[0]}?' if near else ''}"
            raise AttributeError(message)
        object.__setattr__(self, name, leveled(str(value), without) if name == "math" else value)

    @property
    def without(self) -> str:
        """What is switched off, by names with commas."""
        return ",".join(sorted(parted(self.__dict__.get("math", ""))[1]))

    def level(self, given: str = "") -> str:
        """The level in force, or a given one, with the switched-off groups."""
        if not given:
            return self.math
        return given if _WITHOUT in given else leveled(given, self.without)

    @property
    def own_math(self) -> str:
        """The level of the innermost block that sets one, which values made there keep; else empty."""
        return self.math if self.own_level else ""

    def own_place(self) -> tuple[str, str]:
        """The device and the copy policy of the innermost block that sets them, which values made there keep."""
        return self.device, self.transfers

    @contextmanager
    def using(self, **values: object) -> Generator[None]:
        """Other settings for a while; empty ones stay as they are.

        Parameters
        ----------
        **values
            Settings by name, ``tier="numpy"`` for instance.

        Yields
        ------
        None
            In the block they hold, for all threads.

        Raises
        ------
        ValueError
            For a value that a setting does not have.
        AttributeError
            For a setting that is not there.

        Examples
        --------
        >>> settings = Config(math="exact")
        >>> with settings.using(math="real"):
        ...     settings.math
        'real'
        >>> settings.math
        'exact'
        """
        names = {*values, "math"} - {"without"}
        own, placed = int(bool(values.get("math") or values.get("without"))), int(bool(values.get("device")))
        block = self._enter(names, own, placed)
        try:
            for name, value in values.items():
                if value:
                    setattr(self, name, value)
            yield
        finally:
            self._leave(block, names, own, placed)

    def _enter(self, names: set[str], own: int, placed: int) -> object:
        """Begin a block of other settings, and save the old value of each name."""
        block = object()
        with _entering:
            for name in names:
                held = self._blocks.setdefault(name, [])
                held.append((block, getattr(self, name)))
            self.own_level += own
            self.own_devices += placed
        return block

    def _leave(self, block: object, names: set[str], own: int, placed: int) -> None:
        """End a block: restore the old values, unless a later block on another thread still has others."""
        with _entering:
            self.own_level -= own
            self.own_devices -= placed
            for name in names:
                held = self._blocks[name]
                place = next(k for k, (other, _) in enumerate(held) if other is block)
                before = held.pop(place)[1]
                if place < len(held):
                    held[place] = held[place][0], before
                else:
                    object.__setattr__(self, name, before)


_entering = threading.Lock()
config = Config()
