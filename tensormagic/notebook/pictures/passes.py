"""Name the carries of loops for derivatives: records of each iteration, and adjoints of the backward loop.

The user has no names for these; they are named by what they record or are adjoints of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.notebook.pictures.naming import Naming, unfolded
from tensormagic.ops.leaf import CONSTANT, PARAMETER
from tensormagic.ops.regions.control import LOOP

_KEPT = ("tape", "update")  # the form, and the kind, of values that each iteration stores


def carried_for_derivatives(
    loop: Node, names: Sequence[str], naming: Naming, called: Mapping[Node, str]
) -> Mapping[int, str]:
    """Return ``count``, ``tape of h`` or ``adjoint of h`` for a loop's parameters without a name of the user's.

    ``names`` are those of all parameters, "" where there is none.
    """
    body: Graph = loop["body"]
    first = int(loop.op is LOOP)  # its count
    found: dict[int, str] = {}
    for number, result in enumerate(body.results):
        k = number + first
        if not names[k]:
            found[k] = _counted(body.parameters[k], result) or _kept(body.parameters[k], result, names, naming, called)
            found[k] = found[k] or naming.adjoint_of(loop, body.parameters[k])
    return found


def _counted(carried: Node, result: Node) -> str:
    """Return how many iterations there were."""
    made = unfolded(result)
    counts = made.op.signs == (1, 1) and made.args[0] is carried and made.args[1].op is CONSTANT
    return "count" if counts and carried.type.dtype.kind == "i" else ""


def _kept(carried: Node, result: Node, names: Sequence[str], naming: Naming, called: Mapping[Node, str]) -> str:
    """Return a value of each iteration, for the way back."""
    made = unfolded(result)
    if (
        not {carried.type.form, made.op.kind}.intersection(_KEPT)
        or not made.args
        or unfolded(made.args[0]) is not carried
    ):
        return ""
    value = unfolded(made.args[-1])
    own = names[value["index"]] if value.op is PARAMETER else called.get(value, "") or naming.written_as(value)
    return f"tape of {own}" if own else "tape"


def is_derived(name: str) -> bool:
    """Return whether a name was generated here, and is none of the user's."""
    return name.partition(" ")[0] in {"tape", "adjoint"}


def numbered(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names, with a number behind each that occurs several times.

    >>> numbered(["h", "tape", "tape"])
    ('h', 'tape 1', 'tape 2')
    """
    several = {name: count(1) for name, times in Counter(names).items() if times > 1 and is_derived(name)}
    return tuple([f"{name} {next(several[name])}" if name in several else name for name in names])
