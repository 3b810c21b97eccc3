"""A version of an endpoint, loaded: it renders and scores items until its last request is answered."""

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from workers.engine.batcher import Batcher, ServedModel
from workers.engine.components import Part, combine
from workers.engine.protocol import Content, RawScore, Rendered
from workers.engine.transforms import apply
from workers.errors import RewardError
from workers.schema.endpoints import EndpointSpec

# An item is `uncertain` when the ensemble's standard deviation passes half of that of the training rewards:
# the heads then disagree by what separates a middling trajectory from one at the 70th percentile.
UNCERTAIN_ABOVE = 0.5


@dataclass(frozen=True, slots=True)
class Score:
    """reward: transforms included. raw, baseline, steps: model units. std, components: the reward scale."""

    reward: float
    raw: float
    baseline: float
    std: float | None
    steps: tuple[float, ...]
    components: dict[str, float]
    flags: tuple[str, ...]
    tokens: int
    cached_tokens: int


Prepared = Mapping[str, list[Rendered]]  # by model name


class Version:
    """Made beside the running one, swapped in, closed when drained. `lease`, `retire`: one thread only."""

    def __init__(
        self,
        number: int,
        spec: EndpointSpec,
        models: Mapping[str, ServedModel],
        batcher: Batcher,
        on_close: Callable[["Version"], None],
    ) -> None:
        self.number = number
        self.spec = spec
        self.models = models
        self._batcher = batcher
        self._on_close = on_close
        self._active = 0
        self._retired = False
        aggregations = sorted({served.model.aggregation for served in models.values()})
        if len(aggregations) > 1:
            raise RewardError(
                f"the components aggregate their steps differently ({', '.join(aggregations)}); "
                "their step rewards cannot be added. Deploy models of one aggregation together."
            )
        self.aggregation = aggregations[0]
        for served in models.values():
            if not (math.isfinite(served.model.median) and 0 < served.model.std < math.inf):
                raise RewardError(
                    f"{served.name} has no usable reward statistics (median {served.model.median}, standard "
                    f"deviation {served.model.std}); train it on trajectories it can tell apart."
                )

    def render(self, contents: Sequence[Content], pointer: str = "") -> Prepared:
        """Items made ready for every model, in any thread. Raises RewardError at `pointer/<index>`."""
        prepared: dict[str, list[Rendered]] = {}
        for name, served in self.models.items():
            rendered = []
            for index, content in enumerate(contents):
                try:
                    rendered.append(served.model.render(content))
                except RewardError as error:
                    raise error.at(f"{pointer}/{index}") from None
            prepared[name] = rendered
        return prepared

    async def score(self, prepared: Prepared) -> list[Score]:
        """Scores in order. Raises Overloaded, or RewardError with the pointer `/<index>` of the bad item."""
        futures = [self._batcher.submit(self.models[name], batch) for name, batch in prepared.items()]
        scores = await asyncio.gather(*(asyncio.wrap_future(future) for future in futures))
        by_model = dict(zip(prepared, scores, strict=True))
        return [self._combine(by_model, index) for index in range(len(scores[0]))]

    def warm_up(self, content: Content) -> None:
        """Score one item before the first caller does. Blocks; raises what scoring raises."""
        for name, batch in self.render([content]).items():
            self._batcher.submit(self.models[name], batch).result()

    @contextmanager
    def lease(self) -> Iterator["Version"]:
        """Hold the version for one request: it is not closed before."""
        self._active += 1
        try:
            yield self
        finally:
            self._active -= 1
            self._close_if_drained()

    def retire(self) -> None:
        """No new requests will come; close when the last running one is answered."""
        self._retired = True
        self._close_if_drained()

    def _close_if_drained(self) -> None:
        if self._retired and self._active == 0:
            self._on_close(self)

    def _combine(self, by_model: Mapping[str, list[RawScore]], index: int) -> Score:
        parts = []
        for component in self.spec.components:
            model = self.models[component.model].model
            score = by_model[component.model][index]
            parts.append(Part(component.name, component.weight, model.median, model.std, score))
        whole = combine(parts)
        if not all(map(math.isfinite, (whole.reward, whole.baseline, whole.std or 0.0, *whole.steps))):
            raise RewardError("The components add up to no finite reward for this item.", pointer=f"/{index}")
        truncated = any(part.score.truncated for part in parts)
        uncertain = whole.std is not None and whole.std > UNCERTAIN_ABOVE
        return Score(
            reward=apply(self.spec.transforms, whole.reward),
            raw=whole.raw,
            baseline=whole.baseline,
            std=whole.std,
            steps=whole.steps,
            components=whole.components,
            flags=("truncated",) * truncated + ("uncertain",) * uncertain,
            tokens=sum(scores[index].tokens for scores in by_model.values()),
            cached_tokens=sum(scores[index].cached_tokens for scores in by_model.values()),
        )
