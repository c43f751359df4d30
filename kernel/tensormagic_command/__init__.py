"""The command `tensormagic`. What `doctor` reports is asked without the package's own imports, which may be what is broken."""

import importlib.util
import sys
from types import ModuleType


def main() -> int:
    """Run the command of `sys.argv`, and return its exit status."""
    if sys.argv[1:] == ["doctor"]:
        _stand_in()
        from tensormagic.doctor import report

        return report()
    from tensormagic.cli import main as run

    return run()


def _stand_in() -> None:
    """Have the package's files found without running its own: all its imports together take three times as long as the report."""
    found = importlib.util.find_spec("tensormagic")
    if found is not None and found.submodule_search_locations is not None:
        package = ModuleType("tensormagic")
        package.__path__ = list(found.submodule_search_locations)
        sys.modules["tensormagic"] = package
