"""What a frontend asks a kernel for, over the protocol: in the TensorMagic kernel, and in Python's own with the extension."""

from __future__ import annotations

import time

import pytest

from tests.kernel.running import Running, running

SETUP = "import numpy as np\nX, w, b, y = np.ones((40, 3)), np.zeros(3), 0.5, np.ones(40)"
CELL = "%%tensor --grad w --quiet\nz = X @ w + b\nloss = np.mean(np.log(1 + np.exp(-y * z)))\nloss"
LOOP = "%%tensor --show none\nu = w * 1.0\nfor k in range({iterations}):\n    u = np.sin(u) + 0.1\nu.sum()"
WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(scope="module", params=["tensormagic", "python3"])
def kernel(request: pytest.FixtureRequest):
    with running(request.param) as started:
        if request.param == "python3":
            assert started.run("%load_ext tensormagic").status == "ok"
        assert started.run(SETUP).status == started.run(CELL).status == "ok"
        yield started


def test_shift_tab(kernel: Running):
    reply = kernel.client.inspect("loss", 4, reply=True, timeout=30)["content"]
    assert reply["found"]
    assert "lazy float64 · from In[" in reply["data"]["text/plain"]
    assert "loss = 1/n * sum_{i<n} log(1 + exp(-y[i] * z[i]))" in reply["data"]["text/plain"]
    assert r"\frac{\partial\,\mathrm{loss}}{\partial\,w}" in reply["data"]["text/markdown"]


def test_shift_tab_inside_a_captured_cell(kernel: Running):
    text = "%%tensor\nq = loss + 1"
    reply = kernel.client.inspect(text, len("%%tensor\nq = loss"), reply=True, timeout=30)["content"]
    assert "loss = 1/n * sum" in reply["data"]["text/plain"]


def completions(kernel: Running, text: str, *wanted: str) -> dict[str, str]:
    """The types of what completes a text; on a busy machine IPython's completer answers without jedi at first."""
    deadline = time.monotonic() + 20
    while True:
        reply = kernel.client.complete(text, len(text), reply=True, timeout=30)["content"]
        found = {one["text"]: one["type"] for one in reply["metadata"]["_jupyter_types_experimental"]}
        if found.keys() >= {*wanted} or time.monotonic() > deadline:
            return found


def test_names_with_types(kernel: Running):
    assert completions(kernel, "%%tensor\nq = X", "X")["X"] == "float64[40, 3]"
    assert completions(kernel, "%%tensor\nq = lo", "loss")["loss"] == "lazy float64"


def test_attributes_of_lazy_values(kernel: Running):
    found = completions(kernel, "loss.gra", "grad", "graph")
    assert found == {"grad": "function", "graph": "property"}


def test_options_and_values(kernel: Running):
    assert set(completions(kernel, "%%tensor --math ")) == {"exact", "stable", "real"}


def test_a_quick_cell_shows_no_bar(kernel: Running):
    kernel.run("import tensormagic as tm\ntm.config.tier = 'numpy'")
    ran = kernel.run(LOOP.format(iterations=10))
    assert not [m for m in ran.messages if m["msg_type"] in {"comm_open", "display_data"}]


def test_a_slow_one_shows_a_bar_which_goes(kernel: Running):
    kernel.run("tm.config.tier = 'numpy'")
    ran, seconds, _ = kernel.interrupted(LOOP.format(iterations=10_000_000), 2.0)
    assert ran.status == "KeyboardInterrupt"
    assert seconds < 5
    (shown,) = ran.displays
    assert set(shown) == {WIDGET}  # nothing for pages without widgets, and for comparisons of outputs
    opened = {m["content"]["comm_id"] for m in ran.messages if m["msg_type"] == "comm_open"}
    closed = {m["content"]["comm_id"] for m in ran.messages if m["msg_type"] == "comm_close"}
    assert shown[WIDGET]["model_id"] in opened
    assert opened == closed
    words = [m["content"]["data"]["state"].get("words", "") for m in ran.messages if m["msg_type"] == "comm_msg"]
    assert any("of 10,000,000 · by NumPy" in text for text in words)


def test_an_interrupt_inside_compiled_code(kernel: Running):
    kernel.run("import tensormagic as tm\ntm.config.tier = 'numba'")
    assert kernel.run(LOOP.format(iterations=11)).status == "ok"
    ran, seconds, _ = kernel.interrupted(LOOP.format(iterations=2_000_000_000), 1.5)
    assert ran.status == "KeyboardInterrupt"
    assert seconds < 2
    assert kernel.run("tm.config.tier = 'numpy'\nprint(float(tm.tensor(X).sum()))").text == "120.0\n"
