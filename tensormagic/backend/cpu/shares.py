"""Loops of kernels that threads share, as LLVM's language: what such a loop reads is in a frame, and the pool calls it by its address."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tensormagic.backend.cpu.kinds import Value, Writer, llvm
from tensormagic.backend.cpu.pool import ALONE, BOUND, PLACE

HELPER = "share_out"

SHARE_OUT = f"""{ALONE}

define internal i32 @{HELPER}(ptr %loop, ptr %frame, i64 %count, i64 %work, i64 %threads, ptr %fault)
noinline nounwind optsize {{
entry:
  %several = icmp sgt i64 %count, 1
  %others = icmp ne i64 %threads, 0
  %maybe = and i1 %several, %others
  br i1 %maybe, label %ask, label %alone
ask:
  %pool = inttoptr i64 %threads to ptr
  %place = getelementptr i64, ptr %pool, i64 {BOUND}
  %bound = load i64, ptr %place
  %much = icmp sge i64 %work, %bound
  br i1 %much, label %together, label %alone
together:
  %dispatch = load ptr, ptr %pool
  %result = call i32 %dispatch(ptr %pool, ptr %loop, ptr %frame, i64 %count, i64 %work, ptr %fault)
  ret i32 %result
alone:
  %status = call i32 @alone(ptr %loop, ptr %frame, i64 %count, ptr %fault)
  ret i32 %status
}}"""


def is_fault(name: str) -> bool:
    """Return whether an array is where a kernel notes what went wrong: each thread has words of its own for that."""
    return re.fullmatch(r"fault\d+", name) is not None


def captured_names(body: Sequence[ast.stmt]) -> list[str]:
    """Return the names that a loop's statements read and do not assign, in the order of their first use."""
    nodes = [n for statement in body for n in ast.walk(statement) if isinstance(n, ast.Name)]
    given = {n.id for n in nodes if isinstance(n.ctx, ast.Store)}
    return list(dict.fromkeys(n.id for n in nodes if n.id not in given))


@dataclass(frozen=True)
class Captured:
    """What a loop reads that was there before it.

    Parameters
    ----------
    items
        Names and their values there.
    """

    items: list[tuple[str, Value]]

    @property
    def layout(self) -> str:
        """Return LLVM's type of the frame: the table, then the values that are no constants."""
        return f"{{{', '.join(['ptr', *(llvm(v.kind) for _, v in self._kept())])}}}"

    def _kept(self) -> Iterator[tuple[str, Value]]:
        return ((name, v) for name, v in self.items if v.number is None and not is_fault(name))

    def stores(self, code: Writer, frame: str) -> Iterator[str]:
        """Yield the instructions that fill a frame."""
        yield f"store ptr %table, ptr {frame}"
        for k, (_, v) in enumerate(self._kept(), 1):
            place = f"%{code.fresh('place')}"
            yield f"{place} = getelementptr {self.layout}, ptr {frame}, i32 0, i32 {k}"
            yield f"store {llvm(v.kind)} {v.text}, ptr {place}"

    def loaded(self, code: Writer) -> dict[str, Value]:
        """Return the same names in the loop's function."""
        code.do("%table = load ptr, ptr %frame")
        found = {name: v for name, v in self.items if v.number is not None}
        for k, (name, v) in enumerate(self._kept(), 1):
            place = code.new("int64", f"getelementptr {self.layout}, ptr %frame, i32 0, i32 {k}")
            found[name] = code.new(v.kind, f"load {llvm(v.kind)}, ptr {place.text}")
        for name, v in self.items:
            if is_fault(name):
                place = code.new("int64", f"getelementptr i64, ptr %local, i64 {PLACE}")
                found[name] = code.new(v.kind, f"load ptr, ptr {place.text}")
        return found
