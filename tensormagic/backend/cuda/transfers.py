"""Warn of copies between host and device that nobody has asked for, once for each variable and direction, or refuse them by name."""

from __future__ import annotations

import math
import warnings
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

from tensormagic.config import config
from tensormagic.ir.errors import HiddenTransferWarning, TransferError
from tensormagic.ir.site import Site
from tensormagic.ir.type import hint

POLICIES = ("warn", "explicit", "refuse")  # from the most permissive to the strictest
Direction = Literal["to the device", "to the host"]


@dataclass(frozen=True)
class Hidden:
    """A copy that nobody has asked for.

    Parameters
    ----------
    name
        Of the variable, or of the operation that the device does not do.
    what
        What is copied, with its type and bytes, and where.
    direction
        Where it is copied to.
    mend
        What makes the copy unnecessary, or has it asked for.
    sites
        Where the user's code reads it.
    """

    name: str
    what: str
    direction: Direction
    mend: str
    sites: tuple[Site, ...] = ()

    def __str__(self) -> str:
        where = f", {self.sites[0]}" if self.sites else ""
        return f"{self.what} is copied {self.direction}{where}"


_asked: ContextVar[bool] = ContextVar("asked", default=False)
_told: set[tuple[str, str]] = set()


@contextmanager
def asked_for() -> Generator[None]:
    """Mark copies made within the context as asked for."""
    token = _asked.set(True)
    try:
        yield
    finally:
        _asked.reset(token)


def forget() -> None:
    """Forget which warnings were given, so that each is given again."""
    _told.clear()


def inputs(found: Sequence[Hidden]) -> None:
    """Warn that inputs are about to be copied to the device, or refuse, unless the policy is to warn only."""
    if _asked.get():
        return
    if config.transfers != "warn":
        refuse(found)
    tell(found)


def fallbacks(found: Sequence[Hidden]) -> None:
    """Warn that operations are about to run on the host, or refuse where nothing may be copied."""
    if _asked.get():
        return
    if config.transfers == "refuse":
        refuse(found)
    tell(found)


def result(found: Hidden, *, number: bool) -> None:
    """Warn that a value is about to be copied to the host, or refuse; a single number is refused only by the strictest policy."""
    if _asked.get() or (number and config.transfers != "refuse"):
        return
    if config.transfers != "warn":
        refuse([found])
    tell([found])


def refuse(found: Sequence[Hidden]) -> None:
    """Refuse copies, naming all of them.

    Raises
    ------
    TransferError
        Where there are any.
    """
    if not found:
        return
    option = f"--transfers {config.transfers}"
    lines = "".join(f"\n  {one}" for one in dict.fromkeys(map(str, found)))
    mends = "; ".join(dict.fromkeys(one.mend for one in found))
    raise TransferError(f"{option} refuses what nobody has asked for:{lines}", mends + ".")


def tell(found: Iterable[Hidden]) -> None:
    """Warn of copies, once for each name and direction."""
    for one in found:
        if (one.name, one.direction) in _told:
            continue
        _told.add((one.name, one.direction))
        place = (one.sites[0].cell, one.sites[0].line) if one.sites else ("tensormagic", 1)
        warnings.warn_explicit(f"{one}; {one.mend}", HiddenTransferWarning, *place)


def type_text(of: Any) -> str:
    """Return ``float64[3, 4], 96 bytes`` for an array or a type; without the bytes where a size is unknown."""
    sizes = [hint(s) for s in of.shape]
    known = [s for s in sizes if s is not None]
    count = f", {math.prod(known) * of.dtype.itemsize:,} bytes" if len(known) == len(sizes) else ""
    return f"{of.dtype}[{', '.join('?' if s is None else str(s) for s in sizes)}]{count}"
