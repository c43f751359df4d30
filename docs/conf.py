"""Sphinx's configuration. The documentation builds without a network."""

from importlib.metadata import version as installed_version

project = "tensormagic"
author = "tensormagic contributors"
project_copyright = "2026, tensormagic contributors"
version = release = installed_version("tensormagic")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build", "jupyter_execute"]

html_theme = "furo"
html_title = f"tensormagic {release}"
html_logo = "../kernel/tensormagic_kernel/kernelspec/logo-svg.svg"
html_favicon = "../kernel/tensormagic_kernel/kernelspec/logo-32x32.png"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# Notebooks are executed, an error in one is an error of the build, and a graph's static picture stands for its widget.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_mime_priority_overrides = [("html", "image/svg+xml", 0)]
nb_ipywidgets_js: dict[str, dict[str, str]] = {}
