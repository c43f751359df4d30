"""Programs that read Python's state, change it between calls, and read it again: of holders, values, changes, readers and functions.

A program defines ``num()``, a number that the state gives, and ``change()``. Python runs one copy of it and says what the
captured function of the other has to give, call by call.
"""

from __future__ import annotations

import linecache
import random
import re
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

import tensormagic as tm
from tensormagic.capture.cell import compile_cell
from tensormagic.functions.cells import of_cell
from tensormagic.ir.errors import TensorError

X = np.array([1.0, 2.0, 3.0])
_numbers = count(1)

VALUES = {  # what is held: first, then, and the number that it gives
    "int": ("2", "3", "{}"),
    "float": ("0.5", "0.25", "{}"),
    "zero": ("0.0", "-0.0", "(5.0 if str({})[0] == '-' else 7.0)"),
    "bool": ("True", "False", "(2 if {} else 3)"),
    "equal": ("1", "True", "(2 if type({}) is int else 3)"),
    "equal float": ("1", "1.0", "(2 if type({}) is int else 3)"),
    "text": ("'ab'", "'abc'", "len({})"),
    "bytes": ("b'ab'", "b'abc'", "len({})"),
    "tuple": ("(2, 5)", "(3, 5)", "{}[0]"),
    "equal tuple": ("(1, 5)", "(True, 5)", "(2 if type({}[0]) is int else 3)"),
    "list": ("[2, 5]", "[3, 5]", "{}[0]"),
    "nested": ("{'k': [2, (5,)]}", "{'k': [3, (5,)]}", "{}['k'][0]"),
    "order": ("{'a': 2, 'b': 3}", "{'b': 3, 'a': 2}", "next(iter({}.values()))"),
    "keys": ("{1: 2}", "{True: 2}", "(2 if type(list({})[0]) is int else 3)"),
    "set": ("{1, 2}", "{1, 2, 3}", "len({})"),
    "frozenset": ("frozenset({1, 2})", "frozenset({1, 2, 3})", "len({})"),
    "range": ("range(2)", "range(3)", "len({})"),
    "scalar": ("np.float32(0.5)", "np.float32(0.25)", "float({})"),
    "whole scalar": ("np.int64(2)", "np.int8(3)", "int({})"),
    "array": ("np.array([2.0, 5.0])", "np.array([3.0, 5.0])", "float({}[0])"),
    "function": ("(lambda: 2)", "(lambda: 3)", "{}()"),
    "method": ("Small(2).get", "Small(3).get", "{}()"),
    "partial": ("functools.partial(max, 2)", "functools.partial(max, 3)", "{}(1)"),
    "object": ("Small(2)", "Small(3)", "{}.v"),
    "equal object": ("Same(2)", "Same(3)", "{}.v"),
    "class": ("Two", "Three", "{}.v"),
    "none": ("None", "3", "(2 if {} is None else 3)"),
    "enum": ("Colour.RED", "Colour.BLUE", "{}.value"),
    "fraction": ("Fraction(1, 2)", "Fraction(1, 4)", "float({})"),
    "decimal": ("Decimal('0.5')", "Decimal('0.25')", "float({})"),
    "date": ("datetime.date(2020, 1, 2)", "datetime.date(2020, 1, 3)", "{}.day"),
    "point": ("Point(2, 5)", "Point(3, 5)", "{}.a"),
    "deque": ("deque([2])", "deque([3])", "{}[0]"),
}

INSIDE = {  # what is changed in what is held: statements over the expression, by value
    "list": "{}[0] = 3",
    "nested": "{}['k'][0] = 3",
    "set": "{}.add(9)",
    "array": "{}[0] = 3.0",
    "object": "{}.v = 3",
    "equal object": "{}.v = 3",
    "class": "{}.v = 9",
    "deque": "{}.appendleft(3)",
    "order": "{}.update(a=9)",
}

HOLDERS = {  # how a value is held: definitions, the expression, and how another is put there
    "global": ("S = @", "S", "global S; S = @"),
    "attribute": ("S = Plain(); S.v = @", "S.v", "S.v = @"),
    "nested attribute": ("S = Plain(); S.w = Plain(); S.w.v = @", "S.w.v", "S.w.v = @"),
    "object replaced": ("S = Plain(); S.w = Plain(); S.w.v = @", "S.w.v", "S.w = Plain(); S.w.v = @"),
    "dictionary of an object": ("S = Plain(); S.v = @", "S.v", "S.__dict__ = {'v': @}"),
    "slots": ("S = Slots(); S.v = @", "S.v", "S.v = @"),
    "namespace": ("S = types.SimpleNamespace(v=@)", "S.v", "S.v = @"),
    "dataclass": ("S = Data(@)", "S.v", "S.v = @"),
    "frozen dataclass": ("S = Frozen(@)", "S.v", "object.__setattr__(S, 'v', @)"),
    "dataclass replaced": ("S = Frozen(@)", "S.v", "global S; S = Frozen(@)"),
    "named tuple": ("S = Point(@, 0)", "S.a", "global S; S = S._replace(a=@)"),
    "class attribute": ("class S(Plain):\n    v = @", "S.v", "S.v = @"),
    "attribute of the class": ("class K(Plain):\n    v = @\nS = K()", "S.v", "K.v = @"),
    "shadowed": ("class K(Plain):\n    v = @\nS = K()", "S.v", "S.v = @"),
    "inherited": ("class B(Plain):\n    v = @\nclass K(B): pass\nS = K()", "S.v", "B.v = @"),
    "overridden": ("class B(Plain):\n    v = @\nclass K(B): pass\nS = K()", "S.v", "K.v = @"),
    "other class": (
        "class A(Plain):\n    v = @\nclass B(Plain):\n    pass\nS = A()",
        "S.v",
        "B.v = @; S.__class__ = B",
    ),
    "class method": (
        "class K(Plain):\n    v = @\n    @classmethod\n    def get(cls): return cls.v",
        "K.get()",
        "K.v = @",
    ),
    "static method": (
        "T = @\nclass K(Plain):\n    @staticmethod\n    def get(): return T",
        "K.get()",
        "global T; T = @",
    ),
    "method": ("class K(Plain):\n    def get(self): return self.v\nS = K(); S.v = @", "S.get()", "S.v = @"),
    "method replaced": (
        "class K(Plain):\n    def get(self): return @\nS = K()",
        "S.get()",
        "K.get = lambda self: @",
    ),
    "method of the object": (
        "class K(Plain):\n    def get(self): return @\nS = K()",
        "S.get()",
        "S.get = lambda: @",
    ),
    "property": ("class K(Plain):\n    get = property(lambda self: self.v)\nS = K(); S.v = @", "S.get", "S.v = @"),
    "property of a global": (
        "T = @\nclass K(Plain):\n    get = property(lambda self: T)\nS = K()",
        "S.get",
        "global T; T = @",
    ),
    "getattr": (
        "class K(Plain):\n    def __getattr__(self, n): return self.d[n]\nS = K(); S.d = {'v': @}",
        "S.v",
        "S.d['v'] = @",
    ),
    "descriptor": (
        (
            "class D:\n    def __init__(self, v): self.h = v\n    def __get__(self, o, t=None): return self.h\n"
            "class K(Plain):\n    v = D(@)\nS = K()"
        ),
        "S.v",
        "vars(K)['v'].h = @",
    ),
    "called object": ("class K(Plain):\n    def __call__(self): return self.v\nS = K(); S.v = @", "S()", "S.v = @"),
    "indexed object": (
        "class K(Plain):\n    def __getitem__(self, k): return self.v\nS = K(); S.v = @",
        "S[0]",
        "S.v = @",
    ),
    "iterated object": (
        "class K(Plain):\n    def __iter__(self): yield self.v\nS = K(); S.v = @",
        "list(S)[0]",
        "S.v = @",
    ),
    "subclass of dict": ("class K(dict): pass\nS = K(v=@)", "S['v']", "S['v'] = @"),
    "subclass of list": ("class K(list): pass\nS = K([@])", "S[0]", "S[0] = @"),
    "dictionary": ("S = {'v': @}", "S['v']", "S['v'] = @"),
    "dictionary's get": ("S = {'v': @}", "S.get('v')", "S['v'] = @"),
    "list": ("S = [0, @]", "S[1]", "S[1] = @"),
    "last of a list": ("S = [@]", "S[-1]", "S.append(@)"),
    "tuple": ("S = (0, Plain()); S[1].v = @", "S[1].v", "S[1].v = @"),
    "deque": ("S = deque([@])", "S[0]", "S[0] = @"),
    "default dictionary": ("S = defaultdict(lambda: T); T = @", "S.default_factory()", "global T; T = @"),
    "module": ("S = other; S.v = @", "S.v", "S.v = @"),
    "dictionary of a module": ("S = other; S.opt = {'v': @}", "S.opt['v']", "S.opt['v'] = @"),
    "imported in the function": (
        "other.v = @\ndef get():\n    import STATE\n    return STATE.v",
        "get()",
        "other.v = @",
    ),
    "from a module": ("other.v = @\ndef get():\n    from STATE import v\n    return v", "get()", "other.v = @"),
    "function of a module": ("exec('def h(): return v', vars(other)); other.v = @", "other.h()", "other.v = @"),
    "function of a module replaced": ("other.h = lambda: @", "other.h()", "other.h = lambda: @"),
    "closure": (
        (
            "def make(v):\n    def get(): return v\n    def put(new):\n        nonlocal v\n        v = new\n"
            "    return get, put\nget, put = make(@)"
        ),
        "get()",
        "put(@)",
    ),
    "default": ("def get(v=@): return v", "get()", "get.__defaults__ = (@,)"),
    "keyword default": ("def get(*, v=@): return v", "get()", "get.__kwdefaults__ = {'v': @}"),
    "keyword default changed": ("def get(*, v=@): return v", "get()", "get.__kwdefaults__['v'] = @"),
    "list as default": ("def get(v=[@]): return v[0]", "get()", "get.__defaults__[0][0] = @"),
    "code": ("def get(): return @\ndef other_get(): return #", "get()", "get.__code__ = other_get.__code__"),
    "attribute of a function": ("def get(): return get.v\nget.v = @", "get()", "get.v = @"),
    "partial": ("S = functools.partial(lambda v: v, @)", "S()", "global S; S = functools.partial(lambda v: v, @)"),
    "argument of a partial": ("T = [@]; S = functools.partial(lambda v: v[0], T)", "S()", "T[0] = @"),
    "lambda in a list": ("T = @; S = [lambda: T]", "S[0]()", "global T; T = @"),
    "decorated": (
        "def deco(f):\n    @functools.wraps(f)\n    def inner(*a): return f(*a)\n    return inner\nT = @\n@deco\ndef get(): return T",
        "get()",
        "global T; T = @",
    ),
    "captured function": ("T = @\ndef get(): return T\nS = get", "S()", "global T; T = @"),
    "getattr by name": ("S = Plain(); S.v = @; N = ['v']", "getattr(S, N[0])", "S.v = @"),
    "getattr of another name": ("S = Plain(); S.v = @; S.w = #; N = ['v']", "getattr(S, N[0])", "N[0] = 'w'"),
    "attribute that comes": ("S = Plain(); D = @", "getattr(S, 'v', D)", "S.v = @"),
    "attrgetter": ("S = Plain(); S.w = Plain(); S.w.v = @", "operator.attrgetter('w.v')(S)", "S.w.v = @"),
    "vars": ("S = Plain(); S.v = @", "vars(S)['v']", "S.v = @"),
    "format": ("S = Plain(); S.v = @", "S.v", "S.v = @"),
    "globals": ("S = @", "globals()['S']", "global S; S = @"),
    "eval": ("S = @", "eval('S')", "global S; S = @"),
    "builtin shadowed": ("T = @\ndef get(): return abs if 'abs' in SEEN else T\nSEEN = []", "get()", "global T; T = @"),
    "iterator": ("S = itertools.cycle([@, #])", "next(S)", "pass"),
    "generator": ("def gen():\n    while True:\n        yield @\n        yield #\nS = gen()", "next(S)", "pass"),
    "cached": ("T = @\n@functools.lru_cache\ndef get(): return T", "get()", "global T; T = @; get.cache_clear()"),
    "context variable": ("S = contextvars.ContextVar('s'); S.set(@)", "S.get()", "S.set(@)"),
    "weak reference": ("T = Plain(); T.v = @; S = weakref.ref(T)", "S().v", "T.v = @"),
    "meta class": (
        "class M(type):\n    @property\n    def v(cls): return T\nT = @\nclass K(metaclass=M): pass",
        "K.v",
        "global T; T = @",
    ),
    "super": (
        "class B(Plain):\n    def get(self): return self.v\nclass K(B):\n    def get(self): return super().get()\nS = K(); S.v = @",
        "S.get()",
        "S.v = @",
    ),
    "view of a dictionary": ("T = {'v': @}; S = types.MappingProxyType(T)", "S['v']", "T['v'] = @"),
    "chain of maps": ("T = {'v': @}; S = collections.ChainMap({}, T)", "S['v']", "T['v'] = @"),
}

NUMBERS = {  # state that is a number of itself: definitions, expression, change
    "random.random": ("random.seed(3)", "random.random()", "random.seed(4)"),
    "random.Random": ("R = random.Random(3)", "R.random()", "R.seed(4)"),
    "randint": ("random.seed(3)", "random.randint(0, 9)", "pass"),
    "clock": ("time = Clock()", "time.perf_counter()", "pass"),
    "environment": ("os.environ['TENSOR_SET'] = '2'", "int(os.environ['TENSOR_SET'])", "os.environ['TENSOR_SET'] = '3'"),
    "getenv": ("os.environ['TENSOR_SET'] = '2'", "int(os.getenv('TENSOR_SET'))", "os.environ['TENSOR_SET'] = '3'"),
    "counter": ("C = itertools.count(2)", "next(C)", "pass"),
    "length": ("L = [1, 2]", "len(L)", "L.append(3)"),
    "counted calls": ("C = Plain(); C.n = 0\ndef tick():\n    C.n += 1\n    return C.n", "tick()", "pass"),
    "popped": ("L = [5, 4, 3, 2, 1, 0, 1, 2]", "L.pop()", "pass"),
    "recursion limit": ("L = 1000", "L + sys.flags.optimize", "global L; L = 1001"),
}  # fmt: skip

READERS = {  # who reads: definitions around the expression, and what gives the number
    "the function": ("", "@"),
    "a helper": ("def helper():\n    return @", "helper()"),
    "a helper of a helper": ("def inner():\n    return @\ndef helper():\n    return inner()", "helper()"),
    "a lambda in a dictionary": ("helpers = {'h': lambda: @}", "helpers['h']()"),
    "a method": ("class Reader:\n    def read(self):\n        return @\nreader = Reader()", "reader.read()"),
    "a called object": ("class Reader:\n    def __call__(self):\n        return @\nreader = Reader()", "reader()"),
    "a partial": ("helper = functools.partial(lambda k: @, 1)", "helper()"),
    "a closure": ("def make():\n    def inner():\n        return @\n    return inner\nhelper = make()", "helper()"),
    "a comprehension": ("", "[@ for _ in range(1)][0]"),
    "map": ("", "list(map(lambda k: @, [1]))[0]"),
    "reduce": ("", "functools.reduce(lambda a, b: @, [1, 2])"),
    "a sort key": ("", "(max([0], key=lambda k: @) + @)"),
    "an operator": ("class Op:\n    def __add__(self, k):\n        return @\nop = Op()", "(op + 1)"),
    "a property": (
        "class Reader:\n    @property\n    def read(self):\n        return @\nreader = Reader()",
        "reader.read",
    ),
    "a try": ("def helper():\n    try:\n        return @\n    except KeyError:\n        return 0", "helper()"),
}

FUNCTIONS = {  # what is captured, and what it gives for a number
    "tensor": ("F = tm.tensor(f)", "plain"),
    "method tensor": ("class Owner:\n    def f(self, x):\n        return f(x)\nF = tm.tensor(Owner().f)", "plain"),
    "grad": ("F = tm.grad(lambda x: np.sum(f(x)))", "slope"),
    "grad of captured": ("TF = tm.tensor(f)\nF = tm.grad(lambda x: np.sum(TF(x)))", "slope"),
    "value_and_grad": ("V = tm.value_and_grad(lambda x: np.sum(f(x)))\nF = lambda x: V(x)[1]", "slope"),
    "vmap": ("F = tm.vmap(f)", "plain"),
    "jacobian": ("J = tm.jacobian(f)\nF = lambda x: np.diagonal(J(x))", "slope"),
    "jvp": ("F = lambda x: tm.jvp(f, (x,), (np.ones(3),))[1]", "slope"),
    "value of vjp": ("F = lambda x: tm.vjp(f, x)[0]", "plain"),
    "vjp": ("F = lambda x: tm.vjp(f, x)[1](np.ones(3))[0]", "slope"),
    "linearize": ("F = lambda x: tm.linearize(f, x)[1](np.ones(3))", "slope"),
    "sparse jacobian": ("J = tm.jacobian(f, sparse=True)\nF = lambda x: J(x).toarray().diagonal()", "slope"),
    "custom_gradient": (
        "G = tm.custom_gradient(lambda x: (f(x), lambda c: c))\nF = tm.tensor(lambda x: G(x))",
        "plain",
    ),
    "cond": ("F = tm.tensor(lambda x: tm.cond(x[0] > 0, f, lambda x: x, x))", "plain"),
    "scan": ("F = tm.tensor(lambda x: tm.scan(lambda c, v: (c, f(v)), 0.0, x)[1])", "loop"),
    "while_loop": (
        "F = tm.tensor(lambda x: tm.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, f(x) * 1.0), (0, x))[1])",
        "loop",
    ),
    "checkpoint": ("F = tm.checkpoint(f)", "plain"),
    "argument": ("G = tm.tensor(fs)\nF = lambda x: G(x, globals().get('S'))", "plain"),
    "argument of grad": ("G = tm.grad(lambda x, S: np.sum(fs(x, S)))\nF = lambda x: G(x, globals().get('S'))", "slope"),
    "cell": ("F = cell('x * num()')", "plain"),
    "cell that reads": ("F = cell('k = ' + READ + '\\nx * k')", "plain"),
}

HEAD = """
import collections, contextvars, datetime, functools, itertools, operator, os, random, sys, time, types, weakref
from collections import defaultdict, deque, namedtuple
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
import numpy as np
class Plain: pass
class Clock:
    def __init__(self): self.n = iter(range(1, 99))
    def perf_counter(self): return next(self.n)
class Slots: __slots__ = ('v',)
@dataclass
class Data: v: object
@dataclass(frozen=True)
class Frozen: v: object
Point = namedtuple('Point', 'a b')
class Small:
    def __init__(self, v): self.v = v
    def get(self): return self.v
class Same(Small):
    def __eq__(self, other): return True
    def __hash__(self): return 0
class Two: v = 2
class Three: v = 3
class Colour(Enum):
    RED = 2
    BLUE = 3
"""


_BINDING = {
    "class attribute",
    "attribute of the class",
    "shadowed",
    "inherited",
    "overridden",
    "other class",
    "class method",
}


@dataclass(frozen=True)
class Program:
    """One program: what it is made of, and its texts."""

    told: str
    text: str
    function: str
    reads: str


def draw(rng: random.Random) -> Program:
    """A program, drawn."""
    reader, function = rng.choice(list(READERS)), rng.choice(list(FUNCTIONS))
    if rng.random() < 0.12:
        holder, value, change = rng.choice(list(NUMBERS)), "a number", "a change"
        define, number, changing = NUMBERS[holder]
    else:
        holder, value = rng.choice(list(HOLDERS)), rng.choice(list(VALUES))
        define, expression, changing = HOLDERS[holder]
        if value == "function" and holder in _BINDING:  # a method there
            value = "int"
        first, then, number = VALUES[value]
        define = _filled(define, first).replace("#", then)
        change = "replaced"
        if (
            value in INSIDE
            and holder not in {"code", "method replaced", "method of the object", "iterator", "generator"}
            and rng.random() < 0.5
        ):
            change, changing = "changed inside", INSIDE[value].format(expression)
        changing = changing.replace("@", then).replace("#", first)
        number = number.replace("{}", expression)
    around, read = READERS[reader]
    around, read = _filled(around, number), _filled(read, number)
    body = f"{define}\n{around}\ndef num():\n    return {read}\ndef f(x):\n    return x * {read}\n"
    body += f"def fs(x, S):\n    return x * {read}\n"
    body += "def change():\n" + "".join(f"    {line}\n" for line in changing.split("\n"))
    told = f"{holder}, {value}, {change}, read by {reader}, {function}"
    return Program(told, HEAD + body, function, read)


def _filled(text: str, value: str) -> str:
    """A text with ``value`` for each ``@`` that is no decorator's."""
    return re.sub(r"@(?![a-z])", lambda _: value, text)


def made(program: Program, name: str) -> dict[str, Any]:
    """The names of a program, run as a notebook's cell, beside a module of its own."""
    number = next(_numbers)
    other = types.ModuleType(f"tensor_state_{number}")
    sys.modules[other.__name__] = other
    file = f"<state {number}>"
    text = program.text.replace("STATE", other.__name__)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    own = types.ModuleType(f"state_{name}_{number}")
    sys.modules[own.__name__] = own
    space = vars(own)
    space |= {"other": other, "tm": tm}
    exec(compile(text, file, "exec"), space)
    return space


def captured(program: Program, space: dict[str, Any]) -> Callable[[Any], Any]:
    """The captured function of a program."""

    def cell(text: str) -> Any:
        number = next(_numbers)
        return of_cell(compile_cell(text, f"In [{number}]", 1, f"<cell {number}>"), "F", ("x",), space)

    space |= {"cell": cell, "READ": program.reads}
    exec(compile(FUNCTIONS[program.function][0], "<captured>", "exec"), space)
    return space["F"]


def outcomes(program: Program) -> Iterator[tuple[Any, Any]]:
    """What Python says and what the captured function gives, call by call; an error for a refusal."""
    plain, other = made(program, "plain"), made(program, "captured")
    function = captured(program, other)
    for step in range(4):
        if step == 2:
            plain["change"]()
            other["change"]()
        expected = X * plain["num"]() if FUNCTIONS[program.function][1] != "slope" else np.ones(3) * plain["num"]()
        try:
            found = function(X)
        except TensorError as error:
            yield expected, error
            return
        yield expected, found


def fault(program: Program) -> str:
    """Where a captured function differs from Python; empty where it does not, ``refused: `` with the reason where it is refused."""
    state = random.getstate()
    try:
        for step, (expected, found) in enumerate(_each(program)):
            if isinstance(found, TensorError):
                return f"refused: {found}"
            if not np.array_equal(np.asarray(found), expected):
                return f"call {step + 1} gives {found} for {expected}"
    finally:
        random.setstate(state)
    return ""


def _each(program: Program) -> Iterator[tuple[Any, Any]]:
    """Outcomes, where the state is the process's own: first all of Python's, then all of ours."""
    if not any(n in program.told for n in ("random.random", "randint", "environment", "getenv")):
        yield from outcomes(program)
        return
    plain, found = [], []
    space = made(program, "plain")
    for step in range(4):
        if step == 2:
            space["change"]()
        plain.append(space["num"]())
    space = made(program, "captured")
    function = captured(program, space)
    for step in range(4):
        if step == 2:
            space["change"]()
        try:
            found.append(function(X))
        except TensorError as error:
            found.append(error)
            break
    for number, value in zip(plain, found, strict=False):
        yield (X if FUNCTIONS[program.function][1] != "slope" else np.ones(3)) * number, value
