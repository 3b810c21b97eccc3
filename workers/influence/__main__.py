"""`python -m workers.influence DIR`: see `workers.influence.record_influence`. Status 0: done; 2: refused."""

import sys

from workers.influence.record_influence import trace
from workers.job_cli import command

if __name__ == "__main__":
    sys.exit(command("influence", "Which feedback records moved a reward.", trace))
