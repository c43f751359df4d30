"""The details of a scene beyond its first pictures: steps of rewriting, and measurements of each node. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tensormagic.notebook.pictures.labels import clean

if TYPE_CHECKING:
    from tensormagic.notebook.pictures.scene import View


@dataclass(frozen=True)
class Rewrite:
    """One use of a rule: its text, its level, where it fired, its gain, and the operations that it introduced."""

    rule: str
    level: str
    where: str
    source: str
    bought: str = ""
    meant: str = ""


_LENGTHS = {"rule": 300, "level": 40, "where": 200, "source": 80, "bought": 200, "meant": 300}


@dataclass(frozen=True)
class Step:
    """One or several firings of rules: the graph after them, and the ids of its new vertices."""

    rewrites: tuple[Rewrite, ...]
    view: View
    made: tuple[str, ...]

    def message(self) -> dict[str, Any]:
        """Return the step without its picture as JSON data."""
        return {
            "rewrites": [[clean(getattr(r, part), most) for part, most in _LENGTHS.items()] for r in self.rewrites],
            "made": list(self.made),
            "ops": self.view.ops,
        }


@dataclass(frozen=True)
class Details:
    """What is found out when somebody opens the graph.

    Parameters
    ----------
    measured : mapping
        By the number of a vertex: bytes, time and values, as JSON data.
    steps : mapping
        By the name of a view the steps of rewriting that led to it; the first is the graph before them.
    note : str
        What could not be measured, and why.
    """

    measured: Mapping[int, Mapping[str, Any]] = field(default_factory=dict[int, Mapping[str, Any]])
    steps: Mapping[str, tuple[Step, ...]] = field(default_factory=dict[str, tuple[Step, ...]])
    note: str = ""
