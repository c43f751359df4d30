"""Loading, reloading, unloading; and a cell in a real kernel."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.hooks import hooks
from tensormagic.ir.errors import TensorError


def traces(shell) -> dict[str, object]:
    """Everything that an extension can leave in a shell."""
    return {
        "line magics": set(shell.magics_manager.magics["line"]),
        "cell magics": set(shell.magics_manager.magics["cell"]),
        "registry": set(shell.magics_manager.registry),
        "configurables": len(shell.configurables),
        "events": {name: list(calls) for name, calls in shell.events.callbacks.items()},
        "transformers": list(shell.input_transformers_cleanup),
        "matchers": list(shell.Completer.custom_matchers),
        "formatters": {name: set(f.type_printers) for name, f in shell.display_formatter.formatters.items()},
        "bundles": set(shell.display_formatter.mimebundle_formatter.type_printers),
        "attributes": {n for n in vars(shell) if "tensor" in n or callable(vars(shell)[n])},
        "errors": set(vars(TensorError)),
        "compute": hooks.compute,
    }


def test_unloading_leaves_nothing_behind(notebook):
    shell = notebook.shell
    shell.run_line_magic("unload_ext", "tensormagic")
    before = traces(shell)
    shell.run_line_magic("load_ext", "tensormagic")
    loaded = traces(shell)
    notebook.ok("%%tensor --grad w\nnp.sum(X @ w)")
    shell.run_line_magic("reload_ext", "tensormagic")
    again = traces(shell)
    assert {k: v for k, v in loaded.items() if isinstance(v, set | int)} == {
        k: v for k, v in again.items() if isinstance(v, set | int)
    }
    assert [len(calls) for calls in loaded["events"].values()] == [len(calls) for calls in again["events"].values()]
    assert len(loaded["matchers"]) == len(again["matchers"]) == len(before["matchers"]) + 1
    shell.run_line_magic("unload_ext", "tensormagic")
    assert traces(shell) == before
    assert type(notebook("%%tensor\nw.sum()").error).__name__ == "UsageError"
    assert "text/html" not in notebook.ok("grad_w").data
    shell.run_line_magic("load_ext", "tensormagic")


def test_unloading_closes_widgets(notebook):
    import ipywidgets

    before = set(ipywidgets.widgets.widget._instances)
    notebook.ok("%%tensor\nnp.sum(X @ w)")
    assert set(ipywidgets.widgets.widget._instances) != before
    notebook.shell.run_line_magic("reload_ext", "tensormagic")
    assert set(ipywidgets.widgets.widget._instances) == before


def test_values_outlive_the_extension(notebook):
    notebook.ok("%%tensor\ns = np.sum(X)")
    notebook.shell.run_line_magic("unload_ext", "tensormagic")
    assert float(notebook["s"]) == pytest.approx(notebook["X"].sum())
    notebook.shell.run_line_magic("load_ext", "tensormagic")


def test_deleted_values_are_freed(notebook):
    from tensormagic import session

    notebook.ok("%%tensor -q\nq = np.exp(X).sum()")
    assert notebook["q"].numpy() > 0
    gc.collect()
    count = len(session.kept.values.here())
    notebook.ok("del q")
    session.programs._executables.clear()
    gc.collect()
    assert len(session.kept.values.here()) < count


def test_what_is_shown_keeps_no_variable_alive(notebook):
    notebook["big"] = np.ones(1000)
    gone = weakref.ref(notebook["big"])
    notebook.ok("%%tensor objective --grad w\nu = big * 2\nnp.sum(u) + np.sum(w)")
    notebook.ok("del big, u")
    gc.collect()
    assert gone() is None
    assert float(notebook.ok("_").value) == 2000


def test_in_a_kernel():
    pytest.importorskip("nbclient")
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    cells = [
        "%load_ext tensormagic\nimport numpy as np, tensormagic as tm\ntm.config.tier = 'numpy'",
        "X, w = np.ones((4, 2)), np.ones(2)",
        "%%tensor cost --grad w\nz = X @ w\nnp.sum(z ** 2)",
        "w -= 0.1 * grad_w\ncost()",
        "%%tensor\nz + np.ones(3)",
    ]
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    client = NotebookClient(made, timeout=120, kernel_name="python3")
    with pytest.raises(CellExecutionError, match="ShapeError"):
        client.execute()
    value = made.cells[2].outputs[-1]
    assert value.output_type == "execute_result"
    assert value.data["text/plain"].startswith("16 · float64 · grad_w = [16., 16.]\n")
    assert {"image/svg+xml", "application/vnd.jupyter.widget-view+json"} <= set(value.data)
    error = made.cells[4].outputs[-1]
    assert error.ename == "ShapeError"
    assert error.traceback[:3] == ["Cell In[5], line 2", "    z + np.ones(3)", "    ^^^^^^^^^^^^^^"]
    assert tm.config.tier in {"auto", "numpy"}
