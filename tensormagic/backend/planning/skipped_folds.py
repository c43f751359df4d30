"""Reductions that can be skipped: where a condition says that no element changes the result, the elements are not read.

``sum(where(c, 0, f(x)))`` is 0 where ``c`` holds, so the loop over ``x`` is left out there. Rewrite rules emit
second attempts in this form, which run only where a first attempt has failed
(:mod:`tensormagic.transform.rewriting.themes.overflows_of_folds`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tensormagic.backend.planning.kinds import is_inline_move, stripped
from tensormagic.backend.planning.lower import IndexTuple, Stage, variable
from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.second_looks import choice_of
from tensormagic.ops.scalars.scalar import where


@dataclass(frozen=True)
class Skip:
    """When a fold has no elements.

    Parameters
    ----------
    condition
        The condition, below moves.
    index
        Its index.
    holds
        Its value if the fold has no elements.
    """

    condition: Node
    index: IndexTuple
    holds: bool

    def text(self, value: str) -> str:
        """Return an expression for whether the fold has elements, given the text of the condition."""
        return f"not {value}" if self.holds else value


def skip_of(stage: Stage) -> Skip | None:
    """Return the condition under which a stage's reduction has no elements, if it is uniform over the reduced axes, else None."""
    root = stage.root
    if not stage.reduced or len(stage.body) != 1:
        return None
    node, index = stage.body[0]
    found = choice_of(root)
    if found is None or node is not root.args[0]:
        return None
    condition, holds = found
    while is_inline_move(condition):
        condition, index = condition.args[0], condition.op.index(condition, index)  # type: ignore[attr-defined]
    inside = {variable(k) for k in stage.reduced}
    return None if any(i.variable in inside for i in index) else Skip(condition, tuple(index), holds)


def left_out(stage: Stage) -> Skip | None:
    """Return the same if the condition is a single number, so that the whole loop may be skipped, or None."""
    found = skip_of(stage)
    return found if found is not None and not found.index else None


def is_only_chosen(root: Node, skip: Skip, stages: Iterable[Stage], stored: Callable[[Node], bool]) -> bool:
    """Return whether all readers of a fold use another number if it has no elements, so that it need not be written."""
    for stage in stages:
        stack = [stage.root] if any(n is root for n, _ in stage.reads) else []
        while stack:
            node = stack.pop()
            for k, arg in enumerate(node.args):
                if arg is not root:
                    stack += [] if stored(arg) else [arg]
                elif not (node.op is where and k == 1 + skip.holds and stripped(node.args[0]) is skip.condition):
                    return False
    return True


def common(stages: Iterable[Stage]) -> Skip | None:
    """Return the condition under which all stages reduce nothing, or None."""
    found = {skip_of(s) for s in stages}
    return found.pop() if len(found) == 1 else None
