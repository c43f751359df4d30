"""PTX run on NumPy: the threads of a grid as lanes of arrays, with the checks that a GPU does not make.

It finds what goes wrong on the inputs that it is given: accesses out of bounds or off their alignment, memory read before it
is written, races of shared and of global memory, barriers and shuffles that not all threads reach. It says nothing of speed
but which sectors of memory each access touches, and nothing of other interleavings of threads.
"""

from tests.backend.cuda.emulator.machine import Report, launch
from tests.backend.cuda.emulator.memory import EmulatorError, blank
from tests.backend.cuda.emulator.program import Program, parse

__all__ = ["EmulatorError", "Program", "Report", "blank", "launch", "parse"]
