"""What one loaded model computes of the trajectories of a chunk."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from workers.device import choose_device
from workers.errors import RewardError
from workers.models import ChunkCache, LoadedModel, LocalScorer, load_scorer
from workers.schema import Trajectory
from workers.schema.bulk_items import BulkConfig, BulkItem
from workers.schema.model_score import ModelScore

BATCH_TOKENS = 32_768
_CACHE_BYTES = 256 * 2**20  # of embeddings of chunks that trajectories of a task share
_Rendered = tuple[int, Any]  # the place in the chunk, and what the backbone reads


@dataclass(frozen=True, slots=True)
class ReadChunk:
    """Trajectories rendered, and why the others could not be. ids: of all of them."""

    ids: list[int]
    rendered: list[_Rendered]
    problems: dict[int, str]


class ChunkWork(Protocol):
    """Both parts may be called from two threads, for two chunks at a time."""

    def read(self, trajectories: Sequence[Trajectory]) -> ReadChunk: ...

    def compute(self, chunk: ReadChunk) -> list[BulkItem]: ...


def open_work(config: BulkConfig) -> "ModelWork":
    """Raises RewardError where the model cannot do it."""
    model = load_scorer(
        Path(config.folder), device=str(choose_device(config.device)), precision=config.precision
    )
    if config.work == "embed":
        if not isinstance(model, LoadedModel):
            raise RewardError("this model writes its verdicts; it has no states to keep as embeddings.")
        return EmbeddingWork(model)
    return ScoreWork(model, with_steps=config.with_steps)


class ModelWork(ABC):
    """Renders a chunk, and computes it in batches of items of similar length.

    An item that cannot be rendered or scored has a problem instead of a result; the others are not touched by it.
    """

    def __init__(self, model: LocalScorer) -> None:
        self.model = model
        kind = model.model.backbone.kind if isinstance(model, LoadedModel) else ""
        self.cache = ChunkCache(_CACHE_BYTES) if kind in ("step-encoder", "hybrid") else None

    def read(self, trajectories: Sequence[Trajectory]) -> ReadChunk:
        rendered: list[_Rendered] = []
        problems: dict[int, str] = {}
        for place, trajectory in enumerate(trajectories):
            try:
                rendered.append((place, self.model.render(trajectory)))
            except RewardError as error:
                problems[place] = error.message
        return ReadChunk([int(trajectory.id or 0) for trajectory in trajectories], rendered, problems)

    def compute(self, chunk: ReadChunk) -> list[BulkItem]:
        items = {
            place: BulkItem(trajectory=chunk.ids[place], problem=text)
            for place, text in chunk.problems.items()
        }
        for batch in _batches(chunk.rendered):
            for (place, rendered), found in zip(batch, self._score_each(batch), strict=True):
                if isinstance(found, RewardError):
                    items[place] = BulkItem(
                        trajectory=chunk.ids[place], tokens=rendered.tokens, problem=found.message
                    )
                else:
                    items[place] = self.item(chunk.ids[place], rendered, found)
        return [items[place] for place in range(len(chunk.ids))]

    @abstractmethod
    def compute_batch(self, batch: list[Any]) -> Sequence[Any]:
        """A result for each of these rendered items. Raises RewardError."""

    @abstractmethod
    def item(self, key: int, rendered: Any, found: Any) -> BulkItem:
        """A rendered item and what `compute_batch` found for it, as it is stored."""

    def _score_each(self, batch: list[_Rendered]) -> list[Any]:
        try:
            return list(self.compute_batch([rendered for _, rendered in batch]))
        except RewardError as error:
            if len(batch) == 1:
                return [error]
            return [found for each in batch for found in self._score_each([each])]


class ScoreWork(ModelWork):
    def __init__(self, model: LocalScorer, *, with_steps: bool) -> None:
        super().__init__(model)
        self.with_steps = with_steps

    def compute_batch(self, batch: list[Any]) -> Sequence[ModelScore]:
        return self.model.score(batch, cache=self.cache)

    def item(self, key: int, rendered: Any, found: ModelScore) -> BulkItem:
        return BulkItem(
            trajectory=key,
            reward=found.raw,
            std=found.std,
            tokens=found.tokens,
            truncated=found.truncated,
            steps=list(found.step_rewards) if self.with_steps else None,
        )


class EmbeddingWork(ModelWork):
    """The state at the end for the aggregation `value`, else the mean over the steps, as active learning reads it."""

    def __init__(self, model: LoadedModel) -> None:
        super().__init__(model)
        self.reward_model = model.model

    def compute_batch(self, batch: list[Any]) -> Sequence[Any]:
        from workers.active_learning.features import model_features

        return model_features(self.reward_model, batch, cache=self.cache).tolist()

    def item(self, key: int, rendered: Any, found: list[float]) -> BulkItem:
        return BulkItem(
            trajectory=key,
            tokens=rendered.tokens,
            truncated=getattr(rendered, "truncated", False),
            embedding=found,
        )


def _batches(rendered: list[_Rendered]) -> Iterator[list[_Rendered]]:
    """Neighbours in length share a batch, so that little of it is padding."""
    batch: list[_Rendered] = []
    tokens = 0
    for place, item in sorted(rendered, key=lambda pair: (pair[1].tokens, pair[0])):
        if batch and tokens + item.tokens > BATCH_TOKENS:
            yield batch
            batch, tokens = [], 0
        batch.append((place, item))
        tokens += item.tokens
    if batch:
        yield batch
