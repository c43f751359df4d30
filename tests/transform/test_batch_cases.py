"""Every case of the ops' tests on stacks, and on stacks of stacks: what single calls give, or refused by name."""

# tests named elsewhere

import itertools

import numpy as np
import pytest

from tensormagic.backend.numpy_tier import reference
from tensormagic.ir.closing import close
from tensormagic.ir.errors import CaptureError, ShapeError
from tensormagic.ops.leaf import INPUT, Source, input_node, parameter
from tensormagic.ops.move import lead
from tensormagic.transform.batch import batch
from tests.ops.cases import CASES
from tests.ops.harness import listed, place

COUNT = 3
REFUSED = {
    "places": "differs within the batch",
    "unique": "differs within the batch",
    "row_order": "has no rule for batches",
    "extent": "another length for each element of a batch",
    "fixed": "cannot differ between the elements of a batch",
    "tell": "a print in a function that is batched",
}
STATEFUL = {"draw", "random_state", "gamma_slope"}
DTYPES = "dDlB?"


def run(results, inputs, values):
    graph = close(results, lambda n: n.op is INPUT, parameter, leaves=inputs).graph
    with np.errstate(all="ignore"):
        return reference.evaluate_graph(graph, values)


def single(case, values):
    inputs = [place(v) for v in values]
    return run(listed(case.build(*inputs)), inputs, values)


def stacked(case, values, flags, depth):
    """The results for ``values`` of which some have ``depth`` leading axes, by that many batches."""
    stacks = [place(v, f"s{k}") for k, v in enumerate(values)]
    levels = [stacks]
    for _ in range(depth):
        levels.append(
            [
                input_node(Source("x"), s.type.with_shape(s.type.shape[1:])) if f else s
                for s, f in zip(levels[-1], flags, strict=True)
            ]
        )
    found = listed(case.build(*levels[-1]))
    for inner, outer in itertools.pairwise(reversed(levels)):
        size = next(s.type.shape[0] for s, f in zip(outer, flags, strict=True) if f)
        moving = {n: s for n, s, f in zip(inner, outer, flags, strict=True) if f}
        new = batch(found, moving, size)
        found = [lead(r, False, size) if f is None else f for r, f in zip(found, new, strict=True)]
    return run(found, stacks, values)


def operands(case, rng, lead_shape, flags):
    """Operands of which those that are marked differ within the stack."""
    count = int(np.prod(lead_shape))
    dtype = next(d for d in DTYPES if d in case.dtypes)
    drawn = [[np.asarray(v) for v in case.operands(rng, dtype)] for _ in range(count)]
    examples = [[d[k] if f else drawn[0][k] for k, f in enumerate(flags)] for d in drawn]
    whole = [
        np.stack([e[k] for e in examples]).reshape(*lead_shape, *examples[0][k].shape) if f else examples[0][k]
        for k, f in enumerate(flags)
    ]
    return examples, whole


def held(case, lead_shape, flags):
    rng = np.random.default_rng(17)
    examples, whole = operands(case, rng, lead_shape, flags)
    try:
        expected = [single(case, e) for e in examples]
    except (ValueError, TypeError, IndexError):
        return
    if case.op in REFUSED:
        with pytest.raises((ShapeError, CaptureError), match=REFUSED[case.op]):
            stacked(case, whole, flags, len(lead_shape))
        return
    found = stacked(case, whole, flags, len(lead_shape))
    for number, value in enumerate(found):
        parts = [np.asarray(e[number]) for e in expected]
        assert value.dtype == parts[0].dtype
        stack = np.stack(parts).reshape(*lead_shape, *parts[0].shape)
        scale = np.max(np.abs(stack[np.isfinite(stack)]), initial=1.0) if stack.dtype.kind in "fc" else 1.0
        np.testing.assert_allclose(value, stack, rtol=1e-12, atol=1e-12 * scale)


@pytest.mark.share(5)
@pytest.mark.parametrize("case", [c for c in CASES if c.op not in STATEFUL], ids=str)
def test_a_stack_and_a_stack_of_stacks(case):
    count = len(case.shapes)
    for flags in itertools.product((True, False), repeat=count):
        if any(flags):
            held(case, (COUNT,), flags)
    if count:
        held(case, (2, 2), (True,) * count)
