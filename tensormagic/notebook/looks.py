"""``%tensor_graph`` and its kin: a closer look at a lazy value, and at what is cached. They change nothing."""

from __future__ import annotations

from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_magic, magics_class, no_var_expand

from tensormagic.capture.value import Tensor
from tensormagic.config import config
from tensormagic.ir import site
from tensormagic.notebook.display import Page, Views, bundle, graph_text
from tensormagic.notebook.nan import nan_panel
from tensormagic.notebook.options import arguments, describe
from tensormagic.notebook.panels import PANELS
from tensormagic.notebook.pictures.adaptor import Portrait, newest, portrait, source_of
from tensormagic.notebook.run import near

__all__ = ["TensorLooks"]

_NAME = ("NAME", None, "the variable that holds the lazy value (default: the last one that was shown)")


@magics_class
class TensorLooks(Magics):
    """The magics that look at values which are there."""

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
        text = f"{next(iter(shown.names))}: {graph_text(shown)}"
        return Page(lambda: bundle(text, made, self.views, rich=True, expanded=True))

    @no_var_expand
    @line_magic
    @describe(_NAME, usage="%tensor_profile [NAME]", example="%tensor_profile loss")
    def tensor_profile(self, line: str) -> Any:
        """Show the time that each line takes for a lazy value in NumPy."""
        return self._panel(line, self.tensor_profile, "profile")

    @no_var_expand
    @line_magic
    @describe(_NAME, usage="%tensor_rules [NAME]", example="%tensor_rules loss")
    def tensor_rules(self, line: str) -> Any:
        """Show the rewrite rules that fired for a lazy value, and where."""
        return self._panel(line, self.tensor_rules, "rewrites")

    @no_var_expand
    @line_magic
    @describe(_NAME, usage="%tensor_nan [NAME]", example="%tensor_nan loss")
    def tensor_nan(self, line: str) -> Any:
        """Show where the first nan of a lazy value came from: the node and the line that made it of numbers."""
        return self._panel(line, self.tensor_nan, "nan")

    @no_var_expand
    @line_magic
    @describe(
        ("--clear", None, "delete the machine code that is kept"),
        usage="%tensor_cache [--clear]",
        example="%tensor_cache\n%tensor_cache --clear",
    )
    def tensor_cache(self, line: str) -> None:
        """Show the folder that machine code is kept in, and how much is in it."""
        clear = arguments(self.tensor_cache, line).clear
        files = [f for f in config.cache_folder.rglob("*") if f.is_file()] if config.cache_folder.is_dir() else []
        size = sum(f.stat().st_size for f in files) / 2**20
        for file in files if clear else ():
            file.unlink(missing_ok=True)
        print(f"{config.cache_folder}: {len(files)} files, {size:.1f} MiB{', deleted' if clear else ''}")  # noqa: T201 (it was asked for)

    def _panel(self, line: str, magic: Any, name: str) -> Any:
        shown, source = self._portrait(line, magic)
        page, text = nan_panel(shown, source) if name == "nan" else PANELS[name](shown, source)
        return Page(lambda: ({"text/plain": text, "text/html": page}, {}))

    def _portrait(self, line: str, magic: Any) -> tuple[Portrait, str]:
        name = arguments(magic, line).NAME
        value = self.shell.user_ns.get(name) if name else self._last()
        if not isinstance(value, Tensor):
            what = "none was shown yet"
            if name:
                known = name in self.shell.user_ns
                what = (
                    f"{name} is {type(value).__name__}" if known else f"there is no variable {name}{self._near(name)}"
                )
            raise UsageError(f"%{magic.__name__} takes the name of a lazy value; {what}")
        name = name or "_"
        spans = [s for s in site.of(value.node) if s.role == "value"]
        cell = newest(spans).cell if spans else ""
        return portrait({name: value.node}, {}, cell), source_of(cell)

    def _last(self) -> Any:
        """The last lazy value that was shown."""
        space = self.shell.user_ns
        shown = [*map(space.get, ("_", "__", "___")), *reversed(list(space.get("Out", {}).values()))]
        return next((v for v in shown if isinstance(v, Tensor)), None)

    def _near(self, name: str) -> str:
        return near(name, [n for n, v in self.shell.user_ns.items() if isinstance(v, Tensor)])
