"""Which judgements moved a reward: influence functions on the head."""
