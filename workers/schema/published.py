"""Benchmarks of reward models whose files `workers.evaluate` reads as they are published."""

PUBLISHED = ("llmbar", "judgebench", "rm-bench", "rewardbench2", "rewardmath", "processbench")
