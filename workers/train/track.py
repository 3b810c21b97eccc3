"""`python -m workers.train.track RUN_DIR --to TRACKER`: see `workers.train.trackers`."""

import sys

from workers.train.trackers.command import main

if __name__ == "__main__":
    sys.exit(main())
