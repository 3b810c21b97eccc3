"""`python -m workers.induce DIR`: see `workers.induce.induction_files`. Status 0: done; 2: refused, with a sentence."""

import sys

from workers.induce.pipeline import induce
from workers.job_cli import command

if __name__ == "__main__":
    sys.exit(command("induce", "Metrics from what people wrote.", induce))
