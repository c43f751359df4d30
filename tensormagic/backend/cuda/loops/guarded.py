"""Launches that do nothing where a flag on the device is 0, and the small kernels that set such flags.

Data-dependent loops are launched some iterations ahead, and branches with both sides; kernels that are not to run
see their flag and return. So nothing waits until the host has read a data-dependent condition.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from tensormagic.backend.cuda.kernels.launch import Count, Launch, Live, Scratch
from tensormagic.ir.node import Node
from tensormagic.ir.size import Symbol, apply, atom

THREADS = 256
WARP = 32
_HEAD = "def kernel("


def guarded(launch: Launch) -> Launch:
    """Return the launch with a flag as its last parameter; its threads return at once where the flag is 0."""
    return replace(
        launch,
        source=_guarded(launch.source),
        readable=_guarded(launch.readable),
        parameters=(*launch.parameters, Live()),
        origins=_origins(launch),
        otherwise=tuple(map(guarded, launch.otherwise)),
    )


def _guarded(source: str) -> str:
    before, head, rest = source.rpartition(_HEAD)
    arguments, _, body = rest.partition("):")
    line, _, body = body.partition("\n")
    named = f"{arguments}, live" if arguments else "live"
    return f"{before}{head}{named}):{line}\n    if live[0] == 0:\n        return\n{body}"


def _origins(launch: Launch) -> tuple[Node | None, ...]:
    """Return the nodes of the lines, with two more lines after the head of the kernel."""
    head = launch.source.rpartition(_HEAD)[0].count("\n") + 1
    return (*launch.origins[:head], None, None, *launch.origins[head:]) if launch.origins else ()


def _number(key: str, dtype: str, written: bool) -> Scratch:
    return Scratch(key, 1, dtype, written)


def _small(name: str, source: str, *parameters: Scratch) -> Launch:
    return Launch(name, source, source, parameters, 1, WARP)


@cache
def goes_on() -> Launch:
    """Return the launch that clears ``live`` where the test is false, and else increments ``done``."""
    source = """def kernel(test, live, done):
    if thread() == 0:
        if live[0] != 0:
            if test[0]:
                done[0] = done[0] + 1
            else:
                live[0] = 0
"""
    return _small(
        "test", source, _number("test", "bool", False), _number("live", "int64", True), _number("done", "int64", True)
    )


@cache
def choice() -> Launch:
    """Return the launch that sets the flags of both sides of a branch from its predicate and the flag of the part around it."""
    source = """def kernel(test, live, then, otherwise):
    if thread() == 0:
        then[0] = 0
        otherwise[0] = 0
        if live[0] != 0:
            if test[0]:
                then[0] = 1
            else:
                otherwise[0] = 1
"""
    flags = [_number(name, "int64", True) for name in ("then", "otherwise")]
    return _small("choice", source, _number("test", "bool", False), _number("live", "int64", False), *flags)


@cache
def counted() -> Launch:
    """Return the launch that increments the index of the iteration."""
    source = "def kernel(index):\n    if thread() == 0:\n        index[0] = index[0] + 1\n"
    return _small("index", source, _number("index", "int64", True))


COUNT = atom(Symbol("count"))


@cache
def copied(dtype: str) -> Launch:
    """Return a launch that copies `COUNT` elements."""
    source = f"""def kernel(target, given, count):
    i = block() * {THREADS} + thread()
    if i < count:
        target[i] = given[i]
"""
    arrays = [Scratch(name, COUNT, dtype, name == "target") for name in ("target", "given")]
    blocks = apply("floordiv", COUNT + (THREADS - 1), THREADS)
    return Launch("copy", source, source, (*arrays, Count(COUNT)), blocks, THREADS)
