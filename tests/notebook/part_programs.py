"""Programs in cells, drawn: names, containers and objects for parts of two arrays, stores into them, in plain and in captured cells."""

from __future__ import annotations

import random

START = """
import numpy as np
x = np.arange(8.0)
M = np.arange(6.0).reshape(2, 3)
L, D, k = [], {}, 1
class Box: pass
box = Box()
def tail(a): return a[1:]
def bump(a, v): a[...] = a + v
"""
PARTS = {
    1: (
        ("{0}[1:]", 1),
        ("{0}[:5]", 1),
        ("{0}[::-1]", 1),
        ("{0}[::2]", 1),
        ("{0}[:, None]", 2),
        ("{0}.view()", 1),
        ("np.asarray({0})", 1),
        ("tail({0})", 1),
        ("np.atleast_2d({0})", 2),
        ("({0} if {0}.sum() > 20 else {0}[1:])", 1),
        ("{0}[k:]", 1),
    ),
    2: (
        ("{0}.T", 2),
        ("{0}[0]", 1),
        ("{0}[:, 0]", 1),
        ("{0}[::-1]", 2),
        ("{0}.ravel()", 1),
        ("{0}[:, ::-1]", 2),
        ("np.swapaxes({0}, 0, 1)", 2),
        ("np.diagonal({0})", 1),
        ("{0}[None][0]", 2),
        ("{0}[k % {0}.shape[0]]", 1),
    ),
}
BINDS = ("{1} = {0}", "L.append({0})", "D['{2}'] = {0}", "box.{2} = {0}", "{1} = lambda p={0}: p")
STORES = (
    "{0} += {1}",
    "{0}[0] = {1}.0",
    "bump({0}, {1})",
    "if {0}.sum() > {1}: {0}[-1] = {1}.0",
    "for j in range(2): {0}[j % {0}.shape[0]] += j + {1}",
)


def program(seed: int) -> list[tuple[bool, str]]:
    """Cells, each with whether it is captured; the last one prints all that there is."""
    r = random.Random(seed)
    rank = {"x": 1, "M": 2}
    cells = [(False, START)]
    for _ in range(r.randint(2, 5)):
        lines: list[str] = []
        for _ in range(r.randint(1, 4)):
            name = r.choice(list(rank))
            if r.random() < 0.35:
                lines.append(r.choice(STORES).format(name, r.randint(1, 60)))
                continue
            part, ndim = r.choice(PARTS[rank[name]])
            own = f"v{len(rank)}"
            how = r.choices(BINDS, (6, 2, 1, 1, 1))[0]
            lines.append(how.format(part.format(name), own, name))
            if how is BINDS[0]:
                rank[own] = ndim
        cells.append((r.random() < 0.6, "\n".join(lines)))
    shown = [f"np.asarray({n}).tolist()" for n in rank]
    held = "[np.asarray(a).tolist() for a in [*L, *D.values(), *vars(box).values()]]"
    return [*cells, (False, f"print({', '.join(shown)}, {held})")]
