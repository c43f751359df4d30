"""The kernel class and the application that launches it: ipykernel's own, with a banner and one extension more."""

import platform
from importlib.metadata import version

from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from traitlets import default

BANNER = """\
TensorMagic {tensormagic} on Python {python}, NumPy {numpy}.
A cell that starts with %%tensor is captured into a graph; `%%tensor?` lists its options.
"""


class TensorMagicKernel(IPythonKernel):
    """Python's kernel under a name of its own. The language, and every message of the protocol, stay ipykernel's."""

    implementation = "tensormagic"
    implementation_version = version("tensormagic")

    @property
    def banner(self) -> str:
        """Return what a console prints when it connects."""
        return BANNER.format(
            tensormagic=self.implementation_version, python=platform.python_version(), numpy=version("numpy")
        )


class TensorMagicKernelApp(IPKernelApp):
    """Launches `TensorMagicKernel`, and loads the extension where IPython loads those it ships.

    An extension that fails to load is reported by IPython and leaves a working Python kernel.
    """

    @default("kernel_class")
    def _kernel_class_default(self) -> type[IPythonKernel]:
        return TensorMagicKernel

    @default("default_extensions")
    def _default_extensions_default(self) -> list[str]:
        return ["storemagic", "tensormagic"]


def main() -> None:
    """Run the kernel that `-f CONNECTION_FILE` on the command line describes."""
    TensorMagicKernelApp.launch_instance()
