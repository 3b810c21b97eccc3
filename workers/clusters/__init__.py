"""Clusters of trajectories by their embeddings, with the terms that tell them apart, and a map of two dimensions."""
