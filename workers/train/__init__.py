"""Training: `python -m workers.train RUN_DIR`."""
