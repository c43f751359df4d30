"""Errors of two forms of a value, relative to the real number that both mean, for given values of the inputs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.backend.numpy_tier import reference
from tensormagic.backend.planning import costs
from tensormagic.ir.errors import TensorError
from tensormagic.ir.graph import Graph, bare_symbol
from tensormagic.ir.node import Node, is_constant, topological
from tensormagic.ir.size import evaluate
from tensormagic.ops.effects.telling import silently
from tensormagic.ops.form import FORM
from tensormagic.ops.leaf import PARAMETER
from tensormagic.ops.move import BROADCAST
from tensormagic.ops.pointwise import Pointwise
from tensormagic.ops.real_numbers import UnknownError, numbers, real_values, reals, ulps

SAMPLES = 64
"""How many elements are examined: half of them where the two forms differ most, half evenly spread."""
MOST_WHOLE = 400
"""How many numbers are converted to many digits if a fold reads all of them."""
MOST_OPERATIONS = 200_000_000
CHECKED = 4
"""For how many elements it is checked that both forms mean the same: those where they differ most."""
EXTENTS = (0, 100, 16, 4)
"""The lengths to which axes are cut in turn if there are too many elements; 0 for no cut."""


@dataclass(frozen=True)
class Errors:
    """The errors of two forms, in units of the last place: the worst of the elements examined.

    Parameters
    ----------
    before, after
        The worst error of each; inf if a number became inf or nan.
    looked
        The number of elements examined.
    extent
        The length to which axes of the inputs were cut; 0 if they were not.
    """

    before: float
    after: float
    looked: int
    extent: int = 0

    def __str__(self) -> str:
        cut = f", axes cut to {self.extent}" if self.extent else ""
        worst = f", worst of {self.looked} elements" if self.looked > 1 else ""
        before, after = _told(self.before), _told(self.after)
        if before == after:
            return f"error {after} units in the last place, as before{worst}{cut}"
        both = ", both less than one" if max(self.before, self.after) < 1 else ""
        return f"error {before} -> {after} units in the last place{both}{worst}{cut}"


def _told(error: float) -> str:
    return "inf" if error == np.inf else "0" if error < 0.005 else f"{error:.2g}" if error < 100 else f"{error:.0e}"


class NotMeasuredError(Exception):
    """Raised if an error is not known; its text is the reason."""


class _DependentError(Exception):
    """Raised if the values that both forms read depend on each other, so that the forms are equal only for consistent values."""


class Measure:
    """Measures errors in a graph for given parameter values, within a time limit.

    Parameters
    ----------
    graph
        A closed graph.
    values
        The values of its parameters.
    seconds
        The time limit.
    """

    def __init__(self, graph: Graph, values: Sequence[Any], seconds: float) -> None:
        self.graph = graph
        self.values = [np.asarray(v) for v in values]
        self.end = time.perf_counter() + seconds

    def errors(self, before: Node, after: Node, *, whole: bool = False) -> Errors:
        """Return the errors of two nodes that mean the same real numbers.

        Values that both read are taken as exact: with ``whole`` only the parameters, else all common nodes. A rule
        may use how such values depend on each other (for ``sqrt(x + 1) - sqrt(x)``, that the squares differ by 1):
        then only the parameters, too.

        Raises
        ------
        NotMeasuredError
            If they cannot be measured, with the reason.
        """
        if before.type.dtype.kind != "f":
            raise NotMeasuredError("no floating-point number")
        try:
            term = _Term(before, after, whole=whole)
            for extent in EXTENTS:
                if time.perf_counter() > self.end:
                    raise NotMeasuredError("that takes longer than a view may")
                if (found := self._at(term, extent)) is not None:
                    return found
        except _DependentError:
            return self.errors(before, after, whole=True)
        except UnknownError as unknown:
            raise NotMeasuredError(f"{unknown} cannot be computed with more digits") from None
        except ImportError:
            raise NotMeasuredError("mpmath is not installed") from None
        except (TensorError, ArithmeticError, ValueError, IndexError, TypeError, KeyError) as error:
            raise NotMeasuredError(str(error) or type(error).__name__) from None
        raise NotMeasuredError("too large")

    def _at(self, term: _Term, extent: int) -> Errors | None:
        """Return the errors with axes cut to ``extent``, or None if that is still too much work."""
        values = [self._cut(p, v, extent) for p, v in zip(self.graph.parameters, self.values, strict=True)]
        read = Graph(self.graph.parameters, (*term.cuts, term.before, term.after))
        sizes = read.bind([v.shape for v in values])
        work = costs.of_graph(topological(read.results), lambda size: evaluate(size, sizes.__getitem__))
        if work.operations > MOST_OPERATIONS:
            return None
        with np.errstate(all="ignore"), silently():
            *cuts, before, after = reference.compile(read)(sizes, *values)
            known = dict(zip(term.cuts, cuts, strict=True))
            if term.by_elements:
                picked = _picked(np.asarray(before), np.asarray(after))
                true = term.reals(known, sizes, np.shape(before), picked)
            elif sum(map(np.size, cuts)) > MOST_WHOLE:
                return None
            else:
                picked = np.arange(min(np.size(before), MOST_WHOLE))
                true = np.ravel(term.reals(known, sizes))[picked]
            if not term.whole:
                self._check(term, known, sizes, (np.asarray(before), np.asarray(after)), (picked, true))
        return _worst(np.ravel(before)[picked], np.ravel(after)[picked], true, term.before.type.dtype, extent)

    def _check(self, term: _Term, known: dict[Node, Any], sizes: Any, forms: Any, looked: Any) -> None:
        """Check that both forms mean the same real numbers."""
        (before, after), (picked, true) = forms, looked
        apart = np.nan_to_num(np.abs(before.ravel() - after.ravel())[picked])
        most = np.argsort(apart)[-CHECKED:]
        if not apart.any() or (term.by_elements and not term.after_by_elements):
            return
        try:
            if term.by_elements:
                other = term.reals(known, sizes, before.shape, picked[most], of_after=True)
            else:
                other = np.ravel(term.reals(known, sizes, of_after=True))[picked][most]
        except (UnknownError, TensorError, ArithmeticError, ValueError, IndexError, TypeError, KeyError):
            return
        pairs = zip(np.atleast_1d(other), np.atleast_1d(true)[most], strict=True)
        if any(ulps(float(o), t, term.before.type.dtype) > 1 for o, t in pairs if numbers().isfinite(t)):
            raise _DependentError

    def _cut(self, parameter: Node, value: Any, extent: int) -> Any:
        for axis, size in enumerate(parameter.type.shape if extent else ()):
            symbol = bare_symbol(size)
            if symbol is not None and value.shape[axis] > max(extent, symbol.least):
                chosen = np.linspace(0, value.shape[axis] - 1, max(extent, symbol.least)).astype(int)
                value = np.take(value, chosen, axis)
        return value


class _Term:
    """Two forms, down to the nodes that both read."""

    def __init__(self, before: Node, after: Node, *, whole: bool) -> None:
        self.before, self.after, self.whole = before, after, whole
        both = {n for n in topological([before]) if not n.args} if whole else _shared(before, after)
        own = topological([before], both.__contains__)
        other = topological([after], both.__contains__)
        self.inner = [n for n in own if n not in both]
        self.cuts = [n for n in dict.fromkeys((*own, *other)) if n in both]
        self.inner_after = [n for n in other if n not in both]
        self.by_elements, self.after_by_elements = map(_by_elements, (self.inner, self.inner_after))

    def reals(
        self, known: dict[Node, Any], sizes: Any, shape: Any = None, picked: Any = None, *, of_after: bool = False
    ) -> Any:
        """Return the real numbers that ``before`` is, or ``after``: of all elements, or of picked ones of that shape."""

        def taken(value: Any) -> Any:
            return value if picked is None else np.broadcast_to(value, shape).flat[picked]

        table = {n: reals(taken(v)) for n, v in known.items()}
        for node in self.inner_after if of_after else self.inner:
            if picked is not None and node.op in {FORM, BROADCAST}:
                table[node] = table[node.args[0]]
                continue
            found = real_values(node, [table[a] for a in node.args], lambda s: evaluate(s, sizes.__getitem__))
            table[node] = taken(found) if not node.args else found
        return table[self.after if of_after else self.before]


def _by_elements(nodes: Sequence[Node]) -> bool:
    return all(isinstance(n.op, Pointwise) or n.op in {FORM, BROADCAST} or not n.args for n in nodes)


def _shared(before: Node, after: Node) -> set[Node]:
    """Return the nodes common to both forms, except those that depend on other nodes which either form reads directly."""
    both = set(topological([before])) & set(topological([after])) - {before}
    while True:
        cuts = {n for n in topological([before, after], both.__contains__) if n in both and not is_constant(n)}
        made = {n for n in cuts if any(m in cuts for m in topological([n])[:-1])}
        if not made:
            return both
        both -= made


def _picked(before: Any, after: Any) -> Any:
    """Return the places of the elements to examine."""
    count = before.size
    if count <= SAMPLES:
        return np.arange(count)
    with np.errstate(all="ignore"):
        apart = np.ravel(np.abs(before - after) / np.maximum(np.abs(before), np.abs(after)))
    apart = np.where(np.isnan(apart), np.where(np.ravel(np.isnan(before) ^ np.isnan(after)), np.inf, 0), apart)
    most = np.argpartition(apart, -SAMPLES // 2)[-SAMPLES // 2 :]
    return np.unique(np.concatenate([most, np.linspace(0, count - 1, SAMPLES // 2).astype(int)]))


def _worst(before: Any, after: Any, true: Any, dtype: Any, extent: int) -> Errors:
    known = list(_finite(before, after, np.atleast_1d(true)))
    if not known:
        raise NotMeasuredError("not defined for these numbers")
    errors = [(ulps(b, t, dtype), ulps(a, t, dtype)) for b, a, t in known]
    return Errors(max(b for b, _ in errors), max(a for _, a in errors), len(errors), extent)


def _finite(before: Any, after: Any, true: Any) -> Iterator[tuple[Any, Any, Any]]:
    mp = numbers()
    for b, a, t in zip(before, after, true, strict=True):
        if mp.isfinite(t):
            yield b, a, t


def over_parameters(node: Node, graph: Graph) -> bool:
    """Return whether a node is one over the parameters of ``graph`` alone."""
    return all(n in graph.parameters for n in topological([node]) if n.op is PARAMETER)
