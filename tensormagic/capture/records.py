"""What a capture keeps, a record for each subject."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakSet, ref

import numpy as np

from tensormagic.capture import errstate
from tensormagic.ir.errors import CaptureError
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
    asked, calls, iterated, begun, wall
        How many values the code has asked for on the way, how often it has called functions of the user's, how many iterations of all
        loops Python has begun, and when the code has begun, by the clock of its thread and by the one on the wall.
    places, repeats
        The places that have asked for values, and how many of these values one has asked for that had asked before.
    ahead
        What foresees the innermost loop that Python runs.
    ran
        The seconds of the thread that the values took to be computed, once their graphs were there.
    again
        Asked where the graph grows large while Python runs iterations: whether the code can be run without one, once this is given up.
    hurried
        Whether a statement of this text was given up for that before.
    unstaged
        Why control flow was left to Python, by place.
    chosen
        How often conditions that Python has asked for were false, and true, by place.
    rests
        For loops that were left to Python, by code, when they are to be asked again.
    """

    nodes: int = 0
    driving: int = 0
    iterations: int = 0
    driven: int = 0
    asked: int = 0
    calls: int = 0
    iterated: int = 0
    begun: float = field(default_factory=time.thread_time)
    wall: float = field(default_factory=time.perf_counter)
    places: set[tuple[str, int] | None] = field(default_factory=set[tuple[str, int] | None])
    repeats: int = 0
    ahead: Any = None
    ran: float = 0.0
    again: Callable[[], bool] | None = None
    hurried: bool = False
    unstaged: dict[Site, str] = field(default_factory=dict)
    chosen: dict[Site, list[int]] = field(default_factory=dict[Site, list[int]])
    rests: dict[CodeType, Any] = field(default_factory=dict[CodeType, Any])


@dataclass
class Attempts:
    """Errors that the code may meet and catch.

    Parameters
    ----------
    depth, conditions
        The number of enclosing ``try`` blocks, and of conditions in these that the trace assumes.
    safe
        What the code has built so far.
    errors, filters
        The ``np.errstate`` settings and warning filters when the capture began; code that catches warnings has others.
    raising, caught
        Whether the code has enabled errors since then, and whether a ``try`` surrounds code that may meet some while
        they are enabled.
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
    """Numbers of data-dependent class.

    Parameters
    ----------
    of, types
        The possible classes of each number; all classes among these.
    settled
        Results computed from such numbers as each class computes them.
    undecided
        The dtypes that numbers, and arrays of them, would have in NumPy for some data, if narrower than here.
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
    made
        Objects that are not captured and that the code has made itself: how they are changed, nobody else sees.
    looks
        How often code without values has looked at a clock: the second look measures time.
    """

    strangers: list[np.ndarray[Any, Any]] = field(default_factory=list[np.ndarray[Any, Any]])
    shown: list[Any] = field(default_factory=list[Any])
    unshown: list[Any] = field(default_factory=list[Any])
    looked_at: list[Any] = field(default_factory=list[Any])
    on_values: list[str] = field(default_factory=list[str])
    taken: dict[Node, Site] = field(default_factory=dict)
    lost: dict[Node, Site] = field(default_factory=dict)
    generators: dict[int, Any] | None = None
    made: list[Any] = field(default_factory=list[Any])
    looks: int = 0


@dataclass
class Layouts:
    """What depends on memory layout.

    Parameters
    ----------
    stores, ordered
        Whether something was stored into, and whether the code depends on the inputs' layout.
    asked
        Whether the code itself has asked for the layout.
    deciding
        Assumptions on sizes that decide what is a view in NumPy: they become guards once something is stored into.
    """

    stores: bool = False
    ordered: bool = False
    asked: bool = False
    deciding: list[Guard] = field(default_factory=list)


@dataclass
class Callers:
    """What a function has asked about its caller's containers and arguments.

    Parameters
    ----------
    containers
        The caller's containers, by the identity of their stand-ins.
    identities
        Whether the code has compared them by ``is``.
    alike
        Whether it has asked which of its arguments are identical.
    unsure
        What a result may be a part of if that is not tracked; it does not matter for values alone.
    """

    containers: dict[int, Any] = field(default_factory=dict)
    identities: bool = False
    alike: bool = False
    unsure: str = ""


@dataclass
class Output:
    """The output of the code while the graph runs.

    Parameters
    ----------
    stdout
        The target of ``print`` when the capture began; code that redirects it has another.
    told
        Whether the code prints, or raises errors, when the graph runs.
    until
        The token for all of that until the function has met an error.
    """

    stdout: Any = field(default_factory=lambda: sys.stdout)
    told: bool = False
    until: Any = None


@dataclass
class Names:
    """Names that code reads or binds.

    Parameters
    ----------
    lifted
        The lazy arrays that stand for names that are read from outside, by name and dictionary.
    noted
        The names that were read from outside.
    numbers
        Numbers that a cell names itself, by the inputs that stand for them.
    bound
        The first value that the code has bound to each name that gradients are with respect to, and its node then.
    """

    lifted: dict[Any, Any] = field(default_factory=dict)
    noted: dict[Any, Any] = field(default_factory=dict)
    numbers: dict[Node, Any] = field(default_factory=dict[Node, Any])
    bound: dict[str, tuple[Any, Node]] = field(default_factory=dict[str, tuple[Any, Node]])


@dataclass
class Heap:
    """What code that is tried out stores into, and what follows from these stores.

    Parameters
    ----------
    trials
        Code that is being tried out, outermost first.
    journals
        For each trial, what the buffers that it stores into held before.
    followed
        Buffers, and what follows stores into them since code is being tried out.
    held
        What loops whose iterations are running go over.
    watched
        Lists and dictionaries that stand for elements of grown lists, with what they held, and where: a change would be lost.
    listed
        All that were noted there so far, by identity: what stands for one of them behind a branch or a loop is noted, too.
    chosen
        Containers between which a data-dependent condition chooses: the code may not change them.
    once
        For each call that is one for many, the iterators that were there before it, and what refuses to take from these.
    """

    trials: list[Any] = field(default_factory=list)
    journals: list[dict[Any, Any]] = field(default_factory=list)
    followed: list[tuple[Any, ref[Any]]] = field(default_factory=list)
    held: list[Any] = field(default_factory=list)
    watched: list[tuple[Any, Any, Any]] = field(default_factory=list[tuple[Any, Any, Any]])
    listed: dict[int, Any] = field(default_factory=dict[int, Any])
    chosen: list[Any] = field(default_factory=list)
    once: list[tuple[dict[int, Any], Callable[[], Exception]]] = field(
        default_factory=list[tuple[dict[int, Any], Callable[[], Exception]]]
    )


@dataclass
class Inputs:
    """What inputs are, and what they stand for.

    Parameters
    ----------
    values
        What inputs are in the call that a function is captured for, and what follows from that, as far as it was asked for.
    stand_ins, behind
        Inputs that stand for something within functions that the code calls, and what stands behind those and others that stand in
        for a part of the code.
    standing
        In how many functions the code is whose arguments inputs stand for: what is made of these has no value there.
    supposed
        Conditions of the branches that the code is in, and whether they hold there.
    """

    values: dict[Node, Any] = field(default_factory=dict[Node, Any])
    stand_ins: list[Node] = field(default_factory=list[Node])
    behind: dict[Node, Node] = field(default_factory=dict[Node, Node])
    standing: int = 0
    supposed: list[tuple[Node, bool]] = field(default_factory=list[tuple[Node, bool]])


@dataclass
class Order:
    """What may raise, check or print, in the order of the code.

    Parameters
    ----------
    made, ahead
        What the expressions of a function have given, used or not; of a cell, what may raise when it is computed. How many of
        these are computed before whatever the code has printed or checked last.
    looked
        The operations of a cell that have been looked at for that.
    awaited
        Checks, and what is printed, in functions of which no value waits for them.
    whole
        Whether the body of one function is captured that gives its results all at once: none of them has to wait for its checks.
    within
        For each part of the code that derivatives compute again, what its expressions have given.
    checks
        What stands for the checks of data that the graph makes when it runs: 0 where there is none.
    """

    made: list[Node] = field(default_factory=list[Node])
    ahead: int = 0
    looked: set[Node] = field(default_factory=set[Node])
    awaited: list[Node] = field(default_factory=list[Node])
    whole: bool = False
    within: list[set[Node]] = field(default_factory=list[set[Node]])
    checks: dict[str, Any] = field(default_factory=lambda: {"__tensor_checks__": 0})


@dataclass(frozen=True)
class Beside:
    """The replacement for a function that captured code names: its body over the names present, and whether these last."""

    body: Callable[..., Any]
    lasting: bool


@dataclass
class Running:
    """Functions that captured code calls.

    Parameters
    ----------
    beside
        The functions that code has met under names, with their replacements.
    recursions
        The running functions that may call themselves under data-dependent conditions.
    """

    beside: dict[FunctionType, Beside] = field(default_factory=dict[FunctionType, Beside])
    recursions: dict[Any, Any] = field(default_factory=dict)


@dataclass
class Complexes:
    """Results that are real or complex depending on values.

    Parameters
    ----------
    complex_sites, sites
        Which of them are assumed complex, and their number so far.
    """

    complex_sites: frozenset[int] = frozenset()
    sites: int = 0

    def of_site(self) -> tuple[bool, int]:
        """Whether the next value-dependent result is assumed real, and its number."""
        site, self.sites = self.sites, self.sites + 1
        return site not in self.complex_sites, site


@dataclass
class Refusals:
    """What could not be captured, or may not be for other data.

    Parameters
    ----------
    refused, wanted
        What could not be captured, which the code may have caught; where a missing value was last needed.
    assumed
        Assumptions on data-dependent values: an error met after them may not occur for other data.
    deferred
        Whether the code has met values that are None, or one of several, depending on data.
    """

    refused: Exception | None = None
    wanted: tuple[CodeType, int, CaptureError] | None = None
    assumed: str = ""
    deferred: bool = False
