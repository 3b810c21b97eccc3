"""Judges by a rubric: a language model scores a trajectory, or compares two, and gives a reason for each criterion."""
