"""`python -m workers.importing DIR`: import the checkpoint that DIR/request.json names."""

import sys

from workers.importing.importer import run
from workers.job_cli import command

if __name__ == "__main__":
    sys.exit(command("importing", "Import a public reward model.", run))
