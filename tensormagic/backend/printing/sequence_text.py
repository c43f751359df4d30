"""Print scans, argmin, argmax and nonzero: loops in which each step needs the one before."""

from __future__ import annotations

from tensormagic.backend.planning.lower import Stage
from tensormagic.backend.planning.schedule import Nest
from tensormagic.backend.printing.body_text import Body, indented
from tensormagic.backend.printing.kernel_text import KernelText, Line
from tensormagic.backend.printing.scalar_text import accumulate_text
from tensormagic.ir.node import Node
from tensormagic.ir.size import is_at_least, product
from tensormagic.ops.fold import ARGMAX, ARGMIN
from tensormagic.ops.indices.selection import PLACES


def print_sequence(text: KernelText, nest: Nest) -> None:
    """Print the loops of a nest with one such stage."""
    (stage,) = nest.stages
    if not stage.domain:
        _print_one(text, nest, stage)
    elif stage.root.op is PLACES:
        _print_found(text, nest, stage)
    elif stage.root.op in {ARGMAX, ARGMIN}:
        _print_place(text, nest, stage)
    else:
        _print_running(text, nest, stage)


def _print_one(text: KernelText, nest: Nest, stage: Stage) -> None:
    """Print a scan over a single element."""
    body = Body(text, nest, nest.loops[0], None)
    root = stage.root
    value = "0" if root.op in {ARGMAX, ARGMIN, PLACES} else body.element(stage)
    if root.op is PLACES:
        body.emit(0, f"if {body.value(*stage.body[0])}:", root)
        body.emit(0, f"    {text.array(root)}[0] = 0", root)
    elif root.type.shape:
        body.emit(0, f"{text.array(root)}[0] = {value}", root)
    else:
        _keep(text, body, root, value)
    text.lines += body.sections[0]


def _keep(text: KernelText, body: Body, root: Node, value: str) -> None:
    text.scalars[root, ()] = value
    if text.exported(root):
        body.emit(0, f"{text.array(root)}[0] = {value}", root)


def _loops(text: KernelText, body: Body, first: int, inner: list[Line]) -> list[Line]:
    """Return the loops from number ``first`` on around ``inner``, with what is computed in each."""
    lines = inner
    for depth in range(len(body.groups) - 1, first - 1, -1):
        group = body.groups[depth]
        head = f"for {group.name} in range({text.size(group.extent)}):"
        lines = [(head, None), *indented([*body.sections[depth + 1], *lines])]
    return lines


def _print_place(text: KernelText, nest: Nest, stage: Stage) -> None:
    """Print an argmax or argmin: the index of the first extreme element, nan included."""
    root = stage.root
    body = Body(text, nest, nest.loops[0], None)
    kept = sum(group.positions[0] not in stage.reduced for group in body.groups)
    x = body.value(*stage.body[0])
    best, at, here = text.fresh("best"), text.fresh("at"), text.fresh("here")
    relation = ">" if root.op is ARGMAX else "<"
    better = f"{x} {relation} {best}"
    if root.args[0].type.dtype.kind == "f":
        better = f"{better} or ({x} != {x} and {best} == {best})"
    inner: list[Line] = [
        (f"if {here} == 0 or {better}:", root),
        (f"    {best} = {x}", root),
        (f"    {at} = {here}", root),
        (f"{here} += 1", root),
    ]
    extent = product(tuple(stage.domain[k] for k in stage.reduced))
    zero = f"np.{root.args[0].type.dtype.name.replace('bool', 'bool_')}(0)"
    begin: list[Line] = [(f"{at} = 0", root), (f"{here} = 0", root), (f"{best} = {zero}", root)]
    lines = [*begin, *_loops(text, body, kept, inner)]
    if root.type.shape:
        name, offset, _ = body.address(root, stage.identity())
        lines.append((f"{name}[{offset}] = {at}", root))
        for depth in range(kept - 1, -1, -1):
            group = body.groups[depth]
            lines = [
                (f"for {group.name} in range({text.size(group.extent)}):", root),
                *indented([*body.sections[depth + 1], *lines]),
            ]
    text.lines += body.sections[0]
    if not is_at_least(extent, 1):
        message = f"attempt to get {root.op.name} of an empty sequence"
        text.lines.append((f"if {text.product(extent)} == 0:", root))
        text.lines += indented([(line, root) for line in text.fault(ValueError, message)])
    text.lines += lines
    if not root.type.shape:
        body.sections[0].clear()
        _keep(text, body, root, at)
        text.lines += body.sections[0]


def _print_found(text: KernelText, nest: Nest, stage: Stage) -> None:
    """Print the indices at which a mask is true."""
    root = stage.root
    body = Body(text, nest, nest.loops[0], None)
    true, at = body.value(*stage.body[0]), text.fresh("at")
    lines: list[Line] = [
        (f"if {true}:", root),
        (f"    {text.array(root)}[{at}] = {body.groups[0].name}", root),
        (f"    {at} += 1", root),
    ]
    text.lines += [*body.sections[0], (f"{at} = 0", root), *_loops(text, body, 0, lines)]


def _print_running(text: KernelText, nest: Nest, stage: Stage) -> None:
    """Print a running reduction, whose accumulator is the element stored one step before."""
    root = stage.root
    body = Body(text, nest, nest.loops[0], None)
    along = next((k for k, group in enumerate(body.groups) if group.positions[0] in stage.reduced), None)
    x = body.element(stage)
    name, offset, _ = body.address(root, stage.identity())
    if along is None:  # over an axis with one element
        text.lines += [*body.sections[0], *_loops(text, body, 0, [(f"{name}[{offset}] = {x}", root)])]
        return
    group = body.groups[along]
    stride = text.product(product(tuple(stage.domain[group.positions[0] + 1 :])))
    if along == len(body.groups) - 1:
        total = text.fresh(root.op.name)
        inner: list[Line] = [
            (f"{total} = {accumulate_text(root, total, x)} if {group.name} else {x}", root),
            (f"{name}[{offset}] = {total}", root),
        ]
        lines = _loops(text, body, along, inner)
        lines = [(f"{total} = np.{root.type.dtype.name}(0)", root), *lines]
        for depth in range(along - 1, -1, -1):
            outer = body.groups[depth]
            head = f"for {outer.name} in range({text.size(outer.extent)}):"
            lines = [(head, None), *indented([*body.sections[depth + 1], *lines])]
    else:
        step = accumulate_text(root, f"{name}[{offset} - {stride}]", x)
        inner = [(f"{name}[{offset}] = {step} if {group.name} else {x}", root)]
        lines = _loops(text, body, 0, inner)
    text.lines += [*body.sections[0], *lines]
