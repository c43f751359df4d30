"""Cases of sorting, gathering and scattering."""

import numpy as np

from tensormagic.ops.indices import gather, scatter, sorting
from tensormagic.ops.leaf import constant
from tensormagic.ops.op import registry
from tests.ops.cases import case

for _shape, _axis, _kind in [
    ((6,), -1, None),
    ((3, 4), 0, "stable"),
    ((3, 4), 1, "heapsort"),
    ((3, 4), None, None),
    ((0,), 0, None),
    ((), -1, None),
]:
    for _name in ("sort", "argsort"):
        case(
            _name,
            lambda x, name=_name, axis=_axis, kind=_kind: getattr(sorting, name)(x, axis, kind),
            lambda x, name=_name, axis=_axis, kind=_kind: getattr(np, name)(x, axis, kind),
            _shape,
            label=f"{_shape}-{_axis}-{_kind}",
            derivative=_name == "sort" and 0 not in _shape and _shape != (),
        )
for _shape, _axis, _places in [((6,), 0, 2), ((3, 7), 1, np.array([1, 4])), ((4, 3), 0, -1), ((40,), 0, 20)]:
    for _name in ("partition", "argpartition"):
        case(
            _name,
            lambda x, name=_name, axis=_axis, k=_places: getattr(sorting, name)(x, constant(np.array(k)), axis),
            lambda x, name=_name, axis=_axis, k=_places: getattr(np, name)(x, k, axis),
            _shape,
            label=f"{_shape}-{_axis}-{_places}",
            derivative=_name == "partition" and _shape != (40,),  # of which some are nearly equal
        )
INDICES = [
    np.array([0, -1, 2, 2]),
    np.array([[1, 0], [-3, 2]]),
    np.array(1),
    np.array([], np.int64),
    np.array([5]),
    np.array([-4]),
    np.array([1, 2], np.int8),
    np.array([1], np.uint64),
    np.array([1.0]),
    np.array([True, False]),
]
for _indices in INDICES:
    for _shape, _axis in [((3,), 0), ((3, 2), 0), ((2, 3), -1), ((2, 3), None)]:
        _label = f"{_shape}-{_axis}-{_indices.dtype}{_indices.tolist()}"
        _fine = _indices.dtype.kind == "i" and _indices.size > 0 and abs(_indices).max() < 4
        _inside = _fine and _indices.min() >= -3
        case(
            "gather",
            lambda x, i, axis=_axis: gather.gather(x, i, axis),
            lambda x, i, axis=_axis: np.take(x, i, axis),
            _shape,
            _indices,
            label=_label,
            derivative=_inside,
        )
case(
    "gather",
    lambda x, i: gather.gather(x, i, 0),
    lambda x, i: np.take(x, i, 0),
    (0, 2),
    np.array([0]),
    derivative=False,
)
for _name, _ufunc in {
    "scatter_set": None,
    "scatter_add": np.add,
    "scatter_multiply": np.multiply,
    "scatter_maximum": np.maximum,
    "scatter_minimum": np.minimum,
}.items():
    for _indices, _shape, _axis in [
        (np.array([0, -1, 2, 2]), (3,), 0),
        (np.array([2, 0]), (3,), 0),
        (np.array([[1, 0], [-3, 2]]), (2, 3), 1),
        (np.array(1), (3, 2), 0),
        (np.array([5]), (3,), 0),
        (np.array([], np.int64), (3,), 0),
        (np.array([0, 0]), (2, 2, 2), 1),
    ]:

        def _scattered(x, i, v, axis=_axis, ufunc=_ufunc):
            result = x.copy()
            place = (*(slice(None),) * axis, i)
            if ufunc is None:
                result[place] = v
            else:
                ufunc.at(result, place, v)
            return result

        case(
            _name,
            lambda x, i, v, axis=_axis, name=_name: scatter.scatter(registry[name], x, i, v, axis),
            _scattered,
            _shape,
            _indices,
            (*_shape[:_axis], *_indices.shape, *_shape[_axis + 1 :]),
            label=f"{_shape}-{_indices.tolist()}",
            derivative=_indices.size > 0 and _indices.max() < 5,
        )
for _indices, _shape, _axis in [
    (np.array([0, -1, 2, 2]), (3,), 0),
    (np.array([[1, 0], [-3, 2]]), (2, 3), 1),
    (np.array([[1, 0, 1]]), (2, 3), 0),
    (np.array([[2], [1]]), (1, 3), 1),
    (np.array([[5, 0, 1]]), (2, 3), 0),
    (np.array([1]), (2, 3), 0),
]:
    _fine = _indices.max() < 3 and _indices.ndim == len(_shape)
    case(
        "take_along_axis",
        lambda x, i, axis=_axis: gather.take_along_axis(x, i, axis),
        lambda x, i, axis=_axis: np.take_along_axis(x, i, axis),
        _shape,
        _indices,
        label=f"{_shape}-{_indices.tolist()}",
        derivative=_fine,
    )

    def _along(x, i, v, axis=_axis):
        result = x.copy()
        for place in np.ndindex(*i.shape):
            target = list(place)
            target[axis] = i[place]
            result[tuple(target)] += v[place]
        return result

    if (_fine and _shape[0] > 1) or _shape == (3,):
        case(
            "add_along_axis",
            lambda x, i, v, axis=_axis: gather.make(gather.ADD_ALONG_AXIS, (x, i, v), axis=axis),
            _along,
            _shape,
            _indices,
            _indices.shape,
            label=f"{_shape}-{_indices.tolist()}",
        )
