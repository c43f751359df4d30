"""Operations that pass a value on unchanged: they compute nothing, and are drawn only if every step is wanted."""

from __future__ import annotations

from tensormagic.ops.effects.checks import REQUIRE
from tensormagic.ops.form import FORM
from tensormagic.ops.move import BROADCAST, RESHAPE
from tensormagic.ops.opaque import ITEM
from tensormagic.ops.pointwise import ASTYPE

CARRYING = (BROADCAST, RESHAPE, ASTYPE, FORM, REQUIRE, ITEM)  # the first operand, as it is
CARRIES = frozenset(op.name for op in CARRYING)
RESHAPES = frozenset(op.name for op in (RESHAPE, ASTYPE, FORM))
