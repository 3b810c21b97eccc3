"""The reward service's parts. Only the `rewards` process imports it: no other process loads models."""
