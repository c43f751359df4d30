"""What is told of nodes inside loops, branches and calls, and where a nan inside them came from."""

from __future__ import annotations

import itertools
import time
from types import SimpleNamespace

import numpy as np
import pytest

from tensormagic.ir.graph import Graph
from tensormagic.ir.type import array, python
from tensormagic.notebook.pictures import inside as looking_inside
from tensormagic.notebook.pictures import watching
from tensormagic.notebook.pictures.measure import measure, summary
from tensormagic.notebook.pictures.message import part
from tensormagic.notebook.pictures.watching import Looking, watched
from tensormagic.ops.effects.telling import tell
from tensormagic.ops.leaf import constant, parameter
from tensormagic.ops.regions import control
from tensormagic.ops.regions.recursion import itself, recursive
from tensormagic.ops.scalars.scalar import add, less, multiply


class Told:
    """What the graph view of a cell tells of its nodes."""

    def __init__(self, notebook, cell: str) -> None:
        report = notebook.ok(f"%%tensor\n{cell}").value.report
        self.scene = report.portrait.scene(report.outcome.source)
        self.details = self.scene.details

    def __call__(self, label: str, within: str = "/", view: int = 0):
        """Return what is told of the first node of that label in a graph inside."""
        found = next(v for v in self.scene.views[view].everything() if v.label.startswith(label) and within in v.id)
        return self.details.measured.get(found.number, {})


def iterations(told) -> dict:
    """What is told of each iteration."""
    return dict(map(tuple, told["iterations"]))


@pytest.fixture(autouse=True)
def w(notebook):
    """Numbers that are the same for all."""
    notebook["w"] = np.array([0.5, 1.0, 2.0])


LOOP = "v = w\nfor k in range(200):\n    v = v * 0.99 + np.exp(-v)\nv.sum()"


def states(w, count):
    """The carry before each iteration of the loop above, and after the last."""
    found = [w]
    for _ in range(count):
        found.append(found[-1] * 0.99 + np.exp(-found[-1]))
    return found


def test_of_a_loop_iterations_are_told_with_the_first_and_the_last(notebook):
    told = Told(notebook, LOOP)
    exp = told("exp")
    known = [np.exp(-v) for v in states(notebook["w"], 200)]
    by_iteration = iterations(exp)
    assert next(iter(by_iteration)) == "iteration 1 of 200"
    assert list(by_iteration)[-1] == "iteration 200 of 200"
    assert len(by_iteration) == looking_inside.MOST_ITERATIONS
    for when, seen in by_iteration.items():
        assert seen == summary(known[int(when.split()[1]) - 1])
    assert exp["ran"] == "200 times"
    assert exp["over"] == f"min {np.min(known[:200]):.4g}, max {np.max(known[:200]):.4g}"
    assert exp["seconds"] > 0
    carry = told("v")
    assert iterations(carry)["iteration 1 of 200"] == summary(notebook["w"])
    assert "seconds" not in carry
    whole = told("loop", "")
    assert whole["ran"] == "200 iterations"
    assert whole["seconds"] >= exp["seconds"]
    assert whole["min"] == summary(states(notebook["w"], 200)[-1])["min"]


def test_every_view_and_every_step_tells_the_same_values(notebook):
    told = Told(notebook, LOOP.replace("np.exp(-v)", "np.exp(-(-(-v)))"))
    captured, *others = (iterations(told("exp", view=k)) for k in range(len(told.scene.views)))
    assert len(others) == 2
    assert all(other == captured for other in others)
    steps = told.details.steps["rewritten"]
    assert len(steps) > 1
    for step in steps:
        exp = next(v for v in step.view.everything() if v.label == "exp")
        assert iterations(told.details.measured[exp.number]) == captured


def test_of_a_branch_the_way_that_ran_is_told(notebook):
    told = Told(notebook, "s = w.sum()\nif s > 0:\n    s = s * 2\nelse:\n    s = np.exp(s) - 1\ns")
    total = notebook["w"].sum()
    assert iterations(told("multiply", "/then/")) == {"": summary(total * 2)}
    assert "ran" not in told("multiply", "/then/")
    assert told("exp", "/otherwise/") == {"ran": "did not run"}
    assert told("branch", "")["ran"] == "then"


def test_a_parameter_inside_is_not_taken_for_an_input_of_the_cell(notebook):
    told = Told(notebook, "v = np.exp(w)\nif v.sum() > 0:\n    v = v * 2\nelse:\n    v = v - 1\nv")
    assert iterations(told("v", "/then/")) == {"": summary(np.exp(notebook["w"]))}
    assert told("w", "")["value"] != iterations(told("v", "/then/"))[""]["value"]


def test_a_branch_in_a_loop_tells_how_often_it_ran_and_when(notebook):
    cell = "v = w\nfor k in range(20):\n    if k == 13:\n        v = v * 2\n    else:\n        v = v / 3\nv.sum()"
    told = Told(notebook, cell)
    double, third = told("multiply", "/then/"), told("divide", "/otherwise/")
    assert double["ran"] == "1 of 20 times"
    assert iterations(double) == {"iteration 14 of 20": summary(notebook["w"] / 3 / 3**12 * 2)}
    assert third["ran"] == "19 of 20 times"
    assert list(iterations(third))[-1] == "iteration 20 of 20"
    assert told("branch")["ran"] == "20 times: then once, else 19 times"
    assert not [when for when in iterations(third) if when.startswith("iteration 14")]


def test_the_test_of_a_while_loop_comes_once_more_than_its_body(notebook):
    told = Told(notebook, "s = w.sum()\nwhile s < 100:\n    s = s * 3\ns + 1")
    count = 4  # 3.5, 10.5, 31.5, 94.5, 283.5
    body, test = told("multiply", "/body/"), told("less", "/test/")
    assert list(iterations(body))[-1] == f"iteration {count} of {count}"
    assert list(iterations(test))[-1] == f"test {count + 1} of {count + 1}"
    assert [seen["value"] for seen in iterations(test).values()] == ["True"] * count + ["False"]
    assert told("while", "")["ran"] == f"{count} iterations"


def test_nested_loops_tell_the_iterations_of_each(notebook):
    told = Told(
        notebook, "v = w\nfor i in range(3):\n    for j in range(4):\n        v = np.sin(v) + i * np.cos(w)\nv.sum()"
    )
    sin, cos = told("sin"), told("multiply")
    assert next(iter(iterations(sin))) == "iteration 1 of 3, iteration 1 of 4"
    assert list(iterations(sin))[-1] == "iteration 3 of 3, iteration 4 of 4"
    assert sin["ran"] == "12 times"
    assert told("loop")["ran"] == "3 times: 12 iterations"
    v = notebook["w"]
    for k in range(12):
        last, v = v, np.sin(v) + k // 4 * np.cos(notebook["w"])
    assert list(iterations(sin).values())[-1] == summary(np.sin(last))
    assert cos["ran"] == "3 times"


def test_what_is_the_same_in_every_iteration_says_so():
    body = _region([python(int), VECTOR, VECTOR], lambda _k, x, c: [add(x, multiply(c, c))])
    graph = _region([VECTOR, VECTOR], lambda x, c: control.loop(constant(4), body, [x], [c]))
    found, _ = measure([graph], dict(zip(graph.parameters, (np.ones(3), np.full(3, 2.0)), strict=True)), int)
    square = next(one for place, one in found.items() if isinstance(place, tuple) and place[-1].op.name == "multiply")
    assert square["ran"] == "once, for all iterations"
    assert {one["value"] for one in iterations(square).values()} == {"[4, 4, 4]"}


def test_a_value_that_is_stored_into_later_is_told_as_it_was(notebook):
    told = Told(notebook, "h = np.zeros(4)\nfor k in range(4):\n    h[k] = k + 1\nh.sum()")
    carry = told("h")
    assert [one["value"] for one in iterations(carry).values()] == [
        "[0, 0, 0, 0]",
        "[1, 0, 0, 0]",
        "[1, 2, 0, 0]",
        "[1, 2, 3, 0]",
    ]


def test_a_loop_without_iterations_did_not_run():
    body = _region([python(int), VECTOR], lambda k, x: [add(multiply(x, x), k)])
    graph = _region([python(int), VECTOR], lambda n, x: control.loop(n, body, [x]))
    found, note = measure([graph], dict(zip(graph.parameters, (0, np.ones(3)), strict=True)), int)
    inside = [told for place, told in found.items() if isinstance(place, tuple)]
    assert inside == [{"ran": "did not run"}] * len(body.nodes)
    assert found[graph.results[0]]["ran"] == "0 iterations"
    assert note == ""


# limits ---------------------------------------------------------------------------------------------------------------


def test_of_a_long_loop_the_first_iterations_are_told(notebook, monkeypatch):
    """A clock that goes on by a second with each iteration: a hundred of them are allowed."""
    region = looking_inside.Inside.region
    begin = time.perf_counter()
    monkeypatch.setattr(watching, "time", SimpleNamespace(perf_counter=itertools.count(begin).__next__))
    monkeypatch.setattr(looking_inside, "LONGEST", 1e6)
    monkeypatch.setattr(
        looking_inside.Inside, "region", lambda own, node, given, _: region(own, node, given, begin + 99)
    )
    told = Told(notebook, LOOP.replace("200", "3000"))
    assert "Only the first iterations of a long loop are shown" in told.details.note
    assert "were not computed" in told.details.note
    exp = told("exp")
    assert next(iter(iterations(exp))) == "iteration 1 of 3000"
    assert list(iterations(exp))[-1] == "iteration 100 of 3000"
    assert exp["ran"] == "at least 100 times"
    assert iterations(exp)["iteration 100 of 3000"] == summary(np.exp(-states(notebook["w"], 99)[-1]))
    assert told("loop", "") == {"ran": "3000 iterations"}


def test_where_there_is_no_room_the_loop_alone_is_told(notebook, monkeypatch):
    monkeypatch.setattr(looking_inside, "MOST_TOLD", 3)
    told = Told(notebook, LOOP)
    assert told("exp") == {}
    assert told("loop", "")["seconds"] > 0
    assert "inside loops and branches are not shown" in told.details.note


def test_few_iterations_are_told_where_much_is_inside(notebook, monkeypatch):
    monkeypatch.setattr(looking_inside, "MOST_TOLD", 12)
    told = Told(notebook, LOOP)
    assert list(iterations(told("exp"))) == ["iteration 200 of 200"]


# nothing happens twice ------------------------------------------------------------------------------------------------

VECTOR, NUMBER = array(np.float64, 3), python(float)


def _region(types, build) -> Graph:
    parameters = tuple(parameter(k, t) for k, t in enumerate(types))
    return Graph(parameters, tuple(build(*parameters)))


def test_what_a_loop_prints_it_has_printed(capsys):
    body = _region([python(int), NUMBER, VECTOR], lambda k, t, x: [tell(t, [("operand", 0)], [k]), multiply(x, 2.0)])
    graph = _region([NUMBER, VECTOR], lambda t, x: control.loop(constant(3), body, [t, x]))
    loop = graph.results[0].args[0]
    values = [0.0, np.ones(3)]
    assert loop.op.evaluate(loop, [3, *values], int)[1].tolist() == [8.0] * 3
    assert capsys.readouterr().out == "0\n1\n2\n"
    found, note = measure([graph], dict(zip(graph.parameters, values, strict=True)), int)
    assert capsys.readouterr().out == ""
    assert note == ""
    double = next(one for place, one in found.items() if isinstance(place, tuple) and place[-1].op.name == "multiply")
    assert [one["value"] for one in iterations(double).values()] == ["[2, 2, 2]", "[4, 4, 4]", "[8, 8, 8]"]


def test_looking_stores_and_draws_nothing(notebook):
    notebook["g"], notebook["x"] = np.random.default_rng(5), np.zeros(4)
    told = Told(notebook, "t = 0.0\nfor k in range(4):\n    x[k] += 1\n    t = t + g.normal()\nt + x.sum()")
    expected = np.random.default_rng(5)
    expected.normal(size=4)
    assert told.details.measured
    assert notebook["x"].tolist() == [1.0] * 4
    assert notebook["g"].bit_generator.state == expected.bit_generator.state


def test_who_looks_on_sees_each_value_and_changes_none():
    body = _region([python(int), VECTOR], lambda k, x: [add(multiply(x, x), k)])
    graph = _region([VECTOR], lambda x: control.loop(constant(5), body, [x]))
    (loop,) = graph.results
    seen = []

    class Noting(Looking):
        def made(self, node, value):
            seen.append((node.op.name, [frame.iteration for frame in self.loops()]))

    given = [5, np.array([0.1, 0.2, 0.3])]
    value = watched(loop, given, int, Noting())
    np.testing.assert_array_equal(value, loop.op.evaluate(loop, given, int))
    assert given[1].tolist() == [0.1, 0.2, 0.3]
    assert [iteration for name, iteration in seen if name == "multiply"] == [[k] for k in range(1, 6)]
    assert seen[-1] == ("loop", [])


def test_of_a_function_that_calls_itself_calls_are_told():
    end = _region([NUMBER, VECTOR], lambda s, x: [multiply(x, s)])
    again = _region([NUMBER, VECTOR], lambda s, x: [add(itself("f", [s - 1.0, x], [VECTOR])[0], x)])
    own = _region([NUMBER, VECTOR], lambda s, x: control.cond(less(s, 1.0), end, again, [s, x]))
    graph = _region([NUMBER, VECTOR], lambda s, x: recursive("f", {"f": own}, [s, x]))
    found, note = measure([graph], dict(zip(graph.parameters, (3.5, np.ones(3)), strict=True)), int)
    assert note == ""
    names = {place[-1].op.name: one for place, one in found.items() if isinstance(place, tuple)}
    assert list(iterations(names["less"])) == ["call 1 of 4", "call 2 of 4", "call 3 of 4", "call 4 of 4"]
    assert [one["value"] for one in iterations(names["less"]).values()] == ["False", "False", "False", "True"]
    assert names["add"]["ran"] == "3 of 4 times"
    assert names["multiply"]["ran"] == "1 of 4 times"


# words ----------------------------------------------------------------------------------------------------------------


def test_a_page_gets_times_and_sizes_with_their_units(notebook):
    told = Told(notebook, LOOP)
    exp = next(v for v in told.scene.views[0].everything() if v.label == "exp")
    message = part(told.scene, ["details"])["content"]["measured"][str(exp.number)]
    assert message["seconds"].split()[1] in {"ns", "µs", "ms", "s"}
    assert message["iterations"][-1][1]["bytes"] == "24 B"


# nan ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        (
            "u = w\nfor k in range(9):\n    if k > 5:\n        u = np.log(u - 90)\n    else:\n        u = u * 2\nq = u.sum()",
            ["line 5, iteration 7  u = np.log(u - 90)", "log", "[0]", "-58"],
        ),
        (
            "s = w.sum()\nif s > 0:\n    s = np.log(-s)\nq = s * 2",
            ["line 4  s = np.log(-s)", "log", "the number", "-3.5"],
        ),
        (
            "u = w\nv = w\nfor i in range(6):\n    for j in range(5):\n        v = np.sqrt(20 - u)\n        u = u + 1\nq = (u + v).sum()",
            ["line 6, iteration 4, 5  v = np.sqrt(20 - u)", "sqrt", "[2]", "-1"],
        ),
        (
            "u = w\nfor k in range(6):\n    u = u * 3 + np.where(u > 9, np.log(u - 9), 0)\n    v = np.sqrt(200 - u)\nq = (u + v).sum()",
            ["line 5, iteration 5  v = np.sqrt(200 - u)", "sqrt", "[1]", "-55.9871"],
        ),
    ],
)
def test_a_nan_inside_is_told_with_its_line_and_iteration(notebook, cell, told):
    with np.errstate(all="ignore"):
        notebook.ok(f"%%tensor -q\n{cell}")
        row = notebook.ok("%tensor_nan q").data["text/plain"].splitlines()[2]
    assert all(words in row for words in told), row
