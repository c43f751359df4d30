"""Floating-point errors of the NumPy tier: NumPy's warnings at the user's line, and errors if ``np.errstate`` enables them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any

import numpy as np

from tensormagic.capture.errors import errstate, repeated_warnings
from tensormagic.capture.python import usercode
from tensormagic.ir import site
from tensormagic.ir.errors import MemoryShortError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, users
from tensormagic.ir.site import Lens, Site
from tensormagic.ops.opaque import heard_by
from tensormagic.ops.scalars.comparison import where

_KINDS = {"divide by zero": "divide", "overflow": "over", "underflow": "under", "invalid value": "invalid"}
_lens: ContextVar[Callable[[], Lens] | None] = ContextVar("lens", default=None)


_inside: ContextVar[Lens | None] = ContextVar("inside", default=None)


@contextmanager
def inside(lens: Lens) -> Generator[None]:
    """Raise, in the block, also the errors that code captured without values has enabled by ``np.errstate``.

    ``lens`` knows where that code is: equal nodes of other functions share their sites.
    """
    token = _inside.set(lens)
    try:
        yield
    finally:
        _inside.reset(token)


def _asked_inside(what: str, nodes: list[Node]) -> bool:
    wanted, lens = f"raise {_KINDS[what]}", _inside.get()
    return lens is not None and any(wanted in span.quiet for node in nodes[:1] for span in lens.within(node))


def raises() -> bool:
    """Return whether NumPy is set to raise floating-point errors."""
    return errstate.raises()


@contextmanager
def naming_lines(lens: Callable[[], Lens]) -> Generator[None]:
    """Let errors and warnings in the block name the lines of the computed values, which ``lens`` knows."""
    token = _lens.set(lens)
    try:
        yield
    except Exception as error:
        node = getattr(error, "tensor_node", None)
        if isinstance(node, Node):
            error.tensor_sites = lens().of(node)  # type: ignore[attr-defined]
            if isinstance(error, MemoryShortError):
                error.place(error.tensor_sites)  # type: ignore[attr-defined]
        raise
    finally:
        _lens.reset(token)


def _sites(node: Node) -> tuple[Site, ...]:
    lens = _lens.get()
    return site.of(node) if lens is None else lens().of(node)


def call_on_numbers(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Return the result of a NumPy call on known numbers; show its warnings at the user's line."""
    asked = errstate.asked()
    warned = {kind: "call" for kind, how in asked.items() if how == "warn"}
    if not warned or not all(isinstance(v, int | float | complex | np.generic) for v in args):
        return function(*args, **options)

    def note(what: str, _flag: int) -> None:
        usercode.warn(f"{what} encountered in {function.__name__}", RuntimeWarning)

    with np.errstate(call=note, **warned):  # type: ignore[arg-type]
        return function(*args, **options)


@contextmanager
def watched() -> Generator[list[Any]]:
    """Run nodes with NumPy, for the block: an error is raised at its node, or becomes a warning at its line afterwards.

    An error in an alternative that rules have added, or at elements that a mask may leave out, counts only if a result
    is not finite: the caller puts the results into the yielded list.
    """
    met = _RunErrors()
    with heard_by(met.heard), np.errstate(call=met.note, **met.called()):  # type: ignore[arg-type]
        yield met.results
    met.end()


class _RunErrors:
    """Collects the floating-point errors and library warnings of a run."""

    def __init__(self) -> None:
        self.asked, self.called_for = errstate.asked(), np.geterrcall()
        self.noted: dict[tuple[str, type[Warning], str, Site], bool] = {}
        self.errors: list[FloatingPointError] = []
        self.results: list[Any] = []

    def called(self) -> dict[str, str]:
        """Return how NumPy is to handle each kind of error: by calling ``note`` or by ignoring it."""
        ignored = set() if _inside.get() is not None else {"ignore"}
        return {kind: "ignore" if how in ignored else "call" for kind, how in self.asked.items()}

    def note(self, what: str, flag: int) -> None:
        nodes = list(_running(inspect.currentframe()))
        if nodes and nodes[0].types[0].form == "python":  # Python's own numbers do not warn
            return
        how = self.asked[_KINDS[what]]
        if how == "raise" or _asked_inside(what, nodes):
            self._raise(what, nodes)
        elif how == "call" and callable(self.called_for):
            self.called_for(what, flag)
        elif how != "ignore" and (place := _place(what, nodes)) is not None:
            key = f"{what} encountered in {nodes[0].op.name}", RuntimeWarning, _KINDS[what], place
            self.noted[key] = self.noted.get(key, False) or not _is_beside(nodes[0], inspect.currentframe())

    def _raise(self, what: str, nodes: list[Node]) -> None:
        error = FloatingPointError(f"{what} encountered in {nodes[0].op.name}" if nodes else what)
        named = next((n for n in nodes if site.of(n)), None)
        error.tensor_node = named  # type: ignore[attr-defined]
        shown = what != "underflow"  # recognised by a result that is not finite
        if not (shown and named is not None and named is nodes[0] and _is_beside(named, inspect.currentframe())):
            raise error
        self.errors.append(error)

    def heard(self, message: str, category: type[Warning]) -> None:
        place = _place("", list(_running(inspect.currentframe())))
        if place is not None:
            self.noted[message, category, "", place] = True

    def end(self) -> None:
        """Raise or warn, now that the results are known."""
        if self.errors and not all(map(_is_finite, self.results)):
            raise self.errors[0]
        lens = _lens.get()
        for (message, category, kind, place), certain in self.noted.items():
            if certain or not all(map(_is_finite, self.results)):
                if lens is not None:
                    repeated_warnings.remember((message, category), kind, place, lens())
                repeated_warnings.warn((message, category), place)


def _is_finite(result: Any) -> bool:
    return np.asarray(result).dtype.kind not in "fc" or bool(np.isfinite(result).all())


def _is_beside(node: Node, frame: FrameType | None) -> bool:
    """Return whether a node was only added by rules and its readers select between it and something else."""
    graph = next((g for g in _graphs(frame) if node in g.nodes), None)
    if graph is None or not _is_added(node):
        return False
    readers, pending, seen = users(graph.nodes), [node], {node}
    while pending:
        part = pending.pop()
        if part in graph.results:
            return False
        for user in readers.get(part, ()):
            if user in seen or (user.op is where and (_is_added(user) or _is_of_all(part))):
                continue
            if not _is_added(user):
                return False
            seen.add(user)
            pending.append(user)
    return True


def _is_added(node: Node) -> bool:
    return all(span.role != "value" for span in site.of(node))


def _is_of_all(node: Node) -> bool:
    return {span.role for span in site.of(node)} == {site.OF_ALL}


def _graphs(frame: FrameType | None) -> Iterator[Graph]:
    """Yield the graphs that are being evaluated, innermost first."""
    while frame is not None:
        graph = frame.f_locals.get("graph") if usercode.is_ours(frame) else None
        if isinstance(graph, Graph):
            yield graph
        frame = frame.f_back


def _running(frame: FrameType | None) -> Iterator[Node]:
    """Yield the nodes that are being evaluated, innermost first."""
    while frame is not None:
        if usercode.is_ours(frame):
            node = frame.f_locals.get("node")
            if isinstance(node, Node):
                yield node
            lines = frame.f_globals.get("NODES")
            if lines is not None:  # the text of a loop
                yield from lines[frame.f_lineno]
        frame = frame.f_back


def _place(what: str, nodes: list[Node]) -> Site | None:
    """Return the line to be named: of the user's expression, not of derivatives, nor of an overflow in a replacement."""
    if what == "overflow" and nodes and _is_replacement(nodes[0]):
        return None  # nor do the enclosing loops name it
    cells = {s.cell for node in nodes for s in _sites(node)}  # inside a loop, only its own nodes have sites
    for node in nodes:
        known = _sites(node) or tuple(s for s in site.of(node) if s.cell in cells)
        spans = [
            s
            for s in known
            if s.role in {"value", site.OF_ALL} or (s.role.startswith("rewritten") and what != "overflow")
        ]
        if spans:
            span = max(spans, key=lambda s: (s.run, s))
            shown = any((cell.label, cell.run) == (span.cell, span.run) for cell in usercode.cells.values())
            return span if shown and span.cell.startswith("In[") and _KINDS.get(what) not in span.quiet else None
    return None


def _is_replacement(node: Node) -> bool:
    """Return whether a node was made by rules only."""
    spans = site.of(node)
    return bool(spans) and all(s.role.startswith("rewritten") for s in spans)
