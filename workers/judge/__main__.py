"""`python -m workers.judge DIR`: see `workers.judge.pipeline`. Status 0: done; 2: refused, with a sentence."""

import sys

from workers.job_cli import command
from workers.judge.pipeline import judge

if __name__ == "__main__":
    sys.exit(command("judge", "Runs judged by a language model.", judge))
