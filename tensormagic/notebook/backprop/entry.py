"""``tm.backprop``, ``value.backprop()`` and ``--show backprop``: what is shown, and where the view is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from IPython.core.getipython import get_ipython

from tensormagic.capture.inputs.snapshots import lift
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.functions.calls.callables import of_callable
from tensormagic.functions.calls.function import Function
from tensormagic.functions.gradients.gradient_nodes import replace as replaced
from tensormagic.functions.reads.name_reads import place_of
from tensormagic.ir.node import Node
from tensormagic.notebook.backprop.passes import LargeViewError
from tensormagic.notebook.backprop.sheet import Sheet, floats_of
from tensormagic.notebook.backprop.subject import Subject, of_function
from tensormagic.notebook.cells.outcome import Outcome
from tensormagic.notebook.display.shown import Views
from tensormagic.notebook.display.value_texts import seen
from tensormagic.notebook.live.sweep import mark
from tensormagic.notebook.live.variables import function_of, notebook_variables
from tensormagic.notebook.options import Options
from tensormagic.notebook.parted import root_of
from tensormagic.notebook.widgets.backprop import BackpropView
from tensormagic.ops.leaf import INPUT, input_node

_Bundle = tuple[dict[str, Any], dict[str, Any]]
_Made = tuple[Function, Sheet, dict[str, Any]]


def backprop(shown: Any, args: tuple[Any, ...], ranges: dict[str, Any]) -> BackpropView:
    """Return a view of a function at arguments, or of a lazy number; see ``tm.backprop``."""
    if isinstance(shown, Tensor) and args:
        raise TypeError(f"tm.backprop of a lazy value takes no arguments, but {len(args)} were given")
    function = _of_value(shown, "value") if isinstance(shown, Tensor) else of_callable(shown)
    view = BackpropView(Sheet(of_function(function, args), ranges), _Following(function, args, ranges))
    loaded: Any = getattr(get_ipython(), "_tensormagic", None)
    if loaded is not None:
        loaded.magics.views.add(view)
    return view


def _of_value(value: Tensor, name: str) -> Function:
    return function_of(value, name, {}, notebook_variables())


class _Following:
    """What a function reads of the notebook: another sheet, where that has changed since the last one.

    Parameters
    ----------
    function : Function
        The function, captured once.
    args, ranges, wanted
        What it is shown with.
    """

    def __init__(
        self, function: Function, args: tuple[Any, ...], ranges: dict[str, Any], wanted: Sequence[str] = ()
    ) -> None:
        self._function, self._args, self._ranges, self._wanted = function, args, ranges, wanted
        self._seen = self._marks()

    def __call__(self) -> tuple[Sheet | None, set[str]]:
        """Return the new sheet, and the names that have changed, or None where none has."""
        now = self._marks()
        changed = {name for (name, space), value in now.items() if self._seen.get((name, space), value) != value}
        if not changed:
            return None, set()
        self._seen = now
        return Sheet(_asked(of_function(self._function, self._args), self._wanted), self._ranges), changed

    def _marks(self) -> dict[tuple[str, int], Any]:
        return {place_of((n, space)): mark(space[n]) for n, space in self._function.reads if n in space}


def cell_bundle(outcome: Outcome, views: Views, *, rich: bool) -> _Bundle:
    """Return the view of a cell's value in every MIME form; a sentence if there is no view."""
    target = outcome.target if outcome.target is not None else outcome.result
    name = next(
        (n for n, t in outcome.results.items() if isinstance(target, Tensor) and t.node is target.node), "value"
    )
    try:
        if not isinstance(target, Tensor):
            raise TypeError("the cell has no lazy value; end it with an expression for one number")  # noqa: TRY301 (told like the others)
        try:
            function, sheet, ranges = _sheet(target, outcome.moving, name, outcome.options)
        except LargeViewError:  # with all that earlier cells have computed: from what this one has read
            read = {n: t.node for n, t in outcome.inputs.items()}
            function, sheet, ranges = _sheet(target, {**read, **outcome.moving}, name, outcome.options)
    except (TypeError, ValueError) as error:
        return {"text/plain": f"backprop: {error}"}, {}
    if not rich:
        return {"text/plain": sheet.table()}, {}
    view = BackpropView(sheet, _Following(function, (), ranges, outcome.options.grad))
    views.add(view)
    return view.bundle()


def _sheet(value: Tensor, moving: Mapping[str, Node], name: str, options: Options) -> _Made:
    """Return a cell's value as a function of the notebook's variables, its sheet, and the sliders' ranges."""
    function = _of_value(_from(value, moving), name)
    subject = _asked(of_function(function, ()), options.grad)
    ranges = {n: ends for n, ends in options.live if n in floats_of(subject)}
    return function, Sheet(subject, ranges), ranges


def _from(value: Tensor, moving: Mapping[str, Node]) -> Tensor:
    """Return the value as a function of the nodes that it is differentiated in; what earlier cells computed these from is cut off."""
    cut: dict[Node, Node] = {}
    for name, node in moving.items():
        leaf = lift(seen(wrap(node)), name) if node.op is not INPUT else None
        if leaf is not None and all(isinstance(size, int) for size in node.type.shape):
            leaf = input_node(leaf["source"], node.type)  # of an array that the cell has made: its sizes are no symbols
        if leaf is not None and leaf.type == node.type:
            cut[node] = leaf
    return wrap(replaced([value.node], cut)[0]) if cut else value


def _asked(subject: Subject, names: Sequence[str]) -> Subject:
    """Return the subject with the gradients that a cell asks for, if it reads their variables."""
    return replace(subject, wanted=frozenset(map(root_of, names)) & frozenset(map(root_of, subject.graph.names)))
