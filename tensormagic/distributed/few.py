"""Calls over fewer than two rows: the function itself computes these, and its results have the form of those of many rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from tensormagic.capture.tree import computed
from tensormagic.capture.values.value import Tensor
from tensormagic.distributed.files import FileRows
from tensormagic.distributed.sources import Chunked, Computed
from tensormagic.distributed.stages import Split

LEAST = 2  # the fewest rows that are split: NumPy may broadcast a single one


def of_few(call: Callable[..., Any], args: tuple[Any, ...], chunks: Mapping[int, Chunked], split: Split) -> Any:
    """Return a function's results for few rows, computed in this process; ``split`` says which of them have rows."""
    leaves, build = computed(call(*(brought(chunks[k]) if k in chunks else a for k, a in enumerate(args))))
    values = [v.numpy() if isinstance(v, Tensor) else v for v in leaves]
    arrays: Any = import_module("dask.array")
    return build(
        iter(
            [arrays.from_array(v) if k in split.axes and isinstance(v, np.ndarray) else v for k, v in enumerate(values)]
        )
    )


def brought(argument: Chunked) -> np.ndarray[Any, Any]:
    """Return all rows of an argument, in this process."""
    none = np.empty((0, *argument.row), argument.dtype)
    return np.concatenate([none, *(np.asarray(_rows(p)) for p in argument.pieces)])


def _rows(piece: Any) -> Any:
    if isinstance(piece, FileRows | Computed):
        return piece.read()
    if isinstance(piece, import_module("distributed").Future):
        return piece.result()
    return piece.compute() if hasattr(piece, "compute") else piece
