"""The TensorMagic kernel: ipykernel with the `tensormagic` extension loaded before the first cell.

It must not know what the extension does; everything works as well by `%load_ext tensormagic` in a plain Python kernel.
"""
