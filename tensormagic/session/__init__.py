"""Computes requested values: closes their graph, rewrites it, runs it on the tier that is ready, and keeps the values.

The names that the floors above use.
"""

from tensormagic.session.background import later
from tensormagic.session.closing import close_over
from tensormagic.session.demand import compute, have, number_of, place, shape_of, stays, value_of
from tensormagic.session.formulas import form_of
from tensormagic.session.kept import coming, device_array, drop, forget_values, is_computed, keep, norm_of, reasons
from tensormagic.session.programs import executable, executable_as, forget, has_executable, prepare
from tensormagic.session.progress import Doing, Far, background_thread, doing, shown
from tensormagic.session.tiers import Executable
from tensormagic.session.work import Counted, Stage, at_work, working

__all__ = [
    "Counted",
    "Doing",
    "Executable",
    "Far",
    "Stage",
    "at_work",
    "background_thread",
    "close_over",
    "coming",
    "compute",
    "device_array",
    "doing",
    "drop",
    "executable",
    "executable_as",
    "forget",
    "forget_values",
    "form_of",
    "has_executable",
    "have",
    "is_computed",
    "keep",
    "later",
    "norm_of",
    "number_of",
    "place",
    "prepare",
    "reasons",
    "shape_of",
    "shown",
    "stays",
    "value_of",
    "working",
]
