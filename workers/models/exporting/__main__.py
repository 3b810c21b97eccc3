"""`python -m workers.models.exporting DIR`: see `workers.models.exporting.run`. Status 0: done; 2: refused."""

import sys

from workers.job_cli import command
from workers.models.exporting import run

if __name__ == "__main__":
    sys.exit(command("models.exporting", "Write a model in a form that others load.", run))
