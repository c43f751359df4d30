"""``%%tensor --device``: cells on a device."""

import re
import warnings

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.cuda.outline import outlined
from tensormagic.notebook.pictures.adaptor import portrait


def told(notebook, cell):
    """Run a cell; what it shows, and what is told of copies."""
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always", tm.HiddenTransferWarning)
        ran = notebook.ok(cell)
    return ran, "\n".join(str(r.message) for r in records)


def test_a_cell_on_the_device(notebook, device):
    ran, text = told(
        notebook,
        "%%tensor objective --device gpu --grad w --show none\nloss = np.mean(np.log(1 + np.exp(-y * (X @ w))))",
    )
    assert "X (float64[40, 3], 960 bytes) is copied to the device, In[1] line 2" in text
    assert "X = tm.to_gpu(X) copies it once" in text
    assert device.copied.to_host == 0  # the display reads two numbers: the value, and the gradient's norm
    assert "loss = 0.6931471806" in ran.data["text/plain"]
    X, y = notebook["X"], notebook["y"]
    np.testing.assert_allclose(tm.to_host(notebook["grad_w"]), X.T @ (-y * 0.5) / 40, rtol=1e-12)
    assert not told(notebook, "%%tensor --device gpu --show none\nnp.sum(X * w)")[1]
    sent = device.copied.to_device
    notebook.ok("Xg, yg, wg = tm.to_gpu((X, y, w))")
    notebook.ok(
        "for k in range(3):\n    value, (g,) = tm.value_and_grad(objective, ('w',))(X=Xg, y=yg, w=wg)\n    wg = wg - 0.5 * g"
    )
    assert device.copied.to_device - sent == X.nbytes + y.nbytes + 24
    w = np.zeros(3)
    for _ in range(3):
        w = w - 0.5 * (X.T @ (-y / (1 + np.exp(y * (X @ w))))) / 40
    np.testing.assert_allclose(tm.to_host(notebook["wg"]), w, rtol=1e-9)


def test_the_code_of_a_cell_on_the_device_is_that_of_its_kernels(notebook, device):
    ran, _ = told(notebook, "%%tensor --device gpu --show code\nnp.exp(X * w).sum()")
    shown = ran.data["text/plain"]
    assert "kernels for the GPU" in shown
    assert "blocks of" in shown
    assert "rewritten graph" in shown


def test_g6_exclusive_refuses_before_anything_changes(notebook, device):
    ran = notebook("%%tensor --exclusive\nq = X @ w")
    assert isinstance(ran.error, tm.TransferError)
    assert "X (float64[40, 3], 960 bytes)" in ran.out
    assert "w (float64[3], 24 bytes)" in ran.out
    assert "q" not in notebook
    assert device.copied.to_device == 0
    notebook.ok("Xg, wg = tm.to_gpu((X, w))")
    assert "on the device" in notebook.ok("%%tensor --exclusive --show none\nq = Xg @ wg\nq").data["text/plain"]
    assert isinstance(notebook("print(q)").error, tm.TransferError)
    assert isinstance(notebook("float(q[0])").error, tm.TransferError)
    assert notebook.ok("tm.to_host(q)").value.tolist() == [0.0] * 40
    assert device.copied.to_host == 40 * 8


def test_a_store_into_an_array_of_the_notebook(notebook, device):
    notebook.ok("out = np.zeros(3)")
    _, text = told(notebook, "%%tensor --device gpu -q\nout[:] = w + 1")
    assert "out (float64[3], 24 bytes) is copied to the host" in text
    assert notebook["out"].tolist() == [1.0] * 3


def test_the_device_belongs_to_its_cell(notebook, device):
    told(notebook, "%%tensor --device gpu -q\nz = X * 2")
    notebook.ok("%%tensor -q\nv = X.sum(0)")
    X = notebook["X"]
    np.testing.assert_allclose(notebook["v"].numpy(), X.sum(0))
    assert (device.copied.to_device, device.copied.to_host) == (
        X.nbytes,
        0,
    )  # X is NumPy's: what reads it alone is on the CPU
    assert "on the device" in notebook.ok("u = z + 1; u.sum(); u.sum().item()\nrepr(z)").value
    assert notebook.ok("float(u.sum())").value == pytest.approx((X * 2 + 1).sum())
    assert device.copied.to_host == 0  # what is computed from z follows it
    notebook.ok("%%tensor --device cpu -q\nt = z.sum()")
    _, text = told(notebook, "t.item()")
    assert "z (float64[40, 3], 960 bytes) is copied to the host" in text


@pytest.mark.parametrize("line", ["--device gpu --plain", "--transfers refuse --device cpu"])
def test_options_that_do_not_go_together(notebook, device, line):
    ran = notebook(f"%%tensor {line}\nX")
    assert "cannot be combined" in ran.out or "needs --device gpu" in ran.out


def test_the_time_of_a_cell_on_the_device_beside_numpy_and_the_cpu(notebook, device):
    """Data there and copies apart; nothing is said of the copies that measuring makes."""
    ran, text = told(notebook, "%%tensor --device gpu -t --show none --grad w\nnp.mean(np.exp(X @ w))")
    shown = ran.data["text/plain"]
    assert text.count("is copied") == 2
    rows = [line for line in shown.splitlines() if line.startswith(("NumPy,", "tensormagic,"))]
    assert [row.split("  ")[0].split(", ", 1)[1] for row in rows] == [
        "the cell as it is",
        "on NumPy",
        "with gradients",
        "on the device",
        "with copies",
    ]
    assert "than NumPy: on the CPU " in shown
    first = {row.split("  ")[0]: re.split(r"\s{2,}", row)[2] for row in rows}
    assert first["tensormagic, on NumPy"] == "–"  # this run of the cell was the device's
    assert first["tensormagic, on the device"].endswith("s")


def test_time_with_refused_copies(notebook, device):
    notebook.ok("Xg, wg = tm.to_gpu((X, w))")
    ran = notebook.ok("%%tensor --exclusive -t --show none\nq = np.exp(Xg @ wg)")
    assert "on the device" in ran.data["text/plain"]


def test_where_a_nan_came_from_on_the_device(notebook, device):
    told(notebook, "%%tensor --device gpu\nlow = X * 0 - 1\nnp.log(low).sum()")
    ran, _ = told(notebook, "%tensor_nan")
    assert "* line 3  log        [0, 0]        -1" in ran.data["text/plain"]


@pytest.mark.parametrize("tier", ["numpy", "numba"])
def test_the_time_of_each_line_on_the_device(notebook, device, monkeypatch, tier):
    """By the library node by node, and by kernels, whose time the lines share that they compute."""
    monkeypatch.setattr(tm.config, "tier", tier)
    cell = (
        "%%tensor --device gpu --show profile --grad w\nz = X @ w\nv = np.sort(z)\nloss = np.mean(np.exp(v) * 2)\nloss"
    )
    ran, _ = told(notebook, cell)
    shown = ran.data["text/plain"]
    assert re.search(r"profile: .* on the GPU, one run", shown)
    assert all(line in shown for line in ("z = X @ w", "v = np.sort(z)", "loss = np.mean(np.exp(v) * 2)"))
    assert len(re.findall(r"\d(?:\.\d+)? ?(?:ms|µs|s)\b", shown)) >= 4


def test_a_clock_charges_what_is_inside_to_itself_alone(device):
    from tensormagic.backend.cuda import clock

    first, second = tm.tensor(np.ones(3)).node, tm.tensor(np.zeros(3)).node
    with clock.timed(device) as found:
        with clock.at(first), clock.at(second):
            pass
        with clock.at(second):
            pass
    assert not clock.runs()
    assert set(found.seconds) == {(first,), (second,)}
    assert all(s >= 0 for s in found.seconds.values())


def test_the_lines_and_the_picture_of_a_cell_on_the_device_show_its_kernels(notebook, device):
    """Those of the device: one for each step of its plan, with the lines that each is for; yellow is what the host does."""
    cell = """%%tensor --device gpu -a
import scipy.special
z = np.tanh(X @ w)
s = np.sort(z)
for k in range(3):
    s = s * 0.5 + z.sum()
e = scipy.special.spence(s + 2)
e.sum()"""
    data = next(d for d in told(notebook, cell)[0].displays if "runs in" in d.get("text/plain", ""))
    lines = {m[1]: row for row in data["text/plain"].splitlines() if (m := re.match(r"[* ] *(\d+) ", row))}
    assert [" kernel" in lines[n] for n in "34678"] == [True, False, True, True, True]
    assert "library" in lines["4"]
    assert "NumPy" in lines["7"]
    page = data["text/html"]
    assert "blocks of" in page
    assert "one thread runs all of it" in page
    assert re.search(r"<mark>.*tanh.*</mark>", page)
    shown = portrait({"e": notebook["e"].sum().node}, {}, "In[1]", device="gpu")
    view = shown.scene(cell).views[-1]
    assert view.name == "kernels"
    found = outlined(shown.executable.graph)
    numbered = {v.kernel for v in view.vertices if v.kernel is not None}
    assert numbered == set(range(1, len(found.steps) + 1))
    assert {v.kernel for v in view.vertices if v.yellow} == {
        found.steps.index(n) + 1 for n in found.library_steps if n.op.name == "spence"
    }
