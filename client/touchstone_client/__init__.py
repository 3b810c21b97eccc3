"""A Touchstone server over HTTP: its whole JSON API (`Client`), and rewards for trainers (`RewardClient`)."""

from touchstone_client.advantages import (
    ESTIMATORS,
    Advantage,
    GroupSignal,
    Rollout,
    advantages,
    group_signals,
    instruction_rewards,
)
from touchstone_client.client import AsyncClient, Client
from touchstone_client.errors import (
    BadReply,
    JobFailed,
    MissingExtra,
    Refused,
    RewardServiceError,
    Unavailable,
    Unreachable,
)
from touchstone_client.listings import AsyncListing, Listing
from touchstone_client.openrlhf import openrlhf_reward_func
from touchstone_client.pool import Pool
from touchstone_client.retries import Retries
from touchstone_client.rewards import AsyncRewardClient, RewardClient
from touchstone_client.trajectories import Ingested, ingest
from touchstone_client.trl import trl_reward, trl_reward_async
from touchstone_client.values import Comparison, GuardDecision, Item, Ranking, Reason, Result, Scores
from touchstone_client.verifiers import verifiers_reward
from touchstone_client.verl import verl_compute_score, verl_compute_score_batch, verl_compute_score_sync

__all__ = [
    "ESTIMATORS",
    "Advantage",
    "AsyncClient",
    "AsyncListing",
    "AsyncRewardClient",
    "BadReply",
    "Client",
    "Comparison",
    "GroupSignal",
    "GuardDecision",
    "Ingested",
    "Item",
    "JobFailed",
    "Listing",
    "MissingExtra",
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
    "group_signals",
    "ingest",
    "instruction_rewards",
    "openrlhf_reward_func",
    "trl_reward",
    "trl_reward_async",
    "verifiers_reward",
    "verl_compute_score",
    "verl_compute_score_batch",
    "verl_compute_score_sync",
]
