"""Whether a cell left the same behind in two shells: values in a form that can be kept and compared, without lazy values."""

from __future__ import annotations

import collections
import re
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensormagic.capture.tables.labelled import Labelled
from tensormagic.capture.values.value import Tensor

MOST = 20_000  # elements of one array, and items of one container, that are kept
RELATIVE = 1e-7  # where two values have the same digits
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?)", re.IGNORECASE)
_ADDRESS = re.compile(r"0x[0-9a-f]+")
_CELL = re.compile(r"(?<=ipython-input-)\d+-[0-9a-f]+")  # a name by the cell's text, to which its magic belongs
_SPECIAL = {"In", "Out", "__warningregistry__", "exit", "quit", "get_ipython", "open", "tm"}

Form = tuple[Any, ...]


def names_of(space: dict[str, Any], first: set[str]) -> dict[str, Any]:
    """The user's own variables: what IPython binds itself is left out."""
    return {n: v for n, v in space.items() if n not in first and n not in _SPECIAL and not _is_ipythons(n)}


def _is_ipythons(name: str) -> bool:
    return bool(re.fullmatch(r"_+|_i+|_i?\d+|_[dio]h", name)) or name == "__builtins__"


def form(value: Any, depth: int = 6) -> Form:
    """What is compared of a value."""
    if isinstance(value, Tensor):
        value = value.as_table() if isinstance(value, Labelled) else value.numpy()
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if value is None or kind in {bool, int, str, bytes, slice, range} or isinstance(value, np.dtype):
        return ("atom", name, repr(value))
    if kind in {float, complex} or isinstance(value, np.generic):
        return ("array", name, np.asarray(value).dtype.str, (), _kept(np.asarray(value)))
    if isinstance(value, np.ndarray):
        return ("array", name, value.dtype.str, value.shape, _kept(np.asarray(value), depth))
    if isinstance(value, types.ModuleType):
        return ("module", value.__name__)
    if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType | types.MethodType):
        return ("named", name, getattr(value, "__qualname__", ""))
    return _of_container(value, name, depth) if depth else ("deep", name)


def _plain(value: Any) -> Any:
    return value.numpy() if isinstance(value, Tensor) else value


def _of_container(value: Any, name: str, depth: int) -> Form:
    if isinstance(value, dict):
        return ("items", name, [(repr(_plain(k)), form(v, depth - 1)) for k, v in list(value.items())[:MOST]])
    if isinstance(value, set | frozenset):
        return ("items", name, sorted((repr(_plain(v)), ("atom",)) for v in value))
    if isinstance(value, list | tuple | collections.deque):
        return ("items", name, [(str(k), form(v, depth - 1)) for k, v in enumerate(list(value)[:MOST])])
    if name.startswith("pandas.") and hasattr(value, "to_numpy"):
        columns = [value[c] for c in value] if hasattr(value, "columns") and value.columns.is_unique else [value]
        return ("items", name, [(str(k), form(np.asarray(c), depth - 1)) for k, c in enumerate(columns)])
    if type(value).__module__ == "__main__" and hasattr(value, "__dict__"):
        return ("items", name, [(k, form(v, depth - 1)) for k, v in vars(value).items()])
    return ("object", name)


def _kept(array: np.ndarray[Any, Any], depth: int = 1) -> Any:
    if array.dtype.kind not in "biufcMm":
        return [form(v, depth - 1) for v in array.ravel()[:MOST].tolist()] if depth else str(array)
    flat = array.reshape(-1)
    return flat[:: max(1, flat.size // MOST)].copy()


def difference(left: Any, right: Any, path: str = "") -> Iterator[str]:
    """Where two forms differ, and how; a text that begins with ``digits`` where it is only by the last digits."""
    if left[:2] != right[:2]:
        yield f"{path}: {_told(left)} | {_told(right)}"
    elif left[0] == "array":
        yield from _arrays(left, right, path)
    elif left[0] == "items":
        if [k for k, _ in left[2]] != [k for k, _ in right[2]]:
            yield f"{path}: {[k for k, _ in left[2]][:5]} | {[k for k, _ in right[2]][:5]}"
            return
        for (key, a), (_, b) in zip(left[2], right[2], strict=True):
            yield from difference(a, b, f"{path}[{key}]")
    elif left != right:
        yield f"{path}: {_told(left)} | {_told(right)}"


def _arrays(left: Form, right: Form, path: str) -> Iterator[str]:
    if left[2:4] != right[2:4]:
        yield f"{path}: {left[2]}{left[3]} | {right[2]}{right[3]}"
    elif isinstance(left[4], list) or isinstance(right[4], list):
        for k, (a, b) in enumerate(zip(left[4], right[4], strict=True)):
            yield from difference(a, b, f"{path}[{k}]")
    elif not np.array_equal(left[4], right[4], equal_nan=left[4].dtype.kind in "fcMm"):
        yield from _digits(left[4], right[4], path)


def _digits(left: Any, right: Any, path: str) -> Iterator[str]:
    near = False
    if left.dtype.kind in "fc":
        relative = RELATIVE if left.dtype.itemsize >= 8 * (1 + (left.dtype.kind == "c")) else 1e-4
        finite = np.abs(left[np.isfinite(left)])
        scale = float(finite.max()) if finite.size else 1.0
        with np.errstate(all="ignore"):
            near = bool(np.allclose(right, left, rtol=relative, atol=relative * max(scale, 1e-8), equal_nan=True))
    yield f"{'digits ' if near else ''}{path}: {left.ravel()[:4]} | {right.ravel()[:4]}"


def _told(value: Form) -> str:
    return str(value)[:90]


def text_difference(left: str, right: str) -> Iterator[str]:
    """Where two texts differ: addresses are left out, numbers may differ in their last digits."""
    left, right = (_CELL.sub("", _ADDRESS.sub("0x", t)) for t in (left, right))
    if left == right:
        return
    words, others = (_NUMBER.sub("#", t).split() for t in (left, right))
    numbers = [np.array([float(n) for n in _NUMBER.findall(t)]) for t in (left, right)]
    near = words == others and len(numbers[0]) == len(numbers[1])
    if near:
        scale = np.abs(numbers[0]).max(initial=1e-8)
        near = bool(np.allclose(*numbers, rtol=1e-4, atol=1e-9 * scale, equal_nan=True))
    yield f"{'digits ' if near else ''}text: {_from_difference(left, right)}"


def _from_difference(left: str, right: str) -> str:
    k = next((k for k, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    return f"{left[max(0, k - 10) : k + 40]!r} | {right[max(0, k - 10) : k + 40]!r}"
