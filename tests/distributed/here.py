"""Chunks in the process of the test: what a cluster's have to give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.config import config
from tensormagic.distributed.running import Sizes, of_chunk, put_together
from tensormagic.distributed.stages import Split, Stage
from tensormagic.ir.node import Node
from tensormagic.ir.size import Symbol


@dataclass(frozen=True, eq=False)
class Here:
    """Chunks that are computed one after the other in this process.

    Parameters
    ----------
    own
        The symbol of the number of rows of a chunk, with its halo.
    arguments
        For each parameter that is split, the arrays of the chunks, with their halos.
    before
        How many rows come before each chunk.
    """

    own: Symbol
    arguments: Sequence[Sequence[Any]]
    before: Sequence[int]

    def __call__(
        self, stage: Stage, sizes: Sizes, reads: Sequence[Any], inputs: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        last = len(self.before) - 1
        results: list[list[Any]] = []
        for k, before in enumerate(self.before):
            chunk = [rows[k] for rows in inputs]
            results.append(
                of_chunk(
                    stage.end if k == last else stage.chunk,
                    {**sizes, self.own: len(chunk[0])},
                    chunk,
                    [np.int64(before)] if stage.numbered else [],
                    reads,
                    (config.math, config.tier),
                )
            )
        count = len(stage.parts)
        parts = put_together([r[:count] for r in results], [ufunc for _, ufunc in stage.parts])
        return parts, [[r[count + k] for r in results] for k in range(len(stage.rows))]

    def within(self, split: Split, arguments: Sequence[Any], node: Node) -> Here:
        del node
        return Here(split.own, arguments, self.before)
