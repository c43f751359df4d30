"""Programs as people write them, of many kinds, beside plain Python: values, classes, dtypes, texts, errors, and what arguments become."""

import contextlib
import io
import linecache
import math
import re
import types
import warnings
from pathlib import Path

import numpy as np
import pytest

import tensormagic as tm

# tests named elsewhere

TEXT = Path(__file__).with_name("programs_of_many_kinds.txt").read_text()
PROGRAMS = dict(re.findall(r"^### (\S+)\n(.*?)(?=^### |\Z)", TEXT, re.MULTILINE | re.DOTALL))
IMPORTS = """\
import collections, contextlib, copy, dataclasses, enum, functools, itertools, math, operator, random
from collections import *
from dataclasses import dataclass, field
from functools import *
import numpy as np
"""


def module(name, kind, text):
    made = types.ModuleType(f"{name}_{kind}")
    made.__dict__["__file__"] = file = f"<{name} {kind}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, made.__name__, made)
        exec(compile(text, file, "exec"), vars(made))
    return made


def same(one, other):
    """Hold a value against that of Python."""
    assert type(one).__qualname__ == type(other).__qualname__, (one, other)
    if isinstance(other, np.ndarray | np.generic):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        if other.dtype.kind in "fc":
            digits = {2: 2e-3, 4: 2e-6, 8: 1e-12 if other.dtype.kind == "f" else 2e-6}.get(other.dtype.itemsize, 1e-12)
            assert np.allclose(one, other, digits, 1e-14, equal_nan=True)
        else:
            assert np.array_equal(one, other)
    elif isinstance(other, float):
        assert one == other or math.isclose(one, other, rel_tol=1e-12) or (math.isnan(one) and math.isnan(other))
    elif isinstance(other, complex):
        assert np.isclose(one, other, 1e-12, 1e-14, equal_nan=True)
    elif isinstance(other, dict):
        assert [*map(str, one)] == [*map(str, other)]
        same([*one.values()], [*other.values()])
    elif isinstance(other, list | tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            same(a, b)
    elif isinstance(other, str | int | bytes | None):
        assert one == other
    elif hasattr(other, "__dict__") and not isinstance(other, type | types.FunctionType):
        same(vars(one), vars(other))


def outcome(f, given):
    args, options = given if isinstance(given, list) else (given, {})
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            result, error = f(*args, **options), None
        except Exception as raised:  # noqa: BLE001
            result, error = None, raised
    return result, error, (args, options), printed.getvalue()


@pytest.mark.parametrize("name", PROGRAMS)
def test_calls_are_those_of_python(name):
    plain, ours = (module(name, kind, IMPORTS + PROGRAMS[name]) for kind in ("plain", "captured"))
    vars(ours)["f"] = f = tm.tensor(ours.f)
    with tm.config.using(tier="numpy"), warnings.catch_warnings(action="ignore"):
        for given, given_again in 2 * [*zip(plain.calls, ours.calls, strict=True)]:
            expected, found = outcome(plain.f, given()), outcome(f, given_again())
            assert (found[1] is None) is (expected[1] is None), found[1] or expected[1]
            if expected[1] is not None:
                assert type(expected[1]).__name__ in {c.__name__ for c in type(found[1]).__mro__}
                assert str(found[1]) == str(expected[1])
            same(found[0], expected[0])
            same(found[2], expected[2])
            assert found[3] == expected[3]
