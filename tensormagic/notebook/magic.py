"""The magic ``%%tensor`` and its relatives: parse options and text, run the cell, and return what is shown."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from IPython.core.display_functions import publish_display_data
from IPython.core.displayhook import DisplayHook
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand, output_can_be_silenced
from traitlets import Bool, Enum, TraitError, Unicode, validate

from tensormagic.capture.cell import Code
from tensormagic.capture.values.summary import type_text
from tensormagic.config import config
from tensormagic.notebook.cells.as_plain_python import run_as_it_can
from tensormagic.notebook.cells.outcome import Outcome, Source
from tensormagic.notebook.cells.run import compiled, run_plain
from tensormagic.notebook.check import check
from tensormagic.notebook.display.background_value import show_when_there
from tensormagic.notebook.display.forms import Panel, forms_of, seconds_text
from tensormagic.notebook.display.panels import PANELS
from tensormagic.notebook.display.shown import Report, Reporting, Views, headline, portrait_of
from tensormagic.notebook.errors import report
from tensormagic.notebook.options import CHOICES, Options, declare, of_line, read
from tensormagic.notebook.warnings.stale import Gradients, Origins


@magics_class
class TensorMagics(Magics):
    """The magics, with their state for one notebook."""

    math = Enum(["", *CHOICES["--math"]], "", help="Which rewrites may be used when --math is not given.").tag(
        config=True
    )
    show = Unicode("graph", help="What is shown beside the value when --show is not given.").tag(config=True)
    dtype = Enum(
        ["", *CHOICES["--dtype"]], "", help="The dtype that floating-point inputs are converted to; empty: none."
    ).tag(config=True)
    device = Enum(["", *CHOICES["--device"]], "", help="The device when --device is not given.").tag(config=True)
    plain = Bool(False, help="Run cells as ordinary Python and NumPy.").tag(config=True)
    quiet = Bool(False, help="Show nothing.").tag(config=True)
    verbose = Bool(False, help="Show errors with their whole traceback.").tag(config=True)

    @validate("show")
    def _known(self, proposal: Any) -> str:
        for panel in proposal["value"].split(","):
            if panel.strip() not in {"", *CHOICES["--show"]}:
                raise TraitError(
                    f"TensorMagics.show takes one or several of {', '.join(CHOICES['--show'])}, not {panel.strip()!r}"
                )
        return proposal["value"]

    shell: Any  # an InteractiveShell; the base class allows None, too

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self.views = Views()
        self.reporting = Reporting()
        self.gradients = Gradients()
        self.origins = Origins()
        self.marked: Callable[[str], bool] = lambda cell: True  # whether a cell's first line is the user's
        self.running: Callable[[], bool] = lambda: True  # whether a cell of the user runs
        self._runs = 0
        self._text = ""
        self._texts: dict[int, list[str]] = {}  # of the cells that have run under each count

    @output_can_be_silenced
    @no_var_expand
    @line_cell_magic
    @declare
    def tensor(self, line: str, cell: str | None = None) -> Any:
        """Capture a cell of NumPy code into a graph; differentiate, compile and show it."""
        asked, line = of_line(line, self.shell.user_ns) if cell is None else (line, "")
        options = self.options(asked)
        if cell is None and not line:
            raise UsageError("%tensor takes one expression, as in %tensor X.sum(); a whole cell begins with %%tensor")
        label, number = self._labelled(), self.next_run()
        marked = cell is None or self.marked(cell)
        options = options if marked or self.running() else replace(options, plain=True)  # a tool's own code
        source = Source(
            line if cell is None else cell,
            label,
            number,
            self._line() if cell is None else int(not marked),
            f"%%tensor {asked}".rstrip() if cell is not None and marked else "",
        )
        code = self._guarded(options, lambda: compiled(source, self.shell))
        found = self._guarded(options, lambda: self._run(code, options))
        silent = bool(DisplayHook.semicolon_at_end_of_expression(source.text))
        return self.reporting.given(found, marked=marked, silent=silent) if isinstance(found, Report) else found

    def options(self, line: str) -> Options:
        """Return the options in a line, with the defaults that ``%config`` holds."""
        names = ("math", "show", "dtype", "device", "plain", "quiet", "verbose")
        return read(type(self).tensor.parser, line, {name: getattr(self, name) for name in names})  # type: ignore[attr-defined]

    @property
    def count(self) -> int:
        """Return the number of the cell that runs."""
        result = self.shell.displayhook.exec_result  # IPython has counted on before the cell runs
        count = result.execution_count if result is not None else None
        return int(count or self.shell.execution_count)

    def next_run(self) -> int:
        """Return a number for one more run of a cell."""
        self._runs += 1
        return self._runs

    def begin(self, text: str) -> None:
        """Prepare for running a cell with this text."""
        self._text = text

    def _labelled(self) -> str:
        """Return the label of the cell: ``In[4]``, or ``In[4.2]`` for the second cell with that count where cells are not counted."""
        count = self.count
        texts = self._texts.setdefault(count, [])
        if self._text not in texts:
            texts.append(self._text)
        repeated = texts.index(self._text) + 1
        return f"In[{count}]" if repeated == 1 else f"In[{count}.{repeated}]"

    def _line(self) -> int:
        """Return the line of the user's cell that is running."""
        frame = inspect.currentframe()
        while frame is not None and frame.f_globals is not self.shell.user_ns:
            frame = frame.f_back
        return 1 if frame is None else frame.f_lineno

    @property
    def rich(self) -> bool:
        """Return whether there is a page beside the text."""
        return all(
            kind.__name__ != "TerminalInteractiveShell" for kind in type(self.shell).__mro__
        )  # not imported: slow

    def _run(self, code: Code, options: Options) -> Any:
        plain = options.plain or config.plain
        begin = time.perf_counter()
        view = self._view(code, options) if options.live and not options.quiet else None
        with self._having(code, options, view):
            outcome = (run_plain if plain else run_as_it_can)(code, self.shell, options)
        plain = plain or outcome.plain
        outcome.seconds = time.perf_counter() - begin
        if options.verbose:
            self._tell(outcome, time.perf_counter() - begin, plain=plain)
        if not options.dtype:  # what was cast on the way in is no variable of the notebook
            self.origins.read(outcome.inputs)
        space = self.shell.user_ns
        self.gradients.bind(outcome.gradients, outcome.moving, code.cell.label, space, options.name)
        self.shell.user_ns.update({f"grad_{name}": whole for name, whole in outcome.wholes.items()})
        if outcome.later is not None:
            future = outcome.later
            outcome.release()
            if not options.quiet and self.rich:
                given = outcome.name, outcome.result, outcome.gradients, None
                show_when_there(future, code.cell.label, partial(headline, *given, computed=True))
            return None if options.quiet else future
        if options.quiet:
            return None
        if plain and not outcome.gradients:
            return outcome.result if outcome.shown else None
        panels = self._panels(outcome)
        if "backprop" in options.show:
            self._backprop(outcome)
        outcome.release()
        if view is not None:
            return self._live(view, outcome)
        new = self.gradients.introduced([*outcome.gradients, *outcome.wholes]) if self.rich else ""
        return Report(outcome, self.views, graph="graph" in options.show, rich=self.rich, panels=panels, new=new)

    def _tell(self, outcome: Outcome, seconds: float, *, plain: bool) -> None:
        """Report what happened in the cell."""
        read = ", ".join(f"{name} {type_text(tensor.type)}" for name, tensor in outcome.inputs.items())
        bound = ", ".join([*outcome.outputs, *(f"grad_{name}" for name in outcome.gradients)])
        how = "run as plain Python" if plain else "captured and computed"
        label = outcome.code.cell.label
        ran = ", ".join(dict.fromkeys(outcome.on_values))
        told = f"{label}: {how} in {seconds_text(seconds)}; reads {read or 'no arrays'}; binds {bound or 'no names'}"
        print(f"{told}; not captured, run by Python: {ran}" if ran else told)  # noqa: T201 (it was asked for)

    def _panels(self, outcome: Outcome) -> tuple[Panel, ...]:
        """Return the panels beside the value; with a graph the page is made at once."""
        options = outcome.options
        asked = "speed" in options.show or any(name in PANELS for name in options.show)
        shown = portrait_of(outcome) if asked else None
        made = [PANELS[name](shown, outcome.source) for name in options.show if name in PANELS and shown is not None]
        if "speed" in options.show:
            from tensormagic.notebook.speeds.panel import speed  # seldom asked for, and slow to import
            from tensormagic.notebook.speeds.sheet import nothing

            why = "the cell computes no array or number from its inputs"
            made.append(speed(outcome, shown) if shown is not None and shown.computes else nothing(why))
        made += [check(outcome)] if options.check else []
        if ("graph" in options.show and self.rich) or options.live:
            for panel in made:
                publish_display_data(forms_of(panel))
            return ()
        return tuple(made)

    def _backprop(self, outcome: Outcome) -> None:
        """Show both passes of the cell's value."""
        from tensormagic.notebook.backprop.entry import cell_bundle

        publish_display_data(*cell_bundle(outcome, self.views, rich=self.rich))

    def _view(self, code: Code, options: Options) -> Any:
        """Return the live view of a cell, made before the cell runs, so that an error changes nothing."""
        from tensormagic.notebook.live.follow import view_of_cell

        view = view_of_cell(code, options, self.shell)
        self.views.add(view)
        return view

    @contextmanager
    def _having(self, code: Code, options: Options, view: Any) -> Generator[None]:
        """Bind names that only the live view defines to their start values while the cell runs; close the view if it fails."""
        space = self.shell.user_ns
        new: dict[str, Any] = {}
        if options.live:
            from tensormagic.notebook.live.follow import missing_names

            new = missing_names(code, options, space)
        space.update(new)
        try:
            yield
        except BaseException:
            if view is not None:
                view.close()
            raise
        finally:
            for name in [n for n, value in new.items() if space.get(n) is value]:
                del space[name]

    def _live(self, view: Any, outcome: Outcome) -> Any:
        """Return the report of a cell with a live view: it is shown as that view."""
        from tensormagic.notebook.live.follow import LiveReport

        return LiveReport(outcome, self.views, view, rich=self.rich)

    def _guarded(self, options: Options, action: Callable[[], Any]) -> Any:
        """Run an action; show errors at the user's line."""
        try:
            return action()
        except UsageError:
            raise
        except BaseException as error:
            drawn = report.whole(error, self.shell) if options.verbose else report.of_cell(error, self.shell)
            report.dress(error, lambda: drawn)
            picture = report.picture_of(error)
            if picture and self.rich and not options.quiet:
                publish_display_data(picture)
            raise
