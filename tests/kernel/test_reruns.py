"""Cells with pictures that run again and again: each takes the place of its last run, and leaves next to nothing."""

from __future__ import annotations

import pytest

pytest.importorskip("anywidget")
from jupyter_client.manager import start_new_kernel

RERUNS, FIRST = 100, 5
# 4 to 5 MB in processes of any age, of which 0.6 MB are kept and the rest is the allocator's
MOST = 8_000_000  # bytes, for all reruns together
CELLS = {
    "a live view": "%%tensor --live a=0:10\nnp.sum(np.sin(X * a))",
    "a graph": "%%tensor\nnp.sum(np.sin(X) @ X.T)",
}
SETUP = """
%load_ext tensormagic
import gc, os, comm, ipywidgets, numpy as np, tensormagic as tm
tm.config.tier = "numpy"
X = np.random.default_rng(0).normal(size=(40, 3))
"""
MEASURE = """
gc.collect()
with open("/proc/self/statm") as file:
    resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
print(resident, len(comm.get_comm_manager().comms), len(ipywidgets.widgets.widget._instances))
"""


@pytest.fixture(scope="module")
def run():
    """Run code in a kernel of its own, and return what it prints."""
    manager, client = start_new_kernel(kernel_name="python3")

    def execute(code: str) -> str:
        printed: list[str] = []

        def hear(message):
            if message["msg_type"] == "stream":
                printed.append(message["content"]["text"])

        reply = client.execute_interactive(code, timeout=60, output_hook=hear)
        assert reply["content"]["status"] == "ok", reply["content"]
        return "".join(printed)

    execute(SETUP)
    yield execute
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.mark.share(2)
@pytest.mark.parametrize("shown", CELLS)
def test_a_hundred_reruns_leave_no_comm_and_little_memory(run, shown: str):
    for _ in range(FIRST):
        run(CELLS[shown])
    before = [int(part) for part in run(MEASURE).split()]
    for _ in range(RERUNS):
        run(CELLS[shown])
    after = [int(part) for part in run(MEASURE).split()]
    assert after[1:] == before[1:]
    assert before[1] > 0
    assert after[0] - before[0] <= MOST
