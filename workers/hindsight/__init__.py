"""Hindsight tasks: what a trajectory in fact did, written as a task by a language model."""
