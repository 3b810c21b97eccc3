"""`python -m workers.influence DIR`: see `workers.influence.run`. Status 0: done; 2: refused, with a sentence."""

import sys

from workers.folder import command
from workers.influence.run import trace

if __name__ == "__main__":
    sys.exit(command("influence", "Which judgements moved a reward.", trace))
