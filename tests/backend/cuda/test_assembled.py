"""Kernels of each class through NVIDIA's assembler: they assemble, spill no registers, and load by 128 bits where they are to."""

# tests named elsewhere

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.cuda.compiling.compiler import compiled
from tensormagic.backend.cuda.kernels import segments
from tensormagic.backend.cuda.kernels.generators import GENERATORS
from tensormagic.backend.cuda.kernels.launch import Launch
from tensormagic.backend.cuda.kernels.lowering import lower
from tensormagic.backend.cuda.loops.guarded import copied, guarded
from tensormagic.backend.cuda.loops.small_loops import alone
from tensormagic.backend.cuda.plan import plan_device
from tensormagic.backend.cuda.planned import every
from tensormagic.backend.planning.schedule import Kernel
from tensormagic.ops.regions.loops import LOOP
from tests.backend.cuda.emulated import compiles

PTXAS = shutil.which("ptxas")
pytestmark = [compiles, pytest.mark.skipif(PTXAS is None, reason="needs ptxas, of NVIDIA's toolkit")]
ARCHITECTURES = ((7, 5), (8, 0), (9, 0), (10, 0))


def softmax(x):
    e = np.exp(x - np.max(x, axis=1)[:, None])
    return e / np.sum(e, axis=1)[:, None]


def layer_norm(x):
    centred = x - np.mean(x, axis=1)[:, None]
    return centred / np.sqrt(np.mean(centred**2, axis=1)[:, None] + 1e-5)


def stencil(x):
    y = x.copy()
    y[1:-1] = x[:-2] + x[2:]
    return y


def logistic(x, y, w):
    z = y * (x @ w)
    return np.mean(np.log1p(np.exp(-z))), x.T @ (-y / (1 + np.exp(z))) / x.shape[0]


TABLE = "[n, m]"
CLASSES = {
    "map": (lambda x, y: np.exp(-x * x) * y + x, ("[n]", "[n]")),
    "functions": (lambda x: (np.tanh(x), np.sin(x), np.log1p(np.exp(x))), ("[n]",)),
    "squares": (lambda x: x.T * 2, (TABLE,)),
    "total": (lambda x: (np.sum(x), np.max(x)), ("[n]",)),
    "rows": (lambda x: np.sum(x, axis=1), (TABLE,)),
    "columns": (lambda x: np.sum(x, axis=0), (TABLE,)),
    "softmax": (softmax, (TABLE,)),
    "layer norm": (layer_norm, (TABLE,)),
    "stencil": (stencil, (TABLE,)),
    "logistic": (logistic, (TABLE, "[n]", "[m]")),
    "scan": (lambda x: np.cumsum(x * 2), ("[n]",)),
    "scan of columns": (lambda x: np.cumsum(x, axis=0), (TABLE,)),
    "places": (lambda x: np.argmax(x, axis=1), (TABLE,)),
    "gather": (lambda x: x[np.array([0, -1, 2])] + 1, (TABLE,)),
}
OTHERS = {
    "sums": (lambda x, y: x + y - x * 3, ("[n]", "[n]")),
    "rows of sums": (lambda x: np.sum(x, axis=1), (TABLE,)),
    "joined": (lambda x: np.concatenate([x, x + x], axis=1), (TABLE,)),
}
VECTORS = {"map", "functions", "total", "scan"}  # neighbours of whole arrays: 16 bytes at a time


def launches_of(name: str, dtype: str) -> list[Launch]:
    function, shapes = (CLASSES | OTHERS)[name]
    plan = plan_device(tm.trace(function, *(dtype + shape for shape in shapes)))
    found = [lower(step, plan) for step in plan.steps if isinstance(step, Kernel)]
    assert all(launches is not None for launches in found)
    return [one for launches in found for one in every(launches or ())]


def assembled(one: Launch, cc: tuple[int, int], folder: Path) -> str:
    """PTX of a launch, for which the assembler has no spill to tell of."""
    code = compiled(one, cc).data
    path = folder / "kernel.ptx"
    path.write_bytes(code)
    command = [PTXAS or "", "-v", f"-arch=sm_{cc[0]}{cc[1]}", str(path), "-o", str(folder / "kernel.cubin")]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    spills = re.findall(r"(\d+) bytes spill (?:stores|loads)", told.stderr)
    assert spills
    assert set(spills) == {"0"}, told.stderr
    return code.decode()


@pytest.mark.share(6)
@pytest.mark.parametrize("cc", ARCHITECTURES, ids=lambda cc: f"sm_{cc[0]}{cc[1]}")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CLASSES)
def test_no_spills_and_wide_loads(name: str, dtype: str, cc: tuple[int, int], tmp_path: Path):
    wide = "ld.global.v4.f32" if dtype == "float32" else "ld.global.v2.f64"
    texts = [assembled(one, cc, tmp_path) for one in launches_of(name, dtype)]
    if name in VECTORS:
        assert any(wide.replace("global.", part) in text for text in texts for part in ("global.", "global.nc."))


@pytest.mark.share(4)
@pytest.mark.parametrize("cc", ARCHITECTURES, ids=lambda cc: f"sm_{cc[0]}{cc[1]}")
@pytest.mark.parametrize("dtype", ["float16", "complex64", "complex128", "int8", "int64"])
@pytest.mark.parametrize("name", ["sums", "squares", "rows of sums", "stencil", "gather", "joined"])
def test_other_dtypes(name: str, dtype: str, cc: tuple[int, int], tmp_path: Path):
    texts = [assembled(one, cc, tmp_path) for one in launches_of(name, dtype)]
    if name == "sums":
        lanes = 2 if dtype in {"complex128", "int64"} else 4  # of what is narrower than a word PTX loads four at once
        assert any(f"ld.global.nc.v{lanes}" in text for text in texts)


@pytest.mark.parametrize("cc", ARCHITECTURES, ids=lambda cc: f"sm_{cc[0]}{cc[1]}")
@pytest.mark.parametrize("kind", GENERATORS)
def test_generators(kind: str, cc: tuple[int, int], tmp_path: Path):
    assembled(GENERATORS[kind].launch, cc, tmp_path)


@pytest.mark.parametrize("cc", ARCHITECTURES, ids=lambda cc: f"sm_{cc[0]}{cc[1]}")
def test_launches_of_loops_and_of_repeated_places(cc: tuple[int, int], tmp_path: Path):
    for one in (guarded(copied("float64")), segments.folded("+", "float32")):
        assembled(one, cc, tmp_path)


def distance(a, b):
    """Of Levenshtein."""
    d = np.zeros((len(a) + 1, len(b) + 1), np.int64)
    d[:, 0] = np.arange(len(a) + 1)
    d[0, :] = np.arange(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (a[i - 1] != b[j - 1]))
    return d[-1, -1]


@pytest.mark.parametrize("cc", ARCHITECTURES, ids=lambda cc: f"sm_{cc[0]}{cc[1]}")
def test_a_nest_of_loops_in_one_thread(cc: tuple[int, int], tmp_path: Path):
    graph = tm.trace(distance, "int64[n]", "int64[m]")
    (node,) = [n for n in graph.nodes if n.op is LOOP]
    one = alone(node)
    assert one is not None
    (launches,) = one.planned.launches.values()
    for launch in launches or ():
        assembled(launch, cc, tmp_path)
