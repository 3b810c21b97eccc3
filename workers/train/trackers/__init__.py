"""A training run in an experiment tracker: `python -m workers.train.trackers RUN_DIR --to TRACKER`.

A process of its own for each tracker reads the run directory and nothing else, so that a tracker which hangs, fails or
is slow never holds up training, and the training process knows no secret of a tracker.
"""
