"""`python -m workers.hindsight DIR`: see `workers.hindsight.pipeline`. Status 0: done; 2: refused, with a sentence."""

import sys

from workers.hindsight.pipeline import propose_tasks
from workers.job_cli import command

if __name__ == "__main__":
    sys.exit(command("hindsight", "Tasks that trajectories fulfilled, by a language model.", propose_tasks))
