"""Feedback collected elsewhere comes in, and what was collected here goes out."""
