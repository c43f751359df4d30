"""The user's line in which an error was raised: its parts, its variables and what it calls. Nothing of it is computed."""

from __future__ import annotations

import ast
import builtins
import inspect
import keyword
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Line:
    """The user's line: the part of it that raised, the whole of it, and the variables.

    Parameters
    ----------
    part, text
        The part, and the whole line.
    names
        The variables that it mentions, in order.
    """

    part: str = ""
    text: str = ""
    names: tuple[str, ...] = ()
    space: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def holding(self, fits: Callable[[Any], bool]) -> str:
        """Return the first variable whose value fits; nothing where there is none."""
        return next((n for n in self.names if n in self.space and fits(self.space[n])), "")

    def shaped(self) -> tuple[str, tuple[Any, ...]]:
        """Return the first array of the line and its shape, where that is an array's."""
        name = self.holding(lambda value: isinstance(getattr(value, "shape", None), tuple))
        return name, tuple(getattr(s, "hint", s) for s in self.space[name].shape) if name else ()

    def part_of(self, kind: type[ast.AST]) -> Any:
        """Return the outermost part of the expression, or of the line, of a kind of syntax."""
        for text in (self.part, self.text):
            try:
                tree = ast.parse(text.strip().rstrip(":"))
            except (SyntaxError, ValueError):
                continue
            if found := next((p for p in ast.walk(tree) if isinstance(p, kind)), None):
                return found
        return None

    def called(self) -> tuple[str, Any]:
        """Return the called function's text and the function itself, looked up by names and attributes; nothing is computed."""
        call = self.part_of(ast.Call)
        return ("", None) if call is None else (ast.unparse(call.func), self.value(call.func))

    def owner_of(self, name: str) -> str:
        """Return the variable whose attribute is read, as ``w`` in ``print(w.grad)``."""
        written = rf"([^\W\d]\w*)\.{re.escape(name)}\b"
        found = re.search(written, self.part) or re.search(written, self.text)
        return found[1] if found else ""

    def keyword_as_name(self) -> str:
        """Return the hint where a keyword of Python is used as a name: ``lambda = 2``."""
        text = re.sub(r"""'[^']*'|"[^"]*\"""", "''", self.text)
        found = _ASSIGNED.search(text) or _NO_LAMBDA.search(text)
        return f"{found[1]} is a word of Python's own, and cannot be a name: {found[1]}_ can." if found else ""

    def value(self, part: ast.expr) -> Any:
        """Return the object that a name, or an attribute of a module, refers to, or None for others. Nothing is computed."""
        if isinstance(part, ast.Name):
            return self.space.get(part.id, getattr(builtins, part.id, None))
        if isinstance(part, ast.Attribute):
            owner = inspect.unwrap(self.value(part.value))  # captured code sees modules through others
            return getattr(owner, part.attr, None) if inspect.ismodule(owner) else None
        return None


_ASSIGNED = re.compile(rf"(?<![\w.])({'|'.join(keyword.kwlist)})\s*=(?!=)")
_NO_LAMBDA = re.compile(r"(?<![\w.])(lambda)(?:\s*[^\w\s:*]|\s*\*\s*[\w.]+(?![\w.]*\s*[:,]))")
