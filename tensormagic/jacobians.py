"""Matrices of derivatives: ``tm.jacobian``, ``tm.hessian`` and ``tm.hvp``, each one batched pass over a basis and not a loop over it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from tensormagic.capture.tree import flatten
from tensormagic.capture.value import node_of, wrap
from tensormagic.derivatives import ArgNums, Closed, argument_positions, derived, grad, jvp, normal_form
from tensormagic.function import Function, of_callable
from tensormagic.ir.errors import DifferentiationError
from tensormagic.ir.node import Node
from tensormagic.ir.type import Type, hint
from tensormagic.ops.leaf import Source, input_node, iota
from tensormagic.ops.move import broadcast, reshape, transpose
from tensormagic.ops.op import Tangent
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalar import equal
from tensormagic.ops.update import zeros_like
from tensormagic.transform import grad as modes
from tensormagic.transform.batch import batch

Mode = Literal["forward", "reverse"]
