"""The signatures of CuPy's functions, from a table that CuPy itself has written: names, parameters, and dtypes of loops.

It says before anything runs what the library of a GPU can do; the fake device checks every call against it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import cache
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

import numpy as np

Loop = tuple[str, str]  # the dtypes of operands and of results, one letter each
TABLE = Path(__file__).with_name("signatures.txt")


@cache
def _table() -> Mapping[str, str]:
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return {name: rest for name, _, rest in (line.partition(" ") for line in lines if not line.startswith("#"))}


@cache
def loops(name: str) -> Sequence[Loop]:
    """Return the loops of a ufunc, or an empty sequence for any other name."""
    text = _table().get(name, "")
    if text.startswith("("):
        return ()
    pairs = (one.split("->") for one in text.split())
    return tuple((given, made) for given, made in pairs if "V" not in given)


@cache
def signature(name: str) -> Signature | None:
    """Return the signature of a function that is no ufunc, or None if there is none."""
    text = _table().get(name, "")
    return _read(text) if text.startswith("(") else None


def has(name: str) -> bool:
    """Return whether CuPy has a function of this name: ``exp``, ``linalg.svd``, ``special.erf``."""
    return name in _table()


def takes(name: str, dtypes: Sequence[np.dtype[Any]]) -> bool:
    """Return whether CuPy has a function for operands of these dtypes; functions that are no ufuncs are assumed to take all."""
    if signature(name) is not None:
        return True
    return any(_fits(given, dtypes) for given, _ in loops(name))


def _fits(given: str, dtypes: Sequence[np.dtype[Any]]) -> bool:
    return len(given) == len(dtypes) and all(np.can_cast(d, c) for d, c in zip(dtypes, given, strict=True))


def hold(name: str, args: Sequence[Any], options: Mapping[str, Any]) -> None:
    """Raise what CuPy would for a call: AttributeError for an unknown function, TypeError for wrong arguments."""
    if not has(name):
        raise AttributeError(f"CuPy has no {name}")
    found = signature(name)
    if found is not None:
        found.bind(*args, **options)
        return
    arity = len(loops(name)[0][0])
    if len(args) != arity or set(options) - {"out", "dtype"}:
        raise TypeError(f"{name} takes {arity} operands, not {len(args)} and {', '.join(options)}")
    dtypes = [a.dtype for a in args if hasattr(a, "dtype")]
    if len(dtypes) == arity and not takes(name, dtypes):
        raise TypeError(f"{name} has no loop for {', '.join(map(str, dtypes))}")


def _read(text: str) -> Signature:
    """Return the signature in a text such as ``(a, /, axis=None, *, keepdims=False, **kwargs)``."""
    arguments = ast.parse(f"def f{text}: ...").body[0].args  # type: ignore[attr-defined]
    plain = [*arguments.posonlyargs, *arguments.args]
    optional = len(plain) - len(arguments.defaults)
    made: list[Parameter] = []
    for k, one in enumerate(plain):
        kind = Parameter.POSITIONAL_ONLY if one in arguments.posonlyargs else Parameter.POSITIONAL_OR_KEYWORD
        made.append(Parameter(one.arg, kind, default=None if k >= optional else Parameter.empty))
    if arguments.vararg:
        made.append(Parameter(arguments.vararg.arg, Parameter.VAR_POSITIONAL))
    for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        made.append(Parameter(one.arg, Parameter.KEYWORD_ONLY, default=Parameter.empty if default is None else None))
    if arguments.kwarg:
        made.append(Parameter(arguments.kwarg.arg, Parameter.VAR_KEYWORD))
    return Signature(made)
