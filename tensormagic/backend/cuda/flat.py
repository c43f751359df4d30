"""Flat loops as kernels: each thread computes a few neighbouring elements, by loads of 16 bytes; totals in two stages.

A total is folded by a fixed number of blocks, in an order that the size alone decides, so that repeated runs and other cards
give the same bits: each block leaves one value, and one block folds these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tensormagic.backend.cuda.bodies import Element, flat_nest, names_in, words_of
from tensormagic.backend.cuda.launch import Launch
from tensormagic.backend.cuda.text import CudaText, called
from tensormagic.backend.kernel_text import Line
from tensormagic.backend.lower import Stage
from tensormagic.backend.scalar_text import start_text, step_text
from tensormagic.backend.schedule import Loop, Nest
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, apply, product
from tensormagic.ops.move import Index

THREADS = 256
VECTOR = 16  # bytes that one load takes
MOST_BLOCKS = 1024  # that fold a total
WARP = 32

Make = Callable[[], CudaText]


@dataclass
class Folded:
    """A total in parts, one for each block."""

    stage: Stage
    parts: object


def ceil_div(size: Size, by: int) -> Size:
    """How many times ``by`` covers a size."""
    return apply("floordiv", size + (by - 1), by)


def print_flat(make: Make, nest: Nest, names: Mapping[Node, str], tail: Sequence[Nest] = ()) -> list[Launch]:
    """The launches of a nest without further axes; ``tail``: numbers that are computed behind its totals."""
    nest = flat_nest(nest)
    text = make()
    loop = Loop((), nest.stages)
    body = Element(text, nest, loop, None)
    body.run()
    total = product(nest.rows) if nest.depth else 1
    lanes = _lanes(body)
    head = list(body.sections[0])
    arguments, call = _element(text, body, head)
    folds = [(stage, text.fresh("total")) for stage, _ in body.folds]
    text.lines += head
    text.lines.append((f"count = {text.size(total)}", None))
    if folds:
        text.lines += [(f"{name} = {start_text(s.root, text)}", s.root) for s, name in folds]
    text.lines.append((f"i = (block() * {THREADS} + thread()) * {lanes}", None))
    step = f"i = i + blocks() * {THREADS * lanes}"
    outer = "while" if folds else "if"
    if lanes > 1:
        many = _lanes_text(body, folds, arguments, call, lanes)
        text.lines.append((f"{outer} i + {lanes} <= count:", None))
        text.lines += _in(many + ([(step, None)] if folds else []))
        one = [*_one_text(body, folds, arguments, call), ("i = i + 1", None)]
        if folds:
            text.lines += [(f"end = i + {lanes} if i + {lanes} < count else count", None)]
            text.lines += [("while i < end:", None), *_in(one)]
        else:
            text.lines += [("else:", None), *_in([("while i < count:", None), *_in(one)])]
    else:
        one = _one_text(body, folds, arguments, call)
        text.lines += [(f"{outer} i < count:", None), *_in(one + ([(step, None)] if folds else []))]
    blocks = ceil_div(total, THREADS * lanes)
    if not folds:
        return [text.launch("elements", blocks, THREADS, names)]
    blocks = apply("min", blocks, MOST_BLOCKS)
    for stage, name in folds:
        text.lines += block_fold(text, stage, name, THREADS)
        parts = text.store(text.room(("parts", stage.root), MOST_BLOCKS, stage.root.type.dtype.name))
        text.lines += [("if thread() == 0:", None), (f"    {parts}[block()] = {name}", stage.root)]
    first = text.launch("totals", blocks, THREADS, names, not_empty=_not_empty([s for s, _ in folds]))
    return [first, _finish(make, [s for s, _ in folds], blocks, names, tail)]


def _not_empty(stages: Sequence[Stage]) -> tuple[tuple[Size, str], ...]:
    """What NumPy says of folds of nothing that have no value for it."""
    return tuple(
        (
            product(tuple(s.domain[k] for k in s.reduced)),
            f"zero-size array to reduction operation {s.root.op.name} which has no identity",
        )
        for s in stages
        if getattr(s.root.op, "start", 0) is None
    )


def _in(lines: Sequence[Line]) -> list[Line]:
    return [(f"    {text}", node) for text, node in lines]


def _lanes(body: Element) -> int:
    """How many neighbouring elements a thread takes."""
    sizes = [size for _, _, size in body.loads] + [o.node.type.dtype.itemsize for o in body.outputs]
    if not sizes:
        return 1
    return max(VECTOR // max(sizes), 4)


def _element(text: CudaText, body: Element, head: list[Line]) -> tuple[list[str], str]:
    """Print the function of an element; its arguments before what is loaded, and how it is called."""
    inside = body.inside()
    results = [o.value for o in body.outputs] + [value for _, value in body.folds]
    used = words_of([*inside, *((r, None) for r in results)])
    arguments = [n for n in (*text.own, *names_in(head)) if n in used]
    loads = [name for name, _, _ in body.loads]
    text.functions.append(called("element", ["i", *arguments, *loads], inside or [("pass", None)], results))
    return arguments, "element"


def _call(arguments: Sequence[str], at: str, values: Sequence[str]) -> str:
    return f"element({', '.join([at, *arguments, *values])})"


def _part(body: Element, name: str, number: int) -> str:
    """One result of the element."""
    return name if len(body.outputs) + len(body.folds) == 1 else f"{name}[{number}]"


def _lanes_text(
    body: Element, folds: Sequence[tuple[Stage, str]], arguments: Sequence[str], _name: str, lanes: int
) -> list[Line]:
    lines: list[Line] = [(f"{name}s = vector({array}, i, {lanes})", None) for name, array, _ in body.loads]
    results = len(body.outputs) + len(body.folds)
    for k in range(lanes):
        at = "i" if k == 0 else f"i + {k}"
        call = _call(arguments, at, [f"{name}s[{k}]" for name, _, _ in body.loads])
        lines.append((f"r{k} = {call}" if results else call, None))
    for number, output in enumerate(body.outputs):
        values = ", ".join(_part(body, f"r{k}", number) for k in range(lanes))
        lines.append((f"store({output.array}, i, ({values}))", output.node))
    for number, (stage, name) in enumerate(folds, len(body.outputs)):
        lines += [
            (f"{name} = {step_text(stage.root, name, _part(body, f'r{k}', number), free=False)}", stage.root)
            for k in range(lanes)
        ]
    return lines


def _one_text(body: Element, folds: Sequence[tuple[Stage, str]], arguments: Sequence[str], _name: str) -> list[Line]:
    call = _call(arguments, "i", [f"{array}[i]" for _, array, _ in body.loads])
    results = len(body.outputs) + len(body.folds)
    lines: list[Line] = [(f"r = {call}" if results else call, None)]
    lines += [(f"{o.array}[i] = {_part(body, 'r', k)}", o.node) for k, o in enumerate(body.outputs)]
    for number, (stage, name) in enumerate(folds, len(body.outputs)):
        lines.append((f"{name} = {step_text(stage.root, name, _part(body, 'r', number), free=False)}", stage.root))
    return lines


# folds ----------------------------------------------------------------------------------------------------------------


def block_fold(text: CudaText, stage: Stage, name: str, threads: int) -> list[Line]:
    """Statements after which ``name`` is, in every thread, the fold of what it was in all threads of a block."""
    root, dtype = stage.root, stage.root.type.dtype.name
    function = text.fresh("fold")
    step = step_text(root, "value", "other", free=False, whole=True)
    loop: list[Line] = [
        ("while distance > 0:", None),
        ("    other = shuffle(value, distance)", None),
        (f"    value = {step}", root),
        ("    distance = distance >> 1", None),
    ]
    warps = threads // WARP
    body: list[Line] = [("distance = 16", None), *loop]
    arguments = ["value"]
    if warps > 1:
        arguments = ["value", "room"]
        body += [
            (f"if rest(thread(), {WARP}) == 0:", None),
            (f"    room[quotient(thread(), {WARP})] = value", None),
            ("barrier()", None),
            (f"value = room[rest(thread(), {warps})]", None),
            (f"distance = {warps // 2}", None),
            *loop,
        ]
    text.functions.append(called(function, arguments, body, ["value"]))
    if warps == 1:
        return [(f"{name} = {function}(np.{_numpy(dtype)}({name}))", root)]
    room = text.fresh("room")
    text.lines.insert(0, (f'{room} = shared("{dtype}", {warps})', None))
    return [(f"{name} = {function}(np.{_numpy(dtype)}({name}), {room})", root)]


def _numpy(dtype: str) -> str:
    return "bool_" if dtype == "bool" else dtype


def _finish(
    make: Make, stages: Sequence[Stage], blocks: Size, names: Mapping[Node, str], tail: Sequence[Nest]
) -> Launch:
    """The launch of one block that folds what the blocks have left, and computes the numbers behind it."""
    text = make()
    text.lines.append((f"count = {text.size(blocks)}", None))
    found: list[tuple[Stage, str]] = []
    for stage in stages:
        name = text.fresh("total")
        parts = text.room(("parts", stage.root), MOST_BLOCKS, stage.root.type.dtype.name)
        text.lines += [
            (f"{name} = {start_text(stage.root, text)}", stage.root),
            ("k = thread()", None),
            ("while k < count:", None),
            (f"    {name} = {step_text(stage.root, name, f'{parts}[k]', free=False, whole=True)}", stage.root),
            (f"    k = k + {THREADS}", None),
        ]
        text.lines += block_fold(text, stage, name, THREADS)
        found.append((stage, name))
    inside: list[Line] = []
    for stage, name in found:
        text.scalars[stage.root, tuple(Index(None) for _ in stage.place)] = name
        if text.exported(stage.root):
            inside.append((f"{text.store(text.array(stage.root))}[0] = {name}", stage.root))
    for nest in tail:
        inside += numbers(text, nest)
    text.lines += [("if thread() == 0:", None), *_in(inside or [("pass", None)])]
    return text.launch("finish", 1, THREADS, names)


def numbers(text: CudaText, nest: Nest) -> list[Line]:
    """Statements that compute the numbers of a nest without rows, one after the other."""
    body = Element(text, nest, nest.loops[0], None)
    for stage in nest.stages:
        if stage.written is not None:
            text.store(text.array(stage.root))
            body.print_store(stage)
            continue
        value = body.result(stage, ())
        text.scalars[stage.root, stage.identity()] = value
        if text.exported(stage.root):
            body.emit(0, f"{text.store(text.array(stage.root))}[0] = {value}", stage.root)
    return body.sections[0]


def print_numbers(make: Make, nests: Sequence[Nest], names: Mapping[Node, str]) -> list[Launch]:
    """One thread that computes numbers."""
    text = make()
    inside = [line for nest in nests for line in numbers(text, nest)]
    text.lines += [("if thread() == 0:", None), *_in(inside or [("pass", None)])]
    return [text.launch("numbers", 1, WARP, names)]
