"""An IPython shell with the extension loaded, pinned to the NumPy tier."""

from __future__ import annotations

import builtins
import functools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

pytest.importorskip("IPython")
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

import tensormagic as tm
from tensormagic import session
from tensormagic.capture import limits
from tensormagic.capture.errors import repeated_warnings
from tensormagic.capture.python import usercode
from tensormagic.ir import node as node_module
from tensormagic.notebook.cells import as_plain_python


@dataclass
class Ran:
    """What running a cell gave: IPython's result, what was printed, and the data of each display."""

    result: Any
    out: str
    displays: list[dict[str, Any]] = field(default_factory=list)

    @property
    def value(self) -> Any:
        return self.result.result

    @property
    def error(self) -> BaseException | None:
        return self.result.error_before_exec or self.result.error_in_exec

    @property
    def data(self) -> dict[str, Any]:
        """The display of the result."""
        return self.displays[-1]


class Notebook:
    """Runs cells as a kernel does."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell

    def __call__(self, cell: str) -> Ran:
        shown: list[dict[str, Any]] = []
        self.shell.displayhook.write_format_data = lambda data, metadata=None: shown.append(data)
        try:
            with capture_output() as captured:
                result = self.shell.run_cell(cell, store_history=True)
        finally:
            del self.shell.displayhook.write_format_data
        return Ran(result, captured.stdout + captured.stderr, [*(output.data for output in captured.outputs), *shown])

    def ok(self, cell: str) -> Ran:
        ran = self(cell)
        assert ran.error is None, ran.out
        return ran

    def __getitem__(self, name: str) -> Any:
        return self.shell.user_ns[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.shell.user_ns[name] = value

    def __contains__(self, name: str) -> bool:
        return name in self.shell.user_ns

    def completions(self, text: str) -> list[str]:
        """What is offered at the end of ``text``."""
        from IPython.core.completer import provisionalcompleter

        with provisionalcompleter():
            return [c.text for c in self.shell.Completer.completions(text, len(text))]


@pytest.fixture(scope="session")
def shell():
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    config.Completer.use_jedi = False
    made = InteractiveShell.instance(config=config)
    names_of_new(made)
    yield made
    InteractiveShell.clear_instance()


@functools.cache
def names_of_new(shell: InteractiveShell) -> frozenset[str]:
    """The names that a shell had when it was made.

    Other folders of tests import these fixtures, and pytest makes each of them anew for a folder; the shell is the same one, with
    whatever the tests before have left there.
    """
    return frozenset(shell.user_ns)


@pytest.fixture(scope="session")
def first_names(shell: InteractiveShell) -> frozenset[str]:
    return names_of_new(shell)


@pytest.fixture
def notebook(shell: InteractiveShell, first_names: frozenset[str], monkeypatch: pytest.MonkeyPatch):
    """A notebook with the extension and with data for logistic regression."""
    monkeypatch.setattr(tm.config, "tier", "numpy")
    monkeypatch.setattr(limits, "PATIENCE", math.inf)  # how fast a machine is decides nothing
    monkeypatch.setattr(limits, "SURE", math.inf)
    printing = np.get_printoptions()
    for name in set(shell.user_ns) - first_names:
        del shell.user_ns[name]
    monkeypatch.delattr(
        builtins, "_", raising=False
    )  # doctest's last result: with it, IPython leaves the notebook's "_" alone
    hook = shell.displayhook
    shell.push({"_": hook._, "__": hook.__, "___": hook.___}, interactive=False)  # which a cell may have bound
    shell.execution_count = 1
    session.programs._executables.clear()  # labels of cells begin anew: nothing may remember those of other tests
    session.demand._forms.known.clear()
    usercode.cells.clear()
    as_plain_python._given_up.clear()
    repeated_warnings._registries.clear()
    for made in list(node_module._made.values()):  # at once: a thread in the background may add to it
        if (node := made()) is not None:
            node.sites = None
    shell.config.pop("TensorMagics", None)  # where %config keeps what a test has set
    shell.run_line_magic("load_ext", "tensormagic")
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 3))
    shell.user_ns.update(np=np, tm=tm, X=X, y=np.sign(X[:, 0] + 0.3 * random.normal(size=40)), w=np.zeros(3), b=0.0)
    yield Notebook(shell)
    shell.run_line_magic("unload_ext", "tensormagic")
    shell.run_line_magic("precision", "")  # which a test may have set, for NumPy too
    np.set_printoptions(**printing)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch):
    """``tm.live``, whose views are closed at the end, with nothing left of them."""
    import comm
    from ipywidgets.widgets.widget import _instances

    from tensormagic.notebook.widgets.live import LiveView

    monkeypatch.setattr(
        comm, "create_comm", comm.DummyComm
    )  # the kernel's, where a test has imported it, sends nothing here
    before, made = set(_instances), []

    def show(*args, **ranges):
        made.append(tm.live(*args, **ranges))
        return made[-1]

    yield show
    for view in made:
        view.close()
    assert not [w for name, w in _instances.items() if name not in before and isinstance(w, LiveView)]
