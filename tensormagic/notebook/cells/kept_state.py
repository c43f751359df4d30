"""Save whatever a cell can reach and change before it fails (containers, objects, lazy values, random generators), and restore it.

It looks at values only, and does not know how cells are run.
"""

from __future__ import annotations

import copy
import functools
import random
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tensormagic.capture.foreign import rebuilt_containers
from tensormagic.capture.inputs.door import stays_numpys
from tensormagic.capture.inputs.snapshots import COPY_LIMIT
from tensormagic.capture.python.bytecode import names_in
from tensormagic.capture.stores.state import State
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.modules import module_of, package_of

_ATOMS = (type(None), bool, int, float, complex, str, bytes, range, slice, type(...), np.generic, np.dtype, np.ufunc)
_PLAIN = frozenset((type(None), bool, int, float, complex, str, bytes))  # those that are told at once
_OWN = ("__main__", "types")  # modules whose objects are the notebook's own: what they lead to is kept, too
_FREE = {"__dict__", "__weakref__", "__doc__", "__module__", "__abstractmethods__"}


class Kept:
    """A snapshot of everything that is reachable from some values.

    Each container and object is copied shallowly: lists, dictionaries, sets, attributes; arrays in them, up to the
    total size that inputs are copied to; lazy values, and the state of every random generator, Python's own too.

    Parameters
    ----------
    roots
        The values.
    arrays
        Whether arrays are copied too; a cell changes its inputs only after all of it has succeeded.
    space
        Variables of the notebook, whose bindings are kept: functions may rebind them.
    """

    def __init__(self, roots: Iterable[Any], space: dict[str, Any] | None = None, *, arrays: bool = False) -> None:
        self.undo: list[Callable[[], None]] = []
        self.rewinds: list[Callable[[], None]] = []
        self.room = COPY_LIMIT
        self._legacy = np.random.get_state(legacy=False)  # noqa: NPY002 (the user's cell may draw from it)
        self._python = random.getstate()
        self._space = space
        if space is not None:
            self._keep_names(space)
        self._met: dict[int, Any] = {}  # held, so that an id stays that of one object
        pending: list[Any] = [
            root for root in roots if arrays or not isinstance(root, np.ndarray) or stays_numpys(root)
        ]
        while pending:
            value = pending.pop()
            if type(value) in _PLAIN or id(value) in self._met or isinstance(value, _ATOMS):
                continue
            self._met[id(value)] = value
            keep = _USUAL.get(type(value)) or next((keep for kinds, keep in _KEEPERS if isinstance(value, kinds)), None)
            pending += (keep or _keep_object)(self, value)

    def _keep_names(self, space: dict[str, Any]) -> None:
        before = {**space}  # a copy, and no loop: a notebook of a thousand cells has thousands of names

        def undo() -> None:
            for name in [n for n in space if n not in before and not n.startswith("_")]:
                del space[name]
            for name, value in before.items():
                if not name.startswith("_") and (name not in space or space[name] is not value):
                    space[name] = value

        self.undo.append(undo)

    def restore(self) -> None:
        """Undo all changes since the snapshot."""
        for undo in reversed(self.undo):
            undo()
        self.rewind()

    def rewind(self) -> None:
        """Put the random generators back to where they were."""
        np.random.set_state(self._legacy)  # noqa: NPY002 (as above)
        random.setstate(self._python)
        for rewind in self.rewinds:
            rewind()

    @contextmanager
    def rewound(self) -> Generator[None]:
        """Restore the snapshot for the duration of the context, then the present state."""
        now = Kept(self._met.values(), self._space, arrays=True)
        self.restore()
        try:
            yield
        finally:
            now.restore()


# each keeps one value and gives what it leads to -----------------------------------------------------------------------


def _keep_sequence(kept: Kept, value: Any) -> Iterable[Any]:
    items = list(value)

    def undo() -> None:
        if len(value) != len(items) or any(a is not b for a, b in zip(value, items, strict=True)):
            rebuilt_containers.refill(value, items)

    kept.undo.append(undo)
    return _leading(items)


def _keep_set(kept: Kept, value: set[Any]) -> Iterable[Any]:
    items = set(value)

    def undo() -> None:
        if value != items:
            rebuilt_containers.refill(value, items)

    kept.undo.append(undo)
    return ()


def _keep_mapping(kept: Kept, value: dict[Any, Any]) -> Iterable[Any]:
    items = dict(value)

    def undo() -> None:
        if list(map(id, value)) != list(map(id, items)) or any(value[k] is not v for k, v in items.items()):
            rebuilt_containers.refill(value, items)

    kept.undo.append(undo)
    return _leading(items.values())


def _keep_array(kept: Kept, value: np.ndarray[Any, Any]) -> Iterable[Any]:
    if value.flags.writeable and value.nbytes <= kept.room:
        kept.room -= value.nbytes
        kept.undo.append(State(value).restore)
    held = getattr(value, "__dict__", {}).values()
    return [*held, *(value.tolist() if value.dtype == object and value.shape else ())]


def _keep_lazy(kept: Kept, value: Tensor) -> Iterable[Any]:
    buffer = value.place.buffer
    node, version = buffer.node, buffer.version

    def undo() -> None:
        if buffer.version != version:
            buffer.store(node)

    if buffer.array is None:
        kept.undo.append(undo)
    return ()


def _keep_generator(kept: Kept, value: Any) -> Iterable[Any]:
    if isinstance(value, np.random.RandomState):
        kept.rewinds.append(functools.partial(value.set_state, value.get_state(legacy=False)))
    else:
        bits = value.bit_generator if isinstance(value, np.random.Generator) else value
        state = copy.deepcopy(bits.state)
        kept.rewinds.append(lambda: setattr(bits, "state", copy.deepcopy(state)))
    return ()


def _keep_function(kept: Kept, value: FunctionType) -> Iterable[Any]:
    """Return what a function of the notebook reads, by name and from closures, whose variables it may bind, and its attributes."""
    if value.__module__ != "__main__":
        return ()
    space = value.__globals__
    names = names_in(value.__code__)
    found = [space[name] for name in names if name in space]
    for cell in value.__closure__ or ():
        found += _keep_cell(kept, cell)
    return [*found, vars(value), *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]


def _keep_cell(kept: Kept, cell: CellType) -> Iterable[Any]:
    """Return a variable of a closure: functions beside may bind it, too."""
    before = _in_cell(cell)

    def undo() -> None:
        now = _in_cell(cell)
        if now and not before:
            del cell.cell_contents
        elif before and not (now and now[0] is before[0]):
            cell.cell_contents = before[0]

    kept.undo.append(undo)
    return before


def _in_cell(cell: CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # not filled, or emptied
        return ()


def _keep_class(kept: Kept, value: type) -> Iterable[Any]:
    """Return the attributes of a class of the notebook."""
    if value.__module__ != "__main__":
        return ()

    def now() -> dict[str, Any]:
        return {n: v for n, v in vars(value).items() if n not in _FREE}

    before = now()

    def undo() -> None:
        after = now()
        for name in after.keys() - before.keys():
            delattr(value, name)
        for name, held in before.items():
            if name not in after or after[name] is not held:
                setattr(value, name, held)

    kept.undo.append(undo)
    return list(before.values())


def _keep_object(kept: Kept, value: Any) -> Iterable[Any]:
    """Return the attributes of an object; those of a library are not looked into any further."""
    kind = type(value)
    if package_of(kind) == "pandas":
        return _keep_table(kept, value)
    own = module_of(kind) in _OWN or hasattr(kind, "__dataclass_fields__")
    attributes = getattr(value, "__dict__", None)
    leading: Iterable[Any] = ()
    if isinstance(attributes, dict):
        leading = _keep_mapping(kept, attributes)
    return [*leading, *_keep_slots(kept, value), kind] if own else ()


def _keep_slots(kept: Kept, value: Any) -> Iterable[Any]:
    names = [n for kind in type(value).__mro__ for n in _names_in(vars(kind).get("__slots__", ())) if n not in _FREE]
    before = {n: getattr(value, n) for n in names if hasattr(value, n)}

    def undo() -> None:
        for name in names:
            if name in before:
                object.__setattr__(value, name, before[name])
            elif hasattr(value, name):
                object.__delattr__(value, name)

    if names:
        kept.undo.append(undo)
    return list(before.values())


def _keep_table(kept: Kept, value: Any) -> Iterable[Any]:
    """Return a Series or a DataFrame."""
    if type(value).__name__ in {"Series", "DataFrame"}:
        before = value.copy(deep=int(np.sum(value.memory_usage(index=False))) <= COPY_LIMIT)

        def undo() -> None:
            if not value.equals(before) or [*value.keys()] != [*before.keys()]:
                vars(value).clear()
                vars(value).update(vars(before))

        kept.undo.append(undo)
    return ()


_KEEPERS: tuple[tuple[Any, Callable[[Kept, Any], Iterable[Any]]], ...] = (
    (Tensor, _keep_lazy),
    ((list, deque, bytearray), _keep_sequence),
    (dict, _keep_mapping),
    (set, _keep_set),
    (np.ndarray, _keep_array),
    ((tuple, frozenset), lambda _kept, value: _leading(value)),
    ((np.random.Generator, np.random.BitGenerator, np.random.RandomState), _keep_generator),
    (FunctionType, _keep_function),
    (MethodType, lambda _kept, value: (value.__self__, value.__func__)),
    (functools.partial, lambda _kept, value: (value.func, *value.args, *value.keywords.values())),
    (type, _keep_class),
    (ModuleType, lambda _kept, _value: ()),
)
_USUAL = {k: keep for k in (list, dict, tuple, np.ndarray, Tensor) for kinds, keep in _KEEPERS if issubclass(k, kinds)}


def _leading(items: Iterable[Any]) -> Iterable[Any]:
    """Return the items, where some may lead further: numbers and text do not."""
    items = list(items)
    kinds = set(map(type, items)) - _PLAIN
    return items if kinds and any(not issubclass(kind, _ATOMS) for kind in kinds) else ()


def _names_in(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)
