"""Sphinx's configuration. The documentation builds without a network."""

import shutil
from collections.abc import Callable
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

import numpy as np
from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.addnodes import desc_signature

import tensormagic as tm
from tensormagic.capture.hooks import hooks
from tensormagic.functions.gradients.value_grad import tensor_grad

HERE = Path(__file__).resolve().parent

project = "tensormagic"
author = "tensormagic contributors"
project_copyright = "2026, tensormagic contributors"
version = release = installed_version("tensormagic")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build", "jupyter_execute"]

# The tutorials are the notebooks of the repository, as they are.
(HERE / "tutorials").mkdir(exist_ok=True)
for notebook in HERE.parent.glob("notebooks/*.ipynb"):
    shutil.copy(notebook, HERE / "tutorials" / notebook.name)

# Live views as pages stand in frames: they need no kernel.
(HERE / "_live").mkdir(exist_ok=True)
html_static_path = ["_live"]
time = np.linspace(0, 5, 80)


def swing(damping: float, frequency: float = 3.0) -> np.ndarray:
    """A damped swing."""
    return np.exp(-damping * time) * np.cos(frequency * time)


def valley(u: float, v: float) -> float:
    """Rosenbrock's valley, less steep."""
    return (1 - u) ** 2 + 2 * (v - u**2) ** 2


tm.live(swing, damping=(0, 2), frequency=(1, 6)).to_html(HERE / "_live" / "live-line.html")
tm.live(valley, u=(-2, 2), v=(-1, 3)).to_html(HERE / "_live" / "live-plane.html")

# Methods that lazy values get by name are documented as those of their class.
for name in ("grad", "formula", "backprop", "code", "explain", "time", "to_html", "graph", "optimized"):
    setattr(tm.Tensor, name, tensor_grad if name == "grad" else hooks.methods[name])

html_math_renderer = "mathml"  # formulas are part of the page, and no script is fetched for them


def mathml(*, block: bool) -> Callable[[Any, Any], None]:
    """What writes a formula as MathML."""

    def visit(translator: Any, node: Any) -> None:
        translator.body.append(tex2mathml(node.astext(), as_block=block))
        raise SkipNode

    return visit


def named_by_package(_app: Any, doctree: Any) -> None:
    """Give what is documented under its own module the package's name as well: pages of source link back by one name a module."""
    for signature in doctree.findall(desc_signature):
        name = f"tensormagic.{signature.get('fullname')}"
        if signature.get("module") and name not in signature["ids"]:
            signature["ids"].append(name)


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("doctree-read", named_by_package)
    app.add_html_math_renderer("mathml", (mathml(block=False), None), (mathml(block=True), None))


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
