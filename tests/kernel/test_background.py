"""Cells in the background in a real kernel: what they show as they go on, and what interrupts, errors and a restart do with them."""

from __future__ import annotations

import queue
import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.kernel.running import LONGEST, Running, running

LOOP = "%%tensor --async\n{name} = x\nfor k in range({count}):\n    {name} = np.sin({name}) + {name}.mean() * 0.5\n{name}.sum()"
ENDLESS = 1_000_000_000


@pytest.fixture(scope="module")
def kernel():
    with running() as started:
        assert started.run("import numpy as np, tensormagic as tm, time").status == "ok"
        yield started


@pytest.fixture(autouse=True)
def fresh(kernel: Running):
    kernel.run("x = np.linspace(0.0, 1.0, 1000)")
    yield
    kernel.run("[f.cancel() for f in list(_oh.values()) if isinstance(f, tm.functions.submitting.Submitted)]")
    kernel.drain()


def until(kernel: Running, found: Callable[[dict[str, Any]], Any]) -> Any:
    """The first of the messages that come by themselves for which ``found`` gives something."""
    ends = time.monotonic() + LONGEST
    while time.monotonic() < ends:
        try:
            value = found(kernel.client.get_iopub_msg(timeout=LONGEST))
        except queue.Empty:
            break
        if value:
            return value
    raise TimeoutError


def state(message: dict[str, Any]) -> dict[str, Any]:
    return message["content"].get("data", {}).get("state", {}) if message["msg_type"] == "comm_msg" else {}


def updated(message: dict[str, Any]) -> dict[str, Any]:
    return message["content"]["data"] if message["msg_type"] == "update_display_data" else {}


def trace(ran) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(ran.reply.get("traceback", [])))


def test_a_bar_fills_and_goes(kernel: Running):
    shown = kernel.run(LOOP.format(name="h", count=ENDLESS)).displays
    assert "is computed in the background" in shown[0]["text/plain"]
    assert shown[1]["text/plain"].endswith(": running)")
    live = until(kernel, updated)
    assert "application/vnd.jupyter.widget-view+json" in live
    assert live["text/plain"] == shown[0]["text/plain"]
    first = until(kernel, state)
    assert f" of {ENDLESS:,} " in first["words"]
    second = until(kernel, lambda m: state(m) if state(m).get("fraction", 0) > first["fraction"] else {})
    assert 0 < first["fraction"] < second["fraction"] < 1
    ran = kernel.run(f"print(_.progress > {first['fraction']}, _.cancel())")
    assert ran.text == "True True\n"
    came = [updated(m)["text/plain"] for m in ran.messages if updated(m)]  # while that cell ran, or after it
    came = came or [until(kernel, updated)["text/plain"]]
    assert came == ["cancelled: it is computed when it is used"]


def test_an_interrupt_of_who_waits_leaves_both_running(kernel: Running):
    kernel.run(LOOP.format(name="h", count=ENDLESS))
    kernel.run("%%tensor --async\nu = h * 2\nu.sum()")
    ran, _, _ = kernel.interrupted("float(u[0])", 0.5)
    assert ran.status == "KeyboardInterrupt"
    assert kernel.run("print(_oh[max(_oh)].state)").text == "waiting\n"
    ran, _, _ = kernel.interrupted("time.sleep(100)", 0.5)
    assert ran.status == "KeyboardInterrupt"
    assert kernel.run("print(_oh[max(_oh)].done(), len(x))").text == "False 1000\n"


def test_an_interrupt_while_it_is_captured_leaves_nothing(kernel: Running):
    ran, _, _ = kernel.interrupted("%%tensor --async\nimport time\ntime.sleep(100)\nq = x + 1\nq", 0.5)
    assert ran.status == "KeyboardInterrupt"
    assert kernel.run("print('q' in globals())").text == "False\n"


def test_stores_and_later_cells(kernel: Running):
    kernel.run(LOOP.format(name="h", count=3000))
    kernel.run("%%tensor --async\nu = h * 2 + x[0]\nu")
    kernel.run("x[:] = 7\nx *= 2")
    kernel.run("%%tensor\nx[:3] += 1")
    text = "y = np.linspace(0.0, 1.0, 1000)\nfor k in range(3000):\n    y = np.sin(y) + y.mean() * 0.5\nprint(np.allclose(u, y * 2), x[0])"
    assert kernel.run(text).text == "True 15.0\n"


def test_one_of_two_dependent_cells_fails(kernel: Running):
    first = kernel.run("%%tensor --async\nA = np.zeros((3, 3)) * x[0]\nB = np.linalg.inv(A)\nB")
    label = re.search(r"In\[\d+\]", first.displays[-1]["text/plain"])[0]
    kernel.run("%%tensor --async\nC = B + 1\nC")
    for asks in ("_.result()", "%%tensor\nB + 1", "%%tensor\nC.sum()", "print(float(C[0, 0]))"):
        ran = kernel.run(asks)
        assert ran.reply["status"] == "error", asks
        assert f"Cell {label}, line 3\n    B = np.linalg.inv(A)\n" in trace(ran), asks
        assert "LinAlgError: Singular matrix" in trace(ran)
        assert "/concurrent/" not in trace(ran)
    assert kernel.run("print(float(A.sum()))").text == "0.0\n"


def test_a_shutdown_names_what_is_lost():
    with running() as kernel:
        kernel.run(
            "import numpy as np, sys, tensormagic as tm\nx = np.ones(100)\n"
            "sys.stderr.flush_interval = 60  # what a stream still holds when its thread ends is lost"
        )
        kernel.run(LOOP.format(name="h", count=ENDLESS))
        kernel.run("%%tensor --async\nu = h * 2\nu.sum()")
        kernel.client.shutdown(restart=False)
        told = until(kernel, lambda m: m["content"]["text"] if m["msg_type"] == "stream" else "")
        assert told.startswith("tensormagic: 2 submitted computations were not finished: ")
        assert "the cell of In[2]" in told
        assert "the cell of In[3]" in told


def test_a_shutdown_names_what_no_display_shows():
    with running() as kernel:
        kernel.run(
            "import numpy as np, sys, tensormagic as tm\n"
            "sys.stderr.flush_interval = 60\n"
            f"def f(x):\n    for k in range({ENDLESS}):\n        x = np.sin(x) + x.mean() * 0.5\n    return x\n"
            "a = tm.submit(f, np.ones(100))"
        )
        kernel.client.shutdown(restart=False)
        told = until(kernel, lambda m: m["content"]["text"] if m["msg_type"] == "stream" else "")
        assert told.startswith("tensormagic: 1 submitted computation was not finished: f of ")
