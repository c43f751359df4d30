"""Running a captured cell: capture, gradients, values; when all of it worked, the notebook's variables."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from typing import Any

import numpy as np

from tensormagic import session
from tensormagic.capture.cell import Captured, Code, compile_cell, free_names, run_cell, with_users_code
from tensormagic.capture.inputs import snapshots
from tensormagic.capture.inputs.items import changed_roots
from tensormagic.capture.inputs.notebook_names import seen
from tensormagic.capture.inputs.snapshots import Snapshot
from tensormagic.capture.inputs.stand_ins import Seen, handed_back, own_of, replaced_in
from tensormagic.capture.numbers import numbers_taken
from tensormagic.capture.python import usercode
from tensormagic.capture.python.usercode import Cell
from tensormagic.capture.random import generators
from tensormagic.capture.staging.branches.merged_values import Partial
from tensormagic.capture.stores.holding import Recast, attributes_of, notebooks_array
from tensormagic.capture.stores.outside import asked, outside, undecided
from tensormagic.capture.tree import flatten, tensors_in
from tensormagic.capture.values import live_values
from tensormagic.capture.values.unused_values import unused_in_cell
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.config import config
from tensormagic.functions.calls.function import Function
from tensormagic.functions.cells import cast as in_dtype
from tensormagic.functions.cells import of_cell
from tensormagic.ir.errors import TensorError
from tensormagic.ir.node import Node, topological
from tensormagic.notebook.cells import background as in_background
from tensormagic.notebook.cells.kept_state import Kept
from tensormagic.notebook.cells.magic_lines import plain_python
from tensormagic.notebook.cells.outcome import Outcome, Source
from tensormagic.notebook.cells.without_effects import own_iterators, without_effects
from tensormagic.notebook.errors.option_names import checked
from tensormagic.notebook.gradients import differentiated, value_site
from tensormagic.notebook.options import Options
from tensormagic.notebook.parted import Parted, is_container
from tensormagic.ops.leaf import INPUT, constant

_WHOLE = (bool, int, np.bool_, np.integer)
_MOST_LEAVES = 500  # numbers in containers that become arguments one by one


def compiled(source: Source, shell: Any) -> Code:
    """Return the cell, compiled so that its lines count from the magic's own; raises SyntaxError as Python would."""
    above = "\n" * (source.line - 1 if source.line else 1)
    written = (f"{source.magic}\n" if source.magic and not source.line else above) + source.text
    text = above + plain_python(source.text, shell)
    filename = shell.compile.cache(text, source.count, raw_code=text)
    usercode.cells[filename] = Cell(source.label, source.count, text)  # an error of syntax names it
    code = compile_cell(text, source.label, source.count, filename)
    if len(written.splitlines()) == len(text.splitlines()):  # lines of magics are shown as they were written
        usercode.cells[filename] = Cell(source.label, source.count, written)
    shown = usercode.cells[filename].source.splitlines(keepends=True)
    linecache.cache[source.label] = (len(text), None, shown, source.label)  # the line that a warning shows
    return code


def run(
    code: Code, shell: Any, options: Options, again: Callable[[], bool] | None = None, *, hurried: bool = False
) -> Outcome:
    """Capture the cell, then change the notebook's variables, all or none; ``again`` and ``hurried`` are those of ``run_cell``."""
    before = seen(shell.user_ns, code.parsed.reads)
    checked(code, options, before)
    notebook = cast(code, before, options)
    placed = config.using(math=options.math, device=options.device, transfers=options.transfers)
    with placed, taken_back(code, notebook, shell) as kept:
        parted = Parted.of(options.grad, notebook)
        mark = wrap(constant(0))
        with session.working("capturing"), parted.lent():
            captured = run_cell(code, parted.space, options.inputs, shell.user_ns, parted.names, again, hurried)
        outcome = _outcome(code, options, captured, parted)
        outcome.kept = kept
        outcome.unused = unused_in_cell(captured.capture, (t.node for t in live_values.since(mark)))
        if options.force:
            _forget(outcome)
        if options.later:
            in_background.refuse(outcome, captured)
        try:
            _compute(outcome, captured, mark)
        except KeyboardInterrupt as error:
            error.tensor_site = value_site(code)  # type: ignore[attr-defined]
            raise
        outcome.moving |= _uncast(outcome, before)
        for buffer in captured.stores:
            buffer.array = _original(buffer.array, notebook, before)
        work = in_background.work(outcome) if options.later else None
        _commit(outcome, captured, mark, shell)
        outcome.later = None if work is None else work()
    return outcome


def run_plain(code: Code, shell: Any, options: Options) -> Outcome:
    """Run the cell as plain Python; gradients come from a separate capture, computed by NumPy and without side effects."""
    before = dict(shell.user_ns)
    checked(code, options, before)
    gradients: dict[str, Tensor] = {}
    read: dict[str, Tensor] = {}
    moving: dict[str, Node] = {}
    wholes: dict[str, Any] = {}
    if options.grad or options.name:
        notebook = own_iterators(code, cast(code, before, options))
        with (
            config.using(tier="numpy", math=options.math, device="cpu"),
            left_alone(code, notebook, shell),
            redirect_stdout(StringIO()),
        ):
            parted = Parted.of(options.grad, notebook)
            with parted.lent():
                captured = run_cell(
                    without_effects(code, notebook), parted.space, options.inputs, shell.user_ns, parted.names
                )
            outcome = _outcome(code, options, captured, parted)
            gradients, moving, read, wholes = outcome.gradients, outcome.moving, outcome.inputs, outcome.wholes
            session.compute([t.node for t in gradients.values()])
    result = plain(code, shell.user_ns)
    if options.name:
        shell.push({options.name: function_of(code, options, read, shell)})
    name = "" if code.last is not None else code.parsed.last_name
    return Outcome(
        code, options, result, name, code.last is not None, gradients, moving, read,
        notebook=before, wholes=wholes, plain=True,
    )  # fmt: skip


def plain(code: Code, space: dict[str, Any]) -> Any:
    """Return the cell's own value, by Python and NumPy, over the variables in ``space``, which it binds too."""
    tree = ast.parse(code.cell.source, code.filename)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, code.filename, "exec"), space)  # noqa: S102 (running the user's cell is what this is for)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), code.filename, "eval"), space)  # noqa: S307 (as above)
    return space.get(code.parsed.last_name) if code.parsed.last_name else None


# before ---------------------------------------------------------------------------------------------------------------


def cast(code: Code, notebook: Mapping[str, Any], options: Options) -> dict[str, Any]:
    """Return the notebook as the cell reads it: floating inputs in the dtype that was asked for."""
    space = Recast(notebook)
    if not options.dtype:
        return space
    done: dict[int, Any] = {}
    for name in free_names(code, notebook):
        value = notebook[name]
        space[name] = done.setdefault(id(value), in_dtype(value, options.dtype))
        if space[name] is not value:
            space.originals[name] = value
    return space


def _uncast(outcome: Outcome, before: Mapping[str, Any]) -> dict[str, Node]:
    """Return the nodes of variables that were cast on the way in, as the notebook has them: what tells whether they have changed."""
    cast_names = [n for n in outcome.gradients if n in before and outcome.notebook[n] is not before[n]]
    found = {n: snapshots.lift(before[n], n) for n in cast_names}
    return {n: node for n, node in found.items() if node is not None}


def _original(array: Any, notebook: Mapping[str, Any], before: Mapping[str, Any]) -> Any:
    """Return the notebook's own array for one that the cell has read, cast or not."""
    return next((before[name] for name, value in notebook.items() if value is array), array)


@contextmanager
def taken_back(code: Code, notebook: Mapping[str, Any], shell: Any) -> Generator[Kept]:
    """Take back what the cell changed outside its own variables, where it fails."""
    kept = Kept([notebook[name] for name in free_names(code, notebook)], shell.user_ns)
    try:
        yield kept
    except BaseException:
        kept.restore()
        raise


@contextmanager
def left_alone(code: Code, notebook: Mapping[str, Any], shell: Any) -> Generator[None]:
    """Take back what the cell changes, whether it fails or not."""
    with taken_back(code, notebook, shell) as kept:
        yield
        kept.restore()


# gradients ------------------------------------------------------------------------------------------------------------


def _asked(captured: Captured, options: Options) -> Any:
    """Return the cell's value: that of a variable which it only reads, at the level that the cell asks for."""
    result = captured.result
    read = options.math and type(result) is Tensor and any(result is t for t in captured.inputs.values())
    return wrap(result.node) if read else result


def _outcome(code: Code, options: Options, captured: Captured, parted: Parted) -> Outcome:
    notebook = parted.notebook
    result, name = _asked(captured, options), "" if captured.shown else code.parsed.last_name
    target = captured.values.get(options.of, notebook.get(options.of)) if options.of else result
    gradients, moving = differentiated(code, options, captured, parted, target)
    wholes = {name: parted.whole(name, gradients) for name in parted.parts if name not in parted.parts[name]}
    shown = captured.shown or bool(options.grad)
    read = {n: t for n, t in captured.inputs.items() if options.inputs is None or n in options.inputs}
    outputs = {n: v for n, v in captured.outputs.items() if options.outputs is None or n in options.outputs}
    return Outcome(
        code, options, result, name, shown, gradients, moving, read,
        target=target, outputs=outputs, notebook=notebook, wholes=wholes, on_values=tuple(captured.capture.outside.on_values),
        formed=frozenset(captured.capture.formed), chosen=captured.capture.effort.chosen,
    )  # fmt: skip


# values and variables -------------------------------------------------------------------------------------------------


def _forget(outcome: Outcome) -> None:
    nodes = [
        t.node
        for t in (*tensors_in(outcome.result), *tensors_in(list(outcome.outputs.values())), *outcome.gradients.values())
    ]
    if nodes:
        session.forget_values(nodes)
        session.forget(session.close_over(nodes, use_values=False).graph)
        session.forget(session.close_over(nodes).graph)


def _compute(outcome: Outcome, captured: Captured, mark: Tensor) -> None:
    """Compute the stored and shown values in one run; all values, if the cell has its own rewriting level or device."""
    options = outcome.options
    if options.later:
        return
    wanted = [*outcome.unused, *(buffer.node for buffer in captured.stores)]
    for generator in generators.advanced(captured.capture):
        wanted += [generator.buffer.node, *generator.samples]
    if outcome.shown and not options.quiet:
        wanted += [t.node for t in (*tensors_in(outcome.result), *outcome.gradients.values())]
    if options.math or options.device not in {"", "cpu"}:
        wanted += [t.node for t in (*tensors_in(list(captured.outputs.values())), *outcome.gradients.values())]
    wanted += _decisive(outcome, mark)
    if wanted:
        session.have(list(dict.fromkeys(wanted)))


def _decisive(outcome: Outcome, mark: Tensor) -> Iterator[Node]:
    """Yield the conditions that say what names are bound to: computed with the rest, what both are computed from is computed once."""
    for value in outcome.outputs.values():
        if isinstance(value, Partial):
            yield value.defined
    for value in () if outcome.options.dtype else live_values.since(mark):
        if type(value) is Tensor:
            yield from (n for n in asked(value.place) if _is_there(n))


def _is_there(condition: Node) -> bool:
    """Return whether a condition does not depend on placeholders of a loop body that was tried and discarded."""
    return not any(n.op is INPUT and not isinstance(n["source"], Snapshot) for n in topological([condition]))


def _commit(outcome: Outcome, captured: Captured, mark: Tensor, shell: Any) -> None:
    """After success, store into arrays and bind names; values derived from the notebook's arrays follow these from now on."""
    options = outcome.options
    drawn = generators.advanced(captured.capture)
    there = really_bound(outcome.outputs)
    states = session.compute([g.buffer.node for g in drawn])
    stored = session.compute([b.node for b in captured.stores], [b.name for b in captured.stores])
    stores = list(zip(captured.stores, stored, strict=True))
    if stores:
        snapshots.secure_all()
        _keep_read(outcome, [buffer.array for buffer, _ in stores])
    for buffer, value in stores:
        np.copyto(buffer.array, value, casting="same_kind")
        numbers_taken.note_store(buffer.node, buffer.array, buffer.name)
    generators.commit(drawn, states)
    outcome.stored = tuple(buffer.name for buffer, _ in stores)
    for name in captured.deleted:
        shell.user_ns.pop(name, None)
    seen: Seen = {}
    real = _identified(outcome)
    bound = {
        name: handed_back(with_users_code(v, shell.user_ns), real, seen, attributes=attributes_of)
        for name, v in there.items()
    }
    if options.name:
        bound[options.name] = function_of(outcome.code, options, outcome.inputs, shell)
    shell.push(bound)
    _follow(outcome, captured, mark, shell, replaced_in(seen))


def _follow(outcome: Outcome, captured: Captured, mark: Tensor, shell: Any, seen: Seen) -> None:
    """Turn the cell's lazy values that are views of notebook arrays into views that follow later changes.

    The displayed result keeps its value.
    """
    if outcome.options.dtype:  # parts of copies
        return
    made = [(v, outside(v.place, _holds)) for v in live_values.since(mark) if type(v) is Tensor]
    places = {id(v): (v, place or undecided(v.place, outcome.code.cell.label)) for v, place in made}

    def still(value: Any) -> Any:
        return Tensor(value.place) if places.get(id(value), (None, None))[1] is not None else value

    if outcome.shown and isinstance(outcome.result, Tensor | tuple):
        given = handed_back(outcome.result, _identified(outcome), replaced_in(seen), attributes=attributes_of)
        outcome.given = None if given is outcome.result else given
    outcome.inputs = {n: still(t) for n, t in outcome.inputs.items()}
    outcome.outputs = {n: still(v) for n, v in outcome.outputs.items()}
    outcome.result, outcome.target = still(outcome.result), still(outcome.target)
    for value, place in places.values():
        value.place = place or value.place
    if captured.capture.generators or any(place is not None for _, place in made):
        real = _identified(outcome)
        for name in outcome.code.parsed.reads:
            handed_back(shell.user_ns.get(name), real, seen, attributes=attributes_of)


def _holds(condition: Node) -> bool:
    """Return whether a condition holds; False in the body of a loop that was tried."""
    return _is_there(condition) and bool(session.compute([condition])[0])


def _identified(outcome: Outcome) -> Callable[[Any], Any]:
    """For a lazy array that is an array of the notebook, that array; not where the cell has a copy of it in another dtype."""

    def real(value: Any) -> Any:
        if type(value) is not Tensor or outcome.options.dtype:
            return own_of(value)
        place = outside(value.place, _holds)
        array = None if place is None else notebooks_array(place, session.number_of)
        return value if array is None else array

    return real


def really_bound(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the names that a cell has bound, without those that loops and branches have not bound for these data."""
    perhaps = {n: v for n, v in outputs.items() if isinstance(v, Partial)}
    there = dict(zip(perhaps, session.compute([v.defined for v in perhaps.values()]) if perhaps else (), strict=True))
    held = {n: wrap(v.handed_back) if isinstance(v, Partial) else v for n, v in outputs.items()}
    session.compute(
        [v.handed_back for n, v in perhaps.items() if not there[n] and v.stored]
    )  # an error, where that ran
    return {n: v for n, v in held.items() if there.get(n, True)}


def _keep_read(outcome: Outcome, changing: list[Any]) -> None:
    """Keep copies of what the cell has read, from which a later comparison with NumPy starts."""
    if outcome.options.check or "speed" in outcome.options.show:
        kept = {id(array): array.copy() for array in changing}
        outcome.notebook = {n: kept.get(id(v), v) for n, v in outcome.notebook.items()}


def function_of(code: Code, options: Options, read: Mapping[str, Tensor], shell: Any) -> Function:
    """Return the cell as a function of what it reads: arrays, floats and their containers are arguments; ints and bools are fixed."""
    values = shell.user_ns
    names = free_names(code, values)
    if not options.inputs:
        changed = changed_roots(ast.parse(code.cell.source))
        also = {n for n in names if isinstance(values[n], _WHOLE) or (n not in changed and _holds_numbers(values[n]))}
    else:
        also = set[str]()
    return of_cell(
        code,
        options.name,
        [n for n in names if n in read or n in also],
        values,
        options.math,
        options.dtype,
        (options.device, options.transfers),
    )


def _holds_numbers(value: Any) -> bool:
    """Return whether a container holds numbers, some of them arrays or floats, and nothing else, and is not too long for that."""
    try:
        leaves = flatten(value)[0] if is_container(value) else []
    except TensorError:  # what no function takes
        return False
    floating = [isinstance(v, float | complex | np.inexact | np.ndarray | Tensor) for v in leaves]
    others = [v for v, known in zip(leaves, floating, strict=True) if not known]
    return len(leaves) <= _MOST_LEAVES and any(floating) and all(isinstance(v, _WHOLE) for v in others)
