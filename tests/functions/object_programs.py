"""Programs that read, store, give back and keep what objects hold, against Python: of places, values, uses and changes between calls.

Both are run, and compared call by call: values, dtypes, shapes and classes of results, errors, what is left in all objects, and
which of all that is one object or shares memory.
"""

from __future__ import annotations

import itertools
import linecache
import random
import sys
import types
import warnings
from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

import numpy as np

import tensormagic as tm
from tensormagic.ir.errors import CaptureError

_numbers = itertools.count()

VALUES = {  # what is held at first, then, and how it is changed in place
    "int": ("2", "3", ""), "bool": ("True", "False", ""), "float": ("0.5", "2.0", ""), "zero": ("-0.0", "0.0", ""),
    "complex": ("1+2j", "2-1j", ""), "float32": ("np.float32(0.5)", "np.float32(3)", ""), "int64": ("np.int64(2)", "np.int64(1)", ""),
    "array without axes": ("np.array(0.5)", "np.array(2.0)", "V[...] = 3.0"),
    "array": ("np.array([1.0, 2.0, 3.0])", "np.array([3.0, 1.0, 2.0])", "V[0] = 5.0"),
    "array of integers": ("np.array([1, 2, 0])", "np.array([0, 1, 1])", "V[1] = 0"),
    "matrix": ("np.arange(6.0).reshape(2, 3)", "np.ones((2, 3))", "V[1] = 5.0"),
    "array of another dtype": ("np.ones(3, np.float32)", "np.array([1, 2, 3])", "V[0] = 9"),
    "array of another shape": ("np.ones(3)", "np.ones(2)", "V[0] = 9"),
    "list": ("[1.0, 2.0]", "[3.0]", "V.append(4.0)"), "list of integers": ("[1, 2]", "[3, 0, 1]", "V[0] = 2"),
    "list of arrays": ("[np.ones(3), np.zeros(3)]", "[np.zeros(3)]", "V[0] = np.full(3, 7.0)"),
    "tuple": ("(1.0, 2)", "(2, 1.0)", ""), "tuple of arrays": ("(np.ones(3), 2.0)", "(np.zeros(3), 1.0)", "V[0][0] = 4.0"),
    "dictionary": ("{'a': 1.0, 'b': 2}", "{'a': 3, 'b': 1.0}", "V['a'] = 9.0"),
    "dictionary of arrays": ("{'a': np.ones(3), 'b': np.zeros(3)}", "{'a': np.zeros(3)}", "V['c'] = np.ones(3)"),
    "object": ("Box(np.ones(3))", "Box(np.zeros(3))", "V.w = np.full(3, 2.0)"), "object with a number": ("Box(0.5)", "Box(2)", "V.w = 4.0"),
    "dataclass": ("Data(np.ones(3))", "Data(np.zeros(3))", "V.w[0] = 2.0"),
}  # fmt: skip
_PARTS = {"list": "@[0]", "tuple": "@[0]", "dictionary": "@['a']", "object": "@.w", "dataclass": "@.w"}

PLACES = {  # definitions, of a method its class; the expression; how another value is put there; the arguments beside x
    "argument": ("v = NEW\ndef f(x, s):\nBODY", "s", "v = NEW", "v", "v"),
    "attribute": ("o = Box(NEW)\ndef f(x, o):\nBODY", "o.w", "o.w = NEW", "o", "o.w"),
    "nested attribute": ("o = Box(Box(NEW))\ndef f(x, o):\nBODY", "o.w.w", "o.w.w = NEW", "o", "o.w.w"),
    "self": ("METHOD\no = M(); f = o.f", "self.p", "o.p = NEW", "", "o.p"),
    "property": ("PROPERTY\no = M(); f = o.f", "self.p", "o._p = NEW", "", "o.p"),
    "slot": ("SLOT\no = M(); f = o.f", "self.p", "o.p = NEW", "", "o.p"),
    "attribute of the class": ("class M:\n    p = NEW\n    def f(self, x):\n    BODY\no = M(); f = o.f", "self.p", "M.p = NEW", "", "M.p"),
    "item of an argument": ("d = {'k': NEW, 'z': 1.0}\ndef f(x, d):\nBODY", "d['k']", "d['k'] = NEW", "d", "d['k']"),
    "item of a list": ("l = [1.0, NEW]\ndef f(x, l):\nBODY", "l[1]", "l[1] = NEW", "l", "l[1]"),
    "item of an attribute": ("DICTIONARY\no = M(); f = o.f", "self.d['k']", "o.d['k'] = NEW", "", "o.d['k']"),
    "global": ("G = NEW\ndef f(x):\nBODY", "G", "G = NEW", "", "G"),
    "item of a global": ("G = {'k': NEW}\ndef f(x):\nBODY", "G['k']", "G['k'] = NEW", "", "G['k']"),
    "module": ("mod = types.ModuleType('mod'); mod.K = NEW\ndef f(x):\nBODY", "mod.K", "mod.K = NEW", "", "mod.K"),
    "default": ("def f(x, v=NEW):\nBODY", "v", "f.__defaults__ = (NEW,)", "", "f.__defaults__[0]"),
}  # fmt: skip
_METHOD = "    def __init__(self): self.p = NEW\n    def f(self, x):\n    BODY"
_CLASSES = {
    "METHOD": f"class M:\n{_METHOD}",
    "SLOT": f"class M:\n    __slots__ = ('p',)\n{_METHOD}",
    "DICTIONARY": f"class M:\n{_METHOD}".replace("self.p = NEW", "self.d = {'k': NEW}"),
    "PROPERTY": "class M:\n    def __init__(self): self._p = NEW\n    @property\n    def p(self): return self._p\n"
    "    @p.setter\n    def p(self, v): self._p = v\n    def f(self, x):\n    BODY",
}

ANY = [  # with % for a number or an array of what @ is
    "return x * %", "return %", "return @", "return %, %, x", "return (x * %).sum()", "% += 1; return x + %", "% *= 2; return %",
    "% = % * 2; return x.sum()", "% = x * 2; return x", "% = x; return x.sum()", "% = x[1:]; return x.sum()", "% = float(x[0]); return x",
    "% = x.sum(); return %", "old = %; % = x; return old", "return x * 2 if np.all(% == 1) else x - 1", "return [%, x, 1], {'n': %}",
    "return x[int(np.max(%).real) % 2]", "s = 0\nfor i in range(int(np.max(%).real)):\n    s += x\nreturn s",
    "k = 0\nwhile k < np.max(%).real:\n    k += 1\nreturn k, x", "return % == x", "return max(np.max(%), x.max(), 1)",
    "return max(np.max(%), 2), min(np.max(%), 1.5)", "return np.zeros_like(%) + x", "x[:2] = 7.0; return x",
    "if isinstance(%, float): return x + 1\nreturn x + 2", "return type(%).__name__, x", "return x if @ is None else x * 2",
]  # fmt: skip
ARRAYS = ["return %[1:]", "return %.T", "y = %.copy(); y[...] = 0; return y", "y = %; y[0] = x[0]; return y, %",
          "return %[0]", "return %[0] + %[-1]", "%[0] = x[0]; return %.sum()", "return %, %[::2], %.reshape(-1)"]  # fmt: skip
LISTS = ["@.append(x * 2); return len(@)", "@.append(float(x.sum())); return @", "return sum(v * 1.0 for v in @)", "return @[1:]",
         "@[0] = x; return @",
         "@[:] = [v + 1 for v in @]; return x", "for p in @: p += 1.0\nreturn x", "return [v for v in reversed(@)]"]  # fmt: skip
DICTS = ["@['n'] = x; return sorted(@)", "return @.get('a', 0.0), @.get('q', 1)", "return @.pop('a'), x", "@.update(a=x.sum()); return @",
         "for k in @: @[k] = @[k] * 2\nreturn x", "for k in @: @[k] -= 1\nreturn @"]  # fmt: skip
OBJECTS = ["@.n = x.sum(); return @", "@.n = getattr(@, 'n', 0) + 1; return x * @.n"]

HEAD = """
import dataclasses, types
from contextlib import suppress
import numpy as np
class Box:
    def __init__(self, w): self.w = w
@dataclasses.dataclass
class Data:
    w: object
"""


def draw(rng: random.Random) -> tuple[str, str]:
    """What a program is made of, and its text."""
    place, kind = rng.choice(list(PLACES)), rng.choice(list(VALUES))
    first, then, inside = VALUES[kind]
    uses = [*ANY, *(ARRAYS if "array" in kind or kind in {"matrix", "object", "dataclass"} else [])]
    for word, more in (("list", LISTS), ("dict", DICTS), ("object", OBJECTS), ("data", OBJECTS)):
        uses += more * 3 if kind.startswith(word) else []
    use = rng.choice(uses)
    defined, expression, changed, beside, outside = PLACES[place]
    part = next((p for word, p in _PARTS.items() if kind.startswith(word)), "@")
    lines = (
        use.replace("; ", "\n")
        .replace("% 2]", "$ 2]")
        .replace("%", part)
        .replace("$", "%")
        .replace("@", expression)
        .splitlines()
    )
    if place == "global" and any(line.startswith(("G =", "G +", "G *")) for line in lines):
        lines = ["global G", *lines]
    for name, text in _CLASSES.items():
        defined = defined.replace(name, text)
    body = "\n".join(f"    {line}" for line in lines)
    defined = defined.replace("    BODY", body.replace("\n", "\n    ").replace("    ", "        ", 1)).replace(
        "BODY", body
    )
    changes = {
        "replaced": changed.replace("NEW", then),
        "put back": changed.replace("NEW", first),
        "changed inside": f"with suppress(Exception): {inside.replace('V', outside)}" if inside else "",
        "the argument": changed.replace("NEW", "x"),
        "another x": "x = np.array([-1.0, 0.5, 2.0])",
    }  # fmt: skip
    text = [HEAD, defined.replace("NEW", first), "g = T(f)", "x = np.array([1.0, 2.0, 4.0])"]
    chosen = [rng.choice(list(changes)) for _ in range(3)]
    call = f"attempt(g, x{', ' * bool(beside)}{beside})"
    for change in ("", *(changes[c] for c in chosen)):
        text += [change, call]
    return f"{place}, {kind}, {use!r}, {', '.join(chosen)}", "\n".join(text)


class State:
    """What is there after a call: a tree of plain values, which objects are one, and which arrays share memory."""

    def __init__(self, roots: Iterable[tuple[str, Any]]) -> None:
        self._found: dict[int, tuple[Any, list[str], Any]] = {}
        self.tree = [(name, self._of(value, name)) for name, value in roots]
        self.same = sorted(tuple(sorted(set(p))) for _, p, _ in self._found.values() if len(set(p)) > 1)
        arrays = [(p[0], v) for v, p, _ in self._found.values() if isinstance(v, np.ndarray)]
        self.shared = sorted((p, q) for (p, a), (q, b) in itertools.combinations(arrays, 2) if np.shares_memory(a, b))

    def _of(self, value: Any, path: str) -> Any:
        kind = type(value).__name__
        if value is None or isinstance(value, bool | int | str | bytes):
            return kind, value
        if isinstance(value, np.generic | float | complex):
            return kind, repr(value) if isinstance(value, np.bool_ | np.integer) else complex(value)
        if isinstance(value, Enum):
            return kind, value.name
        if callable(value) and not hasattr(value, "__dict__"):
            return kind
        known = self._found.get(id(value))
        if known is not None:
            known[1].append(path)
            return known[2]
        parts: list[Any] = []
        if not isinstance(value, tuple):
            self._found[id(value)] = value, [path], parts
        parts.append(kind)
        if isinstance(value, np.ndarray):
            parts += [str(value.dtype), value.shape, value.flags.writeable, value.astype(complex).tolist()]
            return parts
        inner = (
            list(value.items())
            if isinstance(value, dict)
            else list(enumerate(value))
            if isinstance(value, list | tuple | deque)
            else []
        )
        slots = [n for c in type(value).__mro__ for n in vars(c).get("__slots__", ()) if hasattr(value, n)]
        inner += [*sorted(getattr(value, "__dict__", {}).items()), *((n, getattr(value, n)) for n in slots)]
        parts += [(key, self._of(part, f"{path}.{key}")) for key, part in inner]
        return parts


def run(text: str, wrap: Callable[[Any], Any]) -> list[Any]:
    """The states after each call of a program, and the refusal that it ends with."""
    name = f"objects_{next(_numbers)}"
    linecache.cache[f"<{name}>"] = len(text), None, text.splitlines(keepends=True), f"<{name}>"
    own = types.ModuleType(name)
    own.__file__ = f"{name}.py"  # a module of the user's
    sys.modules[name] = own
    space, found = vars(own), list[Any]()
    given = {"T": wrap, "tm": tm, **dict.fromkeys(("f", "g", "attempt", "__warningregistry__", "__builtins__"))} | dict(
        space
    )

    def attempt(function: Any, *args: Any) -> None:
        try:
            result = function(*args)
        except CaptureError:
            raise
        except Exception as error:  # noqa: BLE001 (as Python's)
            kinds = [k for k in type(error).__mro__ if k.__module__.partition(".")[0] != "tensormagic"]
            result = kinds[0].__name__, str(error).partition("\n")[0]
        held = [
            (n, v)
            for n, v in sorted(space.items())
            if n not in given and not isinstance(v, type | types.ModuleType | types.FunctionType)
        ]
        held += [
            (f"{n}.p", v.p)
            for n, v in space.items()
            if isinstance(v, type) and "p" in vars(v) and not isinstance(v.p, property | types.MemberDescriptorType)
        ]
        held += [
            (f"{n}.{k}", w)
            for n, v in space.items()
            if isinstance(v, types.ModuleType) and n == "mod"
            for k, w in vars(v).items()
            if k == "K"
        ]
        found.append(State([("result", result), *held]))

    space |= {"T": wrap, "tm": tm, "attempt": attempt}
    try:
        with warnings.catch_warnings(action="ignore"):
            exec(compile(text, f"<{name}>", "exec"), space)
    except CaptureError as error:
        found.append(error)
    finally:
        del sys.modules[name]
    return found


def fault(text: str) -> str:
    """Where the captured function differs from Python; empty where it does not, ``refused: `` with the reason where it is refused."""
    for number, (expected, found) in enumerate(zip(run(text, lambda f: f), run(text, tm.tensor), strict=False)):
        if isinstance(found, CaptureError):
            return f"refused: {found}"
        for what in ("tree", "same", "shared"):
            one, other = getattr(expected, what), getattr(found, what)
            if not _close(one, other):
                return f"call {number + 1}, {what}: Python {one}, captured {other}"
    return ""


def _close(one: Any, other: Any) -> bool:
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_close, one, other))
    if isinstance(one, complex) and isinstance(other, complex):
        return one == other or abs(one - other) <= 1e-9 * abs(one) or (one != one and other != other)  # noqa: PLR0124 (nan)
    return type(one) is type(other) and bool(one == other)


__all__ = ["draw", "fault", "run"]
