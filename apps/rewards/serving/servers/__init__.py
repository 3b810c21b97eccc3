"""Servers that compute the decoders of endpoints: vLLM and SGLang, each with any number of replicas.

Imports form a line: errors <- dialects <- replica <- pool <- servers.
"""

from apps.rewards.serving.servers.pool import ReplicaState, ServerPool
from apps.rewards.serving.servers.replica import ReplicaInfo
from apps.rewards.serving.servers.servers import ModelServers, ServerKey

__all__ = ["ModelServers", "ReplicaInfo", "ReplicaState", "ServerKey", "ServerPool"]
