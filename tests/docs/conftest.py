"""Pages of the documentation run in the shell that the tests of the notebook use."""

import pytest

from tests.notebook.conftest import first_names, notebook, shell

__all__ = ["clean", "first_names", "notebook", "shell"]


@pytest.fixture
def clean(notebook, first_names):
    """A notebook of which nothing is left for other tests."""
    yield notebook
    names = notebook.shell.user_ns
    for name in set(names) - first_names:
        del names[name]
