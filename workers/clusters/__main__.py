"""`python -m workers.clusters DIR`: see `workers.clusters.pipeline`. Status 0: done; 2: refused, with a sentence."""

import sys

from workers.clusters.pipeline import cluster_folder
from workers.job_cli import command

if __name__ == "__main__":
    sys.exit(command("clusters", "Trajectories put into clusters by their embeddings.", cluster_folder))
