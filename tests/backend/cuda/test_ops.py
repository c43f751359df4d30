"""Every op of the registry on a device: NumPy's values, and no copy but those that are named before anything runs."""

# tests named elsewhere

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tensormagic.backend.cuda import run as cuda
from tensormagic.backend.cuda.device import Device
from tensormagic.backend.numpy_tier import reference
from tensormagic.ir.closing import close
from tensormagic.ir.errors import TensorError
from tensormagic.ir.graph import Graph
from tensormagic.ops.effects.raising import check
from tensormagic.ops.effects.telling import tell
from tensormagic.ops.leaf import INPUT, constant, parameter
from tensormagic.ops.op import registry
from tensormagic.ops.pointwise import Pointwise
from tests.ops.cases import CASES
from tests.ops.harness import DTYPES, ERRORS, listed, outcome, place, sample

POINTWISE = [op for op in registry.values() if isinstance(op, Pointwise) and op.name != "astype"]
# What each runs on a device in: entries of tapes and what steers loops stay where they are; draws are NumPy's, and go there.
ELSEWHERE = {
    *("input", "parameter", "constant", "size", "tape", "seed", "random_state", "draw"),  # test_run.py
    *(
        "loop",
        "while",
        "cond",
        "call",
        "checkpoint",
        "custom_gradient",
        "grad",
        "itself",
        "recursive",
    ),  # test_run.py, test_loops.py
    *("works", "converted", "outside", "settled"),
    *("gamma_slope", "beta_slopes", "von_mises_slope"),
}
PARTS = {"partition", "argpartition", "argsort"}  # any order of equal elements will do, and of parts


def on_device(device: Device, graph: Graph, values: Sequence[Any]) -> list[Any]:
    """The results, on the host; what was copied for them is what was named."""
    given = [device.put(np.asarray(v)) if np.ndim(v) else v for v in values]
    named = {hidden.name.removesuffix("()") for hidden in cuda.offenders(graph)}
    before = device.copied.to_host
    found = cuda.run(graph, given, device)
    assert named or device.copied.to_host == before, graph.text
    return [device.fetch(f) if device.is_array(f) else f for f in found]


def graph_of(build: Callable[..., Any], values: Sequence[Any]) -> Graph:
    inputs = [place(v) for v in values]
    return close(listed(build(*inputs)), lambda n: n.op is INPUT, parameter, leaves=inputs).graph


def near(ours: Any, numpys: Any, context: Any) -> None:
    a, b = np.asarray(ours), np.asarray(numpys)
    assert (a.dtype, a.shape) == (b.dtype, b.shape), context
    if b.dtype.kind not in "fc":
        np.testing.assert_array_equal(a, b, err_msg=str(context))
        return
    eps = float(np.finfo(b.dtype).eps)
    scale = float(np.max(np.abs(b[np.isfinite(b)]), initial=0))
    np.testing.assert_allclose(a, b, rtol=64 * eps, atol=64 * eps * scale, err_msg=str(context))


def compared(device: Device, build: Callable[..., Any], values: Sequence[Any], context: Any) -> bool:
    """Whether there were values: the device's are NumPy's, or the error is."""
    try:
        graph = graph_of(build, values)
    except (TensorError, *ERRORS):  # refused when it is captured, on any device
        return False
    expected = outcome(lambda: tuple(reference.evaluate_graph(graph, values)))
    found = outcome(lambda: tuple(on_device(device, graph, values)))
    if isinstance(expected, type) or isinstance(found, type):
        assert found == expected, context
        return False
    for one, other in zip(found, expected, strict=True):
        near(one, other, context)
    return True


@pytest.mark.share(2)
@pytest.mark.parametrize("case", [c for c in CASES if c.op not in PARTS], ids=str)
def test_every_case_on_a_device(device: Device, case):
    rng = np.random.default_rng(5)
    for dtype in case.dtypes:
        compared(device, lambda *x: case.settle(case.build(*x)), case.operands(rng, dtype), (dtype, str(case)))


@pytest.mark.parametrize("case", [c for c in CASES if c.op in PARTS], ids=str)
def test_parts_are_in_order_on_a_device(device: Device, case):
    rng = np.random.default_rng(5)
    for dtype in case.dtypes:
        (x,) = case.operands(rng, dtype)
        graph = graph_of(case.build, [x])
        expected = outcome(lambda graph=graph, x=x: reference.evaluate_graph(graph, [x])[0])
        found = outcome(lambda graph=graph, x=x: on_device(device, graph, [x])[0])
        assert isinstance(found, list) == isinstance(expected, list)
        node = next(n for n in graph.nodes if n.op.name == case.op)
        axis = node["axis"]
        if np.ndim(x) != len(node.args[0].type.shape):
            x = np.ravel(x)
        places = np.arange(x.shape[axis]) if case.op == "argsort" else np.atleast_1d(node.args[1]["bits"].array())
        for k, values in enumerate((found[0], expected[0])):
            taken = values if case.op == "partition" else np.take_along_axis(x, np.asarray(values), axis)
            np.testing.assert_array_equal(np.sort(taken, axis), np.sort(x, axis), err_msg=str(k))
            np.testing.assert_array_equal(np.take(taken, places, axis), np.take(np.sort(x, axis), places, axis))


@pytest.mark.parametrize("op", POINTWISE, ids=lambda op: op.name)
def test_every_scalar_function_on_a_device(device: Device, op: Pointwise):
    rng = np.random.default_rng(1)
    worked = []
    for k, dtype in enumerate([np.dtype(np.float16), *DTYPES]):
        other = DTYPES[(k * 5 + 3) % len(DTYPES)]
        for last in {dtype, other} if op.arity > 1 else {dtype}:
            first = [np.dtype(bool)] if op.name == "where" else []
            kinds = [*first, *[dtype] * (op.arity - 1 - len(first)), last]
            values = [sample(rng, d, (2, 3)) for d in kinds]
            worked.append(compared(device, op, values, kinds))
    assert any(worked)


def test_every_op_is_tried_on_a_device():
    tried = {case.op for case in CASES} | ELSEWHERE | {op.name for op in POINTWISE} | {"astype"}
    leaves = {op.name for op in registry.values() if op.kind == "leaf"}
    assert set(registry) - tried - leaves == set()


def test_a_function_that_the_library_lacks_is_a_host_step_with_its_bytes(device: Device):
    x = np.arange(1.0, 5.0)
    graph = graph_of(lambda v: registry["spence"](v * 2) + 1, [x])
    (hidden,) = cuda.offenders(graph)
    assert hidden.name == "spence()"
    assert hidden.direction == "to the host"
    before = device.copied.to_host, device.copied.to_device
    values = [device.put(x)]
    cuda.run(graph, values, device)
    assert device.copied.to_host - before[0] == x.nbytes
    assert device.copied.to_device - before[1] == 2 * x.nbytes  # the argument, and what comes back


def test_what_is_printed_is_a_copy_with_a_name(device: Device, capsys: pytest.CaptureFixture[str]):
    x = np.arange(3.0)
    graph = graph_of(lambda v: tell(v * 2, [("operand", 0)], [v]), [x])
    assert [hidden.name for hidden in cuda.offenders(graph)] == ["print()"]
    (found,) = cuda.run(graph, [device.put(x)], device)
    assert device.is_array(found)
    assert capsys.readouterr().out == "[0. 1. 2.]\n"
    assert device.copied.to_host == x.nbytes


def test_a_check_that_holds_reads_one_flag(device: Device):
    graph = graph_of(
        lambda v: check(v * 2, registry["greater"](v, -1.0), ValueError, [("operand", 0)], [v]), [np.ones(3)]
    )
    cuda.run(graph, [device.put(np.arange(3.0))], device)
    assert (device.copied.to_host, device.copied.reads) == (0, 1)
    with pytest.raises(ValueError, match=r"-2\."):
        cuda.run(graph, [device.put(np.array([1.0, -2.0, -3.0]))], device)


def test_a_formula_of_other_ops_needs_no_entry(device: Device):
    graph = graph_of(lambda v: registry["log_erfc"](v) + constant(1.0), [np.linspace(-3, 12, 7)])
    assert cuda.offenders(graph) == []
