"""What a capture keeps, a record for each subject."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any
from weakref import WeakSet

import numpy as np

from tensormagic.capture import errstate
from tensormagic.ir.graph import Guard
from tensormagic.ir.node import Node
from tensormagic.ir.site import Site
from tensormagic.ir.type import Type


@dataclass
class Effort:
    """How much a capture has cost, and what Python runs of it.

    Parameters
    ----------
    nodes
        How many nodes there are.
    driving, iterations, driven
        In how many loops the code is that Python runs, how many iterations these have begun, and in how many Python decides.
    asked, begun
        How many values the code has asked for on the way, and when its thread has begun.
    again
        Asked where the graph grows large while Python runs iterations: whether the code can be run without one, once this is given up.
    hurried
        Whether this text was given up for that before.
    unstaged
        Why control flow was left to Python, by place.
    rests
        For loops that were left to Python, by code, when they are to be asked again.
    """

    nodes: int = 0
    driving: int = 0
    iterations: int = 0
    driven: int = 0
    asked: int = 0
    begun: float = field(default_factory=time.thread_time)
    again: Callable[[], bool] | None = None
    hurried: bool = False
    unstaged: dict[Site, str] = field(default_factory=dict)
    rests: dict[CodeType, Any] = field(default_factory=dict[CodeType, Any])


@dataclass
class Attempts:
    """Errors that the code may meet, and catch.

    Parameters
    ----------
    depth, conditions
        In how many ``try`` blocks the code is, and how many conditions in these the trace is for.
    safe
        What the code has built so far.
    errors, filters
        What ``np.errstate`` said when the capture began, and the warnings' filters: code that catches warnings has others.
    raising, caught
        Whether the code has asked for errors that were not asked for then; and whether there is a ``try`` around what might meet some,
        where they were asked for.
    changing
        Whether code changes something before a data-dependent error.
    """

    depth: int = 0
    conditions: int = 0
    safe: WeakSet[Node] = field(default_factory=WeakSet[Node])
    errors: dict[str, Any] = field(default_factory=lambda: dict(errstate.asked()))
    filters: Any = field(default_factory=lambda: warnings.filters)
    raising: bool = False
    caught: bool = False
    changing: bool = False


@dataclass
class Numbers:
    """Numbers whose classes depend on data.

    Parameters
    ----------
    of, types
        The classes of numbers; all classes among these.
    settled
        What was computed of such numbers as each class computes it.
    undecided
        The dtypes that numbers, and arrays made of them, would be of in NumPy for some data, where these are narrower than here.
    """

    of: dict[Node, Any] = field(default_factory=dict[Node, Any])
    types: list[Type] = field(default_factory=list[Type])
    settled: WeakSet[Node] = field(default_factory=WeakSet[Node])
    undecided: dict[Node, np.dtype[Any]] = field(default_factory=dict[Node, np.dtype[Any]])


@dataclass
class Outside:
    """What has left the graph, and memory that is not captured.

    Parameters
    ----------
    strangers, shown, unshown, looked_at
        Arrays that no graph holds, which the code has met; arrays whose memory NumPy has made others of, with what they held; lent
        memory that is still to get what was stored; and lent memory that a trace has read.
    on_values
        The functions that were not captured and ran on values, in order.
    taken
        What numbers were taken of on the way, which no derivative goes through, and where.
    lost
        What was stored into arrays that are not captured, as numbers, and where.
    generators
        While code runs that is not captured: the notebook's generators that it may draw from.
    """

    strangers: list[np.ndarray[Any, Any]] = field(default_factory=list[np.ndarray[Any, Any]])
    shown: list[Any] = field(default_factory=list[Any])
    unshown: list[Any] = field(default_factory=list[Any])
    looked_at: list[Any] = field(default_factory=list[Any])
    on_values: list[str] = field(default_factory=list[str])
    taken: dict[Node, Site] = field(default_factory=dict)
    lost: dict[Node, Site] = field(default_factory=dict)
    generators: dict[int, Any] | None = None


@dataclass
class Layouts:
    """What hangs on how elements lie in memory.

    Parameters
    ----------
    stores, ordered
        Whether something was stored into, and whether it was asked how inputs lie.
    asked
        Whether the code itself has asked where elements lie.
    deciding
        What sizes were taken to be where these decide what is a view in NumPy: noted with the guards once something is stored into.
    """

    stores: bool = False
    ordered: bool = False
    asked: bool = False
    deciding: list[Guard] = field(default_factory=list)


@dataclass
class Callers:
    """What a function has asked of its caller's containers and arguments.

    Parameters
    ----------
    containers
        The caller's containers, by the identity of those that the code has for them.
    identities
        Whether the code has asked by ``is`` which one it has.
    alike
        Whether it has asked which of its arguments are one object.
    """

    containers: dict[int, Any] = field(default_factory=dict)
    identities: bool = False
    alike: bool = False


@dataclass
class Output:
    """What the code says while the graph runs.

    Parameters
    ----------
    stdout
        Where ``print`` wrote to when the capture began: code that redirects it has another.
    told
        Whether the code prints, or raises errors, when the graph runs.
    until
        What stands for all of that until the function has met an error.
    """

    stdout: Any = field(default_factory=lambda: sys.stdout)
    told: bool = False
    until: Any = None


__all__ = ["Attempts", "Callers", "Effort", "Layouts", "Numbers", "Output", "Outside"]
