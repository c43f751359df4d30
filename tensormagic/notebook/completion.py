"""Completion in ``%%tensor`` cells: options, their values, and names. It reads text only."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, cast

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from tensormagic.notebook.options import CHOICES, NAMES, OPTIONS

__all__ = ["matcher"]

_BOUND = re.compile(r"^(?:def\s+)?([^\W\d]\w*)\s*(?:=(?!=)|\()", re.MULTILINE)
_LINE = re.compile(r"%%tensor(\s.*)?$")


def matcher(shell: Any) -> Any:
    """The matcher for one shell."""

    def tensor_matcher(context: CompletionContext) -> SimpleMatcherResult:
        lines = context.full_text.splitlines()
        first = next((k for k, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")), 0)
        if not lines or _LINE.match(lines[first]) is None or context.cursor_line < first:
            return SimpleMatcherResult(completions=[])
        if context.cursor_line == first:
            return _result(_on_first_line(lines[first:], context.text_until_cursor, shell), suppress=True)
        own = _names_of("\n".join(lines[first + 1 : context.cursor_line]))
        return _result([n for n in own if n not in shell.user_ns and context.token and n.startswith(context.token)])

    mark = cast("Callable[[Any], Any]", context_matcher(identifier="tensormagic"))
    return mark(tensor_matcher)


def _result(words: Iterable[str], *, suppress: bool = False) -> SimpleMatcherResult:
    return SimpleMatcherResult(completions=[SimpleCompletion(text=w, type="tensor") for w in words], suppress=suppress)


def _on_first_line(lines: list[str], until: str, shell: Any) -> list[str]:
    """What can stand at the cursor: an option, a value of the option before it, or a name."""
    words = until.split(" ")
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last.startswith("-") and "=" not in last:
        return [option for option in OPTIONS if option.startswith(last)]
    option, _, value = last.rpartition("=") if last.startswith("--") else (before, "", last)
    if option in CHOICES:
        return _starting(CHOICES[option], value)
    if option in NAMES:
        read = set(re.findall(r"[^\W\d]\w*", "\n".join(lines[1:])))
        bound = _names_of("\n".join(lines[1:]))
        known = bound if option in {"-o", "--output"} else [*bound, *(n for n in shell.user_ns if n in read)]
        return _starting([n for n in dict.fromkeys(known) if not n.startswith("_")], value)
    return list(OPTIONS) if not last else []


def _starting(words: Iterable[str], typed: str) -> list[str]:
    """The words that continue the last part of a list with commas."""
    last = typed.rpartition(",")[2]
    return [w for w in words if w.startswith(last)]


def _names_of(text: str) -> list[str]:
    """Names that a text binds, as far as it can be told while it is being typed."""
    return list(
        dict.fromkeys(found[1] for found in _BOUND.finditer(text) if "=" in found[0] or found[0].startswith("def"))
    )
