"""The reward service's parts. Only the `rewards` process imports this: it is the one that loads models."""
