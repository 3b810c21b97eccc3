"""Questions about trajectories, answered by a language model with citations, and sorted into categories."""
