"""Functions whose arguments are split by rows, over the workers of a Dask cluster."""

from __future__ import annotations

import atexit
import functools
from collections.abc import Callable, Sequence
from importlib import import_module
from operator import itemgetter
from typing import Any, Self

import numpy as np

from tensormagic.capture.tree import flatten
from tensormagic.capture.value import Tensor
from tensormagic.config import config
from tensormagic.distributed.running import Sizes, computed, run
from tensormagic.distributed.sources import Chunked, Shard, chunked, is_dask, is_split
from tensormagic.distributed.splitting import Split, split
from tensormagic.functions.reading import is_input
from tensormagic.functions.tracing import TYPE, parse, traced
from tensormagic.ir.errors import ArgumentError, DTypeError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, Symbol, evaluate, symbol
from tensormagic.ir.type import Type

Named = tuple[tuple[str, int, int], ...]  # sizes as they travel: name, least, number


class Distributed:
    """A function over split arguments; made by :func:`distribute`."""

    def __init__(self, function: Callable[..., Any], client: Any = None) -> None:
        functools.update_wrapper(self, function, updated=())
        self._function, self._client, self._own = function, client, client is None

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The results: those with rows as arrays of Dask, the others as values."""
        if named:
            raise ArgumentError(f"{', '.join(named)}: arguments are positional where some are split")
        places = [k for k, a in enumerate(args) if is_split(a)]
        if not places:
            raise ArgumentError(
                "none of the arguments is split",
                "Hand in an array of Dask, a np.memmap, tm.shard(x) or a generator of batches; or call the function itself.",
            )
        for k, a in enumerate(args):
            _check(a, k in places)
        client = self.client
        lengths, chunks = chunked([args[k] for k in places], client)
        if sum(lengths) < 2:  # NumPy may stretch one row
            raise ArgumentError(f"{sum(lengths)} rows are not split", "Call the function itself.")
        return self._computed(args, dict(zip(places, chunks, strict=True)), lengths, client)

    def _computed(
        self, args: tuple[Any, ...], chunks: dict[int, Chunked], lengths: tuple[int, ...], client: Any
    ) -> Any:
        rows = symbol("rows")
        types = tuple(_type(chunks[k], rows) if k in chunks else a for k, a in enumerate(args))
        found = traced(self._function, types)
        behind: list[Any] = [*_leaves(types, chunks), *(now() for now in found.outside)]
        places = [k for k, v in enumerate(behind) if isinstance(v, Chunked)]
        what = split(found.graph, places, sites=found.lens.of)
        shapes = [(sum(lengths), *v.row) if isinstance(v, Chunked) else np.shape(v) for v in behind]
        kept = [k for k, n in enumerate(lengths) if n]
        cluster = _Cluster(client, [lengths[k] for k in kept], config.math)
        given = {k: v for k, v in enumerate(behind) if k not in places}
        parts = [[behind[k].futures[c] for k in places] for c in kept]
        results = run(what, shapes, given, parts, cluster)
        return found.build(iter(cluster.arrays(what, results, what.source.bind(shapes))))

    @property
    def client(self) -> Any:
        """The client of the cluster: where none was given, one of this machine, with a worker of one thread for each core."""
        if self._client is None:
            try:
                distributed = import_module("distributed")
            except ImportError as error:
                raise ImportError(_INSTALL) from error
            cluster = distributed.LocalCluster(threads_per_worker=1, dashboard_address=None)
            self._client = distributed.Client(cluster)
            atexit.register(self.close)
        return self._client

    def close(self) -> None:
        """Close the cluster that was started here; one that was given stays open."""
        if self._own and self._client is not None:
            client, self._client = self._client, None
            cluster = client.cluster
            client.close()
            cluster.close()
            atexit.unregister(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


_INSTALL = "tm.distribute needs Dask: pip install 'tensormagic[dask]'"


def distribute(f: Callable[..., Any], client: Any = None) -> Distributed:
    """A function whose arguments are split by rows over the workers of a Dask cluster.

    Arguments that are arrays of Dask, ``np.memmap``, ``tm.shard(x)`` or generators of batches are split; all others are
    parameters, which every worker has. Which results have rows, and which are put together from parts, follows from the
    code: nothing is declared.

    Parameters
    ----------
    f
        A function of arrays, that ``tm.grad`` and the like give too.
    client
        A ``distributed.Client``; None for a cluster on this machine, which ``close()``, ``with`` or the end of Python closes.

    Returns
    -------
    Distributed
        A function that gives results with rows as arrays of Dask, and the others as values. Their bits follow from the
        number and sizes of the chunks, and not from that of workers, where their processors and libraries are alike.

    Raises
    ------
    CaptureError
        At a call, where rows are mixed in a way that has no rule, with the line.

    Examples
    --------
    >>> with distribute(lambda x, w: np.mean((x @ w) ** 2)) as loss:  # doctest: +SKIP
    ...     loss(tm.shard(x), w)
    """
    return Distributed(f, client)


def _check(value: Any, is_chunked: bool) -> None:
    """Refuse what neither is split nor a parameter."""
    if is_chunked:
        return
    if isinstance(value, str) and TYPE.match(value):
        raise ArgumentError(f"{value!r} is a type, and a value is needed")
    if any(isinstance(v, Shard) or is_dask(v) for v in flatten(value)[0]):
        raise ArgumentError("what is split stands within a container", "Hand it in as an argument of its own.")


def _type(chunk: Chunked, rows: Size) -> str:
    """The type of an argument that is split, as tracing takes it."""
    text = str(Type(chunk.dtype, (rows, *chunk.row)))
    if chunk.dtype.kind not in "biufc" or not TYPE.match(text):
        raise DTypeError(f"arrays of dtype {chunk.dtype} are not split")
    return text


def _leaves(types: tuple[Any, ...], chunks: dict[int, Chunked]) -> list[Any]:
    """What is behind the parameters of a graph that was traced for these arguments, in order."""
    found: list[Any] = []
    for k, value in enumerate(types):
        if k in chunks:
            found.append(chunks[k])
            continue
        leaves, _ = flatten(value)
        found += [v.numpy() if isinstance(v, Tensor) else v for v in leaves if isinstance(v, Tensor) or is_input(v)]
    return found


class _Cluster:
    """What computes chunks on workers, and keeps the results there that have rows."""

    def __init__(self, client: Any, lengths: Sequence[int], level: str) -> None:
        self.client, self.lengths, self.level = client, lengths, level

    def __call__(
        self, graph: Graph, sizes: Sizes, own: Symbol, reads: Sequence[Any], chunks: Sequence[Any], parts: int
    ) -> list[list[Any]]:
        named: Named = tuple((s.name, s.least, n) for s, n in sizes.items())
        sent = self.client.scatter(list(reads), hash=False, broadcast=True) if reads else []
        done = [
            self.client.submit(
                on_worker,
                graph.text,
                self.level,
                config.tier,
                (*named, (own.name, own.least, n)),
                *chunk,
                *sent,
                pure=False,
            )
            for chunk, n in zip(chunks, self.lengths, strict=True)
        ]
        first = [self.client.submit(itemgetter(slice(parts)), d, pure=False) for d in done]
        gathered = self.client.gather(first)
        count = len(graph.results)
        rest = [[self.client.submit(itemgetter(k), d, pure=False) for k in range(parts, count)] for d in done]
        return [[*p, *r] for p, r in zip(gathered, rest, strict=True)]

    def arrays(self, what: Split, results: Sequence[Any], sizes: Sizes) -> list[Any]:
        """The results, with arrays of Dask for those with rows."""
        axes = dict(row for stage in what.stages for row in stage.rows)
        return [self._array(what, k, axes[k], r, sizes) if k in axes else r for k, r in enumerate(results)]

    def _array(self, what: Split, number: int, axis: int, futures: Sequence[Any], sizes: Sizes) -> Any:
        dask, arrays = import_module("dask"), import_module("dask.array")
        node = what.graph.results[number]
        shape = [evaluate(s, sizes.__getitem__) for s in node.type.shape]
        blocks = [
            arrays.from_delayed(dask.delayed(f), (*shape[:axis], n, *shape[axis + 1 :]), dtype=node.type.dtype)
            for f, n in zip(futures, self.lengths, strict=True)
        ]
        return arrays.concatenate(blocks, axis)


def on_worker(text: str, level: str, tier: str, named: Named, *values: Any) -> tuple[Any, ...]:
    """The results of a graph that came as text."""
    sizes = {Symbol(name, least=least): number for name, least, number in named}
    try:
        return tuple(computed(_read(text), sizes, values, level, tier))
    except Exception as error:
        for name in [k for k, v in vars(error).items() if isinstance(v, Node)]:  # which do not travel
            delattr(error, name)
        raise


_read = functools.lru_cache(256)(parse)
