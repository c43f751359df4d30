"""The picture of a call over a cluster: what runs where, what moves, and bytes that are those of the report."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.distributed.naming import parameter_names, result_names
from tensormagic.distributed.report import Call, Passed, Report, in_bytes
from tensormagic.distributed.splitting import split
from tensormagic.functions.tracing import traced
from tensormagic.notebook.pictures import placed as placing
from tensormagic.notebook.pictures import svg
from tensormagic.notebook.pictures.placed import Placed, headline, placed
from tests.distributed import test_driven
from tests.distributed import test_splitting as splitting
from tests.notebook.conftest import first_names, notebook, shell

da = pytest.importorskip("dask.array", reason="Dask is an optional extra of the package")
pytestmark = pytest.mark.usefixtures("by_numpy")
__all__ = ["first_names", "notebook", "shell"]

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(4000, 3)), rng.normal(size=4000)
P = {"w": np.zeros(3), "b": 0.0}


def loss(x: Any, y: Any, p: Any) -> Any:
    z = x @ p["w"] + p["b"]
    return np.mean(np.logaddexp(0, z) - y * z)


def standardised(x: Any) -> Any:
    spread = x.std(axis=0)
    return (x - x.mean(axis=0)) / spread, spread


def walk(x: Any, a: Any) -> Any:
    h = x * 0.0
    for _ in range(3):
        h = np.tanh(a * h + x)
    return np.sum(h**2), h


def shown(report: Report | None) -> Placed:
    """The picture of a call."""
    assert report is not None
    made = placed(report)
    assert made is not None
    return made


def frames(made: Placed) -> dict[str, list[str]]:
    """The titles of what is computed in each place."""
    found: dict[str, list[str]] = {}
    for vertex in made.scene.views[0].drawn.vertices:
        if vertex.place:
            found.setdefault(vertex.place, []).append(vertex.title)
    return found


def borders(made: Placed) -> list[tuple[str, str, int]]:
    """What crossed, but for parts between workers: how many these are follows from who was free."""
    return [(c.what, c.way, c.bytes) for c in made.crossings if c.way != "worker to worker"]


def test_a_loss_and_its_gradient(client: Any):
    f = tm.distribute(tm.value_and_grad(loss, argnums=2), client)
    x, y = tm.shard(X, rows=100), tm.shard(Y)
    f(x, y, P)
    first = borders(shown(f.report))
    assert ("rows of x", "this process to workers", X.nbytes) in first
    f(x, y, P)
    made = shown(f.report)
    assert borders(made) == [
        ("rows of x", "on the workers already", 0),
        ("rows of y", "on the workers already", 0),
        ("p['w']", "this process to workers", 2 * 24),
        ("p['b']", "this process to workers", 2 * 8),
        ("1 / 4000", "this process to workers", 2 * 8),
        ("parts of value", "workers to this process", 3 * 8),
        ("parts of grad_p['w']", "workers to this process", 3 * 24),
        ("parts of grad_p['b']", "workers to this process", 3 * 8),
    ]
    places = frames(made)
    assert list(places) == [
        "in this process, before",
        "on each worker, for its rows",
        "on one worker, parts of 16 chunks each put together",
        "in this process, at the end",
    ]
    assert places["in this process, before"] == ["1 / 4000"]
    assert {"@", "softplus", "sigmoid", "sum"} <= set(places["on each worker, for its rows"])
    assert places["on one worker, parts of 16 chunks each put together"] == ["+", "+", "+"]
    assert places["in this process, at the end"] == ["+", "+", "+", "· / 4000"]
    titles = [box.inside.title for box in made.scene.views[0].picture.boxes if box.inside is not None]
    assert len(titles) == len(places)  # each place is one frame
    assert all(any(title.startswith(place) for place in places) for title in titles)


def test_passes_halos_and_rows_that_stay(client: Any):
    f = tm.distribute(standardised, client)
    f(tm.shard(X, rows=1000))
    made = shown(f.report)
    assert [p for p in frames(made) if p.startswith("on each worker")] == [
        f"on each worker, for its rows, pass {k} of 3" for k in (1, 2, 3)
    ]
    assert ("rows of result 1", "stay on the workers", 0) in borders(made)
    f(da.from_array(X, chunks=(1000, 3)))
    assert ("rows of result 1", "computed when asked for", 0) in borders(shown(f.report))
    g = tm.distribute(lambda t: np.abs(np.diff(t)).max(), client)
    g(tm.shard(Y, rows=700))
    assert ("first 1 row of t", "chunk to the one before", 5 * 8) in borders(shown(g.report))
    assert "maximum" in frames(shown(g.report))["on one worker, parts put together"]


FUNCTIONS: list[tuple[Callable[..., Any], list[Any], list[Any]]] = [
    (loss, [X, Y], [P]),
    (tm.value_and_grad(loss, argnums=(2,)), [X, Y], [P]),
    (tm.grad(lambda x, a: walk(x, a)[0], argnums=1), [Y], [0.5]),
    (walk, [Y], [0.5]),
    (standardised, [X], []),
    (lambda t: (t[2:] - t[:-2]) ** 2, [Y], []),
    (lambda t: np.histogram(t, bins=[-1.0, 0.0, 1.0])[0], [Y], []),
    (lambda x: (x.sum(), 3.0, x * np.arange(len(x))), [Y], []),
    (tm.vmap(lambda r: np.linalg.norm(r)), [X], []),
    (lambda x: x[:, 0].max() - x.min(), [X], []),
]


def given(array: Any, way: str, rows: int, folder: Path) -> Any:
    """Rows in one of the ways in which they may come."""
    if way == "file":
        np.save(folder / f"{id(array)}.npy", array)
        return tm.shard(np.load(folder / f"{id(array)}.npy", mmap_mode="r"), rows=rows)
    if way == "batches":
        return (array[k : k + rows] for k in range(0, len(array), rows))
    return da.from_array(array, chunks=(rows, *array.shape[1:])) if way == "dask" else tm.shard(array, rows=rows)


def calls() -> Iterator[tuple[int, str, int]]:
    draw = random.Random(0)
    for k in range(len(FUNCTIONS)):
        for way in draw.sample(["file", "batches", "dask", "shard"], 2):
            yield k, way, draw.choice([300, 1000, 2500])


@pytest.mark.parametrize(("number", "way", "rows"), [*calls()])
def test_bytes_and_times_are_those_of_the_report(number: int, way: str, rows: int, client: Any, tmp_path: Path):
    function, split, others = FUNCTIONS[number]
    f = tm.distribute(function, client)
    f(*[given(a, way, rows, tmp_path) for a in split], *others)
    report = f.report
    assert report is not None
    made = shown(report)
    told: dict[str, int] = {}
    for one in made.crossings:
        kind = "rows" if one.what.startswith("rows of") and one.way == "this process to workers" else one.way
        told[kind] = told.get(kind, 0) + one.bytes
    assert told.get("rows", 0) == report.data.bytes
    assert told.get("this process to workers", 0) == report.parameters.bytes
    assert told.get("chunk to the one before", 0) == report.halos.bytes
    assert told.get("worker to worker", 0) == report.parts.bytes
    assert told.get("workers to this process", 0) == report.results.bytes
    view = made.scene.views[0]
    sent = [v for v in view.vertices if v.kind == "sent"]
    assert sorted(v.label for v in sent) == sorted(in_bytes(c.bytes) for c in made.crossings)
    ids = [v.id for v in view.everything()]
    assert len(ids) == len(set(ids))
    fed = {edge.target for edge in view.edges}
    assert all(v.id in fed for v in sent)
    ends = [v.id for v in view.drawn.vertices if v.kind == "output"]
    assert len(ends) == len(report.call.results if report.call is not None else ())
    assert all(end in fed for end in ends)
    ET.fromstring(svg.render(made.scene))
    line = headline(report)
    assert line.startswith(f"{len(report.workers)} worker")
    assert f"{-(-4000 // rows)} chunks of " in line


@pytest.mark.parametrize("name", ["until_it_is_flat", "boosting", "a_branch_on_a_mean", "rows_by_a_branch"])
def test_a_loop_that_is_driven_is_one_frame_with_all_that_moved_in_it(name: str, client: Any):
    f = tm.distribute(test_driven.LOOPS[name], client)
    f(tm.shard(test_driven.X, rows=20), tm.shard(test_driven.Y))
    made, report = shown(f.report), f.report
    assert report is not None
    told: dict[str, int] = {}
    for one in made.crossings:
        kind = "rows" if one.what.startswith("rows of") and one.way == "this process to workers" else one.way
        told[kind] = told.get(kind, 0) + one.bytes
    assert told["this process to workers"] == report.parameters.bytes
    assert told.get("worker to worker", 0) == report.parts.bytes
    assert told["workers to this process"] == report.results.bytes
    what = "branch" if "branch" in name else "loop"
    places = frames(made)
    assert f"on the workers, for their rows; this process drives the {what}" in places
    ET.fromstring(svg.render(made.scene))


TABLES = {**splitting.ROWWISE, **splitting.SUMMED, **splitting.NEIGHBOURS, **test_driven.LOOPS}


@pytest.mark.parametrize("name", TABLES)
def test_whatever_is_split_can_be_drawn(name: str):
    of = test_driven if name in test_driven.LOOPS else splitting
    found = traced(TABLES[name], of.TYPES)
    made = split(found.graph, (0, 1), sites=found.lens.of)
    count = len(made.graph.results)
    sizes = made.source.bind([v.shape for v in (of.X, of.Y, splitting.W)[: len(of.TYPES)]])
    report = Report("f", splitting.ROWS, 20, len(made.stages))
    results = tuple(f"result {k}" for k in range(count))
    arrived = ((0, "there"), (0, "read"))
    report.call = Call(
        made, sizes, ("x", "y", "w")[: len(of.TYPES)], results, "stable", found.lens, 2, arrived, (24, 8)
    )
    for stage in made.stages:
        report.passed.append(Passed((8,) * len(stage.reads), 2, (8,) * len(stage.parts), 3, 2, 19, later=False))
    view = shown(report).scene.views[0]
    ids = {v.id for v in view.vertices}
    assert {edge.source for edge in view.edges} | {edge.target for edge in view.edges} <= ids
    drawn = view.drawn
    fed = {edge.target for edge in drawn.edges}
    assert sum(v.kind == "output" for v in drawn.vertices) == count
    assert all(v.id in fed for v in drawn.vertices if v.kind in {"output", "sent"})
    parts = sum(len(stage.parts) for stage in made.stages)
    rows = sum(len(stage.rows) for stage in made.stages)
    reads = sum(len(stage.reads) for stage in made.stages)
    ends = [v for v in view.vertices if v.kind == "sent"]
    parts += sum(any(r not in driven.left for r in driven.gives) for driven in made.driven)
    assert len([v for v in ends if v.type.endswith(("back to this process", " to another worker"))]) == 2 * parts
    rows -= sum(node not in made.graph.results for stage in made.stages for node, _ in stage.rows)
    rows += sum(r in driven.left for driven in made.driven for r in made.graph.results)
    assert len([v for v in ends if v.type == "rows stay on the workers"]) == rows
    assert len([v for v in ends if v.type.endswith("to 2 workers")]) == reads
    titles = [b.inside.title for b in view.picture.boxes if b.inside is not None and b.vertex is None]
    places = {v.place for v in drawn.vertices if v.is_op}
    assert "" not in places
    assert places <= set(titles)
    assert len(titles) == len(set(titles))  # no frame is cut in two
    ET.fromstring(svg.render(shown(report).scene))


def test_the_display(notebook: Any, client: Any, monkeypatch: pytest.MonkeyPatch):
    drawn: list[Report] = []
    monkeypatch.setattr(
        placing, "_Placing", lambda report, call, own=placing._Placing: drawn.append(report) or own(report, call)
    )
    notebook["client"], notebook["X"], notebook["Y"], notebook["P"] = client, X, Y, P
    cell = (
        "import tensormagic as tm\ndef loss(x, y, p):\n    z = x @ p['w'] + p['b']\n    return np.mean((z - y) ** 2)\n"
    )
    notebook.ok(f"{cell}step = tm.distribute(loss, client)\nstep(tm.shard(X, rows=1000), tm.shard(Y), P)")
    assert not drawn  # at a call
    ran = notebook.ok("step.report")
    assert len(drawn) == 1
    report = notebook["step"].report
    line, table = headline(report), ran.data["text/plain"]
    assert table.startswith(repr(report))
    assert line in table
    assert "p['w']" in table
    assert "z = · + ·" in frames(shown(report))["on each worker, for its rows"]
    assert ran.data["text/html"] == report._repr_html_()
    picture, _ = ran.displays
    assert picture["text/plain"] == f"{line}\n"
    assert "application/vnd.jupyter.widget-view+json" in picture
    written = [e.text for e in ET.fromstring(picture["image/svg+xml"]).iter("{http://www.w3.org/2000/svg}text")]
    assert "rows of x sent to the workers" in written
    assert in_bytes(X.nbytes) in written
    magics = notebook.shell.magics_manager.registry["TensorMagics"]
    monkeypatch.setattr(type(magics), "rich", False)  # as in a terminal
    (plain,) = notebook.ok("step.report").displays
    assert plain["text/plain"] == table
    for name in ("client", "X", "Y", "P", "step", "loss", "tm"):
        del notebook.shell.user_ns[name]


def test_what_a_report_without_a_call_shows(notebook: Any):
    notebook["report"] = report = Report("f", 10, 2, 1)
    assert placed(report) is None
    assert notebook.ok("report").data["text/plain"] == repr(report)


def test_names_of_arguments_and_results():
    step = tm.value_and_grad(loss, argnums=2)
    args = tm.shard(X), tm.shard(Y), P
    assert parameter_names(step, args, ("a", "b", "c", "d", "scale")) == ("x", "y", "p['w']", "p['b']", "scale")
    assert result_names(step, args, 3) == ("value", "grad_p['w']", "grad_p['b']")
    assert result_names(tm.grad(loss, argnums=(2,)), args, 2) == ("grad_p['w']", "grad_p['b']")
    assert result_names(step, args, 4) == tuple(f"result {k}" for k in (1, 2, 3, 4))
    assert result_names(loss, args, 1) == ("result",)
    nested = lambda x, layers: x  # noqa: E731 (its names alone are read)
    assert parameter_names(nested, (tm.shard(X), [(1.0, "relu"), {"w": Y}]), ()) == (
        "x",
        "layers[0][0]",
        "layers[1]['w']",
    )


def test_large_graphs_begin_as_closed_frames(client: Any):
    def long(x: Any, a: Any) -> Any:
        for k in range(100):
            x = np.sin(x * a[k % 2]) + np.cos(x) * (k + 1.5)
        return x.sum()

    long = tm.distribute(tm.value_and_grad(long, argnums=1), client)
    long(tm.shard(Y, rows=1000), [0.5, 0.25])
    made = shown(long.report)
    picture = made.scene.views[0].picture
    closed = [box.inside.title for box in picture.boxes if box.is_closed and box.inside is not None]
    assert len(made.scene.views[0].drawn.vertices) > 200
    assert any(title.startswith("on each worker, for its rows") for title in closed)
    assert not any(box.is_open for box in picture.boxes)
    held = next(b for b in picture.boxes if b.is_closed and b.inside is not None and "on each worker" in b.inside.title)
    assert held.inside is not None
    assert held.inside.picture.boxes
