"""`python -m workers.programs DIR`: see `workers.programs.draft_job`. Status 0: done; 2: refused, with a sentence."""

import sys

from workers.job_cli import command
from workers.programs.draft_job import run_draft_job

if __name__ == "__main__":
    sys.exit(command("programs", "A reward program, drafted by a language model.", run_draft_job))
