"""A decoder that someone else computes: it is sent token ids, and says what its heads say after some of them."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from workers.errors import RewardError
from workers.models.loaded import Described, model_score
from workers.schema.model_score import ModelScore
from workers.schema.remote_models import Ask, LogitsPrompt, ModelProbe
from workers.text import Tokens


class RemoteModel(Described):
    """ask: raises Unavailable where there is no answer of this model."""

    precision = "the server's"
    scores_criteria = False

    def __init__(self, renderer: Any, manifest: dict[str, Any], ask: Ask) -> None:
        super().__init__(renderer, manifest)
        self._ask = ask
        self._heads = int(manifest["heads"]["ensemble"])

    def score(
        self, batch: Sequence[Tokens], *, cache: Any = None, criteria: Sequence[str] = ()
    ) -> list[ModelScore]:
        """In order. Raises Unavailable where no server computes this model; RewardError for criteria, for which it has
        no head."""
        if criteria:
            raise RewardError("a model on a server scores no criteria.", pointer="/criteria")
        if not batch:
            return []
        found = self._ask([LogitsPrompt(entry.ids, entry.places) for entry in batch])
        return [
            self._score(entry, torch.tensor(logits, dtype=torch.float32))
            for entry, logits in zip(batch, found, strict=True)
        ]

    def _score(self, tokens: Tokens, read: Tensor) -> ModelScore:
        """read: [places, heads]."""
        if tokens.start is None:  # no state before the agent, which is 0 to a linear map
            read = torch.cat([read.new_zeros(1, self._heads), read])
        return model_score(
            tokens, read[0], read[1:], self.manifest["aggregation"], cached_tokens=0, labels=None, criteria={}
        )


def probe_of(manifest: dict[str, Any]) -> ModelProbe:
    """Of a manifest that has a probe."""
    probe = manifest["probe"]
    return ModelProbe(
        tuple(probe["ids"]), tuple(map(tuple, probe["values"])), int(manifest["text"]["max_tokens"])
    )
