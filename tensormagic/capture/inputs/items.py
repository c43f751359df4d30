"""What a cell reads beside named arrays: attributes and items of the notebook's objects, tables, lists of numbers."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any, SupportsIndex

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.context import Capture
from tensormagic.capture.foreign import rebuilt_containers
from tensormagic.capture.hooks import hooks
from tensormagic.capture.inputs import door, snapshots
from tensormagic.capture.python.bytecode import named, stores
from tensormagic.capture.staging.syntax.syntax_trees import walk
from tensormagic.capture.stores.alias import Alias
from tensormagic.capture.stores.overlap import share
from tensormagic.capture.stores.place import Buffer, Place
from tensormagic.capture.tables import labelled
from tensormagic.capture.values.operands import input_tensor
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.modules import package_of
from tensormagic.ir.plain_texts import key_text
from tensormagic.ops.form import to_form

ITEM = "__tensor_item__"
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_CHANGING = set(  # methods that change containers and arrays in place
    "append extend insert pop remove clear sort reverse update add discard setdefault popitem appendleft popleft fill".split()  # noqa: SIM905 (a table)
)


# the text of a cell ---------------------------------------------------------------------------------------------------


def root_of(node: ast.AST) -> str:
    """Return the name at the start of a chain of attributes and items; empty if there is none."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def changed_roots(tree: ast.AST) -> set[str]:
    """Return the names of objects that code stores into, by items or attributes, or changes by the methods of containers."""
    nodes = list(walk(tree))
    found, known = _changed(nodes), 0
    while len(found) > known:  # and those of objects for which they are other names
        known = len(found)
        for node in nodes:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
                found |= (
                    {node.value.id} if any(isinstance(t, ast.Name) and t.id in found for t in node.targets) else set()
                )
    return found


def _changed(nodes: Iterable[ast.AST]) -> set[str]:
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            found.add(root_of(node))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING:
            found.add(root_of(node.func))
        elif isinstance(node, ast.AugAssign):
            found.add(root_of(node.target))
    return found


def given_to_storing(tree: ast.AST, notebook: Mapping[str, Any]) -> set[str]:
    """Return the names that code passes to functions that store into items or attributes."""
    nodes = list(walk(tree))
    own = {n.name for n in nodes if isinstance(n, ast.FunctionDef) and _changed(ast.walk(n))}
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            function = notebook.get(node.func.id)
            if node.func.id in own or (isinstance(function, FunctionType) and _changes(function.__code__)):
                given = [*node.args, *(k.value for k in node.keywords)]
                found |= {a.id for a in given if isinstance(a, ast.Name)}
    return found


def _changes(code: CodeType) -> bool:
    return stores(code) or bool(named(code, "STORE_ATTR"))


def with_items(tree: ast.Module, free: Iterable[str]) -> ast.Module:
    """Return a cell whose reads of attributes and items of the names ``free`` go through the capture.

    Not in functions, which are returned to the notebook, and not for objects that the cell stores into.
    """
    nodes = list(walk(tree))
    wanted = set(free) - _changed(nodes)
    called = {id(n.func) for n in nodes if isinstance(n, ast.Call)}
    chains = (n for n in nodes if isinstance(n, ast.Attribute | ast.Subscript) and id(n) not in called)
    return _Items(wanted).visit(tree) if any(root_of(n) in wanted for n in chains) else tree


class _Items(ast.NodeTransformer):
    def __init__(self, free: set[str]) -> None:
        self.free = free

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, (*_SCOPES, ast.pattern)):  # a pattern has names and attributes, no calls
            return node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):  # a method is called, not read
            node.func.value = self.visit(node.func.value)
            node.args = [self.visit(a) for a in node.args]
            node.keywords = [self.visit(k) for k in node.keywords]
            return node
        root = root_of(node) if isinstance(node, ast.Attribute | ast.Subscript) else ""
        if root not in self.free or not isinstance(getattr(node, "ctx", None), ast.Load):
            return self.generic_visit(node)
        text = ast.unparse(node)  # the text as written, before what is in it goes through the capture
        self.generic_visit(node)
        call = ast.Call(ast.Name(ITEM, ast.Load()), [node, ast.Constant(text), ast.Name(root, ast.Load())], [])  # type: ignore[list-item]
        for made in (call, *call.args[1:], call.func):
            ast.copy_location(made, node)
        return call


# what is read ---------------------------------------------------------------------------------------------------------


def input_of(value: Any, name: str) -> Tensor | None:
    """Return the lazy array of an array, number, Series or DataFrame of the notebook; None if it is no input.

    Arrays that graphs cannot hold are no inputs: NumPy computes with them, as in any cell.
    """
    if door.stays_numpys(value):
        return None
    tensor = input_tensor(value, name)
    return tensor if tensor is not None else labelled.labelled(value, name)


def read_item(value: Any, text: str, root: Any) -> Any:
    """Return the value that captured code sees for ``text``, an attribute or item of the notebook's object ``root``."""
    capture = context.current()
    if isinstance(root, labelled.Labelled) and text.count(".") == 1 and (column := root.column_at(text)) is not None:
        return column
    if capture is not None and door.is_table(value):
        found = labelled.labelled(value, text)
        return value if found is None else found
    if capture is None or isinstance(value, Tensor) or _stays(capture, value) or door.stays_numpys(root):
        return value  # what such an array returns shares its memory
    if isinstance(root, type) or callable(root) or _is_ours(root):
        return value
    if type(value) is np.ndarray:
        return value if any(share(value, s) for s in capture.outside.strangers) else _array(value, text, capture)
    if isinstance(value, list | tuple):
        _note_list(capture, value, text)
        return value
    found = input_of(value, text)
    return value if found is None else found


def _stays(capture: Capture, value: Any) -> bool:
    """Return whether a value is an array that no graph holds, and record it."""
    stays = door.stays_numpys(value)
    if stays and isinstance(value, np.ndarray):
        capture.outside.strangers.append(value)
    return stays


def _is_ours(root: Any) -> bool:
    if type(root) is np.ndarray:  # an array that the cell has made: one of the notebook's is lazy
        return root.dtype.kind in "biufc"
    return package_of(type(root)) in {"tensormagic", "builtins"} and not isinstance(root, dict | list | tuple)


def _array(value: np.ndarray[Any, Any], text: str, capture: Capture) -> Any:
    """Return the lazy array of an array held by an object: read-only, since other references would not see a store."""
    held = capture.names.lifted.get(("array", id(value)))
    if held is not None and (held.place.buffer.version or held.node is snapshots.of_array(value, text)):
        return held
    tensor = Tensor(
        Place(Buffer(snapshots.of_array(value, text), value, text, alias=Alias(("the object that holds it",))))
    )
    capture.names.lifted["array", id(value)] = tensor
    capture.names.lifted["alive", id(value)] = value
    return tensor


def note(capture: Capture, found: Mapping[str, Tensor], notebook: Mapping[str, Any], names: Iterable[str]) -> None:
    """Record what a cell reads by name: arrays, so that other references give the same lazy array, and lists."""
    for name, tensor in found.items():
        if isinstance(notebook[name], np.ndarray):
            capture.names.lifted["array", id(notebook[name])] = tensor
    for name in names:
        value = notebook.get(name)
        if isinstance(value, list | tuple):
            _note_list(capture, value, name)


def _note_list(capture: Capture, value: Any, name: str) -> None:
    if any(isinstance(v, float | complex | np.inexact | list | tuple) for v in value):
        capture.names.lifted["list", id(value)] = (value, name)


# containers that gradients are with respect to ------------------------------------------------------------------------


def lifted(value: Any, name: str, parts: dict[str, Tensor]) -> Any:
    """Return a copy of a container with lazy arrays for the numbers in it; add these to ``parts`` by their names."""
    if isinstance(value, Tensor):
        parts[name] = value
        return value
    if is_numbers(value):
        array = np.asarray(value)
        tensor = parts[name] = Tensor(Place(Buffer(snapshots.of_content(array, name), None, name, writeable=False)))
        return _Numbers(value, tensor) if isinstance(value, list) else _FixedNumbers.of(value, tensor)
    if isinstance(value, dict):
        return rebuilt_containers.mapping(
            type(value), [(k, lifted(v, f"{name}[{key_text(k)}]", parts)) for k, v in value.items()]
        )
    fields: tuple[str, ...] | None = getattr(value, "_fields", None)
    if isinstance(value, tuple) and fields is not None:
        own = [lifted(v, f"{name}.{k}", parts) for k, v in zip(fields, value, strict=True)]
        return rebuilt_containers.sequence(type(value), own)
    if isinstance(value, list | tuple):
        return rebuilt_containers.sequence(type(value), [lifted(v, f"{name}[{k}]", parts) for k, v in enumerate(value)])
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changes = {f.name: lifted(getattr(value, f.name), f"{name}.{f.name}", parts) for f in dataclasses.fields(value)}
        return rebuilt_containers.record(type(value), {**getattr(value, "__dict__", {}), **changes})
    tensor = input_of(value, name)
    if tensor is None or not tensor.type.inexact:
        return value
    if isinstance(value, np.ndarray):
        tensor = Tensor(Place(Buffer(tensor.node, None, name, alias=Alias(("the container that holds it",)))))
    parts[name] = tensor
    return tensor


def is_numbers(value: Any) -> bool:
    """Return whether a value is a (nested) list or tuple of floats and other numbers, which NumPy reads as an array."""
    if not isinstance(value, list | tuple) or hasattr(value, "_fields") or not value:
        return False
    return any(isinstance(v, float | complex) or is_numbers(v) for v in value) and all(
        isinstance(v, int | float | complex | np.number) or is_numbers(v) for v in value
    )


class Lifting:
    """Represents a list or tuple of numbers whose elements are parts of one lazy array."""

    tensor: Tensor

    @property
    def _kind(self) -> type:
        """Return Python's class: list or tuple."""
        return tuple if isinstance(self, tuple) else list

    def _part(self, index: SupportsIndex) -> Any:
        raw = super().__getitem__(index)  # type: ignore[misc]
        part = self.tensor[index]
        if isinstance(raw, list):
            return _Numbers(raw, part)
        return _FixedNumbers.of(raw, part) if isinstance(raw, tuple) else wrap(to_form(part.node, "python"))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._kind(self._part(k) for k in range(*index.indices(len(self))))  # type: ignore[arg-type]
        return self._part(index)

    def __iter__(self) -> Iterator[Any]:
        return (self._part(k) for k in range(len(self)))  # type: ignore[arg-type]

    def __add__(self, other: Any) -> Any:
        return self._kind([*self, *other]) if isinstance(other, self._kind) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return self._kind([*other, *self]) if isinstance(other, self._kind) else NotImplemented

    def __mul__(self, times: Any) -> Any:
        return self._kind(self) * times if isinstance(times, int) else NotImplemented

    __rmul__ = __mul__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.tensor.__array__(dtype, copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        return hooks.call_ufunc(ufunc, method, tuple(map(_whole, operands)), options)

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        return hooks.call_numpy(function, tuple(map(_whole, args)), options)


def _whole(value: Any) -> Any:
    return value.tensor if isinstance(value, Lifting) else value


def _refusing(name: str) -> Callable[..., Any]:
    def change(self: Any, *args: Any, **options: Any) -> Any:
        raise CaptureError(
            f"a list is changed by {name} in a cell that asks for the gradient with respect to it",
            "Make a new list, or run the cell with --plain.",
        )

    return change


class _Numbers(Lifting, list[Any]):
    """Represents a list of numbers."""

    def __init__(self, values: list[Any], tensor: Tensor) -> None:
        super().__init__(values)
        self.tensor = tensor


class _FixedNumbers(Lifting, tuple[Any, ...]):  # noqa: SLOT001 (it holds its lazy array, too)
    """Represents a tuple of numbers."""

    @classmethod
    def of(cls, values: tuple[Any, ...], tensor: Tensor) -> _FixedNumbers:
        """Return the same values, as parts of a lazy array."""
        made = cls(values)
        made.tensor = tensor
        return made


for _name in [
    "append",
    "extend",
    "insert",
    "pop",
    "remove",
    "clear",
    "sort",
    "reverse",
    "__setitem__",
    "__delitem__",
    "__iadd__",
    "__imul__",
]:
    setattr(_Numbers, _name, _refusing(_name))
