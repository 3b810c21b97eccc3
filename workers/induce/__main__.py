"""`python -m workers.induce DIR`: see `workers.induce.directory`. Status 0: done; 2: refused, with a sentence."""

import sys

from workers.folder import command
from workers.induce.run import induce

if __name__ == "__main__":
    sys.exit(command("induce", "Metrics from what people wrote.", induce))
