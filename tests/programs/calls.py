"""Random calls: NumPy's functions by the names of their parameters, ufuncs, methods of arrays, and stores and reads by index."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from functools import cache

import numpy as np

import tensormagic.capture.inputs.namespace  # noqa: F401 (which says what is captured)
from tensormagic.capture.names import FUNCTIONS
from tests.programs.growing import Program


def table(text: str) -> dict[str, tuple[str, ...]]:
    """What stands for names: lines ``name, name | choice; choice``; one without names goes on with those of the line before."""
    found: dict[str, tuple[str, ...]] = {}
    names: list[str] = []
    for line in text.strip().split("\n"):
        own, _, choices = line.partition(" |")
        names = own.strip().split(", ") if own.strip() else names
        for name in names:
            found[name] = (*found.get(name, ()), *(c.strip() for c in choices.split(";")))
    return found


OPERANDS = table("""
any | x; y; z; e; k; u; s; n; x.T; x[::-1]; x[0]; x[:0]; x[:, 1:]; x[x > 0]; y[0]; k[0]; y[:, None]; 2; 2.5; [1, 2, 3]
more | [[1, 2], [3, 4]]; x @ x.T + 3 * np.eye(n); np.array(2); x[:, :n]; z[0]; -1; True; 1j; x > 0; np.float32(0.1)
    | (y, y); [y[0], 1]
""")
OPERAND = OPERANDS["any"] * 2 + OPERANDS["more"]

PARAMETERS = table("""
axis | 0; 1; -1; None; (0, 1); (); (0,); 2; -2; k[0]
axis1, axis2, source, destination, start | 0; 1; -1
axes | None; (1, 0); (0, 1); 1; 0; ([0], [0])
keepdims, density, assume_unique, invert, bias, rowvar, copy, endpoint | True; False
hermitian, increasing, sparse, equal_nan | True; False
return_index, return_inverse, return_counts, retstep, returned, full_matrices, compute_uv | True; False
dtype | float; int; np.float32; complex; bool; np.uint8; None; "f4"
n, N, M, num, minlength | 3; 2; 0; 1; 5; None; m; k[0]; len(y)
k, offset, shift | 0; 1; -1; 2; 5; k[0]; (1, 1)
mode | "full"; "same"; "valid"; "raise"; "wrap"; "clip"; "edge"; "reflect"; "constant"; "reduced"; "mean"; "symmetric"
order | "C"; "F"; "K"; "A"; 1
ord | None; 1; 2; np.inf; -np.inf; "fro"; "nuc"; 0; 3; -1
q | 0.5; 30; [0.1, 0.9]; 0; 1; 50; y
method | "linear"; "lower"; "nearest"; "midpoint"; "hazen"; "higher"
weights, aweights, fweights | None; y; np.ones(3); [1, 2, 3]; np.abs(x)
where | True; x > 0; u[:, None]; y > 0
initial | 0; 1; -5
ddof, correction | 0; 1; 2; 1.5
decimals | 0; 1; -1; 2
repeats | 2; 0; k; [1, 2, 0]; k[0]
reps | 2; (2, 1); 0; (1, 2, 2)
indices | 0; [0, 1]; k; [[0, 1], [1, 0]]; -1; []; k[0]
indices_or_sections | 1; 2; 3; [1]; [1, 2]; n
obj | 0; [0, 1]; -1; slice(0, 1); []; k; u; k[0]
values, v, vals | 5.0; y; [1, 2]; x; 2; x[0]
side | "left"; "right"
bins | 3; [0, 1, 2]; 5; np.linspace(-1, 3, 4)
range | None; (0, 1); (-1, 3)
newshape, shape | -1; (3, 1); (1, 3); (m, n); 3; (); (-1, n); (n, m)
new_shape | 4; (2, 2); 0
a_min, min | 0; None; x; -1; y
a_max, max | 1; None; 2; y; s
nan | 0.0; -1
posinf, neginf, left, right, to_end, to_begin | None; 0; 9
period, discont | None; 3; 2 * np.pi
xp | [0, 1, 2]; np.arange(3.0); np.arange(m)
fp | y; [3, 4, 5]
dx, d | 1.0; 0.5; s
prepend, append | 0; y; x[:1]
edge_order, deg | 1; 2
pad_width | 1; (1, 2); ((1, 0), (0, 2)); 0
constant_values | 0; 5
reflect_type | "even"; "odd"
kth | 0; 1
kind | None; "stable"
stop | 5; 2.0; y
step | 1; 0.5
base | 10; 2.0
UPLO | "L"; "U"
norm | None; "ortho"; "forward"; "backward"
s | None; (2, 2)
p | [1, 2, 3]; 3; y; np.array([1.0, -3, 2])
trim | "fb"; "f"; "b"
indexing | "ij"; "xy"
dims | (3, 4); (n, m)
ndmin | 0; 2
rtol, atol | 1e-5; 0.5
fill_value | 2; 2.5; True; y[0]
condition, mask | x > 0; u; [True, False, True]; k > 0; y > 0
choices | [x, x]; [1, 2]; [y, y * 2]
condlist | [x > 0]; [x > 1, x < 0]
choicelist | [x]; [x, -x]
default | 0; -1
include_initial | True; False
arrays, tup, arys, seq | (x, x); (y, y); [x, y]; (x, x.T); [y]; [x[0], y, y]; (k, u); []
""")
MUST = {"a", "x", "y", "b", "v1", "v2", "x1", "x2", "m", "p", "v", "values", "arr", "ar", "ar1", "ar2", "z", "array"}

METHODS = table("""
sum, prod, cumsum, cumprod, mean | ; 0; 1; -1; None; (0, 1); axis=(); axis=0, dtype=float; dtype=np.uint8; dtype=bool
    | axis=(0,)
std, var | ; 0; ddof=1; axis=-1, keepdims=True; dtype=np.float32; axis=(), ddof=1
min, max | ; 0; axis=-1, keepdims=True; initial=2; axis=(); axis=0, initial=-1
any, all, argmax, argmin | ; 0; axis=-1; axis=0, keepdims=True; None
reshape | -1; (-1,); (m, -1); n, m; 1, -1; (1, 3); (); -1, -1; (0, -1); -1, order="F"; (m, n), order="A"
astype | int; float; bool; complex; np.float32; np.uint8; "f4"; float, copy=False; np.int8; int, casting="safe"
take | 0; [0, 1]; k; [[0, 1], [1, 0]]; -1; []; k, 0; k, axis=-1; [0, 9], mode="clip"; k - 5, mode="wrap"
repeat | 2; 0; k; 2, 0; k, axis=0; [1, 2], 0; -1
clip | 0, 1; 0; None, 1; y, None; -1, s; min=0; x, 2
round | ; 1; -1; decimals=2
dot | y; x; 2; x.T; [1, 2, 3]; k; e
searchsorted | 1; y; [0, 1]; k, side="right"; s, "right"
diagonal, trace | ; 1; -1; offset=1; 0, 1, 0
swapaxes | 0, 1; 0, -1; 0, 0
transpose | ; 1, 0; (1, 0); None; -1, 0; 0
flatten, ravel | ; "F"; "A"; "K"; order="C"
squeeze | ; 0; -1; axis=0; (0,)
choose | [x, x]; [1, 2, 3]; [y, y, y], mode="clip"; [k, k, k], mode="wrap"
compress | [True, False]; k > 0; [1, 0, 1]; u, 0; y > 0, axis=-1; []
item | ; 0; 1, 2; -1; (0, 1); 7; k[0]
argsort | ; 0; -1; None; axis=0, kind="stable"
nonzero, tolist, conj, conjugate, copy, view, byteswap |
__len__, __abs__, __neg__, __bool__, __int__, __float__, __index__ |
""")
CHANGING = table("""
fill | 2; 2.7; True; y[0]; s
sort | ; 0; -1; axis=0
put | 0, 5; [0, 1], [1, 2]; k, y; -1, s; k, 0
""")
INDICES = table("""
parts | 0; -1; 1:; ::-1; ::2; -2:; :0; 5:; ...; None; 0, 0; 0, :; ..., 0; 0, ...; None, 0; :, None; ::-1, ::-1
    | 1:-1, 1:; 0, None, 1; 0, 0, 0; 3; 0, 5
lists | [0]; [0, 0]; [1, 0]; [-1]; []; k; k, k; k, 0; 0, k; k, :; ..., k; k[:, None], k; [[0, 1], [1, 0]]
    | (0, 1), (1, 0); np.ix_(k, k); None, k; k, None; k, 1:, None; [0, 1], 1:; 1:, [0, 1]; 0, [0, 1]; k + 2; -k
    | np.argsort(y); [1], [0]
masks | u; ~u; u, 0; x > 0; x > 0, ...; x[0] > 0; ..., x[0] > 0; :, x[0] > 0; k > 0; [True, False]; True; False; y > 0
    | np.nonzero(x > 0); np.where(u); u[:2]
lazy | np.array(0); k[0]; k[0], 1:; 1:, k[0]; -k[0]; k[0]:; :k[0]; len(k) - 1; k[1]:k[0]; ::k[0]; np.argmax(y)
    | e.astype(int)
others | 1.5; "a"; x; 4; -4; range(2); np.uint8(1); slice(None, None, -2); np.s_[1:]; np.array([], int)
""")
STATEMENTS = table("""
attribute | T; mT; real; imag; ndim; shape; size; dtype; itemsize; nbytes; flat[0]; flat[1:3]; flat[[0, 1]]; flat[-1]
    | shape[0]; T.shape; real.dtype; T.T
target | x; x; x; z; y; w; w[:]; x.T; x[::-1]; x[1:]; x.ravel(); x.reshape(-1); x.real; x.flat; z[0]; e
value | 0; 1.7; -1; True; 1j; y; y[:2]; y[:1]; x; x[0]; x[:, :1]; x.T; [1, 2, 3]; [[1], [2]]; np.array(5)
    | np.float32(0.1); 300; -300; k; np.nan; y[y > 0]; []; x[::-1]; x[0, 0]; u; k[0]; None; 1e300; y[None]; y[:, None]
    | e; s; n
how | =; =; =; +=; -=; *=; /=; //=; **=; %=; &=; |=; <<=
""")
OUTS = ("", "", "", "out=y", "out=x", "dtype=float", "dtype=np.float32", "dtype=int", "dtype=complex", "")
LEFT_OUT = {"empty", "empty_like", "savetxt", "load", "partition", "argpartition", "info", "test", "show_config"}


@cache
def functions() -> list[tuple[str, inspect.Signature]]:
    """NumPy's functions that are captured, with their parameters."""
    found: dict[str, inspect.Signature] = {}
    for prefix, module in {"np": np, "np.linalg": np.linalg, "np.fft": np.fft}.items():
        for name in sorted(set(dir(module)) - LEFT_OUT):
            function = getattr(module, name)
            is_function = callable(function) and not isinstance(function, type | np.ufunc)
            if not name.startswith("_") and is_function and function in FUNCTIONS:
                try:
                    found[f"{prefix}.{name}"] = inspect.signature(function)
                except ValueError:  # one that does not say
                    continue
    return list(found.items())


@cache
def ufuncs() -> list[np.ufunc]:
    """NumPy's ufuncs of numbers that are captured."""
    named = [getattr(np, n) for n in sorted(dir(np))]
    return [f for f in named if isinstance(f, np.ufunc) and f.signature is None and f in FUNCTIONS]


def call(seed: int) -> Program:
    """The statement of a seed, which need not run: both sides may raise."""
    draw = random.Random(seed)
    kinds: list[tuple[Callable[[random.Random], list[str]], int]] = [
        (of_function, 40),
        (of_ufunc, 15),
        (of_method, 20),
        (of_index, 25),
    ]
    kind = draw.choices([k for k, _ in kinds], [weight for _, weight in kinds])[0]
    return Program(seed, kind(draw), "", ["v", *"xyzeku"])


def of_function(draw: random.Random) -> list[str]:
    """A call of a function: what is required, and some options."""
    name, signature = draw.choice(functions())
    given: list[str] = []
    for p in signature.parameters.values():
        known = PARAMETERS.get(p.name)
        if p.kind is p.VAR_POSITIONAL:
            given += [draw.choice(OPERAND) for _ in range(draw.choice([1, 2]))]
        elif p.default is p.empty and p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}:
            operand = known is None or (p.name in MUST and draw.random() < 0.7)
            given.append(draw.choice(OPERAND if operand else known))
        elif known is not None and p.default is not p.empty and draw.random() < 0.3:
            given.append(f"{p.name}={draw.choice(known)}")
    return [f"v = {name}({', '.join(given)})"]


def of_ufunc(draw: random.Random) -> list[str]:
    """A call of a ufunc, or of one of its methods."""
    f = draw.choice(ufuncs())
    operands = [draw.choice(OPERAND) for _ in range(f.nin)]
    kind = draw.random()
    if f.nin == 2 and kind < 0.1:
        return [f"v = np.{f.__name__}.outer({', '.join(operands)})"]
    if f.nin == 2 and kind < 0.25:
        options = draw.choice(["", "", ", axis=-1", ", axis=None", ", keepdims=True", ", dtype=float", ", axis=(0, 1)"])
        return [f"v = np.{f.__name__}.{draw.choice(['reduce', 'reduce', 'accumulate'])}({operands[0]}{options})"]
    if f.nin == 2 and kind < 0.32:
        return [
            "v = 0",
            f"np.{f.__name__}.at({draw.choice('xyz')}, np.s_[{draw.choice(INDICES['lists'])}], {operands[1]})",
        ]
    options = [draw.choice(OUTS)] if f.nout == 1 else []
    return [f"v = np.{f.__name__}({', '.join(filter(None, [*operands, *options]))})"]


def of_method(draw: random.Random) -> list[str]:
    """A call of a method, or an attribute."""
    of = draw.choice([o for o in OPERAND if not o.startswith(("[", "(y"))])
    kind = draw.random()
    if kind < 0.1:
        return [f"v = ({of}).{draw.choice(STATEMENTS['attribute'])}"]
    if kind < 0.2:
        name = draw.choice(list(CHANGING))
        return [f"v = np.asarray({of})", f"v.{name}({draw.choice(CHANGING[name])})"]
    name = draw.choice(list(METHODS))
    return [f"v = ({of}).{name}({draw.choice(METHODS[name])})"]


def of_index(draw: random.Random) -> list[str]:
    """A store, or a read, by index."""
    target, value = draw.choice(STATEMENTS["target"]), draw.choice(STATEMENTS["value"])
    index = draw.choice(draw.choice(list(INDICES.values())))
    before = ["w = x.copy()"] if "w" in target else []
    kind = draw.random()
    if kind < 0.7:
        how = "=" if target == "x.flat" else draw.choice(STATEMENTS["how"])
        return [*before, "v = y", f"{target}[{index}] {how} {value}"]
    after = [f"v {draw.choice(STATEMENTS['how'][3:])} {value}"] if kind < 0.85 else []
    return [*before, f"v = {target}[{index}]", *after]
