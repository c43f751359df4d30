"""Functions whose arguments are split by rows, over the workers of a Dask cluster."""

from __future__ import annotations

import atexit
import functools
import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

import numpy as np

from tensormagic.capture.tree import flatten, structure
from tensormagic.capture.values.value import Tensor
from tensormagic.config import config
from tensormagic.distributed.cluster import Cluster, RowsLost
from tensormagic.distributed.costs import SplitPlan, planned
from tensormagic.distributed.few import LEAST, of_few
from tensormagic.distributed.naming import parameter_names, result_names
from tensormagic.distributed.report import Call, Moved, Report
from tensormagic.distributed.running import run
from tensormagic.distributed.sources import Chunked, Shard, chunked, is_read_in_parts, is_split
from tensormagic.distributed.splitting import split
from tensormagic.distributed.stages import Split
from tensormagic.distributed.watching import TRIES
from tensormagic.functions.calls.call_inputs import fixed, signature
from tensormagic.functions.calls.callables import of_callable
from tensormagic.functions.calls.function import Function
from tensormagic.functions.reads.reading import is_input
from tensormagic.functions.reads.record import Record
from tensormagic.functions.tracing import TYPE, Traced, Typed, traced
from tensormagic.ir.errors import ArgumentError, DTypeError, GuardError
from tensormagic.ir.size import symbol
from tensormagic.ir.type import Type


class Distributed:
    """A function over split arguments; made by :func:`distribute`.

    Attributes
    ----------
    report
        What the last call did: which worker computed what, what moved, and how many bytes. None before the first one.
    """

    report: Report | None = None

    def __init__(self, function: Callable[..., Any], client: Any = None) -> None:
        functools.update_wrapper(self, function, updated=())
        self._function, self._client, self._own = function, client, client is None
        self._captures: list[Captured] = []

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Return the results: those with rows as arrays of Dask, the others as values."""
        function = of_callable(self._function)
        args, names = _in_order(function, args, named)
        places = _places(args)
        start, client = time.perf_counter(), self.client
        report = Report(function.name)
        lengths, pieces = chunked([args[k] for k in places], client, report.data)
        chunks = dict(zip(places, pieces, strict=True))
        found = self._captured(args, names, chunks, max(sum(lengths), LEAST))
        if sum(lengths) < LEAST:
            report.rows = sum(lengths)
            result = of_few(lambda *of: _called(function, of, names), args, chunks, found.split)
        else:
            result = self._computed(found, args, names, chunks, lengths, report)
        report.seconds = time.perf_counter() - start
        self.report = report
        return result

    def plan(self, *args: Any, **named: Any) -> SplitPlan:
        """Return the estimated cost of a call: stages, what moves, and how many workers are worthwhile. Nothing is computed.

        Chunks are sent, or read, as for the call.

        Nothing is computed.
        """
        args, names = _in_order(of_callable(self._function), args, named)
        places = _places(args)
        lengths, chunks = chunked([args[k] for k in places], self.client, Moved(""))
        given = dict(zip(places, chunks, strict=True))
        if sum(lengths) < LEAST:
            raise ArgumentError(f"{sum(lengths)} rows are not split", "Fewer than two are computed without workers.")
        found = self._captured(args, names, given, sum(lengths))
        behind = [*_leaves(args, given), *(now() for now in found.traced.outside)]
        shapes = [(sum(lengths), *v.row) if isinstance(v, Chunked) else np.shape(v) for v in behind]
        groups = grouped(lengths, found.split.short)
        row = sum(c.dtype.itemsize * math.prod(c.row) for c in chunks)
        rows = [sum(lengths[k] for k in g) for g in groups]
        name = of_callable(self._function).name
        return planned(name, found.split, rows, row, found.split.source.bind(shapes), config.math)

    def _captured(
        self, args: tuple[Any, ...], names: tuple[str, ...], chunks: dict[int, Chunked], rows: int
    ) -> Captured:
        """Return the function captured and split for arguments of these kinds; an earlier capture, if what it reads is unchanged."""
        least = min(MOST, 1 << (rows.bit_length() - 1))
        given = tuple(_typed(chunks[k], least) if k in chunks else a for k, a in enumerate(args))
        key = config.math, names, _key(given)
        for found in self._captures:
            if found.key == key and found.record.holds():
                return found
        found = captured(self._function, given, key, names)
        if not found.record.why:
            self._captures = [found, *self._captures[: _KEPT - 1]]
        return found

    def _computed(
        self,
        found: Captured,
        args: tuple[Any, ...],
        names: tuple[str, ...],
        chunks: dict[int, Chunked],
        lengths: tuple[int, ...],
        report: Report,
    ) -> Any:
        what = found.split
        behind: list[Any] = [*_leaves(args, chunks), *(now() for now in found.traced.outside)]
        shapes = [(sum(lengths), *v.row) if isinstance(v, Chunked) else np.shape(v) for v in behind]
        given = {k: v for k, v in enumerate(behind) if k not in what.places}
        groups = grouped(lengths, what.short)
        report.rows, report.chunks = sum(lengths), len(groups)
        client = self.client
        workers = dict(client.nthreads())
        arguments = [behind[k] for k in what.places]
        arrived = tuple((a.sent, a.arrives) for a in arguments)
        cluster = Cluster(client, what, groups, lengths, arguments, report, workers)
        results = _run_again(lambda: run(what, shapes, given, cluster))
        report.call = Call(
            what,
            what.source.bind(shapes),
            parameter_names(self._function, args, what.source.names, names),
            result_names(self._function, args, len(results)),
            config.math,
            found.traced.lens,
            max(cluster.rows),
            arrived,
            tuple(a.dtype.itemsize * math.prod(a.row) for a in arguments),
        )
        self._tell_of_lost(workers, report)
        return found.traced.build(iter(_arrays(cluster, results)))

    def _tell_of_lost(self, before: dict[str, int], report: Report) -> None:
        report.lost = sorted(before.keys() - self.client.nthreads().keys())
        if report.lost:
            warnings.warn(
                f"{report.name}: lost while it ran: {', '.join(report.lost)}; what they had computed was computed again",
                RuntimeWarning,
                stacklevel=4,
            )

    @property
    def client(self) -> Any:
        """The client of the cluster; if none was given, one of this machine, with a worker of one thread for each core."""
        if self._client is None:
            try:
                distributed = import_module("distributed")
            except ImportError as error:
                raise ImportError(_INSTALL) from error
            cluster = distributed.LocalCluster(threads_per_worker=1, dashboard_address="127.0.0.1:0")
            self._client = distributed.Client(cluster)
            atexit.register(self.close)
        return self._client

    @property
    def dashboard_link(self) -> str:
        """The address of the cluster's dashboard."""
        return str(self.client.dashboard_link)

    def __repr__(self) -> str:
        where = (
            "no cluster yet"
            if self._client is None
            else f"{len(self._client.nthreads())} workers, {self.dashboard_link}"
        )
        return f"<{getattr(self, '__name__', 'function')} over rows: {where}>"

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
    """Return a function whose arguments are split by rows over the workers of a Dask cluster.

    Arguments that are arrays of Dask, ``np.memmap``, ``tm.shard(x)`` or generators of batches are split; all others are
    parameters, which every worker has. Which results have rows, and which are put together from parts, follows from the
    code: nothing is declared.

    Parameters
    ----------
    f
        A function of arrays; results of ``tm.grad`` and the like, too.
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
        At a call, if rows are mixed in a way that has no rule; the message names the line.

    Examples
    --------
    >>> with distribute(lambda x, w: np.mean((x @ w) ** 2)) as loss:  # doctest: +SKIP
    ...     loss(tm.shard(x), w)
    """
    return Distributed(f, client)


def _run_again(call: Callable[[], list[Any]]) -> list[Any]:
    """Return the results of a call, repeated from the beginning if rows are lost that it had made: they would be the same."""
    for _ in range(TRIES):
        try:
            return call()
        except RowsLost:
            continue
    raise GuardError(f"workers were lost {TRIES} times with rows that a loop had left on them")


def _in_order(
    function: Function, args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Return all arguments, and the names of the last ones, which are given by name alone."""
    args, rest = function.completed(args, named)
    return (*args, *rest.values()), tuple(rest)


def _called(function: Function, args: tuple[Any, ...], names: tuple[str, ...]) -> Any:
    first = len(args) - len(names)
    return function(*args[:first], **dict(zip(names, args[first:], strict=True)))


def _places(args: tuple[Any, ...]) -> list[int]:
    """Return the positions of the arguments that are split; raise ArgumentError if there are none."""
    places = [k for k, a in enumerate(args) if is_split(a)]
    if not places:
        raise ArgumentError(
            "none of the arguments is split",
            "Pass an array of Dask or zarr, a np.memmap, tm.shard(x) or a generator of batches; or call the function itself.",
        )
    for k, a in enumerate(args):
        _check(a, k in places)
    return places


def _check(value: Any, is_chunked: bool) -> None:
    """Raise for an argument that is neither split nor a parameter."""
    if is_chunked:
        return
    if isinstance(value, str) and TYPE.match(value):
        raise ArgumentError(f"{value!r} is a type, and a value is needed")
    if any(isinstance(v, Shard) or is_read_in_parts(v) for v in flatten(value)[0]):
        raise ArgumentError("an array that is split is inside a container", "Pass it as a separate argument.")


@dataclass(frozen=True, eq=False)
class Captured:
    """A function captured and split for arguments of some kinds, with the record of what it has read."""

    key: Any
    given: tuple[Any, ...]  # kept alive, as the key has the identities of objects
    traced: Traced
    split: Split
    record: Record


MOST = 1024  # up to so many rows are assumed as a minimum: it limits how far windows may reach
_KEPT = 32  # captures of one function


def captured(function: Callable[..., Any], given: tuple[Any, ...], key: Any, names: tuple[str, ...] = ()) -> Captured:
    """Return a function captured and split; split arguments are given as types, and the last arguments have ``names``."""
    found = traced(function, given, names)
    leaves = [v for v in flatten(given)[0] if isinstance(v, Typed | Tensor) or is_input(v)]
    places = [k for k, v in enumerate(leaves) if isinstance(v, Typed)]
    each = _is_of_each_row(function, given)
    return Captured(key, given, found, split(found.graph, places, sites=found.lens.of, each=each), found.record)


def _is_of_each_row(function: Callable[..., Any], given: tuple[Any, ...]) -> bool:
    """Return whether the function is a :func:`tensormagic.vmap` over the rows of the split arguments only."""
    made: Any = of_callable(function).made
    if made is None or made[0] != "vmap":
        return False
    (_, *rest), options = made[1:]
    axes = rest[0] if rest else options.get("in_axes", 0)
    own = axes if isinstance(axes, tuple | list) else [axes] * len(given)
    return len(own) == len(given) and all(
        (type(a) is int and a == 0) if isinstance(g, Typed) else a is None for a, g in zip(own, given, strict=True)
    )


def _typed(chunk: Chunked, least: int) -> Typed:
    """Return the type that stands for a split argument during capture."""
    if chunk.dtype.kind not in "biufc":
        raise DTypeError(f"arrays of dtype {chunk.dtype} are not split")
    return Typed(Type(chunk.dtype, (symbol("rows", least=least), *chunk.row)))


def _key(given: tuple[Any, ...]) -> Any:
    """Return what a capture depends on besides what it reads: the structure of the arguments, and the kinds of arrays and numbers."""
    leaves = [v.numpy() if isinstance(v, Tensor) else v for v in flatten(given)[0]]
    kinds = [
        str(v.type) if isinstance(v, Typed) else (type(v), signature(v)) if is_input(v) else fixed(v) for v in leaves
    ]
    return structure(given), tuple(kinds)


def grouped(lengths: Sequence[int], short: int) -> list[list[int]]:
    """Return the indices of the pieces that make up each chunk: usually one; short pieces are joined with the one before."""
    found: list[list[int]] = []
    for k, rows in enumerate(lengths):
        if found and rows <= short:
            found[-1].append(k)
        elif rows:
            found.append([k])
    if len(found) > 1 and sum(lengths[k] for k in found[0]) <= short:
        found[:2] = [[*found[0], *found[1]]]
    return found


def _leaves(args: tuple[Any, ...], chunks: dict[int, Chunked]) -> list[Any]:
    """Return the values of the parameters of a graph captured for these arguments, in order."""
    found: list[Any] = []
    for k, value in enumerate(args):
        if k in chunks:
            found.append(chunks[k])
            continue
        leaves, _ = flatten(value)
        found += [v.numpy() if isinstance(v, Tensor) else v for v in leaves if isinstance(v, Tensor) or is_input(v)]
    return found


def _arrays(cluster: Cluster, results: Sequence[Any]) -> list[Any]:
    """Return the results, with arrays of Dask for those with rows."""
    axes = cluster.split.axes
    return [_array(cluster, k, axes[k], r) if k in axes else r for k, r in enumerate(results)]


def _array(cluster: Cluster, number: int, axis: int, rows: Chunked) -> Any:
    dask: Any = import_module("dask")
    arrays: Any = import_module("dask.array")
    node = cluster.split.graph.results[number]
    lengths = [*cluster.rows[:-1], cluster.rows[-1] - cluster.split.missing[number]]
    blocks = [
        arrays.from_delayed(dask.delayed(p), (*rows.row[:axis], n, *rows.row[axis:]), dtype=node.type.dtype)
        for p, n in zip(rows.present, lengths, strict=True)
    ]
    return arrays.concatenate(blocks, axis)
