"""Chunks of stored trajectories scored or embedded by one loaded model: `python -m workers.bulk DIR`."""
