"""Rewards from a Touchstone endpoint, over HTTP."""

from touchstone_client.advantages import ESTIMATORS, Advantage, Rollout, advantages
from touchstone_client.errors import BadReply, Refused, RewardServiceError, Unavailable, Unreachable
from touchstone_client.openrlhf import openrlhf_reward_func
from touchstone_client.pool import Pool
from touchstone_client.retries import Retries
from touchstone_client.rewards import AsyncRewardClient, RewardClient
from touchstone_client.trajectories import Ingested, ingest
from touchstone_client.trl import trl_reward, trl_reward_async
from touchstone_client.values import Comparison, Item, Ranking, Reason, Result, Scores
from touchstone_client.verl import verl_compute_score, verl_compute_score_sync

__all__ = [
    "ESTIMATORS",
    "Advantage",
    "AsyncRewardClient",
    "BadReply",
    "Comparison",
    "Ingested",
    "Item",
    "Pool",
    "Ranking",
    "Reason",
    "Refused",
    "Result",
    "Retries",
    "RewardClient",
    "RewardServiceError",
    "Rollout",
    "Scores",
    "Unavailable",
    "Unreachable",
    "advantages",
    "ingest",
    "openrlhf_reward_func",
    "trl_reward",
    "trl_reward_async",
    "verl_compute_score",
    "verl_compute_score_sync",
]
