"""`python -m workers.acquire DIR`: see `workers.acquire.directory`. Status 0: done; 2: refused, with a sentence."""

import sys

from workers.acquire.run import acquire
from workers.folder import command

if __name__ == "__main__":
    sys.exit(command("acquire", "What to ask people next.", acquire))
