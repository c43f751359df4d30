"""How the ops on tapes are tried: what is written is read again."""

from typing import Any

import numpy as np

from tensormagic.ir.node import make
from tensormagic.ir.type import array
from tensormagic.ops.leaf import constant
from tensormagic.ops.reverse import tape, tape_stack
from tests.ops.cases import case


def written(x: Any, place: int = 1) -> Any:
    return tape.record(tape.empty_tape(x.type), constant(place), x)


def added(x: Any, y: Any) -> Any:
    first, second = (make(tape.ADD_RECORD, (tape.empty_tape(v.type), constant(1), v)) for v in (x, y))
    return tape.add_tapes(first, second)


def played(roll: Any, x: Any, place: int = 1) -> Any:
    return tape.read_tape(roll, constant(place), x.type)


HALF = np.array([True, False, True])

for _shape in [(), (3,), (2, 3), (0, 2)]:
    case("record", lambda x: played(written(x), x), lambda x: x, _shape)
    case(
        "replay",
        lambda x: (played(written(x), x), played(written(x), x, 0)),
        lambda x: (x, np.zeros_like(x)[()]),
        _shape,
    )
    case("add_record", lambda x, y: played(added(x, y), x), np.add, _shape, _shape)
    case(
        "add_tapes",
        lambda x, y: played(make(tape.ADD_TAPES, (written(x), written(y))), x),
        np.add,
        _shape,
        _shape,
    )
case(
    "choose_tape",
    lambda x, y: played(tape.choose_tape(constant(HALF), written(x), written(y)), x),
    lambda x, y: np.where(HALF[:, None], x, y),
    (3, 2),
    (3, 2),
)
case(
    "lead_tape",
    lambda x: tape.read_tape(
        make(tape.LEAD_TAPE, (written(x),), axis=1, size=4), constant(1), array(x.type.dtype, 2, 4, 3)
    ),
    lambda x: np.stack([x] * 4, 1),
    np.zeros((2, 3)),
    label="repeated",
    prepare=lambda x: (np.arange(6.0).reshape(2, 3) + x,),
    dtypes="d",
)
case(
    "sum_tape",
    lambda x: tape.read_tape(
        make(tape.SUM_TAPE, (written(x),), axis=1, size=4), constant(1), array(x.type.dtype, 2, 3)
    ),
    lambda x: x.sum(1),
    np.zeros((2, 4, 3)),
    label="summed",
    prepare=lambda x: (np.arange(24.0).reshape(2, 4, 3) + x,),
    dtypes="d",
)

for _shape in [(4,), (4, 2), (0, 3)]:
    case(
        "stack_tape",
        lambda x: tape_stack.stack_tape(written(x, 0), 1, x.type),
        lambda x: x[None],
        _shape,
    )
    case(
        "unstack_tape",
        lambda x: make(tape_stack.STACK_TAPE, (tape_stack.unstack_tape(x),), shape=x.type.shape),
        lambda x: x,
        _shape,
    )
    case(
        "extent",
        lambda x: make(tape_stack.EXTENT, (written(x), constant(1)), axis=x.type.ndim - 1),
        lambda x: x.shape[-1],
        _shape,
        derivative=False,
    )
