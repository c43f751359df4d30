"""Print a plan as a C function: memory, kernel calls and checks, in a straight line.

A kernel takes the addresses of array objects, and reads the address of their data from each: ``struct array`` has
it at the same offset. Nothing of Python is needed. Nodes that only a library computes are refused by name.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from string import Formatter
from typing import Any

import numpy as np

from tensormagic.backend.cpu.rows import ADDED_ROWS, MOST_PARTS, MOST_SHARES, SHARE, TILE_ROOM
from tensormagic.backend.planning.inline import expand_all, is_growing
from tensormagic.backend.planning.kinds import graphs_of, is_base, is_library, kind_of
from tensormagic.backend.planning.size_bounds import is_fixed
from tensormagic.backend.printing.kernel_text import Entry, Fault, Raised
from tensormagic.backend.printing.plan_walk import Walk
from tensormagic.backend.printing.product_text import blas
from tensormagic.backend.running.buffers import packed
from tensormagic.ir import site
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.node import Node, as_size, topological
from tensormagic.ir.size import Apply, Size, is_at_least, nodes_of, product
from tensormagic.ir.type import Type
from tensormagic.ops.effects.raising import AFTER, CHECK
from tensormagic.ops.leaf import CONSTANT
from tensormagic.ops.op import plainly

TYPES = {
    "bool": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t", "uint8": "uint8_t",
    "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t", "float32": "float", "float64": "double",
}  # fmt: skip
"""What NumPy's dtypes are called in C; of complex128 there are two doubles."""

_PARTS = f"""\
static int64_t part_room(int64_t rows, int64_t width, int64_t kept, int64_t count) {{
    const int64_t step = tile_rows(width);
    int64_t share = step * ((rows + step - 1) / step / {MOST_SHARES} + 1);
    share = most(share, step * ({SHARE} / (step * (width + 1))));
    share = most(share, step * ({ADDED_ROWS} / step + 1));
    share = most(share, step * (rows * kept / {MOST_PARTS} / step + 1));
    return most((rows + share - 1) / share - 1, 0) * count;
}}
"""

_PRELUDE = """\
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK, SIZES, MEMORY, OVERLAP, RAISED };

struct array { void *head[2]; void *data; int own; };
static const int64_t idle[3];
static _Thread_local char text[512];

#define TRY(call) do { if ((status = (call)) != OK) goto done; } while (0)
#define TAKE(of) { {0, 0}, (void *)(of), 0 }

static int said(int status, const char *message) {
    snprintf(text, sizeof text, "%s", message);
    return status;
}
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t floordiv(int64_t a, int64_t b) { return b ? a / b - (a % b != 0 && (a < 0) != (b < 0)) : 0; }
static int64_t mod(int64_t a, int64_t b) { return b ? a - b * floordiv(a, b) : 0; }
static int make(struct array *a, int64_t count, int64_t size) {
    if (count < 0) return said(SIZES, "a size is negative");
    if (count < INT64_MAX / 2 / size) a->data = malloc(count ? count * size : 1);
    a->own = a->data != NULL;
    return a->own ? OK : said(MEMORY, "there is no memory");
}
static void drop(struct array *a) {
    if (a->own) free(a->data);
    a->own = 0;
    a->data = NULL;
}
static int64_t tile_rows(int64_t width) {
    return width * 256 <= 1024 ? 256 : width * 16 <= 1024 ? 1024 / (width * 16) * 16 : width < 1024 ? 1024 / width : 1;
}
#define GEMM(NAME, REAL)                                                                                            \\
static void NAME(const char *ta, const char *tb, const int32_t *m, const int32_t *n, const int32_t *k,               \\
                 const REAL *alpha, const REAL *a, const int32_t *lda, const REAL *b, const int32_t *ldb,            \\
                 const REAL *beta, REAL *c, const int32_t *ldc) {                                                    \\
    (void)alpha; (void)beta;                                                                                         \\
    const int64_t down = *ta == 'T' ? *lda : 1, along = *ta == 'T' ? 1 : *lda;                                       \\
    const int64_t term = *tb == 'T' ? *ldb : 1, column = *tb == 'T' ? 1 : *ldb;                                      \\
    for (int64_t j = 0; j < *n; j++) {                                                                               \\
        REAL *out = c + j * (int64_t)*ldc;                                                                           \\
        for (int64_t i = 0; i < *m; i++) out[i] = 0;                                                                 \\
        if (along == 1 && down != 1)                                                                                 \\
            for (int64_t i = 0; i < *m; i++) {                                                                       \\
                REAL total = 0;                                                                                      \\
                for (int64_t p = 0; p < *k; p++) total += a[i * down + p] * b[p * term + j * column];                \\
                out[i] = total;                                                                                      \\
            }                                                                                                        \\
        else                                                                                                         \\
            for (int64_t p = 0; p < *k; p++) {                                                                       \\
                const REAL factor = b[p * term + j * column];                                                        \\
                for (int64_t i = 0; i < *m; i++) out[i] += a[i * down + p * along] * factor;                         \\
            }                                                                                                        \\
    }                                                                                                                \\
}
"""
PRELUDE = f"{_PRELUDE}{_PARTS}"


class NotInCError(CaptureError):
    """What C has no code for."""


class CDriver(Walk):
    """The text of a plan's C function, and the constants it reads."""

    def _begin(self) -> None:
        self.arrays: list[str] = []
        self.grown: list[str] = []
        self.constants: list[tuple[str, Any]] = []
        self.products: set[str] = set()

    def _print_deaths(self, dead: list[str]) -> None:
        self.lines += [f"drop(&{name});" for name in dead if name in self.arrays]

    # sizes

    def _atom(self, a: Any) -> str:
        if isinstance(a, Apply):
            function = {"min": "least", "max": "most"}.get(a.function, a.function)
            return f"{function}({self.size(a.left)}, {self.size(a.right)})"
        if isinstance(a, Node):
            return f"(int64_t)*(const {TYPES[a.type.dtype.name]} *){self.operand(a)}.data"
        return self.symbols.setdefault(a, f"n{len(self.symbols)}")

    def size(self, size: Size) -> str:
        """Return a size as an expression of C."""
        return f"({super().size(size)})"

    # arrays

    def _new(self, node: Node) -> str:
        name = super()._new(node)
        self.arrays.append(name)
        return name

    def _allocate(self, node: Node) -> str:
        name = self._new(node)
        self.made.add(node)
        if is_growing(node):
            self.grown.append(name)
            self.lines.append(f"{name}.data = g{name};")
        elif node in self.targets:
            self._refuse_negative(node.type.shape)
            self.lines.append(f"{name}.data = out[{self.targets[node]}];")
        else:
            self._refuse_negative(self._extents(node))
            self._make(name, product(self._extents(node)), node)
        return name

    def _refuse_negative(self, shape: Sequence[Size]) -> None:
        for s in shape:
            if not is_at_least(s, 0):
                self.lines.append(
                    f'if ({self.size(s)} < 0) TRY(said(RAISED, "ValueError: negative dimensions are not allowed"));'
                )

    def operand(self, node: Node) -> str:
        """Return the array that has a value."""
        if node.op is CONSTANT:
            return self._packed(node)
        if is_base(node):
            return self.variables[node]
        owner = self.memory.owner(node)
        return self.variables[owner] if owner in self.variables else self._call(node)

    def _make(self, name: str, count: Size, node: Node) -> None:
        self.lines.append(f"TRY(make(&{name}, {self.size(count)}, {node.type.dtype.itemsize}));")

    def _pack(self, node: Node) -> str:
        if node.op is not CONSTANT:
            return self.variables[node]
        name = f"c{len(self.constants)}"
        self.constants.append((name, packed(node["bits"].array(), node.type.dtype)))
        return name

    # steps

    _threads = "0"
    _faults = "faults"

    def _number(self, number: int) -> str:
        return f"INT64_C({number})" if number > -(2**63) else "INT64_MIN"

    def _address(self, address: int) -> str:
        name = next(n for n in ("dgemm", "sgemm") if blas(n) == address)
        self.products.add(name)
        return name

    def _reference(self, name: str) -> str:
        return f"&{name}"

    def _watch(self, faults: Sequence[Fault | Raised]) -> list[str]:
        self.lines.append("memset(fault, 0, sizeof fault);")
        return self._raising(faults)

    def _traded(self, number: int) -> str:
        del number  # names differ by what there is
        name = f"traded{len(self.arrays)}"
        self.arrays.append(name)
        return name

    def _launch(self, number: int, items: Sequence[str], after: Sequence[str]) -> None:
        listed = ", ".join(f"(int64_t){item}" for item in ["idle", *items])
        self.lines += ["{", f"    int64_t table[] = {{{listed}}};", f"    @{number}(&unused, &unused, table);", "}"]
        self.lines += after

    def _parts(self, entry: Entry, number: int) -> str:
        name, (node, rows, kept) = f"t{len(self.arrays)}", entry.key
        self.arrays.append(name)
        sizes = ", ".join(map(self.size, (rows, entry.width, kept, node.type.size)))
        self.lines.append(f"TRY(make(&{name}, part_room({sizes}), {node.type.dtype.itemsize}));")
        return name

    def _tile(self, entry: Entry, number: int, *, shared: bool = False) -> str:
        del number, shared  # one thread; names differ by what there is
        name = f"t{len(self.arrays)}"
        self.arrays.append(name)
        if is_fixed(entry.count, self.known) and is_fixed(entry.width, self.known):
            room = f"{self.size(entry.count)} * tile_rows({self.size(entry.width)})"
        else:
            room = f"most({TILE_ROOM}, {self.size(self._most(entry.count))})"
        self.lines.append(f"TRY(make(&{name}, {room}, {entry.key.type.dtype.itemsize}));")
        return name

    def _trade(self, entry: Entry, traded: str) -> list[str]:
        names = [self._array(owner) for owner in entry.key]
        self.lines.append(f"TRY(make(&{traded}, {len(names)}, 8));")
        moved = [f"    {name} = places[at[{k}]];" for k, name in enumerate(names)]
        return [
            "{",
            f"    const struct array places[] = {{{', '.join(names)}}};",
            f"    const int64_t *at = {traded}.data;",
            *moved,
            f"    drop(&{traded});",
            "}",
        ]

    def _raising(self, faults: Sequence[Fault | Raised]) -> list[str]:
        lines = ["if (fault[0]) {"]
        for number, fault in enumerate(faults, 1):
            if isinstance(fault, Raised):
                said = self._said(fault.error, fault.told, partial(_noted, fault.details))
                lines.append(f"    if (fault[0] == {number}) {said}")
                continue
            known = next(c for c in fault.error.__mro__ if c.__module__ == "builtins")
            parts, values = f"{known.__name__}: ", list[str]()
            for literal, field, _, _ in Formatter().parse(fault.texts[0]):
                parts += literal.replace("%", "%%")
                if field is not None:
                    form, value = _printed(np.dtype(np.int64), f"fault[{int(field) + 1}]")
                    parts += form
                    values.append(value)
            lines.append(f"    if (fault[0] == {number}) {_writes(parts, values)}")
        return [*lines, "    status = RAISED;", "    goto done;", "}"]

    def _call(self, node: Node) -> str:
        raise NotInCError(
            f"{_told(node)} is computed by a Python library, which C code cannot call",
            "Compute it outside the function, and pass it as an argument.",
        )

    def _print_library(self, node: Node) -> None:
        if node.op is CHECK:
            self._print_check(node)
        elif node.op is not AFTER:
            self._call(node)
        value = self.operand(node.args[node.op is AFTER])
        count = f"{self.size(product(node.type.shape))} * {node.type.dtype.itemsize}"
        self.lines.append(f"memcpy({self._allocate(node)}.data, {value}.data, {count});")

    def _print_check(self, node: Node) -> None:
        """Print a ``raise`` or ``assert`` that depends on data."""
        _, holds, *details = node.args

        def shown(place: int) -> tuple[str, str] | None:
            one = details[place]
            if one.type.shape or one.type.dtype.kind == "c":
                return None
            name = TYPES[one.type.dtype.name]
            return _printed(one.type.dtype, f"*(const {name} *){self.operand(one)}.data")

        said = self._said(node["error"], node["told"], shown)
        self.lines += [
            f"for (int64_t k = 0; k < {self.size(product(holds.type.shape))}; k++)",
            f"    if (!((const uint8_t *){self.operand(holds)}.data)[k]) {{",
            *(f"        {said}", "        status = RAISED;", "        goto done;", "    }"),
        ]

    def _said(self, error: str, told: str, shown: Callable[[int], tuple[str, str] | None]) -> str:
        """Return a statement that writes an exception's class and first argument; ``shown`` gives an operand's printf format and value."""
        form, values = error.split(":")[1] + ": ", list[str]()
        for part in ast.literal_eval(told)[:1]:
            form += self._form_of(part, shown, values)
        return _writes(form, values)

    def _form_of(self, told: Any, shown: Callable[[int], tuple[str, str] | None], values: list[str]) -> str:
        """Return the printf format for an argument of an exception; its values are appended to ``values``."""
        match told:
            case ("value", value) | (str() as value,):
                return str(value).replace("%", "%%")
            case ("text", pieces):
                return "".join(self._form_of(p if len(p) == 1 else p[0], shown, values) for p in pieces)
            case ("operand", place):
                found = shown(place)
                if found is None:
                    return "..."
                values.append(found[1])
                return found[0]
            case _:  # one of several, data-dependent
                return "..."

    def _print_results(self) -> None:
        for number, node in enumerate(self.results):
            kind, shape = node.type, node.type.shape
            if any(n for s in shape for n in nodes_of(s) if n not in self.graph.parameters):
                raise NotInCError(
                    f"the shape of result {number + 1} depends on data: C has no memory for it",
                    "Give it a shape that follows from the shapes of the arguments.",
                )
            size = as_size(node) if not shape and kind_of(node) == "leaf" and node.op is not CONSTANT else None
            if size is not None:
                self.lines.append(f"*({TYPES[kind.dtype.name]} *)out[{number}] = {self.size(size)};")
                continue
            owner, source = self.memory.owner(node), self.operand(node)
            if self.targets.get(owner) != number or node.type != owner.type:
                count = f"{self.size(product(shape))} * {kind.dtype.itemsize}"
                self.lines.append(f"memcpy(out[{number}], {source}.data, {count});")

    def _checks(self) -> list[str]:
        found = self.refusals()
        return [f"if ({self.size(e)} == 0) return said(RAISED, {quoted('ValueError: ' + text)});" for e, text in found]

    def function(self, name: str, sizes: Mapping[Any, str], named: Sequence[str]) -> str:
        """Return the C source.

        Parameters
        ----------
        name
            The function's name.
        sizes
            For each symbol an expression in ``sizes[k]``.
        named
            The names of the kernels, by number.
        """
        checks = self._checks()
        lines = self.lines
        for k, kernel in enumerate(named):
            lines = [line.replace(f"@{k}(", f"{kernel}(") if line.startswith(f"    @{k}(") else line for line in lines]
        head = [f"const int64_t {own} = {sizes[a]};" for a, own in self.symbols.items()]
        head += [*checks, "int status = OK;", "int64_t unused, fault[4];", "struct array faults = TAKE(fault);"]
        head += [f"struct array {p} = TAKE(in[{k}]);" for k, p in enumerate(self.parameters)]
        head += [f"struct array {c} = TAKE(data_{name}_{c});" for c, _ in self.constants]
        head += [f"struct array {v} = TAKE(NULL);" for v in self.arrays]
        head += [f"int64_t g{v}[2] = {{0, 0}};" for v in self.grown]
        used = ["unused", "fault", "faults", *self.parameters, *(own for own in self.symbols.values())]
        head += ["".join(f"(void){name}; " for name in used)]
        tail = [*(f"free((void *)g{v}[0]);" for v in self.grown), *(f"drop(&{v});" for v in self.arrays)]
        body = "".join(f"    {line}\n" for line in [*head, *lines])
        end = "".join(f"    {line}\n" for line in [*tail, "return status;"])
        jump = "    goto done;\n" if not any("goto done" in line or line.startswith("TRY(") for line in lines) else ""
        data = "".join(bytes_text(f"data_{name}_{c}", array) for c, array in self.constants)
        arguments = "const int64_t *sizes, void *const *in, void *const *out"
        return f"{data}static int {name}({arguments}) {{\n    (void)sizes; (void)in; (void)out;\n{body}{jump}done:\n{end}}}\n"


def _noted(details: Sequence[Type], place: int) -> tuple[str, str]:
    """Return the printf format of a number that a kernel recorded, and its expression."""
    dtype, noted = details[place].dtype, f"fault[{place + 1}]"
    return _printed(dtype, f"*(const double *)&{noted}" if dtype.kind == "f" else noted)


def _printed(dtype: np.dtype[Any], value: str) -> tuple[str, str]:
    """Return the printf format of a real number, and the argument for the expression ``value``."""
    return ("%.15g", f"(double){value}") if dtype.kind == "f" else ("%lld", f"(long long){value}")


def _writes(form: str, values: Sequence[str]) -> str:
    """Return a C statement that formats the text of an error."""
    return f"snprintf(text, sizeof text, {', '.join([quoted(form), *values])});"


def _told(node: Node) -> str:
    """Return a node that a library computes, with its line; for a loop or branch, what is inside."""
    inner = [
        n
        for g in graphs_of(node)
        for n in topological(expand_all([*g.results, *g.checked], inside=True))
        if is_library(n)
    ]
    sites = site.of(node)
    where = f" ({sites[0]})" if sites else ""
    if inner:
        return f"{_told(inner[0])} in a {node.op.name}{where}"
    of = f"{node.op.name} of {node.args[0].type.dtype if node.args else node.type.dtype}"
    return f"{plainly(node) or of}{where}"


def quoted(text: str) -> str:
    """Return a text as C writes it."""
    return (
        '"'
        + "".join(
            c if " " <= c < "\x7f" and c not in '"\\?' else "".join(f"\\{b:03o}" for b in c.encode()) for c in text
        )
        + '"'
    )


def bytes_text(name: str, array: np.ndarray[Any, Any]) -> str:
    """Return the bytes of an array as a constant in C, in words of eight."""
    data = array.tobytes()
    words = np.frombuffer(data + bytes(-len(data) % 8 or 8 * (not data)), np.uint64).tolist()
    rows = [", ".join(f"0x{w:x}u" for w in words[k : k + 8]) for k in range(0, len(words), 8)]
    return f"static const uint64_t {name}[] = {{\n" + "".join(f"    {row},\n" for row in rows) + "};\n"
