"""The magic ``%tensor_graph`` and its relatives: a closer look at a lazy value, and at what is cached. They change nothing."""

from __future__ import annotations

import ast
import re
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_magic, magics_class, no_var_expand

from tensormagic.backend.compiling import cache
from tensormagic.capture.values.value import Tensor
from tensormagic.config import config
from tensormagic.ir import site
from tensormagic.notebook.display.forms import forms_of
from tensormagic.notebook.display.inspecting import default_wrt
from tensormagic.notebook.display.panels import PANELS, Draw, nan, rules
from tensormagic.notebook.display.shown import Page, Views, bundle
from tensormagic.notebook.errors.option_names import near
from tensormagic.notebook.formulas.equations import formula_of, inputs_of
from tensormagic.notebook.options import arguments, describe
from tensormagic.notebook.pictures.adaptor import Portrait, newest, portrait, source_of

_NAME = ("NAME", None, "the variable that holds the lazy value (default: the last value shown)")


@magics_class
class TensorLooks(Magics):
    """The magics that inspect existing values."""

    shell: Any  # an InteractiveShell; the base class allows None, too

    def __init__(self, shell: InteractiveShell, views: Views) -> None:
        super().__init__(shell)
        self.views = views

    @no_var_expand
    @line_magic
    @describe(_NAME, usage="%tensor_graph [NAME]", example="%tensor_graph loss")
    def tensor_graph(self, line: str) -> Any:
        """Show the graph of a lazy value, open."""
        shown, source = self._portrait(line, self.tensor_graph)
        made = shown.scene(source)
        text = next(iter(shown.names))
        return Page(lambda: bundle(text, made, self.views, rich=True, expanded=True))

    @no_var_expand
    @line_magic
    @describe(
        _NAME,
        ("--wrt", "A,B", "inputs whose gradients are shown, too (default: all, at most three)"),
        usage="%tensor_formula [NAME] [--wrt A,B]",
        example="%tensor_formula loss --wrt w,b",
    )
    def tensor_formula(self, line: str) -> Any:
        """Show a lazy value, and its gradients, as mathematics."""
        given = arguments(self.tensor_formula, re.sub(r",\s+", ",", line))
        name, value = self._value(given.NAME, self.tensor_formula)
        asked = [n.strip() for n in given.wrt.split(",") if n.strip()]
        space, known = self.shell.user_ns, inputs_of(value)
        for n in asked:
            if n not in known:
                raise UsageError(f"%tensor_formula --wrt: {name} has no floating input {n}{near(n, known)}")
        return formula_of(value, name, space, asked or default_wrt(value, space))

    @no_var_expand
    @line_magic
    @describe(_NAME, usage="%tensor_profile [NAME]", example="%tensor_profile loss")
    def tensor_profile(self, line: str) -> Any:
        """Show the time that each line takes for a lazy value in NumPy."""
        return self._panel(line, self.tensor_profile, PANELS["profile"])

    @no_var_expand
    @line_magic
    @describe(_NAME, usage="%tensor_rules [NAME]", example="%tensor_rules loss")
    def tensor_rules(self, line: str) -> Any:
        """Show the rewrite rules that fired for a lazy value, where, and what each bought: accuracy, operations, bytes."""
        return self._panel(line, self.tensor_rules, lambda shown, _: rules(shown))

    @no_var_expand
    @line_magic
    @describe(_NAME, usage="%tensor_nan [NAME]", example="%tensor_nan loss")
    def tensor_nan(self, line: str) -> Any:
        """Show where the first nan of a lazy value came from: the node and the line that made it of numbers."""
        return self._panel(line, self.tensor_nan, nan)

    @no_var_expand
    @line_magic
    @describe(
        ("--clear", None, "delete the cached machine code"),
        usage="%tensor_cache [--clear]",
        example="%tensor_cache\n%tensor_cache --clear",
    )
    def tensor_cache(self, line: str) -> None:
        """Show the folder that machine code is kept in, and how much is in it."""
        clear = arguments(self.tensor_cache, line).clear
        count, size = cache.kept(clear=clear)
        note = f" ({problem})" if (problem := cache.problem()) else ""
        print(f"{config.cache_folder}: {count} files, {size / 2**20:.1f} MiB{', deleted' if clear else ''}{note}")  # noqa: T201 (it was asked for)

    def _panel(self, line: str, magic: Any, draw: Draw) -> Any:
        shown, source = self._portrait(line, magic)
        panel = draw(shown, source)
        return Page(lambda: (forms_of(panel), {}))

    def _portrait(self, line: str, magic: Any) -> tuple[Portrait, str]:
        if _is_expression(line.strip()):
            raise UsageError(f"%{magic.__name__} takes a name, not {line.strip()}: write value = {line.strip()} first")
        name, value = self._value(arguments(magic, line).NAME, magic)
        spans = [s for s in site.of(value.node) if s.role == "value"]
        cell = newest(spans).cell if spans else ""
        return portrait({name: value.node}, {}, cell, value.level), source_of(cell)

    def _value(self, name: str, magic: Any) -> tuple[str, Tensor]:
        """Return the lazy value of that name, or the last one that was shown."""
        value = self.shell.user_ns.get(name) if name else self._last()
        if not isinstance(value, Tensor):
            what = "none has been shown yet"
            if name:
                known = name in self.shell.user_ns
                what = (
                    f"{name} is {type(value).__name__}" if known else f"there is no variable {name}{self._near(name)}"
                )
            raise UsageError(
                f"%{magic.__name__} takes the name of a lazy value; {what.rstrip('.')}. %%tensor cells compute lazy values."
            )
        return name or self._called(value), value

    def _called(self, value: Tensor) -> str:
        """Return the variable that holds a value."""
        held = ((n, v) for n, v in self.shell.user_ns.items() if n[0] != "_" and isinstance(v, Tensor))
        return next((n for n, v in held if v.node is value.node), "value")

    def _last(self) -> Any:
        """Return the last lazy value that was shown."""
        space = self.shell.user_ns
        shown = [*map(space.get, ("_", "__", "___")), *reversed(list(space.get("Out", {}).values()))]
        return next((v for v in shown if isinstance(v, Tensor)), None)

    def _near(self, name: str) -> str:
        return near(name, [n for n, v in self.shell.user_ns.items() if isinstance(v, Tensor)])


def _is_expression(text: str) -> bool:
    """Return whether a text is an expression other than a name."""
    if not text or text.startswith("-") or text.isidentifier():
        return False
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return False
    return True
