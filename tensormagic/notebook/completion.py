"""Completion of the magics: options, their values, names and their types. It reads text, and the notebook's variables."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

import numpy as np
from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from tensormagic.capture.hooks import hooks
from tensormagic.capture.values.summary import type_text
from tensormagic.capture.values.value import Tensor
from tensormagic.functions.rules.declared import rules
from tensormagic.notebook.display.value_texts import actual_type
from tensormagic.notebook.formulas.equations import inputs_of
from tensormagic.notebook.options import CHOICES, NAMES, OPTIONS, choices, of_line, offered

_BOUND = re.compile(r"^(?:def\s+)?([^\W\d]\w*)\s*(?:=(?!=)|\()", re.MULTILINE)
_CELL = re.compile(r"%%(tensor|rewrite)(?:\s.*)?$")
_LINE = re.compile(
    r"(?:[^\W\d]\w*\s*=\s*|\s*)%(tensor|tensor_(?:graph|profile|rules|nan|cache|formula|default))(\s.*)$"
)
_SWITCHES = {
    "rewrite": ("--math", "--test"),
    "tensor_cache": ("--clear",),
    "tensor_default": ("on", "off"),
    "tensor_formula": ("--wrt",),
}


def matcher(shell: Any) -> Any:
    """Return the matcher for one shell."""

    def tensor_matcher(context: CompletionContext) -> SimpleMatcherResult:
        lines = context.full_text.splitlines()
        first = next((k for k, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")), 0)
        cell = _CELL.match(lines[first]) if lines and context.cursor_line >= first else None
        if cell is None:
            return _in_line(context.text_until_cursor, shell)
        if context.cursor_line == first:
            made = _of_rewrite if cell[1] == "rewrite" else _of_tensor
            return _result(made(lines[first:], context.text_until_cursor, shell), suppress=True)
        if cell[1] == "rewrite":
            return _result([])
        own = _names_of("\n".join(lines[first + 1 : context.cursor_line]))
        return _result([n for n in own if n not in shell.user_ns and context.token and n.startswith(context.token)])

    mark = cast("Callable[[Any], Any]", context_matcher(identifier="tensormagic"))
    return mark(tensor_matcher)


def _result(words: Iterable[str], *, suppress: bool = False) -> SimpleMatcherResult:
    return SimpleMatcherResult(completions=[SimpleCompletion(text=w, type="tensor") for w in words], suppress=suppress)


# types ----------------------------------------------------------------------------------------------------------------


def typed(completions: Callable[[str, int], Iterator[Any]], space: Mapping[str, Any]) -> Callable[..., Iterator[Any]]:
    """IPython's completions with the types of arrays, in captured cells, and what attributes of lazy values are."""

    def told(text: str, offset: int) -> Iterator[Any]:
        lines = [line for line in text[:offset].splitlines() if line.strip() and not line.lstrip().startswith("#")]
        captured = bool(lines) and _CELL.match(lines[0]) is not None
        for found in completions(text, offset):
            root = _ROOT.search(text[: found.start + len(found.text) - len(found.text.rpartition(".")[2])])
            owner = space.get(root[1]) if root is not None else None
            if isinstance(owner, Tensor):
                found.type = _kind_of(found.text.rpartition(".")[2])
            elif captured and root is None and found.text in space:
                found.type = type_of(space[found.text]) or found.type
            yield found

    return told


_ROOT = re.compile(r"(?<![\w.])([^\W\d]\w*)\.$")


def type_of(value: Any) -> str:
    """Return ``float64[40, 3]`` for arrays and numbers, ``lazy float64`` for lazy values, or "" for the rest."""
    if isinstance(value, Tensor):
        return f"lazy {type_text(value.type)}"
    return actual_type(value) if isinstance(value, np.ndarray | np.generic | int | float | complex) else ""


def _kind_of(attribute: str) -> str:
    """Return whether a lazy value has a method or a property of that name."""
    found = hooks.methods.get(attribute, inspect.getattr_static(Tensor, attribute, None))
    return "function" if callable(found) else "property"


# lines ----------------------------------------------------------------------------------------------------------------


def _in_line(until: str, shell: Any) -> SimpleMatcherResult:
    """Return the completions at the cursor in a line with one of the line magics."""
    found = _LINE.match(until)
    if found is None:
        return _result([])
    magic, rest = found.groups()
    last = rest.split(" ")[-1]
    if magic == "tensor":
        return _in_expression(rest, shell)
    if magic in {"tensor_cache", "tensor_default"} or last.startswith("-"):
        return _result(_starting(_SWITCHES.get(magic, ()), last), suppress=True)
    if rest.split(" ")[-2:-1] == ["--wrt"]:
        value = shell.user_ns.get(rest.split()[0])
        return _result(_starting(inputs_of(value) if isinstance(value, Tensor) else [], last), suppress=True)
    lazy = [n for n, v in shell.user_ns.items() if isinstance(v, Tensor) and not n.startswith("_")]
    return _result(_starting(lazy, last) if len(rest.split()) < 2 or last else [], suppress=True)


def _in_expression(rest: str, shell: Any) -> SimpleMatcherResult:
    """Complete options before the expression begins, and Python names after that."""
    known = [option for option in offered() if option not in {"-n", "--name"}]
    words = rest.split(" ")
    options, begun = of_line(" ".join(words[:-1]), shell.user_ns)
    before = options.split()[-1] if options else ""
    takes = OPTIONS.get(before) is not None
    if begun or (words[-1] and not words[-1].startswith("-") and not takes):
        return _result(_of_python(rest, shell.Completer))
    if takes:
        return _result(_values(before, words[-1], shell.user_ns, [], []), suppress=True)
    return _result(_option(words[-1], known, shell), suppress=words[-1].startswith("-"))


def _of_python(text: str, completer: Any) -> list[str]:
    """Complete names and attributes, which IPython completes only without a magic."""
    found = re.search(r"[^\W\d][\w.]*$", text)
    if found is None:
        return []
    return completer.attr_matches(found[0]) if "." in found[0] else completer.global_matches(found[0])


# first lines ----------------------------------------------------------------------------------------------------------


def _of_rewrite(lines: list[str], until: str, shell: Any) -> list[str]:
    del lines, shell
    words = until.split(" ")
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    option, _, value = last.rpartition("=") if last.startswith("--math=") else (before, "", last)
    if option == "--math":
        return _starting(CHOICES["--math"], value)
    return _starting([*_SWITCHES["rewrite"], *([] if last.startswith("-") else rules.own)], last)


def _of_tensor(lines: list[str], until: str, shell: Any) -> list[str]:
    """Return the completions at the cursor: an option, a value of the option before it, or a name."""
    words = until.split(" ")
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    text = "\n".join(lines[1:])
    option = last.partition("=")[0] if last.startswith("--") and "=" in last else before
    if last.startswith("-") and "=" not in last:
        return _option(last, offered(), shell)
    read = set(re.findall(r"[^\W\d]\w*", text))
    if option in CHOICES or option in NAMES:
        variables = [n for n in shell.user_ns if n in read]
        return _values(option, last.rpartition("=")[2], variables, _names_of(text), variables)
    return offered() if not last else []


def _option(last: str, known: Iterable[str], shell: Any) -> list[str]:
    """Return options that begin so, or the values of one that is followed by ``=``."""
    option, equals, value = last.partition("=")
    if equals:
        return _values(option, value, shell.user_ns, [], [])
    return [o for o in known if o.startswith(last)]


def _values(option: str, typed: str, variables: Iterable[str], bound: list[str], read: list[str]) -> list[str]:
    """Return the values of an option: its choices, or names that the cell binds or reads."""
    if option in CHOICES:
        return _starting(choices(option), typed)
    if option not in NAMES:
        return []
    known = bound if option in {"-o", "--output"} else [*bound, *(read or variables)]
    return _starting([n for n in dict.fromkeys(known) if not n.startswith("_")], typed)


def _starting(words: Iterable[str], typed: str) -> list[str]:
    """Return the words that continue the last part of a list with commas."""
    last = typed.rpartition(",")[2]
    return [w for w in words if w.startswith(last)]


def _names_of(text: str) -> list[str]:
    """Return names that a text binds, as far as it can be told while it is being typed."""
    return list(
        dict.fromkeys(found[1] for found in _BOUND.finditer(text) if "=" in found[0] or found[0].startswith("def"))
    )
