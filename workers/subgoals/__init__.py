"""Subgoals of tasks, proposed by a language model."""
