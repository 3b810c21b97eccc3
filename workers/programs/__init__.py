"""Reward programs: code that people or language models wrote, run where it reaches nothing but its input."""
