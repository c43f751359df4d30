"""Captures a cell: its code runs over lazy arrays in a namespace of its own; nothing of the notebook changes before all of it worked."""

from __future__ import annotations

import ast
import builtins
import itertools
import linecache
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FunctionType, ModuleType, TracebackType
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.collecting import sparsely
from tensormagic.capture.context import Capture
from tensormagic.capture.inputs import door, foreign_arrays, items, namespace, notebook_names
from tensormagic.capture.inputs.stand_ins import handed_back
from tensormagic.capture.numbers import named_numbers
from tensormagic.capture.numbers.known_values import static_value
from tensormagic.capture.python import usercode
from tensormagic.capture.python.cell_text import CAPTURED, Parsed, parse
from tensormagic.capture.python.usercode import Cell
from tensormagic.capture.random import generators
from tensormagic.capture.records import Effort
from tensormagic.capture.staging.branches.slots import INTERNAL
from tensormagic.capture.staging.calls import special_methods
from tensormagic.capture.staging.loops.iterators import going_on, pythons
from tensormagic.capture.staging.loops.ranges import Items, LazyIterator
from tensormagic.capture.staging.loops.watched_containers import refuse_changed
from tensormagic.capture.staging.syntax.source import as_written, restore_written_code, staged_cell
from tensormagic.capture.stores import holding
from tensormagic.capture.stores.alias import beside, end
from tensormagic.capture.stores.lent import show_all
from tensormagic.capture.stores.overlap import connect, share
from tensormagic.capture.stores.place import Buffer
from tensormagic.capture.values.operands import input_tensor
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.errors import TensorError
from tensormagic.ir.site import Site


@dataclass
class Captured:
    """Represents the outcome of a captured cell.

    Parameters
    ----------
    outputs
        The names the cell has bound, in any way, with lazy arrays for captured values.
    result
        The value of the last expression, or of a final assignment; None if there is none.
    shown
        Whether the cell ended in an expression.
    inputs
        The lazy array of each input by name.
    stores
        Buffers of notebook arrays that the cell has stored into.
    values
        All names that the cell's code saw, at its end.
    deleted
        Names of the notebook that the cell has deleted.
    """

    outputs: dict[str, Any]
    result: Any
    shown: bool
    inputs: dict[str, Tensor]
    stores: list[Buffer]
    capture: Capture
    parsed: Parsed
    values: dict[str, Any] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class Code:
    """Represents a compiled cell, which can be run over other values of its inputs."""

    cell: Cell
    filename: str
    parsed: Parsed
    body: CodeType
    last: CodeType | None


def compile_cell(source: str, label: str, run: int, filename: str) -> Code:
    """Compile a cell; raise SyntaxError as Python would."""
    parsed = parse(source, filename)
    cell = Cell(label, run, source)
    usercode.cells[filename] = cell
    linecache.cache.setdefault(filename, (len(source), None, source.splitlines(keepends=True), filename))
    body, last = staged_cell(parsed.body, parsed.last, filename, {*parsed.binds, parsed.last_name})
    return Code(cell, filename, parsed, body, last)


def free_names(code: Code, notebook: Mapping[str, Any]) -> list[str]:
    """Return the names that the cell reads and that the notebook has, in order of first reading."""
    return [n for n in code.parsed.reads if n in notebook]


def lift_inputs(
    code: Code,
    notebook: Mapping[str, Any],
    only: Iterable[str] | None,
    more: Iterable[str] = (),
    moving: Iterable[str] = (),
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the namespace for captured code, and the inputs in it.

    ``more`` are names that only functions of the notebook read, ``moving`` those that gradients are with respect to.
    """
    visible: dict[str, Any] = {}
    found: dict[str, Tensor] = {}
    wanted = None if only is None else set(only)
    names = dict.fromkeys([*free_names(code, notebook), *(n for n in more if n in notebook)])
    others = [v for v in map(notebook.__getitem__, names) if isinstance(v, np.ndarray) and door.stays_numpys(v)]
    left = _changed_tables(code, notebook, names, moving)
    for name in names:
        value = notebook[name]
        if name in left:  # pandas computes with them, on values
            visible[name] = value
            continue
        numpys = isinstance(value, np.ndarray) and any(share(value, s) for s in others)  # NumPy stores into it
        wants = (wanted is None or name in wanted) and not numpys
        tensor = value if isinstance(value, Tensor) else _input(code, value, name) if wants else None
        if tensor is not None:
            found[name] = tensor
        visible[name] = namespace.value_of(value) if tensor is None else tensor
    _note_overlaps(found, notebook)
    return visible, found


def _changed_tables(code: Code, notebook: Mapping[str, Any], names: Iterable[str], moving: Iterable[str]) -> set[str]:
    """Return the tables that a cell changes."""
    tables = {n for n in names if door.is_table(notebook[n])}
    if not tables:
        return set()
    tree = ast.parse(code.cell.source)
    return tables & (items.changed_roots(tree) | items.given_to_storing(tree, notebook)).difference(moving)


def _input(code: Code, value: Any, name: str) -> Tensor | None:
    """Return a value as an input, or None if pandas computes with it; an error for a refused value names where the cell first reads it."""
    try:
        return items.input_of(value, name)
    except door.ObjectsError:  # pandas computes with them
        return None
    except TensorError as error:
        if name in code.parsed.places:
            error.tensor_site = _place(code, name)  # type: ignore[attr-defined]
        raise


def _place(code: Code, name: str) -> Site:
    """Return where the cell first reads ``name``."""
    at = code.parsed.places[name]
    return Site(
        code.cell.label, code.cell.run, at.lineno, at.col_offset, at.end_lineno or at.lineno, at.end_col_offset or 0
    )


def _note_overlaps(found: dict[str, Tensor], notebook: Mapping[str, Any]) -> None:
    """Let inputs that share memory see each other's stores; the same array is one lazy array."""
    arrays = [(n, notebook[n]) for n in found if isinstance(notebook[n], np.ndarray)]
    distinct = {id(a): (n, a) for n, a in reversed(arrays)}.values()
    for (name, array), (other, held) in itertools.combinations(distinct, 2):
        if share(array, held):
            connect(found[name].place.buffer, found[other].place.buffer)


def _note_unseen(code: Code, found: dict[str, Tensor], visible: Mapping[str, Any], held: holding.Held) -> None:
    """Record arrays that other objects lead to and that stay plain during the cell: arrays that share their memory refuse stores."""
    unseen = [(n, visible[n]) for n in code.parsed.reads if n in visible and n not in found]
    others = [(n, a) for n, v in unseen for a in ([v] if isinstance(v, np.ndarray) else _arrays_within(v))]
    for tensor in held.tensors.values():
        array = tensor.place.buffer.array
        beside(tensor.place.buffer, *(n for n, a in others if np.may_share_memory(array, a)))


def _arrays_within(value: Any) -> list[np.ndarray[Any, Any]]:
    """Return the arrays that a container, an object or a function of the notebook leads to."""
    if isinstance(value, FunctionType):
        names = value.__code__.co_names
        held: list[Any] = [value.__globals__[n] for n in names if n in value.__globals__]
        held += [v for f in held if isinstance(f, FunctionType) and f is not value for v in _globals_of(f)]
    elif isinstance(value, dict):
        held = list(value.values())
    elif isinstance(value, list | tuple | set):
        held = list(value)
    else:
        held = list(getattr(value, "__dict__", {}).values()) if not isinstance(value, ModuleType | type) else []
    return [v for v in held if isinstance(v, np.ndarray)]


def _globals_of(function: FunctionType) -> list[Any]:
    return [function.__globals__[n] for n in function.__code__.co_names if n in function.__globals__]


def run_cell(
    code: Code,
    notebook: Mapping[str, Any],
    only: Iterable[str] | None = None,
    own: dict[str, Any] | None = None,
    moving: Iterable[str] = (),
    again: Callable[[], bool] | None = None,
    hurried: bool = False,
) -> Captured:
    """Capture a cell over the notebook's values.

    Parameters
    ----------
    code, notebook
        The cell, and the values.
    only
        The names that are inputs; None for all that can be.
    own
        The notebook's own variables: what its functions have for globals.
    moving
        Names that gradients are with respect to.
    again
        Asked where the graph grows large: whether the cell can be run without one, after this is given up.

    hurried
        Whether that was done with a statement of this text before.

    Raises
    ------
    Exception
        What the code raises, with the place in the cell as its ``tensor_site``.
    """
    capture = Capture(code.cell.label, effort=Effort(again=again, hurried=hurried))
    with located(code):
        reach = notebook_names.Reach(
            [] if own is None else [notebook[n] for n in free_names(code, notebook)], own or {}
        )
        visible, found = lift_inputs(code, notebook, only, [n for n in moving if n in reach.reads], moving)
        _share_lazy_arrays(visible, found, notebook)
        generators.lift(visible, notebook, capture)
        items.note(capture, found, notebook, code.parsed.reads)
        with holding.lifted(code.cell.source, visible, notebook, found, moving) as held:
            _note_unseen(code, found, visible, held)
            for tensor in held.fresh:
                capture.names.lifted.setdefault(("array", id(tensor.place.buffer.array)), tensor)
            inside = own if shares(code, reach, moving) else None
            start = {**notebook, **visible}
            capture.outside.strangers += [
                v for v in visible.values() if isinstance(v, np.ndarray) and door.stays_numpys(v)
            ]
            try:
                with special_methods.staged_in([start[n] for n in code.parsed.reads if n in start]):
                    result, space = execute(code, start, capture, inside, moving)
            except BaseException:
                foreign_arrays.put_back(capture)
                raise
            foreign_arrays.checked(capture, [*found.values(), *held.fresh, *_read(capture)])
    show_all(capture.outside.unshown)
    outputs = {
        n: held.original(restored(known(_as_named(v, capture)))) for n, v in _bound(space, start, code.parsed.binds)
    }
    stores = _stored((*found.values(), *held.fresh, *_read(capture)))
    _make_views_read_only((*found.values(), *outputs.values()), code)
    for name in _unchanged(outputs, found, notebook, stores):
        del outputs[name]
    if code.last is None and code.parsed.last_name:
        result = space.get(code.parsed.last_name)
    deleted, shown = sorted(start.keys() - space.keys()), code.last is not None
    return Captured(outputs, restored(known(result)), shown, found, stores, capture, code.parsed, space, deleted)


def _stored(tensors: Iterable[Tensor]) -> list[Buffer]:
    """Return the notebook's arrays that the cell has stored into."""
    buffers = {id(t.place.buffer): t.place.buffer for t in tensors}
    return [b for b in buffers.values() if b.array is not None and b.version and b.stored]


def _unchanged(
    outputs: Mapping[str, Any], found: Mapping[str, Tensor], notebook: Mapping[str, Any], stores: Iterable[Buffer]
) -> list[str]:
    """Return the names that still hold their input, the notebook's own array, which was stored into."""
    arrays = {id(buffer.array) for buffer in stores}
    same = (n for n, v in outputs.items() if isinstance(v, Tensor) and v is found.get(n))
    return [n for n in same if id(notebook.get(n)) in arrays]


def _as_named(value: Any, capture: Capture) -> Any:
    """Return a number that the cell has named, as the cell named it."""
    return (
        capture.names.numbers.get(value.node, value) if isinstance(value, Tensor) and capture.names.numbers else value
    )


def _read(capture: Capture) -> list[Tensor]:
    """Return what was read beside inputs, also by functions of the notebook."""
    return [t for t in capture.names.lifted.values() if isinstance(t, Tensor)]


def _bound(space: Mapping[str, Any], start: Mapping[str, Any], order: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yield the names that were bound to something new, in any way, including ``exec`` and ``import *``."""
    missing = object()
    names = {*notebook_names.variables(space), *order} - {"__builtins__", "__warningregistry__"}
    changed = {n for n in names if n in space and space[n] is not start.get(n, missing) and not n.startswith(INTERNAL)}
    own = [name for name in dict.fromkeys(order) if name in changed]
    others = changed.difference(own)
    for name in (*own, *(n for n in (space if others else ()) if n in others)):
        yield name, space[name]


def known(value: Any) -> Any:
    """Return values known without computing as Python has them: sizes and loop counters as numbers, also in tuples and ranges."""
    if type(value) is tuple:
        items = tuple(map(known, value))
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    if isinstance(value, Items):
        return pythons(value)
    if isinstance(value, LazyIterator):
        return going_on(value)
    number = isinstance(value, Tensor) and value.type.form == "python" and value.dtype.kind in "bi"
    found = static_value(value.node) if number else None
    return value if found is None else found.item() if isinstance(found, np.generic) else found


def _make_views_read_only(values: Iterable[Any], code: Code) -> None:
    """Make values read-only that are views of a notebook's array and are returned to it."""
    for value in values:
        buffer = value.place.buffer if isinstance(value, Tensor) else None
        if buffer is not None and buffer.array is not None and not isinstance(buffer, foreign_arrays.Shown):
            end(buffer, code.cell.label)


def _share_lazy_arrays(visible: dict[str, Any], found: dict[str, Tensor], notebook: Mapping[str, Any]) -> None:
    """Give all names of one array the same lazy array."""
    first: dict[int, Tensor] = {}
    for name in list(found):
        if isinstance(notebook[name], np.ndarray):
            visible[name] = found[name] = first.setdefault(id(notebook[name]), found[name])


def shared(code: Code, notebook: Mapping[str, Any], moving: Iterable[str]) -> dict[str, Any] | None:
    """Return the notebook's variables, where a cell has to run in them: see :func:`shares`; else None."""
    reach = notebook_names.Reach([notebook[n] for n in free_names(code, notebook)], notebook)
    return notebook if isinstance(notebook, dict) and shares(code, reach, moving) else None


def shares(code: Code, reach: notebook_names.Reach, moving: Iterable[str]) -> bool:
    """Return whether a cell must run in the notebook's variables, because functions use them as globals.

    That holds for functions that it defines, and for those of the notebook that read what it binds (or is
    differentiated by), bind variables, or are called by a library (``functools.cache``, ``np.vectorize``).
    """
    defines = code.parsed.defines and {*moving}.isdisjoint(code.parsed.binds)  # see _Bound
    if reach.handed and reach.reads:
        return True
    return defines or bool(reach.binds) or not reach.reads.isdisjoint({*notebook_names.bound(code.body), *moving})


def execute(
    code: Code,
    space: dict[str, Any],
    capture: Capture,
    own: dict[str, Any] | None = None,
    moving: Iterable[str] = (),
) -> tuple[Any, dict[str, Any]]:
    """Run the cell's code over ``space``; return the last expression's value and the namespace.

    ``own`` are the notebook's variables, if these must hold ``space`` while the cell runs; ``moving`` are names that
    gradients are with respect to.
    """
    space = {
        **space,
        CAPTURED: namespace.value_of,
        items.ITEM: items.read_item,
        named_numbers.NAMED: named_numbers.named,
        "__builtins__": builtins,
    }
    if own is None:
        space = _Bound(space, {*moving} & {*code.parsed.binds}) if moving else space
        return _executed(code, space, capture), {**space}
    with notebook_names.holding(own, space):
        return _executed(code, own, capture), dict(own)


class _Bound(dict[str, Any]):
    """A cell's variables; a value bound to a name that gradients are with respect to becomes distinct from equal ones."""

    def __init__(self, values: Mapping[str, Any], moving: set[str]) -> None:
        super().__init__(values)
        self.moving = moving

    def __setitem__(self, name: str, value: Any) -> None:
        if name in self.moving and isinstance(value, float | complex | np.inexact):
            value = input_tensor(value, name)
        elif name in self.moving and isinstance(value, Tensor) and self._is_new(value):
            value.become_own()
        capture = context.current()
        if capture is not None and name in self.moving and isinstance(value, Tensor):
            capture.names.bound.setdefault(name, (value, value.node))
        super().__setitem__(name, value)

    def _is_new(self, value: Tensor) -> bool:
        """Return whether a lazy array with its own memory is bound to no other variable."""
        own = value.type.inexact and value.place.parent is None
        return own and all(v is not value for v in self.values())


def _executed(code: Code, space: dict[str, Any], capture: Capture) -> Any:
    with context.capturing(capture), sparsely():
        try:
            exec(code.body, space)  # noqa: S102 (running the user's cell is what this is for)
            result = eval(code.last, space) if code.last is not None else None  # noqa: S307 (as above)
        except Exception as error:  # NumPy and libraries raise errors of their own in place of one raised inside them
            if capture.refusals.refused is None:
                raise
            raise capture.refusals.refused.with_traceback(error.__traceback__) from None
        if capture.refusals.refused is not None:  # the cell took it for an error of its own
            raise capture.refusals.refused
        refuse_changed(0)
    return result


def restored(value: Any) -> Any:
    """Return a value as returned to the notebook: modules, distributions and generators are the real ones."""
    if value is namespace.proxy(np.random):
        return np.random
    value = handed_back(value)
    return value.__wrapped__ if isinstance(value, namespace.Module | namespace.densities.Distribution) else value


def with_users_code(value: Any, notebook: dict[str, Any]) -> Any:
    """Return a value returned by a cell, whose functions get the user's own code over the notebook's names."""
    for function in notebook_names.functions_of([value], notebook):
        restore_written_code(function)
    if isinstance(value, FunctionType) and CAPTURED in value.__globals__:
        return as_written(value, notebook)
    return value


class located:  # noqa: N801 (used like a function)
    """Gives an exception that leaves the block its place in the cell, as ``tensor_site``."""

    def __init__(self, code: Code) -> None:
        self.code = code

    def __enter__(self) -> None:
        """Do nothing: there is nothing to set up."""

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None or hasattr(error, "tensor_site"):
            return
        site = innermost(trace, lambda name: name == self.code.filename)
        if site is not None:
            try:
                error.tensor_site = site  # type: ignore[attr-defined]
            except AttributeError:  # an exception class without a dictionary: shown without its place
                return


def innermost(trace: TracebackType | None, is_user: Callable[[str], bool]) -> Site | None:
    """Return the place of the innermost frame of ``trace`` whose file is the user's."""
    found: Site | None = None
    while trace is not None:
        if is_user(trace.tb_frame.f_code.co_filename):
            found = usercode.span_at(trace.tb_frame.f_code, trace.tb_lasti, trace.tb_lineno)
        trace = trace.tb_next
    return found
