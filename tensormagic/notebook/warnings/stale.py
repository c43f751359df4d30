"""Track which variables each value and gradient was computed from, and warn if these have changed since.

It compares the old and new values of variables, and does not know how gradients are made.
"""

from __future__ import annotations

import ast
import textwrap
import warnings
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from tensormagic.capture.inputs import notebook_names, snapshots
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.errors import StaleGradientWarning
from tensormagic.ir.node import Node, topological
from tensormagic.notebook.cells.fresh_steps import ANEW, events, free, fresh, named
from tensormagic.notebook.cells.showing_lines import computing
from tensormagic.ops.leaf import CONSTANT, INPUT

_LOOP = """import tensormagic as tm
step = tm.value_and_grad({function}, ("{name}",))
for k in range(100):
    value, (g,) = step({name}={name})
    {name} -= 0.1 * g"""
_UNNAMED = (
    "Name that cell (%%tensor {function} --grad {names}), set {start}, run it again, and compute the "
    "gradient in every step"
)
_MOST_LINES = 24  # of a cell that a warning shows
_MOST_INTRODUCED = 6  # names
_MOST_WRITTEN = 4  # elements of an array that is written out
_START = "what it was at the start"


@dataclass(frozen=True)
class KnownCell:
    """A cell of the notebook: its id, and its text."""

    known: str = ""
    text: str = ""


@dataclass(frozen=True)
class Offer:
    """Cells with their new texts, and the messages before and after the rewrite."""

    words: str
    after: str
    cells: tuple[tuple[KnownCell, str], ...]


@dataclass
class _Bound:
    """One gradient: the lazy value that was bound, the variable's node at that time, and the cell."""

    gradient: Tensor
    name: str
    node: Node
    cell: str
    function: str = ""  # what the cell is called, if it has a name
    source: KnownCell = KnownCell()
    warned: bool = False
    looked: bool = False  # a cell that only looked at it has been told that it is old


class Gradients:
    """The gradients that cells have bound in a notebook."""

    def __init__(self) -> None:
        self._bound: dict[str, _Bound] = {}
        self._here = KnownCell()  # the one that runs
        self._first: str | None = None  # the cell that has said of names that they are variables

    def held(self, space: Mapping[str, Any]) -> set[str]:
        """Return the names of a notebook that are gradients."""
        return {name for name, bound in self._bound.items() if space.get(name) is bound.gradient}

    def bind(
        self,
        gradients: Mapping[str, Any],
        nodes: Mapping[str, Node],
        cell: str,
        space: dict[str, Any],
        function: str = "",
    ) -> None:
        """Bind ``grad_A`` for each A, of a cell that may be called ``function``; warns where that name is in use for something else."""
        for name, gradient in gradients.items():
            if not name.isidentifier():  # a part of a container
                continue
            bound = f"grad_{name}"
            mine = self._bound.get(bound)
            if bound in space and (mine is None or space[bound] is not mine.gradient):
                message = (
                    f"{bound} was a variable of the notebook, and is now the gradient with respect to {name}; "
                    "if you need both, give yours another name"
                )
                warnings.warn_explicit(message, UserWarning, cell, 1)
            self._bound[bound] = _Bound(gradient, name, nodes[name], cell, function, self._here)
            space[bound] = gradient

    def introduced(self, names: Iterable[str]) -> str:
        """Return the note on the names of gradients in the notebook's first cell that has any."""
        bound = [f"grad_{name}" for name in names if name.isidentifier()]
        if self._first not in {None, self._here.known} or not 0 < len(bound) <= _MOST_INTRODUCED:
            return ""
        self._first = self._here.known
        *first, last = bound
        listed = f"{', '.join(first)} and {last} are variables" if first else f"{last} is a variable"
        return f"{listed} of the notebook now"

    def check(self, here: KnownCell, space: Mapping[str, Any], label: str) -> Offer | None:
        """Warn, once for each gradient, where a cell that is about to run uses one whose variable has changed or changes on the way.

        Returns
        -------
        Offer or None
            The cell, with the gradient computed where it is used.
        """
        self._here = here
        head, text = _parted(here.text)
        held = {n: b for n, b in self._bound.items() if not b.warned and n in text and space.get(n) is b.gradient}
        if not held:
            return None
        try:
            tree = ast.parse(text)
        except SyntaxError:
            return None
        changed = {b.name for b in held.values() if not _is(space.get(b.name), b.node, b.name)}
        variables = {n: b.name for n, b in held.items()}
        computed = _used_after(computing(tree, variables), set(changed), variables)
        looked = [n for n in _used_after(tree, set(changed), variables) if n not in computed and not held[n].looked]
        offers: list[Offer | None] = []
        for group in [*_by_cell(computed, held), *_by_cell(looked, held)]:
            own = {name: held[name] for name in group}
            if group[0] in computed:
                beside = {n: b.name for n, b in held.items() if b.cell == held[group[0]].cell}
                message, offer = _told(own, beside, changed, here, space)
                offers.append(offer)
            else:
                message = f"{_old(own)}; {next(iter(own.values())).cell}, run again, computes the new."
            for one in own.values():
                one.looked, one.warned = True, group[0] in computed
            lines = [n.lineno for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id in group] or [1]
            line = min(lines) if group[0] in computed else max(lines)
            warnings.warn_explicit(message, StaleGradientWarning, label, bool(head) + line)
        return offers[0] if len(offers) == 1 else None


def _parted(text: str) -> tuple[str, str]:
    """Return the line of a ``%%tensor`` cell, and the code."""
    return (text.partition("\n")[0] + "\n", text.partition("\n")[2]) if text.startswith("%%tensor") else ("", text)


def _by_cell(names: list[str], held: Mapping[str, _Bound]) -> list[list[str]]:
    """Return the gradients of one cell together."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(held[name].cell, []).append(name)
    return list(groups.values())


def _told(
    group: dict[str, _Bound], beside: dict[str, str], changed: set[str], here: KnownCell, space: Mapping[str, Any]
) -> tuple[str, Offer | None]:
    """Return the message about the stale gradients of a cell, and the rewrite to offer."""
    first = next(iter(group.values()))
    function = first.function or next(n for n in free("objective") if n not in space)
    head, text = _parted(here.text)
    taken = {n for n in (*list(islice(free("step"), 9)), *list(islice(free("value"), 9))) if _is_users(space.get(n))}
    value = _last_name(first.source.text)
    package = next((n for n in ("tm", "tensormagic") if getattr(space.get(n), "__name__", "") == "tensormagic"), "")
    better = fresh(text, beside, changed, function, taken, package, value)
    shown = better if better and better.count("\n") < _MOST_LINES else _LOOP.format(function=function, name=first.name)
    start = _listed([f"{b.name} back to {_written(b.node)}" for b in group.values()])
    advice = (
        "Compute the gradient in every step"
        if first.function
        else _UNNAMED.format(function=function, names=",".join(b.name for b in group.values()), start=start)
    )
    message = (
        f"{_old(group)}: this cell has computed with {'old gradients' if len(group) > 1 else 'an old gradient'}.\n"
        f"{advice}:\n{textwrap.indent(shown, '    ')}"
    )
    unnamed = not first.function
    if not better or (unnamed and not first.source.text.startswith("%%tensor")):
        return message, None
    cells = ((first.source, named(first.source.text, function)),) if unnamed else ()
    both = f"the text of {first.cell} and of this cell" if unnamed else "the text of this cell"
    words = f"Changes {both}, as above: the gradient is then computed in every step. It runs nothing, and Undo takes it back."
    after = f"Set {start}, {f'run {first.cell} again, and then this cell' if unnamed else 'and run this cell again'}."
    return message, Offer(words, after, (*cells, (here, f"{head}{better}")))


def _last_name(text: str) -> str:
    """Return the name of the value that a cell ends in, which its gradients are of."""
    try:
        body = ast.parse(_parted(text)[1]).body
    except SyntaxError:
        return ""
    last = body[-1] if body else None
    return last.value.id if isinstance(last, ast.Expr) and isinstance(last.value, ast.Name) else ""


def _old(group: Mapping[str, _Bound]) -> str:
    """Return the warning that gradients of one cell were computed from older values."""
    names, gradients = _listed([b.name for b in group.values()]), _listed(list(group))
    several = len(group) > 1
    return (
        f"{gradients} {'belong' if several else 'belongs'} to the {names} that {next(iter(group.values())).cell} read; {names} "
        f"{'have' if several else 'has'} changed since, but {'these gradients have' if several else gradients + ' has'} not"
    )


def _written(node: Node) -> str:
    """Return a variable's value at the time of a gradient as a short literal, or ""."""
    held = node["source"].value if node.op is INPUT else None
    if isinstance(held, int | float) and not isinstance(held, np.generic):
        return repr(held)
    array = np.asarray(held) if isinstance(held, np.ndarray | np.generic) else None
    if array is None or not array.size or array.dtype.kind not in "iuf":
        return _START
    first, shape = array.flat[0], array.shape
    if shape and array.size > 1 and np.all(array == first) and first in {0, 1}:
        return f"np.{'ones' if first else 'zeros'}({shape[0] if len(shape) == 1 else shape})"
    if array.size > _MOST_WRITTEN:
        return _START
    text = repr(array.tolist())
    return f"np.array({text})" if shape else text


def _is_users(value: Any) -> bool:
    """Return whether a name of the notebook holds something that an example's own line would replace."""
    return (
        value is not None
        and not isinstance(value, float | np.floating)
        and not type(value).__module__.startswith("tensormagic")
    )


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


class Origins:
    """Which cell each variable of a notebook is from, and from which one it was when captured code has read it."""

    def __init__(self) -> None:
        self._held: dict[str, int] = {}  # the identity of each variable's value
        self._cells: dict[str, str] = {}  # the cell that has bound it, or stored into it
        self._times: dict[str, int] = {}  # which of all cells that have run that was
        self._ran = 0
        self._read: weakref.WeakKeyDictionary[Node, dict[str, str]] = weakref.WeakKeyDictionary()

    def read(self, found: Mapping[str, Tensor]) -> None:
        """Record that captured code has read these variables."""
        for name, tensor in found.items():
            if tensor.node.op is not CONSTANT:
                self._read.setdefault(tensor.node, {})[name] = self._cells.get(name, "")

    def made_of(self, value: Any) -> dict[str, str]:
        """Return the variables that a lazy value was computed from, with the cells that they were from; nothing for other values."""
        if not isinstance(value, Tensor) or not self._read:
            return {}
        return {name: cell for part in topological([value.node]) for name, cell in self._read.get(part, {}).items()}

    def computed_in(self, name: str) -> str:
        """Return the cell that a variable is from."""
        return self._cells.get(name, "")

    def after(self, cell: str, text: str, space: Mapping[str, Any]) -> None:
        """Record that a cell has run: the names that it has bound or stored into come from it."""
        stored = stored_in(text)
        self._ran += 1
        for name in notebook_names.variables(space):
            value = id(space[name])
            if not name.startswith("_") and (self._held.get(name) != value or name in stored):
                self._held[name] = value
                self._cells[name] = cell
                self._times[name] = self._ran

    def note(self, node: Node, cell: str, space: Mapping[str, Any]) -> str:
        """``computed for w, b of In[4]; w, b are now from In[7]``; empty where nothing has changed, or the value's own cell did it."""
        if not self._read:
            return ""
        changed: dict[tuple[str, str], dict[str, None]] = {}  # names by where they were from, and are
        nodes = topological([node])
        below = set(nodes)
        for part in nodes:
            for name, origin in self._read.get(part, {}).items():
                held = space.get(name)
                now = (
                    self._cells.get(name, "") if id(held) == self._held.get(name) else ""
                )  # else by the cell that runs
                if name not in space or now == cell or _unchanged(held, part):
                    continue
                if (
                    isinstance(held, Tensor) and held.node in below
                ):  # computed for what it is now, which came from what it was
                    continue
                if not self._reached(node, part, name, space):
                    continue
                was = origin if origin != now else ""
                changed.setdefault((was, now if now != origin else ""), {})[name] = None
        return " · ".join(_changed(list(names), was, now) for (was, now), names in changed.items())

    def _reached(self, node: Node, part: Node, name: str, space: Mapping[str, Any]) -> bool:
        """Return whether a value depends on the variable's old value other than through variables bound when it changed, or later.

        Gradient functions hold the rewritten nodes of such variables, and not these: if the value uses no earlier
        variable, and a later one is computed from the same node, the value comes from the later one.
        """
        changed = self._times.get(name, 0) if id(space.get(name)) == self._held.get(name) else self._ran + 1
        held = [(n, time, space.get(n)) for n, time in self._times.items() if n != name]
        settled = {v.node for _, time, v in held if time >= changed and isinstance(v, Tensor)} - {node}
        if not settled:
            return True
        if part not in set(topological([node], stop=settled.__contains__)):
            return False
        below = set(topological([node]))
        earlier = any(time < changed and isinstance(v, Tensor) and v.node in below for _, time, v in held)
        return earlier or not any(part in set(topological([one])) for one in settled)


@lru_cache(maxsize=16)
def stored_in(text: str) -> frozenset[str]:
    """Return the names that a cell binds or stores into, as far as its text shows."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return frozenset()
    return frozenset(name for name, stored in events(tree, 1) if stored)


def _unchanged(value: Any, node: Node) -> bool:
    """Return whether a variable still has the value that was read; so where that cannot be told."""
    if isinstance(value, Tensor):
        return value.node is node
    if node.op is not INPUT:
        return False
    read = node["source"].value
    if not isinstance(value, np.ndarray | np.generic | int | float | complex | str | None) or read is None:
        return True
    now, then = np.asarray(value), np.asarray(read)
    if isinstance(value, int) and not then.shape:
        return bool(now == then)  # 2 for 2.0
    if now.shape != then.shape or now.dtype != then.dtype:
        return False
    return now is then or np.ascontiguousarray(now).tobytes() == np.ascontiguousarray(then).tobytes()


def _is(value: Any, node: Node, name: str) -> bool:
    """Return whether a variable still is what the gradient was computed for."""
    if isinstance(value, Tensor):
        return value.node is node
    return value is not None and snapshots.lift(value, name) is node


def _used_after(tree: ast.AST, changed: set[str], variables: Mapping[str, str]) -> list[str]:
    """Return the gradients that are read after their variables have changed, in the order in which Python runs the code."""
    found: dict[str, None] = {}
    for name, stored in events(tree, steps=variables):
        if name == ANEW:
            return list(found)
        if not stored and variables.get(name) in changed:
            found.setdefault(name)
        elif stored and name in variables.values():
            changed.add(name)
        elif stored and name in variables:
            return list(found)  # bound anew: no gradient of ours any more
    return list(found)


def _changed(names: list[str], was: str, now: str) -> str:
    """Return the warning that says what a value was computed for, and where the variables are from now, if known."""
    several, listed = len(names) > 1, ", ".join(names)
    told = f"{'are' if several else 'is'} now from {now}" if now else f"{'have' if several else 'has'} changed since"
    return f"computed for {f'{listed} of {was}' if was else f'an earlier {listed}'}; {listed} {told}"
