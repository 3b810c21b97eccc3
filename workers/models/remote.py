"""A decoder that someone else computes: it is sent token ids, and says what its heads say after each of them."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from workers.errors import RewardError, Unavailable
from workers.models.loaded import Described, model_score
from workers.schema.model_score import ModelScore
from workers.text import Tokens

# By item, token and head: the logits of a sequence classifier that is read at every token.
Ask = Callable[[Sequence[Sequence[int]]], Sequence[Sequence[Sequence[float]]]]
# Of what it is to answer to the probe: what bfloat16 and other kernels may lose. Another model's answer is off by 1.
_SAME = 0.1


class RemoteModel(Described):
    """ask: raises Unavailable where there is no answer. It may be called by several threads.

    Every batch has the artifact's probe next to it: a server that was started again with another model is known at
    once."""

    precision = "the server's"
    scores_criteria = False

    def __init__(self, renderer: Any, manifest: dict[str, Any], ask: Ask) -> None:
        super().__init__(renderer, manifest)
        self._ask = ask
        self._heads = int(manifest["heads"]["ensemble"])

    def score(
        self, batch: Sequence[Tokens], *, cache: Any = None, criteria: Sequence[str] = ()
    ) -> list[ModelScore]:
        """In order; of no items only the probe is asked. Raises Unavailable where the server does not answer, or
        computes something else; RewardError for criteria, for which it has no head."""
        if criteria:
            raise RewardError("a model on a server scores no criteria.", pointer="/criteria")
        *found, probe = self._values([*(entry.ids for entry in batch), self.manifest["probe"]["ids"]])
        self._require_same(probe)
        return [self._score(entry, values) for entry, values in zip(batch, found, strict=True)]

    def _require_same(self, probe: Tensor) -> None:
        wanted = torch.tensor(self.manifest["probe"]["values"])
        off = float((probe - wanted).norm() / wanted.norm().clamp(min=1e-12))
        if not off <= _SAME:
            raise Unavailable(
                f"the server computes another model: what it says of the artifact's probe is off by {off:.2g} of it. "
                "Start it with this model's folder, as `export_model` writes it."
            )

    def _score(self, tokens: Tokens, values: Tensor) -> ModelScore:
        read = values[tokens.places]
        if tokens.start is None:  # no state before the agent, which is 0 to a linear map
            read = torch.cat([read.new_zeros(1, self._heads), read])
        return model_score(
            tokens, read[0], read[1:], self.manifest["aggregation"], cached_tokens=0, labels=None, criteria={}
        )

    def _values(self, ids: Sequence[Sequence[int]]) -> list[Tensor]:
        """[tokens, heads] of each."""
        found = [torch.tensor(entry, dtype=torch.float32) for entry in self._ask(ids)]
        shapes = [tuple(entry.shape) for entry in found]
        wanted = [(len(entry), self._heads) for entry in ids]
        if shapes != wanted:
            raise Unavailable(
                f"the server answers numbers of the shape {shapes[:1]}, and {wanted[:1]} was expected: one for each of "
                "the model's heads after every token. Start it with this model's folder, for the task token_classify."
            )
        return found
