"""Prompts for language models, and how a trajectory is written in them."""
