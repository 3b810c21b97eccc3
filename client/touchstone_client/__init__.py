"""Rewards from a Touchstone endpoint, over HTTP."""

from touchstone_client.errors import BadReply, Refused, RewardServiceError, Unavailable, Unreachable
from touchstone_client.retries import Retries
from touchstone_client.rewards import AsyncRewardClient, RewardClient
from touchstone_client.trajectories import Ingested, ingest
from touchstone_client.trl import trl_reward, trl_reward_async
from touchstone_client.values import Comparison, Item, Ranking, Result, Scores

__all__ = [
    "AsyncRewardClient",
    "BadReply",
    "Comparison",
    "Ingested",
    "Item",
    "Ranking",
    "Refused",
    "Result",
    "Retries",
    "RewardClient",
    "RewardServiceError",
    "Scores",
    "Unavailable",
    "Unreachable",
    "ingest",
    "trl_reward",
    "trl_reward_async",
]
