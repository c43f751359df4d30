"""Results that are complex only for some values: NumPy's dtype is then data-dependent, and fixed by the value at capture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.names import implements
from tensormagic.capture.values.arguments import done, known, tensor
from tensormagic.capture.values.value import wrap
from tensormagic.ir.node import Node
from tensormagic.ops.effects.checks import settled
from tensormagic.ops.form import to_form
from tensormagic.ops.matrices import spectral


def taken_for_real(node: Node, function: Callable[[Any], Any]) -> tuple[bool, int]:
    """Return whether ``function`` of a value is real, and the site of this decision; a trace guesses, and the run checks the guess.

    A wrong guess raises `KindError` when the graph runs, and the function is traced again.
    """
    capture = context.current()
    if capture is not None and capture.abstract:
        return capture.complexes.of_site()
    return not np.iscomplexobj(function(wrap(node if capture is None else capture.actual(node)).numpy())), -1


def as_values_say(value: Any, holds: Any) -> Any:
    """Return a complex array, or its real part if ``holds``: the dtype depends on the values."""
    capture = context.current()
    if capture is None or not capture.abstract:
        return value.real.copy() if bool(holds) else value
    real, site = capture.complexes.of_site()
    return wrap(settled((value.real if real else value).node, holds.node, real, site))


@implements(np.real_if_close)
def real_if_close(a: Any, tol: Any = 100) -> Any:
    """Implement ``np.real_if_close``: complex numbers become real if all are close to it."""
    x = tensor(a)
    x = x if x.type.form == "array" else wrap(to_form(x.node, "array"))
    if x.dtype.kind != "c":
        return x
    limit = float(known(tol, "the tolerance of np.real_if_close"))
    whole, site = taken_for_real(x.node, lambda v: np.real_if_close(v, limit))
    if site < 0:
        return x.real if whole else x
    return done(spectral.close_to_real(x.node, real=whole, limit=limit, site=site))
