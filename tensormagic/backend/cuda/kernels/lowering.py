"""Lower kernels of a plan to launches, choosing how each nest is printed. Compiles and launches nothing."""

from __future__ import annotations

from collections.abc import Mapping

from tensormagic.backend.cuda.kernels.bodies import is_flat_nest
from tensormagic.backend.cuda.kernels.flat import print_copy, print_flat, print_numbers
from tensormagic.backend.cuda.kernels.folds import print_apart, print_fold
from tensormagic.backend.cuda.kernels.launch import Launch, UnsupportedError
from tensormagic.backend.cuda.kernels.one_thread import print_region_alone
from tensormagic.backend.cuda.kernels.passes import print_passes
from tensormagic.backend.cuda.kernels.places import print_places
from tensormagic.backend.cuda.kernels.rows import print_rows
from tensormagic.backend.cuda.kernels.scans import print_scan
from tensormagic.backend.cuda.kernels.text import CudaText
from tensormagic.backend.cuda.kernels.tiles import lies_across, print_squares
from tensormagic.backend.planning.kinds import stored_below
from tensormagic.backend.planning.plan import Arranged
from tensormagic.backend.planning.purpose import for_device
from tensormagic.backend.planning.schedule import Kernel, Nest
from tensormagic.ir.node import Node
from tensormagic.ops.indices.gather import ADD_ALONG_AXIS
from tensormagic.ops.indices.scatter import are_unique

NONE: Mapping[Node, str] = {}


@for_device
def lower(kernel: Kernel, plan: Arranged, names: Mapping[Node, str] = NONE) -> tuple[Launch, ...] | None:
    """Return the launches of a kernel, in order, or None where the library has to compute its nodes.

    Parameters
    ----------
    kernel
        Nests of a plan for a GPU.
    plan
        The plan that it is of.
    names
        What the user calls values.
    """
    try:
        return tuple(
            _Lowering(
                kernel, plan, names or dict(zip(plan.graph.parameters, plan.graph.names, strict=False))
            ).launches()
        )
    except UnsupportedError:
        return None


class _Lowering:
    """Makes the launches of one kernel."""

    def __init__(self, kernel: Kernel, plan: Arranged, names: Mapping[Node, str]) -> None:
        self.kernel = kernel
        self.plan = plan
        self.names = names

    def text(self, kind: type[CudaText] = CudaText) -> CudaText:
        """Return an empty text."""
        plan, kernel = self.plan, self.kernel
        return kind(plan.is_stored, lambda n: plan.is_exported(kernel, n), plan.memory, plan.copied)

    def launches(self) -> list[Launch]:
        """Return all launches, in order."""
        nests = self.kernel.nests
        if self.kernel.regions:
            return print_region_alone(self.text, self.kernel, self.names)
        if len(nests) != len(self.kernel.parts):
            raise UnsupportedError("checks and regions")
        first, *rest = nests
        if any(s.kind == "sequence" and not s.domain for nest in nests for s in nest.stages):
            raise UnsupportedError("lines of one element")
        copies = self._copies(nests)
        if not first.depths:
            return [*copies, *print_numbers(self.text, nests, self.names)]
        return [*copies, *self._nest(first, rest)]

    def _copies(self, nests: list[Nest]) -> list[Launch]:
        """Return launches that first copy arrays which stores change and whose old content is still needed."""
        stages = [s for nest in nests for s in nest.stages]
        stored = [s for s in stages if s.root in self.plan.copied.get(s.root, ())]
        made = {s.root for s in stages}
        if any(stored_below(s.root.args[0]) in made for s in stored):
            raise UnsupportedError("stores into a copy of what the same kernel computes")
        return [print_copy(self.text, s, self.names) for s in stored]

    def _nest(self, nest: Nest, tail: list[Nest]) -> list[Launch]:
        if nest.alone:
            return self._alone(nest, tail)
        if any(s.written is not None and not _are_apart(s.root) for s in nest.stages):
            raise UnsupportedError("stores where an array says, of which several may be in one place")
        return self._loops(nest, tail)

    def _alone(self, nest: Nest, tail: list[Nest]) -> list[Launch]:
        if tail or nest.stages[0].kind != "sequence":
            raise UnsupportedError("products")
        kept = nest.stages[0].root.type.ndim == nest.stages[0].root.args[0].type.ndim
        return (print_scan if kept else print_places)(self.text, nest, self.names)

    def _loops(self, nest: Nest, tail: list[Nest]) -> list[Launch]:
        if is_flat_nest(nest):
            plain = print_flat(self.text, nest, self.names, tail)
            if tail or lies_across(nest) < 0:
                return plain
            return [print_squares(self.text, nest, self.names, tuple(plain))]
        if tail:
            raise UnsupportedError("numbers behind rows")
        if len(nest.stages) == 1:
            return print_fold(self.text, nest.stages, self.names, nest)
        try:
            return print_rows(self.text, nest, self.names)
        except UnsupportedError:
            apart = print_apart(self.text, nest, self.names)
        try:
            return print_passes(self.text, nest, self.names, apart)
        except UnsupportedError:
            return apart


def _are_apart(store: Node) -> bool:
    """Return whether no two elements of a store go to one place, so that threads never collide."""
    if "slices" in store.params:
        return True
    places = store.args[1]
    return are_unique(places) or (store.op is ADD_ALONG_AXIS and places.type.shape[store["axis"]] == 1)
