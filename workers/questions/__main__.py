"""`python -m workers.questions DIR`: see `workers.questions.pipeline`. Status 0: done; 2: refused, with a sentence."""

import sys

from workers.job_cli import command
from workers.questions.pipeline import answer_question

if __name__ == "__main__":
    sys.exit(
        command("questions", "A question about trajectories, answered by a language model.", answer_question)
    )
