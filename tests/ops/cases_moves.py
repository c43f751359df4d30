"""Cases of moves, updates and forms."""

import numpy as np

from tensormagic.ops import form, move, named, update
from tests.ops.cases import ALL, case

for _shape, _target in [
    ((), (2, 3)),
    ((3,), (2, 3)),
    ((3, 1), (3, 4)),
    ((1, 4), (2, 3, 4)),
    ((1,), (0,)),
    ((0, 1), (0, 4)),
]:
    case(
        "broadcast",
        lambda x, t=_target: move.broadcast(x, t),
        lambda x, t=_target: np.broadcast_to(x, t),
        _shape,
        label=f"{_shape}-{_target}",
    )
for _shape, _axes in [((3, 4), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((2, 0, 4), (1, 2, 0)), ((2, 3, 4), (-1, -3, -2))]:
    case(
        "transpose",
        lambda x, a=_axes: move.transpose(x, a),
        lambda x, a=_axes: np.transpose(x, a),
        _shape,
        label=f"{_shape}-{_axes}",
    )
for _shape, _target in [
    ((6,), (2, 3)),
    ((2, 3), (6,)),
    ((2, 3, 4), (4, 6)),
    ((2, 3, 4), (3, -1)),
    ((1,), ()),
    ((), (1, 1)),
    ((0, 3), (3, 0)),
    ((2, 3), (3, 1, 2)),
]:
    case(
        "reshape",
        lambda x, t=_target: move.reshape(x, t),
        lambda x, t=_target: np.reshape(x, t)[()],
        _shape,
        label=f"{_shape}-{_target}",
    )
for _shape, _slices, _index in [
    ((7,), ((1, 3, 2),), np.s_[1:7:2]),
    ((7,), ((6, 7, -1),), np.s_[::-1]),
    ((7,), ((5, 3, -2),), np.s_[5:0:-2]),
    ((7,), ((0, 0, 1),), np.s_[0:0]),
    ((4, 5), ((0, 4, 1), (4, 2, -3)), np.s_[:, ::-3]),
    ((4, 5), ((3, 1, 1), (0, 5, 1)), np.s_[3:4]),
]:
    case("slice", lambda x, s=_slices: move.slice_(x, s), lambda x, i=_index: x[i], _shape, label=f"{_shape}-{_slices}")
    _part = np.zeros(_shape)[_index].shape

    def _store(x, v, index=_index):
        result = x.copy()
        result[index] = v
        return result

    def _add(x, v, index=_index):
        result = x.copy()
        result[index] += v
        return result

    case("set", lambda x, v, s=_slices: update.set_at(x, v, s), _store, _shape, _part, label=f"{_shape}-{_slices}")
    case("add_at", lambda x, v, s=_slices: update.add_at(x, v, s), _add, _shape, _part, label=f"{_shape}-{_slices}")
for _shapes, _axis in [
    (((2,), (3,)), 0),
    (((2, 3), (2, 1), (2, 0)), 1),
    (((2, 3), (2, 3)), 0),
    (((2, 3, 1), (2, 3, 4)), 2),
]:
    case(
        "concatenate",
        lambda *xs, a=_axis: move.concatenate(xs, a),
        lambda *xs, a=_axis: np.concatenate(xs, axis=a),
        *_shapes,
    )

for _form, _dtypes in {"scalar": ALL, "python": "?ldD"}.items():
    case(
        "form",
        lambda x, f=_form: form.to_form(x, f),
        lambda x, f=_form: x[()] if f == "scalar" else x.item(),
        (),
        label=_form,
        dtypes=_dtypes,
    )

for _shape in ((2, 3), ()):
    case("named", named.named, lambda x: x, _shape)
