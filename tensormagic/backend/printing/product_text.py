"""Print products of matrices inside loops: blocks of rows and terms where they are small, calls of BLAS elsewhere."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from tensormagic.backend.planning.kinds import is_inline_move
from tensormagic.backend.planning.lower import Read
from tensormagic.backend.planning.schedule import Nest, coefficients
from tensormagic.backend.printing.body_text import Body, indented
from tensormagic.backend.printing.kernel_text import KernelText, Line
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size

SMALL = 1 << 17  # multiplications up to which own loops are as fast as BLAS, where all goes through memory in order
TINY = 1 << 11  # the same where an operand does not
RANK = 3  # rows, columns, terms
ROWS, TERMS = 2, 4  # in a block
_BLAS = {"float64": "dgemm", "float32": "sgemm"}


@cache
def blas(name: str) -> int:
    """Return the address of a BLAS function, from SciPy's library; 0 if there is none."""
    try:
        capsule = import_module("scipy.linalg.cython_blas").__pyx_capi__[name]
    except (ImportError, AttributeError, KeyError):
        return 0
    api: Any = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return int(api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule)))


@dataclass(frozen=True)
class Matrix:
    """A matrix in memory: its array, offset, and strides along rows and columns."""

    array: str
    offset: str
    down: Size
    along: Size


def print_product(text: KernelText, nest: Nest) -> bool:
    """Print the only stage of a nest; False if its operands are not stored as matrices."""
    (stage,) = nest.stages
    root = stage.root
    if len(stage.domain) != RANK or root.type.dtype.name not in _BLAS:
        return False
    body = Body(text, nest, nest.loops[0], None)
    row, column = (k or 0 for k in stage.place)
    (term,) = stage.reduced
    found = [_below(text, read) for read in stage.body]
    if any(not text.stored(node) for node, _ in found):
        return False
    factors = [coefficients(node, index) for node, index in found]
    if column in factors[0][0] or row in factors[1][0]:  # an operand may be the same in all rows, or in all columns
        found.reverse()
        factors.reverse()
    text.lines += body.sections[0]
    left, right = (
        Matrix(text.array(node), text.size(offset), steps.get(down, 0), steps.get(along, 0))
        for (node, _), (steps, offset), down, along in zip(found, factors, (row, term), (term, column), strict=True)
    )
    extents = [text.product(stage.domain[k]) for k in (row, column, term)]
    _Product(text, root, left, right, extents).print()
    return True


def _below(text: KernelText, read: Read) -> Read:
    """Return the stored node under moves that a read refers to, with its index."""
    node, index = read
    while is_inline_move(node) and not text.stored(node):
        node, index = node.args[0], node.op.index(node, index)  # type: ignore[attr-defined]
    return node, index


@dataclass
class _Product:
    """The text of one product."""

    text: KernelText
    root: Node
    left: Matrix
    right: Matrix
    extents: list[str]

    def print(self) -> None:
        """Print own loops and a BLAS call; which one runs is decided at run time."""
        by_rows = self.right.along == 1
        loops = self._blocks() if by_rows else self._sums()
        call = self._call()
        m, n, k = self.extents
        if call:
            self._line(f"if {m} * {n} * {k} > {SMALL if by_rows else TINY}:")
            self._line(f"    {call}")
            self._line("else:")
        self.text.lines += indented(loops) if call else loops

    def _line(self, line: str) -> None:
        self.text.lines.append((line, self.root))

    def _call(self) -> str:
        """Return the BLAS call; empty if an operand has no contiguous axis."""
        address = blas(_BLAS[self.root.type.dtype.name])
        turned: list[str] = []
        apart: list[str] = []
        for matrix in (self.left, self.right):
            if 1 not in {matrix.down, matrix.along} or 0 in {matrix.down, matrix.along}:
                return ""
            turned.append("0" if matrix.along == 1 else "1")
            apart.append(self.text.size(matrix.down if matrix.along == 1 else matrix.along))
        if not address:
            return ""
        place = self.text.address(address)
        out = self.text.array(self.root)
        operands = [place, self.left.array, self.left.offset, self.right.array, self.right.offset, out, "0"]
        return f"gemm({', '.join([*operands, *self.extents, *apart, self.extents[1], *turned])})"

    def _element(self, matrix: Matrix, down: str, along: str) -> str:
        steps = ((down, matrix.down), (along, matrix.along))
        terms = [name if step == 1 else f"{name} * {self.text.product(step)}" for name, step in steps if step != 0]
        return f"{matrix.array}[{' + '.join([*terms, *([matrix.offset] if matrix.offset != '0' else [])])}]"

    def _out(self, row: str, column: str) -> str:
        return f"{self.text.array(self.root)}[{row} * {self.extents[1]} + {column}]"

    def _sums(self) -> list[Line]:
        """Return loops that compute one element of the product after another."""
        m, n, k = self.extents
        i, j, p, total = (self.text.fresh(stem) for stem in ("row", "column", "term", "total"))
        dtype = self.root.type.dtype.name
        factor = f"{self._element(self.left, i, p)} * {self._element(self.right, p, j)}"
        lines = [
            f"for {i} in range({m}):",
            f"    for {j} in range({n}):",
            f"        {total} = np.{dtype}(0.0)",
            f"        for {p} in range({k}):",
            f"            {total} = add_reassoc({total}, {factor})",
            f"        {self._out(i, j)} = {total}",
        ]
        return [(line, self.root) for line in lines]

    def _blocks(self) -> list[Line]:
        """Return loops over blocks of rows and terms, which read the right operand once for all rows of a block."""
        m = self.extents[0]
        i = self.text.fresh("row")
        lines: list[Line] = []
        for rows, where in ((ROWS, f"0, {m} - {m} % {ROWS}, {ROWS}"), (1, f"{m} - {m} % {ROWS}, {m}")):
            lines.append((f"for {i} in range({where}):", self.root))
            lines += indented(self._rows([f"({i} + {r})" if r else i for r in range(rows)]))
        return lines

    def _rows(self, rows: list[str]) -> list[Line]:
        n, k = self.extents[1:]
        j, p = self.text.fresh("column"), self.text.fresh("term")
        zero = f"np.{self.root.type.dtype.name}(0.0)"
        lines = [f"for {j} in range({n}):", *(f"    {self._out(row, j)} = {zero}" for row in rows)]
        for terms, where in ((TERMS, f"0, {k} - {k} % {TERMS}, {TERMS}"), (1, f"{k} - {k} % {TERMS}, {k}")):
            lines.append(f"for {p} in range({where}):")
            at = [f"({p} + {t})" if t else p for t in range(terms)]
            names = [[self.text.fresh("x") for _ in at] for _ in rows]
            given = [self.text.fresh("y") for _ in at]
            lines += [
                f"    {name} = {self._element(self.left, row, t)}"
                for row, own in zip(rows, names, strict=True)
                for t, name in zip(at, own, strict=True)
            ]
            lines.append(f"    for {j} in range({n}):")
            lines += [f"        {y} = {self._element(self.right, t, j)}" for t, y in zip(at, given, strict=True)]
            for row, own in zip(rows, names, strict=True):
                value = self._out(row, j)
                for x, y in zip(own, given, strict=True):
                    value = f"multiply_add({x}, {y}, {value})"
                lines.append(f"        {self._out(row, j)} = {value}")
        return [(line, self.root) for line in lines]
