"""`python -m workers.train.trackers RUN_DIR --to TRACKER [--into FOLDER] [--follow]`."""

import sys

from workers.train.trackers.command import main

if __name__ == "__main__":
    sys.exit(main())
