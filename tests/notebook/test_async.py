"""Cells in the background: they return at once, later cells wait for what they use, and stores, errors and cancelling keep their order."""

import signal
import threading
import time
from concurrent.futures import CancelledError

import numpy as np
import pytest

import tensormagic as tm
from tensormagic import session
from tensormagic.functions.submitting import Submitted

SECONDS = {"numpy": 1_500_000, "numba": 10_000_000}  # iterations that take some seconds
LONG = "%%tensor --async\nh = X\nfor k in range({count}):\n    h = np.sin(h) + h * 0.5\ntotal = h.sum()\ntotal"


def computed(x, count):
    for _ in range(min(count, 2_000)):  # where it stays the same
        x = np.sin(x) + x * 0.5
    return x


@pytest.fixture(autouse=True, params=["numpy", "numba"])
def tier(request, notebook, monkeypatch):
    """The tier, in place of the one that ``notebook`` has set."""
    del notebook
    monkeypatch.setattr(tm.config, "tier", request.param)
    return request.param


def interrupted_soon() -> None:
    main = threading.main_thread().ident
    assert main is not None
    threading.Timer(0.5, lambda: signal.pthread_kill(main, signal.SIGINT)).start()


def future_of(ran, notebook) -> Submitted:
    assert ran.error is None, ran.out
    assert "Submitted(the cell of In[" in ran.out + str(ran.displays)
    return ran.result.result


def test_a_cell_returns_at_once_and_later_cells_wait_for_what_they_use(notebook, tier):
    notebook.ok(LONG.format(count=3))  # whatever is compiled first
    ran = notebook(LONG.format(count=SECONDS[tier]))
    future = future_of(ran, notebook)
    assert not future.done()
    quick = notebook.ok("%%tensor\nq = X * 2\nq").result.result
    assert np.array_equal(quick, notebook["X"] * 2)
    assert not future.done()  # another cell's values are computed meanwhile
    twice = notebook.ok("%%tensor\n2 * total").result.result
    assert future.done()
    expected = computed(notebook["X"], SECONDS[tier])
    np.testing.assert_allclose(float(twice), 2 * expected.sum(), rtol=1e-9)
    np.testing.assert_allclose(future.result(), expected.sum(), rtol=1e-9)
    np.testing.assert_allclose(notebook["h"].numpy(), expected, rtol=1e-9)
    assert not list(session.coming)


def test_stores_of_later_cells_do_not_reach_it(notebook):
    X = notebook["X"].copy()
    future = future_of(notebook(LONG.format(count=5_000)), notebook)
    notebook.ok("X[:] = 1e9")
    notebook.ok("%%tensor\nX[0] += 1")
    np.testing.assert_allclose(future.result(60), computed(X, 5_000).sum(), rtol=1e-9)
    np.testing.assert_allclose(notebook["h"].numpy(), computed(X, 5_000), rtol=1e-9)


def test_gradients_and_functions_of_its_names(notebook):
    ran = notebook("%%tensor loss_of --async --grad w\nnp.mean((X @ w - y) ** 2)")
    assert ran.error is None, ran.out
    notebook.ok("%%tensor --grad w\nnp.mean((X @ w - y) ** 2)")
    second = notebook["grad_w"].numpy()
    notebook("%%tensor --async --grad w\nnp.mean((X @ w - y) ** 2)")
    np.testing.assert_allclose(notebook["grad_w"].numpy(), second)
    assert callable(notebook["loss_of"])


def test_errors_come_with_the_line_where_the_value_is_asked_for(notebook):
    notebook["idx"] = np.array([1, 99_999])
    ran = notebook("%%tensor --async\nz = X.ravel() * 2\npicked = z[idx]\npicked")
    future = future_of(ran, notebook)
    with pytest.raises(IndexError, match="out of bounds"):
        future.result(60)
    failed = notebook("%%tensor\npicked + 1")
    assert isinstance(failed.error, IndexError)
    wrong = notebook("%%tensor --async\nnp.zeros(5) + X.ravel()[:3]")
    assert isinstance(wrong.error, tm.ShapeError)


def test_what_is_cancelled_is_computed_when_it_is_asked_for(notebook):
    future = future_of(notebook(LONG.format(count=20_000)), notebook)
    assert future.cancel()
    with pytest.raises(CancelledError):
        future.result(60)
    np.testing.assert_allclose(float(notebook["total"]), computed(notebook["X"], 20_000).sum(), rtol=1e-9)


def test_an_interrupt_of_the_waiting_leaves_it_running(notebook):
    future = future_of(notebook(LONG.format(count=100_000_000)), notebook)
    interrupted_soon()
    with pytest.raises(KeyboardInterrupt):
        future.result(60)
    assert not future.done()
    interrupted_soon()
    assert isinstance(notebook("%%tensor\ntotal + 1").error, KeyboardInterrupt)  # a cell that waits for it
    assert not future.done()
    assert future.cancel()
    with pytest.raises(CancelledError):
        future.result(60)


def test_what_is_printed_at_capture_is_printed_at_once(notebook):
    ran = notebook("%%tensor --async\nprint('summing', len(X))\nX.sum()")
    assert ran.out.startswith(f"summing {len(notebook['X'])}")
    np.testing.assert_allclose(ran.value.result(60), notebook["X"].sum())


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("X[0] = 1\nX.sum()", "stores into X"),
        ("z = rng.normal(size=3)\nz", "draws random numbers"),
    ],
)
def test_effects_are_refused_and_leave_nothing(notebook, cell, told):
    notebook["rng"] = np.random.default_rng(0)
    before, state = notebook["X"].copy(), notebook["rng"].bit_generator.state
    ran = notebook(f"%%tensor --async\n{cell}")
    assert told in str(ran.error)
    assert "--async" in str(ran.error)
    assert np.array_equal(notebook["X"], before)
    assert notebook["rng"].bit_generator.state == state


def test_a_cell_without_work_is_done_at_once(notebook):
    ran = notebook("%%tensor --async\n3")
    assert ran.result.result.result(10) == 3


STEP = "%%tensor --async -q\nh{to} = {of}\nfor k in range({count}):\n    h{to} = np.sin(h{to}) + h{to} * 0.5\nlast = h{to}.sum()"


def test_b42_cells_that_use_what_is_computed_return_at_once_and_run_in_order(notebook, tier):
    X = notebook["X"].copy()
    count = SECONDS[tier]
    first = future_of(notebook(LONG.format(count=count)), notebook)
    for k in range(4):
        notebook.ok(STEP.format(to=k, of="h" if k == 0 else f"h{k - 1}", count=20))
    assert not first.done()  # none of the four has waited for it
    notebook.ok("X[:] = 1e9")
    quick = notebook.ok("%%tensor --async\n(y * 2).sum()").value
    assert quick.result(60) == (notebook["y"] * 2).sum()
    assert not first.done()  # nor has a thread
    np.testing.assert_allclose(notebook["h3"].numpy(), computed(X, count + 80), rtol=1e-9)
    assert first.done()
    np.testing.assert_allclose(float(notebook["last"]), computed(X, count + 80).sum(), rtol=1e-9)
    assert not list(session.coming)


def test_what_waits_for_a_cancelled_cell_computes_it_and_can_be_cancelled(notebook):
    first = future_of(notebook(LONG.format(count=50_000_000)), notebook)
    second = future_of(notebook("%%tensor --async\nu = X * 2 + h[0]\nu"), notebook)
    third = future_of(notebook("%%tensor --async\nv = u + 1\nv"), notebook)
    assert third.cancel()
    assert third.cancelled()
    assert not second.done()
    assert second.cancel()
    assert first.cancel()
    for future in (first, second, third):
        with pytest.raises(CancelledError):
            future.result(60)
    assert not list(session.coming)
    failing = notebook("%%tensor --async\ni = np.linalg.inv(X[:3, :3] * 0)\ni"), notebook("%%tensor --async\ni + 1")
    for ran in failing:
        with pytest.raises(np.linalg.LinAlgError):
            future_of(ran, notebook).result(60)


def test_the_line_under_a_cell_is_filled_in(notebook, monkeypatch):
    shown = []
    monkeypatch.setattr(type(notebook.shell.display_pub), "publish", lambda _, data, **more: shown.append((data, more)))
    future = notebook.shell.run_cell(LONG.format(count=20_000), store_history=True).result
    assert "is computed in the background" in shown[0][0]["text/plain"]
    total = future.result(60)
    for _ in range(1000):
        if "float64" in shown[-1][0]["text/plain"]:
            break
        time.sleep(0.01)
    assert shown[-1][0]["text/plain"] == f"{total:.10g} · float64"
    assert shown[-1][1]["transient"] == shown[0][1]["transient"]
    assert (shown[0][1].get("update"), shown[-1][1]["update"]) in {(None, True), (False, True)}
    shown.clear()
    notebook.shell.run_cell("%%tensor --async\nnp.linalg.inv(X[:3, :3] * 0)", store_history=True).result.exception(60)
    for _ in range(1000):
        if "Singular" in shown[-1][0]["text/plain"]:
            break
        time.sleep(0.01)
    assert shown[-1][0]["text/plain"] == "LinAlgError: Singular matrix (Cell In[2], line 2)"
