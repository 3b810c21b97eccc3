"""`python -m workers.subgoals DIR`: see `workers.subgoals.pipeline`. Status 0: done; 2: refused, with a sentence."""

import sys

from workers.job_cli import command
from workers.subgoals.pipeline import propose_subgoals

if __name__ == "__main__":
    sys.exit(command("subgoals", "Subgoals of tasks, proposed by a language model.", propose_subgoals))
