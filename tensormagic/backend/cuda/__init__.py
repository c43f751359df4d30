"""Graphs on a GPU: the device, the library of calls on its arrays, kernels of our own, and what runs a graph with them.

Kernels: the steps of a graph as launches, which whoever has a GPU, or an emulator of one, runs.

`plan_device` gives the steps of a graph: kernels and library nodes. No kernel holds a region: loops and branches are
library nodes, whose graphs have plans of their own. `lower` makes launches of a kernel, or gives None where it has none:
then whoever runs them computes its nodes one by one (`Arranged.wanted` and `nodes_of_kernel` say which).

To run a launch::

    for launch in chosen(launches, sizes):            # sizes: symbols, and integers that were computed, as Python ints
        blocks, threads, shared = launch.grid(sizes)  # raises ValueError where NumPy does, for a fold of nothing
        if blocks:
            code = compiled(launch, cc)               # PTX, from the disk cache where it is there
            arguments = [value_of(p) for p in launch.parameters]

where the value of a parameter is, by its class:

- `Array`: the address of the array of that owner, in C order, on a boundary of 16 bytes and of at least 16 bytes; where
  ``written``, it is stored to. That of a constant holds ``node["bits"].array()``.
- `Scratch`: the address of so many elements that only the launches of one kernel share, by ``key``.
- `Count`: a size as int64. `Number`: a constant of its dtype.
- `Fault`: the address of four int64 that are 0 before the kernel's first launch. Where the first is not 0 afterwards,
  something went wrong (an index out of bounds, say), the results mean nothing, and the nodes are computed by the library,
  which raises what NumPy raises.

`compiling.compiler.compiled` waits for the compile worker; it raises `UnsupportedError` where the compiler refuses a kernel, which is as
if there were none, and `MissingCompilerError` where there is no compiler. A kernel of one `Check` and nothing else is a guard
about integers that were computed: the host looks at it.
"""
