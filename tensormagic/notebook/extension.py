"""Load the extension into IPython and unload it, with everything that it has registered."""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from json import JSONEncoder
from typing import TYPE_CHECKING, Any

import numpy as np
from IPython.core.error import UsageError

from tensormagic import session
from tensormagic.capture.errors.traces import met_in_capture, without_ours
from tensormagic.capture.hooks import hooks
from tensormagic.capture.inputs import snapshots
from tensormagic.capture.python import usercode
from tensormagic.capture.python.usercode import Cell
from tensormagic.capture.values.value import Tensor
from tensormagic.ir import site
from tensormagic.ir.errors import StaleGradientWarning, TensorError
from tensormagic.ir.node import Node
from tensormagic.notebook import completion
from tensormagic.notebook.cells.asking import Asking
from tensormagic.notebook.cells.await_cells import told_plain
from tensormagic.notebook.cells.default_magic import TensorDefault
from tensormagic.notebook.cells.interrupting import Interrupts, again
from tensormagic.notebook.cells.lost_names import lost
from tensormagic.notebook.cells.magic_lines import LATER, comments_first, help_asked, refused_later
from tensormagic.notebook.cells.prepared_functions import Prepared
from tensormagic.notebook.cells.recorded_values import recorded
from tensormagic.notebook.cells.timed_cells import Timed
from tensormagic.notebook.display import shown
from tensormagic.notebook.display.graph_magics import TensorLooks
from tensormagic.notebook.display.inspecting import Inspecting
from tensormagic.notebook.display.progress import Progress
from tensormagic.notebook.errors import hints
from tensormagic.notebook.errors import report as errors
from tensormagic.notebook.errors.refused_by_libraries import of_library
from tensormagic.notebook.magic import TensorMagics
from tensormagic.notebook.parted import root_of
from tensormagic.notebook.rewriting import TensorRewriting
from tensormagic.notebook.warnings import offers
from tensormagic.notebook.warnings.all_pairs import Pairs
from tensormagic.notebook.warnings.numbers_handed_on import HandedOn
from tensormagic.notebook.warnings.object_columns import Objects
from tensormagic.notebook.warnings.stale import KnownCell, stored_in
from tensormagic.notebook.warnings.type_questions import tell_of_classes
from tensormagic.notebook.warnings.warning_lines import Warned

if TYPE_CHECKING:
    from tensormagic.distributed.report import Report


_REPORT = "tensormagic.distributed.report.Report"  # which is seldom there

_ATTRIBUTE = "_tensormagic"


class Extension:
    """The extension in one shell, with everything that it has registered there."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.magics = TensorMagics(shell)
        self.looks = TensorLooks(shell, self.magics.views)
        self.rewriting = TensorRewriting(shell)
        self.default = TensorDefault(shell, self.magics.views)
        self.progress = Progress(lambda: self.magics.rich)
        self.interrupts = Interrupts()
        self.objects, self.warned = Objects(), Warned()
        self.pairs = Pairs()
        self.help_asked = partial(help_asked, shell.user_ns)
        self.timed = Timed(shell.user_ns)
        self.handed_on = HandedOn()
        self.asking, self.prepared = Asking(shell), Prepared()
        self._told_recorded: set[tuple[str, str]] = set()  # names and the cells that they were of
        self.magics.marked, self.magics.running = self.default.marked, lambda: self.default.running
        self.matcher = completion.matcher(shell)
        self.inspecting = Inspecting(shell, self.magics)
        self._plain: list[str] = []  # file names of cells that are not captured, under their present count
        self._counter, self._ahead = (
            0,
            1,
        )  # the shell's count before a cell, and by how much it was ahead of the cell's number

    def register(self) -> None:
        """Put everything into its place."""
        shell = self.shell
        shell.register_magics(self.magics, self.looks, self.rewriting, self.default)
        for name in LATER:
            shell.register_magic_function(partial(refused_later, name), "line", name)
        shell.events.register("pre_run_cell", self.before_cell)
        shell.events.register("post_run_cell", self.after_cell)
        shell.input_transformers_cleanup.extend([self.help_asked, comments_first, told_plain, self.default.transformer])
        shell.ast_transformers.append(self.timed)
        shell.Completer.custom_matchers.append(self.matcher)
        shell.Completer.completions = completion.typed(shell.Completer.completions, shell.user_ns)
        self.inspecting.attend()
        self.warned.begin()
        shell.display_formatter.mimebundle_formatter.for_type(Tensor, self.show)
        shell.display_formatter.mimebundle_formatter.for_type(_REPORT, self.show_call)
        shell.displayhook.compute_format_data = partial(
            self.magics.reporting.formats, shell.displayhook.compute_format_data
        )
        TensorError._render_traceback_ = lambda error: errors.shown_anywhere(error, shell)  # type: ignore[attr-defined]
        self.encode = JSONEncoder.default
        JSONEncoder.default = lambda encoder, value: self.as_json(encoder, value)  # type: ignore[method-assign]
        shell.showsyntaxerror = self.show_syntax_error
        shell.InteractiveTB.structured_traceback = self.traceback
        usercode.namers.append(self.named)
        self.compute, hooks.compute = hooks.compute, self.computing
        self.passed, hooks.failed = hooks.failed, self.failed
        self.looked, hooks.differentiated = hooks.differentiated, self.pairs.look

    def unregister(self) -> None:
        """Take everything back."""
        shell = self.shell
        self.asking.end()
        self.prepared.end()
        self.magics.views.close()
        self.rewriting.close()
        shell.events.unregister("pre_run_cell", self.before_cell)
        shell.events.unregister("post_run_cell", self.after_cell)
        for transformer in (self.help_asked, comments_first, told_plain, self.default.transformer):
            shell.input_transformers_cleanup.remove(transformer)
        if self.timed in shell.ast_transformers:
            shell.ast_transformers.remove(self.timed)
        shell.Completer.custom_matchers.remove(self.matcher)
        del shell.Completer.completions
        self.inspecting.leave()
        self.warned.end()
        self.progress.end()
        self.interrupts.end()
        shell.display_formatter.mimebundle_formatter.pop(Tensor, None)
        shell.display_formatter.mimebundle_formatter.pop(_REPORT, None)
        del shell.displayhook.compute_format_data
        del TensorError._render_traceback_  # type: ignore[attr-defined]
        JSONEncoder.default = self.encode
        del shell.showsyntaxerror
        del shell.InteractiveTB.structured_traceback
        usercode.namers.remove(self.named)
        self._renumber()
        hooks.compute, hooks.failed, hooks.differentiated = self.compute, self.passed, self.looked
        lost.clear()
        site.forgotten.clear()
        self._unregister_magics()

    def _unregister_magics(self) -> None:
        manager = self.shell.magics_manager
        for group in (self.magics, self.looks, self.rewriting, self.default):
            registered: Any = group.magics
            for kind, names in registered.items():
                for name in (*names, *LATER):
                    manager.magics[kind].pop(name, None)
            manager.registry.pop(type(group).__name__, None)
            self.shell.configurables.remove(group)

    def before_cell(self, info: Any) -> None:
        """Before a plain cell runs, protect pending values from it, and record the variables that it uses."""
        self.interrupts.begin()
        try:
            self._before_cell(info)
        except KeyboardInterrupt:  # IPython would tell it and go on with the cell
            again()

    def _before_cell(self, info: Any) -> None:
        snapshots.secure_all()
        self.inspecting.attend()
        self.warned.begin()
        self._renumber()
        text = info.raw_cell or ""
        self.magics.views.begin(_known_by(info))
        lost.begin(_known_by(info))
        site.forgotten.discard(f"In[{self._number(info)}]")
        self.magics.begin(text)
        self.default.running = True
        self.progress.begin()
        self.default.tell()
        here = KnownCell(_known_by(info), text)
        offer = self.magics.gradients.check(here, self.shell.user_ns, f"In[{self._number(info)}]")
        if offer is not None and self.magics.rich:
            offers.show(offer, self.magics.views)
        if not self.default.captures(text):
            self._tell_recorded(text, f"In[{self._number(info)}]")
            self.handed_on.before(self.shell.user_ns, self.magics.gradients.held(self.shell.user_ns))
            tell_of_classes(text, self.shell.user_ns, f"In[{self._number(info)}]")
            self.asking.begin(text)
        self._counter = self.shell.execution_count

    def _tell_recorded(self, text: str, label: str) -> None:
        """Warn, once for each name, where a loop records a value of an earlier cell that does not change with the loop."""
        space, origins = self.shell.user_ns, self.magics.origins
        found = recorded(text, lambda name: origins.made_of(space.get(name)), space)
        key = (found.name, origins.computed_in(found.name)) if found is not None else ("", "")
        if found is not None and key not in self._told_recorded:
            self._told_recorded.add(key)
            message = found.told(key[1])
            warnings.warn_explicit(message, StaleGradientWarning, label, found.line)

    def _number(self, info: Any) -> int:
        """Return the number of a cell that is about to run: versions of IPython differ in whether they have counted on by then."""
        return self.shell.execution_count - (self._ahead if info.store_history else 0)

    def after_cell(self, result: Any) -> None:
        """After a cell has run, record the names that it has bound, and update live views that read them."""
        self.interrupts.end()
        self.progress.end()
        self.asking.end()
        self._note_computed(result)
        self.default.running = False
        if result.execution_count is not None:
            if result.info.store_history and self._counter:
                self._ahead = self._counter - result.execution_count
            text = result.info.raw_cell or ""
            body = text.partition("\n")[2] if text.startswith("%%") else text
            self.magics.origins.after(f"In[{result.execution_count}]", body, self.shell.user_ns)
            error = result.error_in_exec
            asked = error.name if isinstance(error, NameError) else None  # if lost already, by an earlier cell's fault
            names = [name for name in self._promised(text) if name != asked or not lost.hint(name)]
            lost.bound(names)
            if not result.success:
                if text.startswith("%%tensor") or self.default.captures(text):  # which has bound nothing
                    site.forgotten.add(f"In[{result.execution_count}]")
                missing = [name for name in names if name not in self.shell.user_ns]
                lost.missing(missing, f"In[{result.execution_count}]", _known_by(result.info))
        self.magics.reporting.end()
        self.objects.tell(self.shell.user_ns)
        self.pairs.tell()
        self.magics.views.follow()
        self.prepared.after_cell(self.shell.user_ns)

    def _note_computed(self, result: Any) -> None:
        """Note what a cell that is not captured has computed from the numbers of lazy values."""
        text = result.info.raw_cell or ""
        if result.execution_count is not None and not self.default.captures(text) and result.error_before_exec is None:
            body = text.partition("\n")[2] if text.startswith("%%") else text
            label = f"In[{result.execution_count}]"
            self.handed_on.after(self.shell.transform_cell(body), self.shell.user_ns, label, body is not text)

    def _promised(self, text: str) -> set[str]:
        """Return the names that a cell binds where it does not fail: those of its lines, its own, and those of its gradients."""
        first, _, rest = text.partition("\n")
        names = set(stored_in(rest if first.startswith("%%") else text))
        if first.startswith("%%tensor"):
            with suppress(UsageError):  # which the cell itself has ended in
                options = self.magics.options(first.removeprefix("%%tensor"))
                names |= {f"grad_{root_of(name)}" for name in options.grad} | ({options.name} - {""})
        return names

    def named(self, filename: str) -> Cell | None:
        """Return the cell of a notebook that is not captured, by the file name that its code has."""
        label = self.shell.compile.format_code_name(filename)
        if label is None:
            return None
        self._plain.append(filename)
        cell = usercode.cells[filename] = Cell(label[1], self.magics.next_run(), "".join(linecache.getlines(filename)))
        return cell

    def _renumber(self) -> None:
        """Rename the files of plain cells, which get another count when they run again under the same file name."""
        for filename in self._plain:
            cell = usercode.cells.pop(filename)
            usercode.cells[f"{filename} {cell.label}"] = cell
        self._plain.clear()

    def computing(self, nodes: Sequence[Node]) -> list[Any]:
        """Compute; an error is shown at the line that was captured, and at the one that asked."""
        try:
            return self.asking.counted(self.compute, nodes)
        except (Exception, KeyboardInterrupt) as error:
            self.failed(error)
            raise

    def failed(self, error: BaseException) -> None:
        """Show the errors of computations, and interrupts, at the user's lines, without frames of this package."""
        if isinstance(error, KeyboardInterrupt) or (
            hasattr(error, "tensor_node") and not isinstance(error, TensorError)
        ):
            errors.dress(error, partial(errors.shown_anywhere, error, self.shell))

    def show(self, value: Tensor) -> Any:
        """Return the display of a lazy value."""
        try:
            return shown.tensor_bundle(value, self.magics.views, rich=self.magics.rich, note=self.note(value))
        except (Exception, KeyboardInterrupt) as error:  # of its computation
            self.failed(error)
            raise

    def show_call(self, report: Report) -> Any:
        """Return the display of what a call over a cluster did: its tables, and before them what runs where."""
        from tensormagic.notebook.display.cluster_display import bundle_of  # seldom asked for

        return bundle_of(report, self.magics.views, rich=self.magics.rich)

    def as_json(self, encoder: JSONEncoder, value: Any) -> Any:
        """Encode a lazy value as its NumPy value; an array as a list if the user's encoder does not handle it."""
        if not isinstance(value, Tensor):
            return self.encode(encoder, value)
        plain = value.numpy()
        if isinstance(plain, bool | int | float):
            return plain
        if isinstance(plain, np.ndarray) and type(encoder) is not JSONEncoder:
            return plain.tolist()
        return self.encode(encoder, plain)

    def note(self, value: Tensor) -> str:
        """Return the note on what has changed since a value was captured, or "" in the cell that has captured it."""
        places = [s for s in site.of(value.node) if s.role == "value"]
        cell = max(places, key=lambda s: s.run).cell if places else ""
        own = f"In[{self.magics.count}]"
        return (
            ""
            if cell.partition(".")[0].rstrip("]") == own.rstrip("]")
            else self.magics.origins.note(value.node, cell, self.shell.user_ns)
        )

    def traceback(self, kind: Any, error: Any, trace: Any = None, *args: Any, **options: Any) -> Any:
        """Return a traceback as IPython draws it, without our frames, unless ``%config TensorMagics.verbose`` asks for them."""
        drawer = self.shell.InteractiveTB
        usual = partial(type(drawer).structured_traceback, drawer, kind, error)
        if self.magics.verbose or not isinstance(error, BaseException):
            return usual(trace, *args, **options)
        trace_of = error.__traceback__
        line = errors.place_of(trace_of, self.shell)
        hint = hints.of_plain(error, line) or (
            hints.hint(error, line, self.shell.user_ns) if met_in_capture(error) else ""
        )
        hint = hint or of_library(error, errors.lazy_in(trace_of, self.shell))
        with errors.bared(error):
            drawn = usual(without_ours(trace) or trace, *args, **options)
        return [*drawn, f"Hint: {hint}"] if hint else drawn

    def show_syntax_error(self, *args: Any, **options: Any) -> None:
        """Show a syntax error in a captured cell like any other error, and others as IPython does."""
        kind, error, _ = self.shell._get_exc_info()  # noqa: SLF001 (what the method that this stands for does)
        drawn = getattr(error, "_render_traceback_", None)
        if drawn is None:
            type(self.shell).showsyntaxerror(self.shell, *args, **options)
        else:
            self.shell._showtraceback(kind, error, drawn())  # noqa: SLF001 (as above)


def _known_by(info: Any) -> str:
    """Return the key of a cell in all its runs: its id in the notebook, or its text."""
    return getattr(info, "cell_id", None) or info.raw_cell or ""


def load(shell: Any) -> None:
    """Load the extension for ``%load_ext tensormagic``, replacing an earlier one."""
    unload(shell)
    extension = Extension(shell)
    extension.register()
    extension.default.restore()
    if shell.displayhook.exec_result is not None:  # a cell has asked for this: it shows what was restored
        extension.default.tell()
    setattr(shell, _ATTRIBUTE, extension)
    session.prepare()


def unload(shell: Any) -> None:
    """Unload the extension for ``%unload_ext tensormagic``."""
    extension = getattr(shell, _ATTRIBUTE, None)
    if extension is not None:
        extension.unregister()
        delattr(shell, _ATTRIBUTE)
