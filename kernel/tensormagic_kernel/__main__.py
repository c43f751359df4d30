"""`python -m tensormagic_kernel install …` installs the kernelspec; with `-f CONNECTION_FILE` it is the kernel."""

import os
import sys

# Python puts the working folder first on the path. In a kernel that is the notebook's folder, where a file named like
# a library's module would break the start. IPython puts it back when everything is imported.
if sys.path[:1] in ([""], [os.getcwd()]):  # noqa: PTH109  (pathlib is not to be imported from there)
    del sys.path[0]

from tensormagic_kernel import install, kernel

if sys.argv[1:2] == ["install"]:
    sys.exit(install.main(sys.argv[2:]))
kernel.main()
