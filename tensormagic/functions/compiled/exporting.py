"""Compiled functions for C: a header, and a shared library with one entry, without Python and without NumPy.

The kernels are LLVM's object code, as in a run here. The code that calls them is a file of C, which the system's
compiler builds and links.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tensormagic.backend.planning.plan import plan_graph
from tensormagic.backend.planning.purpose import without_library
from tensormagic.backend.printing.c_text import PRELUDE, TYPES, CDriver, NotInCError, bytes_text, quoted
from tensormagic.capture.tree import flatten
from tensormagic.functions.compiled.compiled_function import ARRAY, Compiled
from tensormagic.functions.compiled.small_sizes import count_of, sizes_text, small_sizes, symbols_of
from tensormagic.ir.errors import ArgumentError, CaptureError
from tensormagic.ir.graph import Graph, bare_symbol
from tensormagic.ir.node import Node
from tensormagic.ir.size import Apply, Size, nodes_of

_WORDS = frozenset(
    re.findall(
        r"\w+",
        "auto break case char const continue default do double else enum extern float for goto if inline int long register "
        "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool true false "
        "class new delete this template typename namespace private public protected virtual friend operator using try catch "
        "throw and or not xor main asm typeof alignas alignof noexcept nullptr static_assert thread_local wchar_t char8_t "
        "export friend mutable explicit constexpr decltype typeid",
    )
)


@dataclass(frozen=True)
class Exported:
    """The files that an export has written.

    Parameters
    ----------
    header, source
        The header, and the file of C that calls the kernels.
    objects
        Object files with the kernels.
    library
        The shared library; None where no compiler of C was found.
    command
        What builds the library.
    """

    header: Path
    source: Path
    objects: tuple[Path, ...]
    library: Path | None
    command: str


@dataclass
class _Export:
    """The parts of a library while they are written."""

    name: str
    main: Compiled
    texts: list[str] = field(default_factory=list)
    kernels: dict[str, str] = field(default_factory=dict)  # the name of the function for each source
    products: set[str] = field(default_factory=set)

    def add(self, function: Compiled, own: str) -> None:
        """Write a function for one choice of small sizes."""
        graph, names = _exported(function), list[str]()
        refuse(function)
        values = [np.asarray(now(), order="C") for now in function.traced.outside]
        sizes = self._sizes(graph)
        checks = [_checked(size, "==", extent, sizes) for size, extent in _beside(function, sizes)]
        for symbol, given in sizes.items():
            if symbol.least > 0:
                told = quoted(f"there is no code for several sizes below {symbol.least} at once")
                checks.append(f"    if ({given} < {symbol.least}) return said(SIZES, {told});\n")
        for left, relation, right in (*function.graph.guards, *graph.guards):
            if not nodes_of(left) and not nodes_of(right):
                checks.append(_checked(left, relation, right, sizes))
        with without_library():
            plan = plan_graph(graph)
        driver = plan.drive(CDriver, given=True)
        for kernel in plan.kernels:
            number = len(self.kernels)
            names.append(self.kernels.setdefault(kernel.printed.source, f"{self.name}_kernel{number}"))
        self.products |= driver.products
        self.texts.append(driver.function(own, sizes, names) + _given(values, checks, own, count_of(function)))

    def _sizes(self, graph: Graph) -> dict[Any, str]:
        """Return the symbols of a graph in terms of the ``sizes`` passed to the entry."""
        known = {s: f"sizes[{k}]" for k, s in enumerate(symbols_of(self.main))}
        found: dict[Any, str] = {}
        arguments = self.main.graph.parameters[: count_of(self.main)]
        for ours, theirs in zip(graph.parameters, arguments, strict=False):
            for size, given in zip(ours.type.shape, theirs.type.shape, strict=True):
                symbol = bare_symbol(size)
                if symbol is not None:
                    found.setdefault(symbol, c_size(given, known))
        return found


def _exported(function: Compiled) -> Graph:
    """Return the graph of the user's results alone, as classes of numbers do not exist in C."""
    graph = function.executable.graph
    return graph.with_results(graph.results[: len(function.graph.results)])


def _given(values: Sequence[Any], checks: Sequence[str], own: str, count: int) -> str:
    """Return a C function that checks relations of sizes, and appends the constant arrays to the ``count`` arguments."""
    data = "".join(bytes_text(f"data_{own}_given{k}", v) for k, v in enumerate(values))
    items = [f"in[{k}]" for k in range(count)] + [f"(void *)data_{own}_given{k}" for k in range(len(values))]
    return (
        f"{data}static int run_{own}(const int64_t *sizes, void *const *in, void *const *out) {{\n    (void)in; (void)sizes;\n"
        f"{''.join(dict.fromkeys(checks))}    void *const all[] = {{{', '.join(items) or '0'}}};\n"
        f"    return {own}(sizes, all, out);\n}}\n"
    )


def _beside(function: Compiled, sizes: dict[Any, str]) -> list[tuple[Size, int]]:
    """Record the sizes of constant arrays, and return what the sizes of arguments must be for these."""
    checks: list[tuple[Size, int]] = []
    for node, now in zip(function.graph.parameters[count_of(function) :], function.traced.outside, strict=True):
        for size, extent in zip(node.type.shape, np.shape(now()), strict=True):
            symbol = bare_symbol(size)
            if symbol is not None and symbol not in sizes:
                sizes[symbol] = f"INT64_C({extent})"
            elif size != extent:
                checks.append((size, extent))
    return checks


def _checked(left: Size, relation: str, right: Size, sizes: Mapping[Any, str]) -> str:
    """Return a line that rejects sizes for which a relation does not hold."""
    test = f"{c_size(left, sizes)} {relation} {c_size(right, sizes)}"
    said = f"sizes do not fit: {left} {relation} {right} does not hold"
    return f"    if (!({test})) return said(SIZES, {quoted(said)});\n"


def refuse(function: Compiled) -> None:
    """Raise CaptureError for anything that C has no type or no code for."""
    function.refuse_changes()
    if function.executable.device != "cpu":
        raise NotInCError(
            "it is compiled for the GPU, and exported C code runs on the processor", 'Compile it with device="cpu".'
        )
    if function.traced.raising:
        raise NotInCError("it asks for floating-point errors by np.errstate", "Test the results: np.isfinite(y).all().")
    graph = _exported(function)
    if graph.is_wide:
        raise NotInCError("it computes sizes that may need more than 64 bits", "Pass these sizes as arguments.")
    for node in (*graph.parameters, *graph.results):
        if node.type.dtype.name not in {*TYPES, "complex128"}:
            raise NotInCError(
                f"it takes or returns {node.type.dtype}, which has no type in C", "Convert it with astype."
            )


def c_size(size: Size, known: Mapping[Any, str]) -> str:
    """Return a size as an expression of C, where each symbol and integer is ``known``."""
    if isinstance(size, int):
        return f"INT64_C({size})"

    def atom(a: Any) -> str:
        if isinstance(a, Apply):
            function = {"min": "least", "max": "most"}.get(a.function, a.function)
            return f"{function}({c_size(a.left, known)}, {c_size(a.right, known)})"
        return known[a]

    return f"({' + '.join('*'.join([f'INT64_C({c})', *(atom(a) for a, p in m for _ in range(p))]) for m, c in size.terms)})"


def identifier(name: str, taken: set[str]) -> str:
    """Return a name that is valid in C and not taken."""
    own = re.sub(r"\W", "_", name, flags=re.ASCII) or "x"
    own = f"_{own}" if own[0].isdigit() else own
    while own in _WORDS or own in taken or own.startswith("__") or (own.startswith("_") and own[1:2].isupper()):
        own = f"x{own}" if own.startswith("_") else f"{own}_"
    taken.add(own)
    return own


def export_c(function: Compiled, folder: str | Path, name: str = "") -> Exported:
    """Write a compiled function for C: see :meth:`Compiled.export_c`."""
    called = name or _own_name(function.traced.name)
    if not called.isidentifier() or not called.isascii() or _is_taken(called):
        raise ArgumentError(
            f"{called!r} is not a valid name of a function in C, or C uses it already", "Give another as name=."
        )
    export = _Export(called, function)
    export.add(function, "whole")
    cases = [("1", "whole")]
    found = symbols_of(function)
    for k, chosen in enumerate(small_sizes(function)):
        test = " && ".join(f"sizes[{found.index(s)}] == {n}" for s, n in chosen.items())
        sizes = sizes_text(chosen)
        try:
            small = function.with_sizes(sizes)
            if small is not None:
                export.add(small, f"small{k}")
        except Exception as error:  # noqa: BLE001 (what NumPy, or the user's code, says of such a size)
            known = next(c for c in type(error).__mro__ if c.__module__ == "builtins")
            ours = isinstance(error, CaptureError)
            text = f"{'' if ours else f'{known.__name__}: '}{str(error).splitlines()[0]}"
            cases.insert(-1, (test, f"said({'SIZES' if ours else 'RAISED'}, {quoted(text)})"))
        else:
            none = f"said(SIZES, {quoted(f'there is no code for {sizes}')})"
            cases.insert(-1, (test, f"small{k}" if small is not None else none))
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    header, source = place / f"{called}.h", place / f"{called}.c"
    header.write_text(_Entry(called, function, named=True).header(), encoding="utf-8")
    source.write_text(_source(export, _Entry(called, function, named=False), cases), encoding="utf-8")
    objects = _objects(export, place)
    return _linked(header, source, objects, place)


def _own_name(name: str) -> str:
    own = re.sub(r"\W+", "_", name.rpartition(".")[2], flags=re.ASCII).strip("_") or "function"
    return f"{own}_function" if _is_taken(own) or own[0].isdigit() else own


def _is_taken(name: str) -> bool:
    """Return whether C, its library, or the generated text already uses a name."""
    return name in _WORDS or re.search(rf"\b{name}\b", PRELUDE) is not None or hasattr(ctypes.CDLL(None), name)


# the texts --------------------------------------------------------------------------------------------------------------


class _Entry:
    """The entry that a C program calls; its arguments are ``named`` as the user does, or by unique names."""

    def __init__(self, name: str, function: Compiled, *, named: bool) -> None:
        graph = function.graph
        self.name, self.function, self.graph = name, function, graph
        self.count = count_of(function)
        self.symbols = symbols_of(function)
        taken: set[str] = {name, f"{name}_error"}
        called = function.size_names
        names = graph.names or tuple(f"x{k}" for k in range(len(graph.parameters)))
        several = len(graph.results) > 1
        self.sizes = [
            identifier(called.get(s, str(s)) if named else f"s{k}", taken) for k, s in enumerate(self.symbols)
        ]
        self.values = [identifier(n if named else f"a{k}", taken) for k, n in enumerate(names[: self.count])]
        ends = [f"out{k if several else ''}" if named else f"r{k}" for k in range(len(graph.results))]
        self.results = [identifier(end, taken) for end in ends]
        self.known: dict[Any, str] = dict(zip(self.symbols, self.sizes, strict=True))
        self.known |= dict(zip(graph.parameters, self.values, strict=False))
        _beside(function, self.known)

    def shape(self, node: Node) -> str:
        """Return a shape as text, in the names of the sizes."""
        return "[" + ", ".join(re.sub(r"INT64_C\((-?\d+)\)", r"\1", self.size(s)) for s in node.type.shape) + "]"

    def size(self, size: Size) -> str:
        text = c_size(size, self.known)
        bare = re.fullmatch(r"\(INT64_C\(1\)\*(\w+)\)", text)
        return bare[1] if bare else text

    def kind(self, node: Node) -> str:
        """Return the type of a value's elements."""
        return TYPES.get(node.type.dtype.name, f"{self.name}_complex")

    @property
    def declaration(self) -> str:
        """The head of the entry's declaration."""
        given = [f"int64_t {s}" for s in self.sizes]
        for node, name in zip(self.graph.parameters, self.values, strict=False):
            given.append(f"const {self.kind(node)} *{name}" if node.type.shape else f"{self.kind(node)} {name}")
        given += [f"{self.kind(n)} *{o}" for n, o in zip(self.graph.results, self.results, strict=True)]
        return f"int {self.name}({', '.join(given) or 'void'})"

    def header(self) -> str:
        """Return the text of the header."""
        guard = f"{self.name.upper()}_H"
        fixed = [
            v for v, f in zip(flatten(self.function.arguments)[0], self.function.fixed, strict=True) if f is not ARRAY
        ]
        lines = [
            f"{self.function.traced.name}: returns 0, or the number of an error, of which {self.name}_error() has the text",
            "(of this thread's last call): 1 sizes that do not fit, 2 no memory, 3 results that overlap with arguments or with",
            "one another, 4 an error of the function itself. Results are whole only where 0 is returned. Arrays are in C order.",
            "Any number of threads may call it.",
            "",
        ]
        lines += [f"  {s}: a size, 0 or more" for s in self.sizes]
        for node, name in zip(self.graph.parameters, self.values, strict=False):
            lines.append(f"  {name}: {node.type.dtype.name}{self.shape(node) if node.type.shape else ''}")
        for node, name in zip(self.graph.results, self.results, strict=True):
            lines.append(
                f"  {name}: {node.type.dtype.name}{self.shape(node) if node.type.shape else ', one number'}, written"
            )
        if fixed:
            lines.append(f"  fixed when it was compiled: {', '.join(map(repr, fixed))}")
        about = "\n".join(f" * {line}".rstrip() for line in lines).replace("*/", "* /")
        both = (*self.graph.parameters[: self.count], *self.graph.results)
        pair = any(n.type.dtype.kind == "c" for n in both)
        complex_ = f"typedef struct {{ double real, imag; }} {self.name}_complex;\n\n" if pair else ""
        return (
            f"/*\n{about}\n */\n#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>\n\n"
            f'#ifdef __cplusplus\nextern "C" {{\n#endif\n\n{complex_}{self.declaration};\n\n'
            f"const char *{self.name}_error(void);\n\n#ifdef __cplusplus\n}}\n#endif\n\n#endif\n"
        )

    def body(self, cases: Sequence[tuple[str, str]]) -> str:
        """Return the text of the entry."""
        sizes = ", ".join(self.sizes) or "0"
        pairs = list(zip(self.graph.parameters, self.values, strict=False))
        given = ", ".join(f"(void *){n}" if p.type.shape else f"(void *)&{n}" for p, n in pairs) or "0"
        outs = ", ".join(f"(void *){o}" for o in self.results)
        arrays = [(n, name) for n, name in pairs if n.type.shape]
        results = list(zip(self.graph.results, self.results, strict=True))
        every = [*arrays, *results]
        ends = ", ".join(f"(const char *){name}" for _, name in every)
        extents = ", ".join(f"({self._count(n)}) * {n.type.dtype.itemsize}" for n, _ in every)
        negative = " || ".join(f"{s} < 0" for s in self.sizes)
        choices = ""
        for test, chosen in cases:
            call = chosen if chosen.startswith("said(") else f"run_{chosen}(sizes, in, out)"
            choices += f"    return {call};\n" if test == "1" else f"    if ({test}) return {call};\n"
        first = len(arrays)
        check = (f'    if ({negative}) return said(SIZES, "a size is negative");\n' if negative else "") + (
            f"    const char *const begin[] = {{{ends}}};\n    const int64_t bytes[] = {{{extents}}};\n"
            f"    for (int k = {first}; k < {len(every)}; k++)\n        for (int j = 0; j < k; j++)\n"
            "            if (begin[j] < begin[k] + bytes[k] && begin[k] < begin[j] + bytes[j])\n"
            '                return said(OVERLAP, "a result shares memory with an argument or with another result");\n'
            if every and results
            else ""
        )
        return (
            f"{self.declaration} {{\n    const int64_t sizes[] = {{{sizes}}};\n    void *const in[] = {{{given}}};\n"
            f"    void *const out[] = {{{outs or '0'}}};\n    text[0] = 0;\n{check}{choices}}}\n\n"
            f"const char *{self.name}_error(void) {{ return text; }}\n"
        )

    def _count(self, node: Node) -> str:
        return " * ".join(map(self.size, node.type.shape)) or "1"


def _source(export: _Export, entry: _Entry, cases: Sequence[tuple[str, str]]) -> str:
    declared = "".join(f"void {k}(void *, void *, int64_t *);\n" for k in dict.fromkeys(export.kernels.values()))
    products = "".join(f"GEMM({p}, {'double' if p == 'dgemm' else 'float'})\n" for p in sorted(export.products))
    about = f"/* {entry.name}: memory and calls; the loops are in the object files. */\n"
    return "\n".join(
        [f'{about}#include "{entry.name}.h"', PRELUDE + products, declared, *export.texts, entry.body(cases)]
    )


def _objects(export: _Export, place: Path) -> tuple[Path, ...]:
    """Return the kernels as object files."""
    try:
        from tensormagic.backend.cpu.code import object_called
    except ImportError as error:
        raise CaptureError(
            f"{error.name}, which compiles kernels, is not installed", "Install llvmlite and Numba."
        ) from None
    paths: list[Path] = []
    for source, symbol in export.kernels.items():
        path = place / f"{symbol}.o"
        path.write_bytes(object_called(source, symbol))
        paths.append(path)
    return tuple(paths)


def _linked(header: Path, source: Path, objects: tuple[Path, ...], place: Path) -> Exported:
    """Return the library, built if there is a C compiler."""
    mac = sys.platform == "darwin"
    library = place / f"lib{source.stem}.{'dylib' if mac else 'so'}"
    flags = ["-std=c11", "-O3", "-shared", "-fPIC", "-fvisibility=default"]
    flags += [] if mac else ["-Wl,-z,noexecstack"]
    parts = [*flags, str(source), *map(str, objects), "-o", str(library), "-lm"]
    compiler = next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), None)
    command = " ".join([compiler or "cc", *parts])
    if compiler is None or sys.platform == "win32":
        return Exported(header, source, objects, None, command)
    done = subprocess.run([compiler, *parts], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CaptureError(f"{compiler} could not build the library: {done.stderr.strip()[:500]}", command)
    return Exported(header, source, objects, library, command)
