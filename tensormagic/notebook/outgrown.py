"""Cells that no graph holds, or a graph too large, are run again as ordinary Python, where a second run is not seen."""

from __future__ import annotations

import ast
import builtins
import functools
import random
import sys
import types
import warnings
from collections import deque
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, redirect_stdout
from typing import Any

import numpy as np

from tensormagic.capture import taken, usercode
from tensormagic.capture.cell import Code, free_names
from tensormagic.capture.home import Reach, content
from tensormagic.capture.pythons import REPEATABLE
from tensormagic.capture.staging.source import code_as_written, syntax_of
from tensormagic.capture.stores.lent import lent
from tensormagic.capture.value import Tensor
from tensormagic.ir.errors import CaptureError, LimitError, PlainRunWarning, TensorError
from tensormagic.ir.modules import PURE, module_of
from tensormagic.notebook.handed_on import numbers
from tensormagic.notebook.options import Options
from tensormagic.notebook.outcome import Outcome
from tensormagic.notebook.run import run, run_plain

__all__ = ["is_repeatable", "run_as_it_can"]

_MODULES = (PURE - {"builtins", "tensormagic"}) | {
    "random",
    "time",
    "statistics",
    "decimal",
    "heapq",
    "bisect",
    "datetime",
}
_FILES = {
    "save", "savez", "savez_compressed", "savetxt", "load", "loadtxt", "genfromtxt", "fromfile", "tofile", "memmap", "dump",
    "open_memmap", "DataSource", "loadmat", "savemat", "set_printoptions", "seterr", "seterrcall", "setbufsize",
}  # fmt: skip
_DATA = (
    types.NoneType, bool, int, float, complex, str, bytes, range, slice, types.EllipsisType, np.generic, np.dtype, np.ufunc,
    np.random.Generator, np.random.RandomState, Tensor,
)  # fmt: skip
_SHARED = random.random.__self__  # what the functions of `random` draw from; it goes back, as NumPy's generators do
_CONTAINERS = (list, tuple, dict, set, frozenset, deque)
_OF_CLASSES = {"__dict__", "__weakref__", "__doc__", "__module__", "__qualname__"}
_MOST = 10_000  # values of containers and objects that are looked at
_OURS = {"grad", "graph", "optimized", "explain", "formula", "backprop", "to_html", "numpy"}  # of lazy values alone
_UNCAPTURED = ", but the code is only being captured"
_given_up: deque[str] = deque(maxlen=100)  # the texts of cells that were run so
_HEARD = 1 << 20  # characters of what a cell prints that are kept


def run_as_it_can(code: Code, shell: Any, options: Options) -> Outcome:
    """Capture and run a cell; where no graph holds it, or it grows too large, and only its values are asked for, run it as ordinary Python.

    What it had done until then is taken back, and what it had printed is not printed again.

    Raises
    ------
    TensorError
        Where that might be seen: the cell reads or writes files, draws, or calls what is not known to be without effects.
    """
    if not _asks_for_values(options):
        return run(code, shell, options)
    heard, notebook = _Heard(sys.stdout), dict[str, Any](shell.user_ns)

    found: list[bool] = []

    def again() -> bool:
        if not found:  # while the cell runs, which says how far it has come
            found.append(heard.kept is not None and is_repeatable(code, notebook, usercode.line_of(code.filename)))
        return found[0]

    try:
        with redirect_stdout(heard):
            return run(code, shell, options, again, hurried=code.cell.source in _given_up)
    except TensorError as error:
        refused = isinstance(error, CaptureError) and error.pythons
        if not refused or not (again() if isinstance(error, LimitError) else _again(code, notebook, heard, error)):
            raise
        why = error
    if isinstance(why, LimitError):
        _given_up.append(code.cell.source)
    read = taken.marks_of({n: notebook[n] for n in free_names(code, notebook)})
    with redirect_stdout(_After(sys.stdout, heard.kept or "")), _as_arrays(code, shell.user_ns):
        outcome = run_plain(code, shell, options)
    _tell(code, why)
    for name in code.parsed.binds & shell.user_ns.keys():
        for path, value in numbers(shell.user_ns[name], name):
            taken.note_computed(path, value, read, (code.filename, _line(why)), "was computed here as plain Python")
    return outcome


def _again(code: Code, notebook: Mapping[str, Any], heard: _Heard, error: TensorError) -> bool:
    """Whether a cell that was refused can be run as a whole, as far as it had come."""
    trace, line = error.__traceback__, None
    while trace is not None and line is None:
        line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == code.filename else None
        trace = trace.tb_next
    return heard.kept is not None and is_repeatable(code, notebook, line)


def _line(why: TensorError) -> int:
    """The line that a warning names."""
    site = getattr(why, "tensor_site", None)
    return (why.line if isinstance(why, LimitError) else getattr(site, "line", 0)) or 1


def _asks_for_values(options: Options) -> bool:
    """Whether a cell's values are all that is asked for, at a level whose values are NumPy's up to rounding."""
    plain = Options(math=options.math, quiet=options.quiet, force=options.force, verbose=options.verbose)
    return options == plain and options.math in {"", "exact", "stable"}


def _tell(code: Code, error: TensorError) -> None:
    label = code.cell.label
    if isinstance(error, LimitError):
        why = f" ({error.why.replace(_UNCAPTURED, '')})" if error.why else ""
        told = f"it has a loop that goes into a graph only one iteration at a time, and that would take long{why}"
        if error.empty:
            told = f"its iterations or calls put nothing into a graph, and run much slower while they are captured{why}"
        after = ", and print after it" if "print()" in why else ""
        advice = f"write {'this' if error.empty else 'the loop'} with array operations{after}"
    else:
        told = f"no graph holds what it does: {error.message}"
        advice = f"{error.hint[:1].lower()}{error.hint[1:].rstrip('.')}" if error.hint else "leave that out"
    warnings.warn_explicit(
        f"{label} was run as ordinary Python: {told}. The results are those of Python, but they have no graph, and gradients in later "
        f"cells take them for constants. If you want a graph, {advice}; if not, leave out %%tensor",
        PlainRunWarning,
        label,
        _line(error),
    )


@contextmanager
def _as_arrays(code: Code, space: dict[str, Any]) -> Generator[None]:
    """Have what a cell reads stand for NumPy's arrays and numbers while it runs, where it is lazy: names, attributes, items of lists.

    An array is the memory of the lazy one, as ``np.asarray`` of it is in plain code: what is stored into either is seen in both.
    """
    names = free_names(code, space)
    reach = Reach([space[n] for n in names], space)
    lazy = [(space, n, v) for n, v in space.items() if n in reach.reads.union(names) and type(v) is Tensor]
    lazy += [(holder, k, v) for holder in reach.holders for k, v in _items(holder) if type(v) is Tensor]
    found = {id(v): _array_of(v) for v in {id(v): v for _, _, v in lazy}.values()}
    given: list[tuple[Any, Any, Tensor]] = [each for each in lazy if found[id(each[2])] is not None]
    for holder, key, value in given:
        holder[key] = found[id(value)]
    try:
        yield
    finally:
        for holder, key, value in given:
            array = found[id(value)]
            rebound = holder is space and key in code.parsed.binds and not isinstance(array, np.ndarray)
            if not rebound and dict(_items(holder)).get(key) is array:
                holder[key] = value


def _items(holder: list[Any] | dict[Any, Any]) -> list[tuple[Any, Any]]:
    """What a list or a dictionary holds, each with its place."""
    return list(holder.items() if isinstance(holder, dict) else enumerate(holder))


def _array_of(value: Tensor) -> Any:
    """What NumPy would have in place of a lazy value; None where that, or its memory, cannot be had."""
    try:
        found = value.numpy()
    except Exception:  # noqa: BLE001 (of its computation: raised where it is read)
        return None
    if type(found) is not np.ndarray or value.type.form != "array":
        return found
    memory = lent(value.place, found)
    return memory if memory.flags.writeable or value.place.writeable is False else None


# what is printed ------------------------------------------------------------------------------------------------------


class _Through:
    """Standard output, which a cell writes to by way of this."""

    def __init__(self, out: Any) -> None:
        self._out = out

    def flush(self) -> None:
        self._out.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)


class _Heard(_Through):
    """Standard output, of which is kept what is written; nothing is kept once it is too much."""

    def __init__(self, out: Any) -> None:
        super().__init__(out)
        self._parts: list[str] = []
        self._room = _HEARD

    @property
    def kept(self) -> str | None:
        return "".join(self._parts) if self._room >= 0 else None

    def write(self, text: str) -> int:
        if self._room >= 0:
            self._parts.append(text)
            self._room -= len(text)
        return self._out.write(text)


class _After(_Through):
    """Standard output, less what has been written before, as long as the same is written."""

    def __init__(self, out: Any, before: str) -> None:
        super().__init__(out)
        self._before = before

    def write(self, text: str) -> int:
        if self._before:
            same = text[: len(self._before)]
            known = self._before.startswith(same)
            self._before = self._before[len(same) :] if known else ""
            self._out.write(text[len(same) :] if known else text)
            return len(text)
        return self._out.write(text)


# whether a second run is seen -----------------------------------------------------------------------------------------


def is_repeatable(code: Code, notebook: Mapping[str, Any], line: int | None = None) -> bool:
    """Whether a cell that was run in part, and taken back, can be run as a whole without anybody seeing that.

    So it is where all that it has named is data, NumPy, SciPy, Python's own functions of data, or functions and classes of the notebook
    that name nothing else. What these print is known (:class:`_Heard`); random generators go back with the variables. What asks for a
    graph (``loss.grad(w)``) needs the cell as it was captured, wherever it stands.

    Parameters
    ----------
    code
        The cell.
    notebook
        The notebook's variables.
    line
        The line that the cell has come to: statements that begin behind it have not run.
    """
    tree = ast.parse(code.cell.source)
    if any(isinstance(n, ast.Attribute) and n.attr in _OURS for n in ast.walk(tree)):
        return False
    if line is not None:
        tree.body = [statement for statement in tree.body if statement.lineno <= line]
    return _Look(notebook).over(tree)


class _Look:
    """A look at what code names, each value once."""

    def __init__(self, notebook: Mapping[str, Any]) -> None:
        self._notebook = notebook
        self._seen: dict[int, Any] = {}
        self._room = _MOST

    def over(
        self, tree: ast.AST, space: Mapping[str, Any] | None = None, closed: Mapping[str, Any] | None = None
    ) -> bool:
        """Whether code does nothing that a second run would show."""
        return all(map(self._is_fine, ast.walk(tree))) and all(
            self._name(name, self._notebook if space is None else space, closed or {}) for name in _names(tree)
        )

    def _is_fine(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Import):
            return all(_is_known(a.name) for a in node.names)
        if isinstance(node, ast.ImportFrom):
            return (
                not node.level and _is_known(node.module or "") and not {a.name for a in node.names} & (_FILES | {"*"})
            )
        if isinstance(node, ast.Attribute):
            return node.attr not in _FILES and not node.attr.startswith("__")
        return not isinstance(node, ast.Await | ast.AsyncFunctionDef | ast.AsyncFor | ast.AsyncWith)

    def _name(self, name: str, space: Mapping[str, Any], closed: Mapping[str, Any]) -> bool:
        """Whether what stands behind a name is harmless; a name that is not there yet is the code's own."""
        for names in (closed, space):
            if name in names:
                return self._value(names[name])
        return not hasattr(builtins, name) or name in REPEATABLE or _is_exception(getattr(builtins, name))

    def _value(self, value: Any) -> bool:
        """Whether a value, and what it leads to, are data or known functions."""
        if isinstance(value, _DATA) or value is _SHARED or id(value) in self._seen:
            return True
        self._seen[id(value)] = value
        self._room -= 1
        if self._room < 0:
            return False
        if callable(value) or isinstance(value, types.ModuleType):
            return self._callable(value)
        if isinstance(value, np.ndarray):
            return not value.dtype.hasobject and _is_known(type(value).__module__)
        kind, parts = type(value), list[Any](getattr(value, "__dict__", {}).values())
        if isinstance(value, _CONTAINERS):
            parts += [*value, *value.values()] if isinstance(value, dict) else value
        elif not _is_users(kind):  # open files, figures, iterators: what these do is not taken back
            return False
        return (kind in _CONTAINERS or self._class(kind)) and all(map(self._value, parts))

    def _callable(self, value: Any) -> bool:
        """Whether a function, a class, another value that can be called, or a module has no effects."""
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, types.MethodType):
            return self._value(value.__self__) and self._value(value.__func__)
        if isinstance(value, types.BuiltinFunctionType) and not isinstance(value.__self__, types.ModuleType | None):
            return self._value(value.__self__) and value.__name__ not in _FILES
        if isinstance(value, functools.partial):
            return all(map(self._value, (value.func, *value.args, *value.keywords.values())))
        if _is_users(type(value)):
            return self._class(type(value)) and all(map(self._value, vars(value).values()))
        if isinstance(value, types.FunctionType) and not _is_known(value.__module__ or ""):
            return self._function(value)
        module = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None) or ""
        return _is_known(module) and getattr(value, "__name__", "") not in _FILES

    def _function(self, function: types.FunctionType) -> bool:
        """Whether a function of the notebook has no effects, by its text."""
        tree = syntax_of(code_as_written(function))
        closed = dict(zip(function.__code__.co_freevars, map(content, function.__closure__ or ()), strict=False))
        given = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        own = function.__module__ == "__main__"  # whose variables are lazy while the cell runs
        space = self._notebook if own else function.__globals__
        return tree is not None and self.over(tree, space, closed) and all(map(self._value, given))

    def _class(self, kind: type) -> bool:
        if _is_known(kind.__module__) or _is_exception(kind):
            return True
        if not _is_users(kind):
            return vars(builtins).get(kind.__name__) is kind and kind.__name__ in REPEATABLE
        parts = [part for name, part in vars(kind).items() if name not in _OF_CLASSES]
        return all(map(self._value, [*(f for p in parts for f in _functions_in(p)), *kind.__bases__]))


def _functions_in(part: Any) -> Iterable[Any]:
    """What an attribute of a class runs: a property's functions, that of a method of the class; else the attribute itself."""
    if isinstance(part, property):
        return part.fget, part.fset, part.fdel
    return (getattr(part, "__func__", part),)


def _is_users(kind: type) -> bool:
    """Whether the notebook defines a class."""
    return module_of(kind) == "__main__"


def _is_known(module: str) -> bool:
    return module.partition(".")[0] in _MODULES


def _is_exception(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


def _names(tree: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
