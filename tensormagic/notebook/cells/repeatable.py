"""Decide whether a cell that ran in part, and was rolled back, can run again as a whole without visible effects."""

from __future__ import annotations

import ast
import builtins
import copy
import functools
import random
import sys
import types
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tensormagic.capture.cell import Code
from tensormagic.capture.inputs import door, items
from tensormagic.capture.inputs.notebook_names import content
from tensormagic.capture.python.builtin_facts import REPEATABLE
from tensormagic.capture.python.bytecode import named
from tensormagic.capture.staging.syntax.source import code_as_written
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.modules import CHANGES_NOTHING, PURE, PURE_OF_VALUES, module_of, package_of

_DRAWING = frozenset(
    {"matplotlib", "mpl_toolkits", "seaborn"}
)  # into figures, which go where the cell has made all of them
_LATE = {"", "agg", "cairo", "pdf", "pgf", "ps", "svg", "template", "inline"}
_COMPUTING = {"pandas", "sklearn", "sympy", "networkx", "statsmodels"}  # with data, which they leave alone
_KNOWN = PURE.union(PURE_OF_VALUES, CHANGES_NOTHING, _COMPUTING, _DRAWING, {"random", "warnings"}) - {
    "builtins",
    "tensormagic",
}
_HOLDING = {"dataclasses", "typing", "types", "re", "fractions", "decimal", "enum", "datetime", "functools"}
_FILES = {
    "save", "savez", "savez_compressed", "savetxt", "load", "loadtxt", "genfromtxt", "fromfile", "tofile", "memmap", "dump",
    "open_memmap", "DataSource", "loadmat", "savemat",
    "to_csv", "to_excel", "to_feather", "to_hdf", "to_json", "to_latex", "to_parquet", "to_pickle", "to_sql", "to_stata", "to_html",
    "write_gml", "write_graphml", "write_gexf", "write_edgelist", "write_adjlist", "remove_data",
}  # fmt: skip
_SEEN = {
    "show",
    "savefig",
    "pause",
    "waitforbuttonpress",
    "ginput",
    "preview",
    "imsave",
}  # of a figure, before it is whole
_TOLD = {"warn", "warn_explicit", "showwarning", "catch_warnings"}
_SETTING = {
    "set_printoptions",
    "seterr",
    "setbufsize",
}  # what is set twice is set; what they give is what was set before
_SETTING_NAMES = _SETTING | {"seterrcall"}
_PYTHONS = {
    "__annotations__",
    "__conditional_annotations__",
    "__doc__",
}  # where a cell's code notes what no code of its own asks for
_LATER = {"__annotate__", "__annotate_func__"}  # from Python 3.14 on: what annotations are, once that is asked for
_ANNOTATIONS = {"__annotations__", "get_annotations", "get_type_hints", *_LATER}  # asking for these may run their code
_DENIED = _FILES | _SEEN | _TOLD | _SETTING_NAMES | {"__globals__", "__builtins__", "__subclasses__", "__import__"}
_GRAPHS = {"grad", "graph", "optimized", "explain", "formula", "backprop", "to_html", "numpy"}  # of lazy values alone
_DATA = (
    types.NoneType, bool, int, float, complex, str, bytes, range, slice, types.EllipsisType, types.NotImplementedType, np.generic,
    np.dtype, np.ufunc, np.random.Generator, np.random.RandomState, Tensor,
)  # fmt: skip
_SHARED = random.random.__self__  # what the functions of `random` draw from; it goes back, as NumPy's generators do
_CONTAINERS = (list, tuple, dict, set, frozenset, deque)
_DESCRIBING = (
    types.MemberDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType, types.MethodDescriptorType,
    type(vars(NamedTuple("_", [("a", int)]))["a"]),
)  # fmt: skip
_MOST = 10_000  # values of containers and objects that are looked at
_DEFINING = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_repeatable(code: Code, notebook: Mapping[str, Any], line: int | None = None, *, figures: bool = True) -> bool:
    """Return whether a cell that was run in part, and undone, can be run again without anybody noticing.

    It can if it has only used data, NumPy, SciPy, libraries that compute with data, and functions and classes of the
    notebook that only use these. Their output is known; random generators are restored with the variables, and new
    figures are closed. A cell that asks for a graph (``loss.grad(w)``) needs to be captured, and cannot.

    Parameters
    ----------
    code
        The cell.
    notebook
        The notebook's variables, as they were before the cell.
    line
        The line that the cell has reached: statements that begin after it have not run.
    figures
        Whether there were figures before the cell, into which it may have drawn.
    """
    tree = ast.parse(code.cell.source)
    if any(isinstance(n, ast.Attribute) and n.attr in _GRAPHS for n in ast.walk(tree)):
        return False
    if line is not None:
        tree.body = [statement for statement in tree.body if statement.lineno <= line]
    known = _KNOWN - (_DRAWING if figures or not _draws_late() else frozenset())
    return _Look(notebook, known).cell(_that_runs(tree), set(code.parsed.reads))


def has_figures() -> bool:
    """Return whether matplotlib has figures that are open."""
    return bool(_figures())


def _draws_late() -> bool:
    """Return whether figures appear only after the cell has ended, or never; windows and widgets show them at once."""
    plotting = sys.modules.get("matplotlib.pyplot")
    backend = "" if plotting is None else str(plotting.get_backend()).lower()
    return backend in _LATE or backend.endswith("backend_inline")


def close_figures() -> None:
    """Close matplotlib's figures."""
    if _figures():
        sys.modules["matplotlib.pyplot"].close("all")


def _figures() -> list[int]:
    plotting = sys.modules.get("matplotlib.pyplot")
    return plotting.get_fignums() if plotting is not None else []


def _that_runs(tree: ast.Module) -> ast.Module:
    """Return a cell less the bodies of functions and methods that nothing in it names, and less settings that are made for good."""
    body = [s for s in tree.body if not _sets(s)]
    hollow = {s.name: s for s in body if isinstance(s, (*_DEFINING, ast.ClassDef))}
    left = [_hollow(s) if isinstance(s, (*_DEFINING, ast.ClassDef)) else s for s in body]
    while found := {name for name in hollow if name in _loaded(left)}:  # and what those name
        left += [hollow.pop(name) for name in sorted(found)]
    return ast.Module(left, [])


def _sets(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _SETTING


def _hollow(definition: ast.stmt) -> ast.stmt:
    """Return a function without its body, or a class without those of its methods: what runs where it is defined."""
    found = copy.copy(definition)
    if isinstance(found, _DEFINING):
        found.body = [ast.Pass(lineno=found.lineno, col_offset=found.col_offset)]
    elif isinstance(found, ast.ClassDef):
        found.body = [_hollow(s) if isinstance(s, _DEFINING) else s for s in found.body]
    return found


def _loaded(body: Iterable[ast.stmt]) -> set[str]:
    return {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


class _Look:
    """A search of the values that code uses, each visited once.

    Parameters
    ----------
    notebook
        The notebook's variables.
    known
        The packages that may be used.
    """

    def __init__(self, notebook: Mapping[str, Any], known: frozenset[str]) -> None:
        self._notebook, self._known = notebook, known
        self._seen: dict[int, Any] = {}
        self._room = _MOST

    def cell(self, tree: ast.Module, reads: set[str]) -> bool:
        """Return whether a cell only does things that a second run would not reveal."""
        waits = (ast.Await, ast.AsyncFor, ast.AsyncWith, ast.AsyncFunctionDef)
        if any(isinstance(n, waits) for n in ast.walk(tree)):
            return False
        code = compile(ast.fix_missing_locations(tree), "<cell>", "exec")
        imported = dict(_imported(tree))
        bound = (named(code, "STORE_NAME", "STORE_GLOBAL") - reads).difference(imported)
        own = {**dict.fromkeys(bound), **imported}
        changed = items.changed_roots(tree) | items.given_to_storing(tree, self._notebook)
        read = {n: self._notebook[n] for n in reads.difference(changed) if n in self._notebook}
        tables = {n: None for n, v in read.items() if door.is_table(v)}
        return self._code(code, self._notebook, {**own, **tables}, imports=False)

    def _code(self, code: types.CodeType, space: Mapping[str, Any], own: Mapping[str, Any], *, imports: bool) -> bool:
        """Return whether code only uses harmless functions and values; ``own`` names shadow those in ``space``."""
        used = named(code, "LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "STORE_ATTR", "IMPORT_FROM")
        loaded = named(code, "LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS")
        inner = (p for p in code.co_consts if isinstance(p, types.CodeType))
        modules = named(code, "IMPORT_NAME") if imports else [n for p in inner for n in named(p, "IMPORT_NAME")]
        return (
            (_DENIED | _ANNOTATIONS).isdisjoint(used)
            and _DENIED.isdisjoint(loaded)
            and all(map(self._is_known, modules))
            and all(self._name(name, space, own) for name in loaded)
        )

    def _name(self, name: str, space: Mapping[str, Any], own: Mapping[str, Any]) -> bool:
        """Return whether the value of a name is harmless; a name that is not bound yet is the code's own."""
        if name in _PYTHONS:
            return True
        for names in (own, space):
            if name in names:
                return self._value(names[name])
        return name in REPEATABLE or not hasattr(builtins, name) or _is_exception(getattr(builtins, name))

    def _value(self, value: Any) -> bool:
        """Return whether a value, and everything reachable from it, is data or a known function."""
        if isinstance(value, _DATA) or value is _SHARED or id(value) in self._seen:
            return True
        self._seen[id(value)] = value
        self._room -= 1
        if self._room < 0:
            return False
        if callable(value) or isinstance(value, types.ModuleType):
            return self._callable(value)
        if isinstance(value, np.ndarray):
            return not value.dtype.hasobject and self._is_known(type(value).__module__)
        kind, parts = type(value), list[Any](getattr(value, "__dict__", {}).values())
        if isinstance(value, _CONTAINERS):
            parts += [*value, *value.values()] if isinstance(value, dict) else value
        elif package_of(kind) in _HOLDING:
            return all(map(self._value, parts))
        elif not _is_users(kind):  # open files, figures, iterators: what these do is not taken back
            return False
        return (kind in _CONTAINERS or self._class(kind)) and all(map(self._value, [*parts, *_slots(value)]))

    def _callable(self, value: Any) -> bool:
        """Return whether a function, a class, another value that can be called, or a module has no effects."""
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, types.MethodType):
            return self._value(value.__self__) and self._value(value.__func__)
        if isinstance(value, types.BuiltinFunctionType) and not isinstance(value.__self__, types.ModuleType | None):
            return self._value(value.__self__) and value.__name__ not in _DENIED
        if isinstance(value, functools.partial):
            return all(map(self._value, (value.func, *value.args, *value.keywords.values())))
        if isinstance(value, types.GenericAlias):
            return all(map(self._value, (value.__origin__, *value.__args__)))
        if isinstance(value, np.vectorize):
            return self._value(value.pyfunc)
        if _is_users(type(value)):
            return self._class(type(value)) and all(map(self._value, [*vars(value).values(), *_slots(value)]))
        if isinstance(value, types.FunctionType) and not self._is_known(value.__module__ or ""):
            return self._function(value)
        module = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None) or ""
        return self._is_known(module) and getattr(value, "__name__", "") not in _DENIED

    def _function(self, function: types.FunctionType) -> bool:
        """Return whether a function of the notebook has no effects, by its code."""
        code = code_as_written(function)
        own = function.__module__ == "__main__"  # whose variables are lazy while the cell runs
        space = self._notebook if own else function.__globals__
        given = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        given += map(content, function.__closure__ or ())
        return self._code(code, space, {}, imports=True) and all(map(self._value, given))

    def _class(self, kind: type) -> bool:
        if self._is_known(module_of(kind)) or _is_exception(kind):
            return True
        if not _is_users(kind):
            return vars(builtins).get(kind.__name__) is kind and kind.__name__ in REPEATABLE
        return all(map(self._value, [*_parts_of(kind), *kind.__bases__]))

    def _is_known(self, module: str) -> bool:
        return module.partition(".")[0] in self._known


def _imported(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    """Yield the objects that a cell imports outside its functions, by name; an empty module for those not found."""
    nodes: list[ast.AST] = [*tree.body]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                yield alias.asname or whole, sys.modules.get(whole, _nothing)
        elif isinstance(node, ast.ImportFrom):
            module = sys.modules.get(node.module or "", _nothing)
            for alias in node.names:
                if alias.name == "*":  # of a known module, if anything of it is used
                    yield from ((name, getattr(module, name)) for name in _public(module))
                else:
                    inner = sys.modules.get(f"{node.module}.{alias.name}", _nothing)
                    yield alias.asname or alias.name, getattr(module, alias.name, inner)
        elif not isinstance(node, (*_DEFINING, ast.Lambda)):
            nodes += ast.iter_child_nodes(node)


_nothing = types.ModuleType("")


def _public(module: types.ModuleType) -> Iterable[str]:
    return getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]


def _slots(value: Any) -> Iterator[Any]:
    """Yield what stands in the slots of an object."""
    for kind in type(value).__mro__:
        for name, part in vars(kind).items():
            if isinstance(part, types.MemberDescriptorType) and _is_users(kind):
                yield getattr(value, name, None)


def _parts_of(kind: type) -> Iterator[Any]:
    """Yield what a class runs, and the data that it holds."""
    for name, part in vars(kind).items():
        special = name.startswith("__") and not isinstance(part, types.FunctionType | classmethod | staticmethod)
        if special or name in _LATER or name == "_abc_impl" or isinstance(part, _DESCRIBING):
            continue
        yield from (
            (part.fget, part.fset, part.fdel) if isinstance(part, property) else (getattr(part, "__func__", part),)
        )
    for field in vars(kind).get("__dataclass_fields__", {}).values():
        yield from (field.default, field.default_factory)


def _is_users(kind: type) -> bool:
    """Return whether the notebook defines a class."""
    return module_of(kind) == "__main__"


def _is_exception(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)
