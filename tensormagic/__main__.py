"""`python -m tensormagic` is the command `tensormagic`."""

import sys

from tensormagic.cli import main

sys.exit(main())
