"""Classes of values in a search for what a function can read: which are examined further, which are constant, and which are neither."""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
import functools
import io
import operator
import pathlib
import re
import sys
import types
import uuid
import weakref
from collections import OrderedDict, defaultdict, deque
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tensormagic.capture.inputs.door import OPERATORS
from tensormagic.capture.python.builtin_facts import ELSEWHERE
from tensormagic.capture.staging.syntax.source import staged_code
from tensormagic.capture.staging.trials import attributes
from tensormagic.functions.reads.names_in_code import named
from tensormagic.ir.alive import once_for_each
from tensormagic.ir.modules import PURE_OF_VALUES, is_pure, is_users, module_of

LOUD = ELSEWHERE | {"globals", "locals", "id"}  # builtins that read more than their operands
STREAMS = frozenset({"stdin", "stdout", "stderr"})  # names of ``sys`` that code may rebind
_DRAW: Any = type(np.random.normal)
_MAKERS: tuple[Any, ...] = (
    np.random.default_rng, np.random.Generator, np.random.RandomState,
    np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64,
)  # fmt: skip
BY_NAME = frozenset({"getattr", "setattr", "delattr", "vars", "dir", "__dict__", "attrgetter", "__getattribute__"})
ASKING = frozenset({"hasattr", "getattr", "AttributeError", "Exception", "BaseException", "dir", "vars"})
TYPES = frozenset({"isinstance", "issubclass", "type", "hasattr", "callable", "getattr"})
WHOLE = frozenset({  # attributes by which code reads all of a namespace: its text, and comparisons
    "repr", "str", "ascii", "print", "format", "format_map", "__format__", "__mod__", "__repr__", "__str__",
    "__eq__", "__ne__", "eq", "ne", "mod", "contains", "index", "count", "remove", "__contains__",
})  # fmt: skip
_STAGED = {"__init__", "__call__", "__post_init__"}  # methods with other names that calls run
MAKING = frozenset(  # methods that run when a class is called
    {"__init__", "__new__", "__post_init__", "__init_subclass__", "__set_name__"}
)
REACHING = MAKING | {  # names by which code gets from an object to its class
    "type", "__class__", "__mro__", "replace", "__replace__", "__reduce__", "__reduce_ex__",
}  # fmt: skip
FILES = frozenset({  # NumPy functions that read data other than their operands
    "load", "loadtxt", "genfromtxt", "fromfile", "fromregex", "memmap", "open_memmap", "DataSource", "loadmat", "get_printoptions",
    "geterr", "geterrcall", "getbufsize",
})  # fmt: skip
BORING = frozenset({  # attributes of classes that no operation reads
    "__module__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__qualname__", "__dataclass_fields__",
    "__dataclass_params__", "__match_args__", "__orig_bases__", "__parameters__", "__abstractmethods__", "__slots__",
    "__firstlineno__", "__static_attributes__", "__annotate__", "__annotations_cache__", "__annotate_func__",
})  # fmt: skip
_ATOMS = {
    type(None), bool, int, float, complex, str, bytes, range, slice, type(...), type(NotImplemented),
}  # fmt: skip
BUFFERS = {io.StringIO, io.BytesIO}
_FIXED = {  # classes whose own instances never change; those of subclasses may
    dt.date, dt.datetime, dt.time, decimal.Decimal, pathlib.PosixPath, pathlib.WindowsPath, pathlib.PurePosixPath,
    pathlib.PureWindowsPath,
}  # fmt: skip
_CONSTANT: tuple[Any, ...] = (
    np.dtype, np.ufunc, re.Pattern, fractions.Fraction, dt.timedelta, dt.timezone, uuid.UUID, TypeVar,
    types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType,
    types.ClassMethodDescriptorType, types.GenericAlias, types.UnionType, types.CodeType,
    operator.itemgetter, operator.attrgetter, operator.methodcaller,
    type(vars(NamedTuple("Named", [("field", int)]))["field"]),
)  # fmt: skip
_PARTS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (functools.partial, ("func", "args", "keywords")),
    (functools.partialmethod, ("func", "args", "keywords")),
    ((staticmethod, classmethod), ("__func__",)),
    (types.MethodWrapperType, ("__self__",)),
)
_HOLDERS = {
    object, types.SimpleNamespace, list, dict, set, frozenset, tuple, deque, OrderedDict, defaultdict, int, float, str, bytes, complex,
}  # fmt: skip


_IN_PLACE = frozenset(name for name in OPERATORS if name.startswith("__i") and name != "__invert__")
CHANGING = _IN_PLACE | {
    "__next__",
    "__enter__",
    "__setitem__",
    "__delitem__",
}  # methods that change an object without a call in the code
_CALLED = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.MethodWrapperType, types.MethodDescriptorType,
    types.WrapperDescriptorType, type,
    staticmethod, classmethod,
)  # fmt: skip


def is_called(value: Any) -> bool:
    """Return whether a value is a function, a method or a class, which code only calls."""
    return isinstance(value, _CALLED)


def is_atom(value: Any) -> bool:
    """Return whether a value is compared by its bits, and not by identity."""
    return type(value) in _ATOMS or isinstance(value, np.generic)


def is_maker(value: Any) -> bool:
    """Return whether a function or class of ``np.random`` makes generators, which captured code refuses without a seed."""
    return any(value is maker for maker in _MAKERS)


def is_draw(value: Any) -> bool:
    """Return whether a value is a function of ``np.random`` that draws from NumPy's own generator."""
    return type(value) is _DRAW and type(value.__self__) is np.random.RandomState


def is_constant(value: Any) -> bool:
    """Return whether an object never changes: also a `weakref.ref`, of which a call reads nothing."""
    return value is weakref.ref or is_atom(value) or type(value) in _FIXED or isinstance(value, _CONSTANT)


def parts_of(value: Any) -> tuple[str, ...] | None:
    """Return the attributes of an object of Python's own through which code is reached, or None for another object."""
    if isinstance(value, property):
        return ("fget", "fset", "fdel")
    return next(
        (names for kind, names in _PARTS if type(value) in (kind if isinstance(kind, tuple) else (kind,))), None
    )


@lru_cache(maxsize=1024)
def _quiet(name: str) -> bool:
    return is_pure(name, PURE_OF_VALUES)


def is_quiet(module: Any) -> bool:
    """Return whether the functions of a module depend on their arguments alone."""
    return isinstance(module, str) and _quiet(module)


@lru_cache(maxsize=4096)
def is_librarys(filename: str) -> bool:
    """Return whether code is in a file of Python or of an installed package; False for code made of a text."""
    return filename.startswith("<frozen") or not (filename.startswith("<") or is_users(filename))


def is_users_module(module: types.ModuleType) -> bool:
    """Return whether a module is the user's."""
    return module.__name__ == "__main__" or attributes.is_users_module(module)


def is_users_class(kind: type) -> bool:
    """Return whether a class is the user's: of a file of theirs, or of a text."""
    if attributes.is_users_class(kind):
        return True
    return is_pythons(kind) and (module_of(kind) == "builtins" or module_of(kind) not in sys.modules)


def is_quiet_class(kind: type) -> bool:
    """Return whether a class is from a module whose classes depend on their arguments alone."""
    return is_quiet(module_of(kind)) and not is_users_class(kind)


def is_quiet_function(function: types.FunctionType) -> bool:
    """Return whether a function depends on its arguments alone, by the module of its globals (a wrapper claims that of what it wraps)."""
    return is_librarys(function.__code__.co_filename) and is_quiet(function.__globals__.get("__name__"))


def is_unstaged(function: types.FunctionType) -> bool:
    """Return whether Python runs a function of the user's as it is written: an operator of a class, or code without a source."""
    name = function.__code__.co_name
    if name.startswith("__") and name.endswith("__"):
        made = function.__code__.co_filename == "<string>" and TYPES.isdisjoint(named(function.__code__).reads)
        return name not in _STAGED and not made  # for example made by `dataclass`
    return staged_code(function.__code__) is None


@once_for_each
def _pythons(kind: type) -> bool:
    own = (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)
    inside = vars(kind)
    plain = not isinstance(inside.get("__new__"), types.BuiltinFunctionType)
    return plain and not any(
        isinstance(v, own) and v.__objclass__ is kind for n, v in inside.items() if n != "__hash__"
    )


def is_pythons(kind: type) -> bool:
    """Return whether a class is written in Python, so that its objects hide no state."""
    return _pythons(kind)


def is_followed(kind: type) -> bool:
    """Return whether objects of a class hide no state: all its base classes are Python's, or plain containers."""
    for base in kind.__mro__:
        if base not in _HOLDERS and not (is_pythons(base) and (is_users_class(base) or is_quiet(base.__module__))):
            return False
    return True


@once_for_each
def is_partly_librarys(kind: type) -> bool:
    """Return whether methods of a class come from a library and are not examined: these may read any attribute."""
    return any(base not in _HOLDERS and is_quiet_class(base) for base in kind.__mro__)
