"""Print the function of an element and its calls, for one element or for a vector of 16 bytes, and reductions across threads."""

from __future__ import annotations

from collections.abc import Sequence

from tensormagic.backend.cuda.kernels.bodies import Element, names_in, words_of
from tensormagic.backend.cuda.kernels.text import CudaText, called
from tensormagic.backend.planning.lower import Stage
from tensormagic.backend.printing.kernel_text import Line
from tensormagic.backend.printing.scalar_text import start_text, step_text
from tensormagic.ir.size import Size, apply, product

WARP = 32
VECTOR = 16  # bytes of one vector load


class Calls:
    """The function of a body's element, and the statements that call it.

    Parameters
    ----------
    text
        Where the function goes.
    body
        What has been printed of the element.
    outer
        Lines before the loop: what they make is handed over.
    indices
        The loop's variables, the one that goes through neighbours last.
    """

    def __init__(self, text: CudaText, body: Element, outer: Sequence[Line], indices: Sequence[str]) -> None:
        self.body, self.indices = body, list(indices)
        self.name = "element" if not text.functions else text.fresh("element")
        inside = body.inside()
        results = [o.value for o in body.outputs] + [value for _, value in body.folds]
        self.results = len(results)
        used = words_of([*inside, *((r, None) for r in results)])
        self.shared = [n for n in dict.fromkeys((*text.own, *names_in(outer))) if n in used and n not in indices]
        loads = [name for name, _, _, _ in body.loads]
        arguments = [*self.indices, *self.shared, *loads]
        text.functions.append(called(self.name, arguments, inside or [("pass", None)], results))
        self.result = (
            "r" if self.name == "element" else text.fresh("result") + "_"
        )  # in a kernel, a name has one type throughout
        self.totals = [(stage, text.fresh("total")) for stage, _ in body.folds]

    @property
    def lanes(self) -> int:
        """Return how many neighbouring elements a thread computes at once."""
        sizes = [size for _, _, size, _ in self.body.loads] + [o.node.type.dtype.itemsize for o in self.body.outputs]
        return max(VECTOR // max(sizes), 4) if sizes else 1

    def starts(self, text: CudaText) -> list[Line]:
        """Return statements that initialise the accumulators."""
        return [(f"{name} = {start_text(s.root, text)}", s.root) for s, name in self.totals]

    def _call(self, at: str, values: Sequence[str]) -> str:
        return f"{self.name}({', '.join([*self.indices[:-1], at, *self.shared, *values])})"

    def _part(self, name: str, number: int) -> str:
        return name if self.results == 1 else f"{name}[{number}]"

    def _steps(self, name: str) -> list[Line]:
        first = len(self.body.outputs)
        return [
            (f"{total} = {step_text(s.root, total, self._part(name, k), free=False)}", s.root)
            for k, (s, total) in enumerate(self.totals, first)
        ]

    def one(self) -> list[Line]:
        """Return statements that compute one element."""
        call = self._call(self.indices[-1], [f"{array}[{place}]" for _, array, _, place in self.body.loads])
        lines: list[Line] = [(f"{self.result} = {call}" if self.results else call, None)]
        lines += [
            (f"{o.array}[{o.place}] = {self._part(self.result, k)}", o.node) for k, o in enumerate(self.body.outputs)
        ]
        return lines + self._steps(self.result)

    def many(self, lanes: int) -> list[Line]:
        """Return statements that compute ``lanes`` neighbouring elements by vector loads and stores."""
        lines: list[Line] = [
            (f"{n}s = vector({array}, {place}, {lanes})", None) for n, array, _, place in self.body.loads
        ]
        index = self.indices[-1]
        for k in range(lanes):
            call = self._call(f"{index} + {k}" if k else index, [f"{n}s[{k}]" for n, _, _, _ in self.body.loads])
            lines.append((f"{self.result}{k} = {call}" if self.results else call, None))
        for number, output in enumerate(self.body.outputs):
            values = ", ".join(self._part(f"{self.result}{k}", number) for k in range(lanes))
            lines.append((f"store({output.array}, {output.place}, ({values}))", output.node))
        return lines + [line for k in range(lanes) for line in self._steps(f"{self.result}{k}")]


def inside(lines: Sequence[Line], by: int = 1) -> list[Line]:
    """Return lines indented by so many blocks."""
    return [("    " * by + text, node) for text, node in lines]


def ceil_div(size: Size, by: Size) -> Size:
    """Return the quotient of a size, rounded up."""
    return apply("floordiv", size + (by - 1), by)


def fold_text(text: CudaText, stage: Stage, name: str, threads: int) -> list[Line]:
    """Return statements that reduce ``name`` over ``threads`` neighbouring threads, leaving the result in each of them.

    Fewer than a warp exchange values within the lanes of ``mask``; more are whole warps of one block.
    """
    root, dtype = stage.root, stage.root.type.dtype.name
    cast = f"np.{'bool_' if dtype == 'bool' else dtype}({name})"
    if threads == 1:
        return []
    function = text.fresh("fold")
    loop: list[Line] = [
        ("while distance > 0:", None),
        ("    other = shuffle(value, distance, mask)", None),
        (f"    value = {step_text(root, 'value', 'other', free=False, whole=True)}", root),
        ("    distance = distance >> 1", None),
    ]
    warps = threads // WARP
    body: list[Line] = [(f"distance = {min(threads, WARP) // 2}", None), *loop]
    if warps <= 1:
        text.functions.append(called(function, ["value", "mask"], body, ["value"]))
        return [(f"{name} = {function}({cast}, mask)", root)]
    body += [
        (f"if rest(thread(), {WARP}) == 0:", None),
        (f"    room[quotient(thread(), {WARP})] = value", None),
        ("barrier()", None),
        (f"value = room[rest(thread(), {warps})]", None),
        (f"distance = {warps // 2}", None),
        *loop,
    ]
    text.functions.append(called(function, ["value", "room"], [("mask = -1", None), *body], ["value"]))
    room = text.fresh("room")
    text.head.append((f'{room} = shared("{dtype}", {warps})', None))
    return [(f"{name} = {function}({cast}, {room})", root)]


def not_empty(stages: Sequence[Stage]) -> tuple[tuple[Size, str], ...]:
    """Return the extents that must not be 0 for reductions without an identity, each with NumPy's message."""
    return tuple(
        (
            product(tuple(s.domain[k] for k in s.reduced)),
            f"zero-size array to reduction operation {getattr(s.root.op, 'step', s.root.op.name)} which has no identity",
        )
        for s in stages
        if s.reduced and getattr(s.root.op, "start", 0) is None
    )
