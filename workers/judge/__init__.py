"""Language models that are asked about trajectories: a client, prompts, and what is shown of a trajectory."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where a language model is asked. base_url: as OpenAI's clients take it, mostly ending in /v1.

    at_once: calls under way together. attempts: how often an item is asked before it has no answer. timeout: seconds
    of one call.
    """

    base_url: str
    model: str
    at_once: int = 4
    attempts: int = 3
    timeout: float = 120.0
