"""Where the elements of a result lie in memory decides what is a view of it: as in NumPy, or a store is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tensormagic.ir.errors import CaptureError
from tests.capture.harness import check

ARRAYS = [
    "x.real",
    "x.imag",
    "x.T",
    "x[:, ::2]",
    "x[::-1]",
    "x[1:]",
    "x[0:1]",
    "x[:, :1]",
    "x[..., None]",
    "x[None]",
    "np.asfortranarray(x)",
    "x.T.copy().T",
    "x.reshape(3, 2).T",
    "x.T + 1",
    "np.sort(x, axis=0)",
    "x.T.astype('f4')",
    "np.stack([x, x], -1)[..., 0]",
    "np.swapaxes(np.stack([x, x]), 0, 2)[0]",
    "np.where(x.T > 1, x.T, 0)",
    "np.concatenate([x.T, x.T], 1)",
    "np.broadcast_to(x[0], (2, 3)) + 0",
    "x.T[1:]",
    "x[:, 1]",
    "np.einsum('ij->ji', x)",
    "np.cumsum(x.T, 0)",
    "np.roll(x.T, 1)",
    "np.flip(x.T) * 2",
    "x.T @ x",
    "np.tile(x.T, 2)",
    "np.repeat(x.T, 2, 0)",
    "np.take(x.T, [0, 1], 0)",
    "x.T[[0, 1]]",
    "np.zeros_like(x.T) + 1",
    "np.copy(x.T)",
    "x.T.copy()",
    "np.array(x.T)",
    "np.maximum(x, x[::-1])",
    "x.T * np.arange(2.)",
    "np.round(x.T, 1)",
    "np.clip(x.T, 0, 3)",
    "np.abs(x.T)",
    "x.T.real",
    "np.outer(x[0], x[1]).T",
    "np.transpose(x)[::-1]",
    "np.diff(x.T)",
    "np.fft.fft(x.T).real",
    "np.linalg.norm(x.T, axis=0, keepdims=True)",
    "x.sum(0, keepdims=True).T",
    "np.expand_dims(x.T, 0)",
    "np.moveaxis(x[None], 0, -1)",
    "np.zeros((2, 3), order='F')",
    "np.ones_like(x.T)",
    "np.full_like(x.T, 3)",
    "np.zeros_like(x.T, order='C')",
]
PARTS = [
    "b.ravel()",
    "b.reshape(-1)",
    "b.T.ravel()",
    "b.T.reshape(-1)",
    "b.ravel('F')",
    "b.reshape(-1, order='F')",
    "np.ravel(b)",
    "np.reshape(b, -1)",
    "b.flatten()",
    "np.ascontiguousarray(b)",
    "np.asfortranarray(b)",
    "b.ravel('K')",
    "b.ravel('A')",
    "b[::2].ravel()",
    "b[:1].ravel()",
    "b[..., :1].ravel()",
    "b[..., 0].ravel()",
    "np.atleast_3d(b).ravel()",
    "np.squeeze(b).ravel()",
    "b.swapaxes(0, -1).ravel()",
    "(b + 1).ravel()",
    "(b + 1).T.ravel()",
    "(b * 2).reshape(-1)",
    "(-b).T.reshape(-1)",
    "b.copy().T.ravel()",
    "b.copy('F').ravel()",
    "b.copy('K').T.ravel()",
    "np.copy(b).T.ravel()",
    "np.array(b).T.ravel()",
    "b.astype('f8').T.ravel()",
    "np.where(b > 1, b, 0).T.ravel()",
]
MADE = [
    "(b + 1)",
    "(b * 2)",
    "(-b)",
    "b.copy()",
    "b.copy('F')",
    "b.copy('K')",
    "np.copy(b)",
    "np.array(b)",
    "b.astype('f8')",
]
MADE.append("np.where(b > 1, b, 0)")


def program(array: str, part: str, store: str) -> str:
    """A part of an array, and a store into either; an array that the part is made of has a name, which shows whether they share memory."""
    made = next((m for m in MADE if part.startswith(m)), None)
    if made is None:
        return f"b = {array}\nw = {part}\n{store.format('b')}"
    return f"b = {array}\nt = {made}\nw = t{part.removeprefix(made)}\n{store.format('t')}"


@pytest.mark.share(6)
@pytest.mark.parametrize("array", ARRAYS)
def test_views_by_layout(array: str):
    dtype = "c16" if array in {"x.real", "x.imag"} else "f8"
    same = 0
    for part in PARTS:
        for store in ("w[...] += 1", "{}[...] = 7"):
            try:
                check(program(array, part, store), x=np.array([[0, 1, 2], [3, 4, 0]], dtype))
            except CaptureError:  # refused by name: the layout is not known
                continue
            except AssertionError as error:
                raise AssertionError(f"{part}, then {store}") from error
            same += 1
    assert same


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
def test_astype_without_a_copy_makes_one_for_another_order(order: str):
    source = f"b = x.astype(float, order={order!r}, copy=False)\nb[0] = 7\nc = b[1].astype(float, copy=False) + 1"
    for x in (np.zeros((2, 3)), np.zeros((2, 3)).T, np.zeros((4, 6))[::2, ::2]):
        if order != "K" or x.flags.forc:
            check(source, x=x)
