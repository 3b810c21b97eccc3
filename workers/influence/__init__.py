"""Which feedback records moved a reward: influence functions on the head."""
