"""What a loop reads in the middle of zeros stays there from iteration to iteration; other carries are as they were."""

import itertools

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.planning.plan import plan_graph
from tensormagic.backend.printing import kernel_source
from tensormagic.ir.node import topological
from tensormagic.session import executable

rng = np.random.default_rng(6)
U = rng.random((7, 9))


def waves(u, c, r):
    u = u.copy()
    for _ in range(6):
        m = u[1:-1, 1:-1]
        near = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * m
        u[1:-1, 1:-1] = m + c * near + r * m * (1 - m)
    return np.sum(u**3)


def by_an_array(u, c, r):
    u = u.copy()
    for _ in range(6):
        m = u[1:-1, 1:-1]
        near = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u[1:-1, 1:-1] = m + c * m * near + r
    return np.sum(u**3)


def read_elsewhere(u, c, r):
    total = 0.0
    u = u.copy()
    for _ in range(6):
        m = u[1:-1, 1:-1]
        near = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u[1:-1, 1:-1] = m + c * near
        total = total + r * np.sum(u**2)
    return total + np.sum(u**3)


def both_of(function, values):
    """Value and gradient, and the bodies of the loops of their graph."""
    both = tm.value_and_grad(function, (0, 1, 2))
    return both, [n["body"] for n in topological(executable(both.graph(*values)).graph.results) if n.op.name == "loop"]


def padded(body):
    """The parts that an iteration puts in the middle of zeros."""
    zeros = [n for n in body.nodes if n.op.name == "set" and n.args[0].op.name == "broadcast"]
    return [n for n in zeros if n not in body.results]


@pytest.mark.parametrize("function", [waves, by_an_array, read_elsewhere], ids=lambda f: f.__name__)
def test_gradients(function, tier):
    value, slopes = tm.value_and_grad(function, (0, 1, 2))(U, 0.1, 0.03)
    np.testing.assert_allclose(value, function(U, 0.1, 0.03), rtol=1e-12)
    step, along = 1e-6, [rng.normal(size=np.shape(s)) for s in slopes]
    ends = [function(*(v + s * a for v, a in zip((U, 0.1, 0.03), along, strict=True))) for s in (step, -step)]
    found = sum(np.vdot(s, a) for s, a in zip(slopes, along, strict=True))
    np.testing.assert_allclose(found, (ends[0] - ends[1]) / (2 * step), rtol=1e-6)


def test_the_frame_is_carried_and_what_is_multiplied_with_an_array_is_not():
    _, bodies = both_of(waves, (U, 0.1, 0.03))
    (back,) = [b for b in bodies if any(n.op.name == "add_at" for n in b.nodes)]
    assert not padded(back)
    (frame,) = [r for r in back.results if r.op.name == "set"]
    assert frame.args[0].op.name == "broadcast"
    _, bodies = both_of(by_an_array, (U, 0.1, 0.03))
    assert any(map(padded, bodies))


@pytest.mark.parametrize("shared", [False, True])
def test_an_iteration_back_is_one_pass_and_fills_no_array(shared, monkeypatch):
    if not shared:
        monkeypatch.setattr(kernel_source, "may_share", lambda nest, inside=False: False)
    plan = plan_graph(executable(both_of(waves, (U, 0.1, 0.03))[0].graph(U, 0.1, 0.03)).graph)
    (source,) = [
        k.printed.source
        for k in plan.kernels
        if k.printed.source.count("add_reassoc") > 1 and "iteration" in k.printed.source
    ]
    lines = source.splitlines()
    sums = [k for k, line in enumerate(lines) if "add_reassoc" in line]
    printed = 1 + shared  # each nest is printed for threads that share it, and for one
    assert len(sums) == 2 * printed
    for last in sums[1::2]:
        depth = len(lines[last]) - len(lines[last].lstrip())
        pass_ = itertools.takewhile(lambda line, n=depth: line.startswith(" " * n), lines[last:])
        same = [line.strip() for line in pass_ if line.startswith(" " * depth + "a")]
        assert any(line.endswith(")") and "[" in line.partition(" = ")[0] for line in same)
    zeros = [k for k, line in enumerate(lines) if line.strip().endswith("= np.float64(0.0)") and "[" in line]
    iteration = next(k for k, line in enumerate(lines) if "for iteration" in line)
    assert sum(k > iteration for k in zeros) == 4 * printed  # the rim of the frame: all of it would be one loop


def test_numbers_that_are_stretched_before_a_loop_are_numbers_within():
    def function(x, c):
        for _ in range(9):
            x = np.tanh(x * c)
        return np.sum(x)

    graph = executable(tm.value_and_grad(function, (0, 1)).graph(U, 0.9)).graph
    loops = [n for n in graph.nodes if n.op.name == "loop"]
    assert loops
    assert not any(
        a.op.name == "broadcast" and a.args[0].type.dtype == float and n["carries"] < k
        for n in loops
        for k, a in enumerate(n.args)
    )


def test_stores_into_equal_constants_within_loops(tier):

    def function(x, n):
        total = x * 0
        for k in range(n):
            frame = np.full((x.shape[0] + 3, x.shape[1] + 2), 2.5)
            frame[1:-2, 2:] = x * k
            total = total + frame[:-3, 1:-1] * frame[3:, 2:] + frame[2:-1, 1:-1]
        return total

    for shape in ((4, 5), (1, 3), (2, 2)):
        x = rng.normal(size=shape)
        np.testing.assert_allclose(tm.tensor(function)(x, 4), function(x, 4), rtol=1e-13)
