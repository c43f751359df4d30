"""The records of a capture, one for each subject."""

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

from tensormagic.capture.errors import errstate
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.graph import Guard
from tensormagic.ir.node import Node
from tensormagic.ir.site import Site
from tensormagic.ir.type import Type


@dataclass
class Effort:
    """Represents the cost of a capture so far, and of the code in it that Python runs.

    Parameters
    ----------
    nodes
        The number of nodes built.
    driving, iterations, driven
        The depth of nested loops that Python runs, the iterations that these have begun, and the depth of those in
        which Python takes decisions.
    asked, calls, iterated, begun, wall
        The number of values that the code has needed, of calls of user functions, and of loop iterations begun by
        Python; the start of the capture by the thread's clock and by the wall clock.
    places, repeats
        The places that have needed values, and the number of values needed at a place that had needed one before.
    ahead
        The object that looks ahead in the innermost loop that Python runs.
    ran
        The seconds of the thread spent on computing values whose graphs were complete.
    again
        Called when the graph grows large in iterations run by Python: whether the code can be run without a graph
        instead.
    hurried
        Whether a statement of this text was given up for that before.
    unstaged
        Why control flow was left to Python, by place.
    chosen
        For each place with conditions that Python has evaluated, how often these were false, and true.
    rests
        By code, when to try again to stage loops that were left to Python.
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
    """Records what concerns errors that the code may raise and catch.

    Parameters
    ----------
    depth, conditions
        The number of enclosing ``try`` blocks, and of conditions in these that the trace assumes.
    safe
        What the code has built so far.
    errors, filters
        The ``np.errstate`` settings and warning filters when the capture began; code that catches warnings has others.
    raising, caught
        Whether the code has enabled errors since then, and whether a ``try`` surrounds code that may raise some while
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
    """Records numbers of data-dependent class.

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
    """Records what has left the graph, and memory that is not captured.

    Parameters
    ----------
    strangers, shown, unshown, looked_at
        Arrays met by the code that no graph can hold; arrays whose memory NumPy shares with others, with their content
        then; shared memory that a store is still to be written to; and shared memory that a trace has read.
    on_values
        The functions that were not captured and ran on values, in order.
    taken
        The nodes whose numbers were read, which cuts derivatives, and where.
    lost
        The nodes stored as plain numbers into arrays that are not captured, and where.
    generators
        While code runs that is not captured: the notebook's generators that it may draw from.
    made
        Objects that are not captured, made by the code itself, whose changes no other code sees.
    looks
        How often code without values has read a clock: the second read measures time.
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
    """Records what depends on memory layout.

    Parameters
    ----------
    stores, ordered
        Whether something was stored into, and whether the code depends on the inputs' layout.
    asked
        Whether the code itself has read the layout.
    deciding
        Assumptions on sizes that decide what is a view in NumPy: they become guards once something is stored into.
    """

    stores: bool = False
    ordered: bool = False
    asked: bool = False
    deciding: list[Guard] = field(default_factory=list)


@dataclass
class Callers:
    """Records what a function has found out about its caller's containers and arguments.

    Parameters
    ----------
    containers
        The caller's containers, by the identity of their stand-ins.
    identities
        Whether the code has compared them by ``is``.
    alike
        Whether it has compared which of its arguments are identical.
    unsure
        What a result may be a part of if that is not tracked; it does not matter for values alone.
    """

    containers: dict[int, Any] = field(default_factory=dict)
    identities: bool = False
    alike: bool = False
    unsure: str = ""


@dataclass
class Output:
    """Records the output of the code while the graph runs.

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
    """Records names that code reads or binds.

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
    """Records the stores of code on trial, and what depends on them.

    Parameters
    ----------
    trials
        The running trials, outermost first.
    journals
        For each trial, the old contents of the buffers that it stores into.
    followed
        Buffers, and the followers of stores into them registered during trials.
    held
        The objects that running loops iterate over.
    watched
        Lists and dictionaries that stand for elements of grown lists, with their content then, and the place: a change
        would be lost.
    listed
        All that were ever watched, by identity: their stand-ins after a branch or a loop are watched, too.
    chosen
        Containers between which a data-dependent condition chooses: the code may not change them.
    once
        For each call that is one for many, the iterators that existed before it, and the error for advancing one of
        these.
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
    """Records the inputs of the graph, and the stand-ins among them.

    Parameters
    ----------
    values
        The values of inputs in the call that a function is captured for, and values computed from these so far.
    stand_ins, behind
        Inputs that stand for arguments inside called functions; the nodes that these, and stand-ins for other parts of
        the code, stand for.
    standing
        The depth of functions whose arguments are stand-ins: nodes that depend on these have no value there.
    supposed
        The conditions of the enclosing branches, and whether they hold there.
    """

    values: dict[Node, Any] = field(default_factory=dict[Node, Any])
    stand_ins: list[Node] = field(default_factory=list[Node])
    behind: dict[Node, Node] = field(default_factory=dict[Node, Node])
    standing: int = 0
    supposed: list[tuple[Node, bool]] = field(default_factory=list[tuple[Node, bool]])


@dataclass
class Order:
    """Records the nodes that may raise, check or print, in program order.

    Parameters
    ----------
    made, ahead
        The values of a function's expressions, used or not; for a cell, the nodes that may raise. How many of these are
        computed before the last check or print.
    looked
        The operations of a cell that have been examined for that.
    awaited
        Checks and prints in functions that no value waits for.
    whole
        Whether one function is captured whose results are computed together, so that none has to wait for its checks.
    within
        For each part of the code that derivatives recompute, the values of its expressions.
    checks
        The token of the checks that the graph makes when it runs: 0 if there is none.
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
    """Records functions that captured code calls.

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
    """Records results that are real or complex depending on values.

    Parameters
    ----------
    complex_sites, sites
        Which of them are assumed complex, and their number so far.
    """

    complex_sites: frozenset[int] = frozenset()
    sites: int = 0

    def of_site(self) -> tuple[bool, int]:
        """Return whether the next value-dependent result is assumed real, and its number."""
        site, self.sites = self.sites, self.sites + 1
        return site not in self.complex_sites, site


@dataclass
class Refusals:
    """Records what could not be captured, or may not be for other data.

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
