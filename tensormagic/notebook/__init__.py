"""The notebook's floor: magics, displays, errors; the only place, beside the kernel, that sees IPython."""
