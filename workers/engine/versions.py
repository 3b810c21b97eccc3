"""A version of an endpoint, loaded: it renders and scores items until its last request is answered."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from workers.engine.batcher import Batcher, ServedModel
from workers.engine.composition import ItemScore, WeightedComponent, apply, combine, step_scores
from workers.engine.fair_order import NO_CALLER, WARM_UP, Caller
from workers.engine.group_cuts import cut_groups_alike
from workers.engine.judge_components import Ask, JudgeComponents, Opinion, judge_score, no_judge, readable
from workers.engine.protocol import Content, ModelScore, RenderedInput, Scorer
from workers.engine.reasons import ReasonComponents
from workers.engine.rules import rate
from workers.engine.version_checks import common_aggregation, learnt_from_comparisons, require_usable_models
from workers.errors import RewardError
from workers.schema import Features, ScoreInput, Trajectory, TrajectoryId
from workers.schema.endpoints import (
    UNCERTAIN_ABOVE,
    Component,
    CriterionPart,
    Delta,
    EndpointSpec,
    JudgePart,
    Pessimism,
    RewardModelPart,
    ToolMatch,
    Verifier,
)
from workers.schema.logistic import logistic
from workers.schema.model_score import PROCESS_AGGREGATIONS
from workers.schema.reading_flags import reading_flags
from workers.schema.records import Source
from workers.schema.rendered_items import read_again
from workers.text import Session
from workers.text.policy_format import policy_format
from workers.text.speakers import ALL_SOURCES


@dataclass(frozen=True, slots=True)
class Prepared:
    """Items ready to be scored. rendered: by model name. rule_scores: by component, what rules computed already.

    criteria: what each model is asked to score, by its name. request_criteria: those the request asked for. judges: the
    judges to ask; judge_inputs: the items as these read them; truncated_for_judge: whether they leave something out.
    caller: whose share of the queue the scoring takes. flags: by item, what is not read of it. with_steps: whether the
    request wants the rewards of steps.
    """

    items: Sequence[ScoreInput]
    rendered: Mapping[str, list[RenderedInput]]
    rule_scores: Mapping[str, list[ModelScore]]
    criteria: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    request_criteria: tuple[str, ...] = ()
    judges: Sequence[JudgePart] = ()
    judge_inputs: Sequence[Trajectory] = ()
    truncated_for_judge: Sequence[bool] = ()
    caller: Caller = NO_CALLER
    flags: Sequence[tuple[str, ...]] = ()
    with_steps: bool = True

    @property
    def tokens(self) -> int:
        """Of the model in whose tokens the endpoint counts; an item without any counts as one."""
        batch = next(iter(self.rendered.values()), [])
        return sum(max(rendered.tokens, 1) for rendered in batch) if batch else len(self.items)

    def cut_tokens(self, index: int) -> int:
        """The tokens of an item that the first model does not read."""
        batch = next(iter(self.rendered.values()), None)
        return 0 if batch is None else getattr(batch[index], "cut", 0)

    def task_tokens(self, index: int) -> int | None:
        """The tokens that the task of an item was cut to, the smallest of all models; None where it is whole."""
        rooms = [getattr(batch[index], "task_room", None) for batch in self.rendered.values()]
        return min((room for room in rooms if room is not None), default=None)

    @property
    def truncated(self) -> int | None:
        """The first item that is longer than a model or judge reads."""
        by_model = [[rendered.truncated for rendered in batch] for batch in self.rendered.values()]
        found = zip(*by_model, *([self.truncated_for_judge] if self.judges else []), strict=True)
        return next((index for index, is_truncated in enumerate(found) if any(is_truncated)), None)


@dataclass(frozen=True, slots=True)
class _Replies:
    """By item. models: by model name; verifiers, judges: by component."""

    models: Mapping[str, list[ModelScore]]
    verifiers: Mapping[str, list[float]]
    judges: Mapping[str, list[Opinion]]


Verify = Callable[[Verifier, Sequence[ScoreInput]], Awaitable[list[float]]]


async def no_verifier(verifier: Verifier, items: Sequence[ScoreInput]) -> list[float]:
    raise RewardError(f"{verifier.url} cannot be called from this process.")


class Version:
    """Loaded while another one serves, swapped in, closed when drained. `lease`, `retire`: one thread only."""

    def __init__(
        self,
        number: int,
        spec: EndpointSpec,
        models: Mapping[str, ServedModel],
        batcher: Batcher,
        on_close: Callable[["Version"], None],
        verify: Verify = no_verifier,
        ask: Ask = no_judge,
    ) -> None:
        require_usable_models(spec, models)
        self.number = number
        self.spec = spec
        self.policy_format = None if spec.policy_template is None else policy_format(spec.policy_template)
        self.models = models
        self._batcher = batcher
        self._on_close = on_close
        self._verify = verify
        self._ask = ask
        self._judges = JudgeComponents.from_spec(spec)
        self.reason_components = ReasonComponents.from_spec(spec, models)
        self._active = 0
        self._retired = False
        is_delta = any(isinstance(transform, Delta) for transform in spec.transforms)
        # How steps make a reward. Differences (of `delta`) add up to it as those of `value` do.
        own = common_aggregation(spec, models)
        self.aggregation = "value" if is_delta else own
        self._rules = [
            component
            for component in spec.components
            if not isinstance(component, RewardModelPart | CriterionPart | Verifier | JudgePart)
        ]
        self._verifiers = [component for component in spec.components if isinstance(component, Verifier)]
        self._reads_reference = any(
            isinstance(component, ToolMatch | Verifier) for component in spec.components
        )
        self._named_sources = self._speakers_read()
        self._counted: list[Component] = [
            component
            for component in spec.components
            if not isinstance(component, JudgePart) or component.name in self._judges.counted
        ]
        self._weighted = [self._weighted_component(component) for component in self._counted]

    def _speakers_read(self) -> frozenset[Source]:
        """The sources of steps whose speakers all models read; judges read those of all steps."""
        read = [frozenset(served.model.named_sources) for served in self.models.values()]
        read += [ALL_SOURCES for _ in self._judges.parts]
        return frozenset.intersection(*read) if read else frozenset()

    @property
    def tokenizer_model(self) -> Scorer | None:
        """The model in whose tokens the endpoint counts: the first."""
        return next((served.model for served in self.models.values()), None)

    @property
    def criterion_model(self) -> str | None:
        """The name of the model that scores the criteria a request asks for: the first that can."""
        return next((name for name, served in self.models.items() if served.model.scores_criteria), None)

    @property
    def pairwise_model(self) -> str | None:
        """The name of the model that compares two items in one question: the only component with a weight."""
        counted = [component for component in self.spec.components if component.weight]
        if len(counted) != 1 or not isinstance(counted[0], RewardModelPart):
            return None
        name = counted[0].model
        return name if self.models[name].model.compares else None

    @property
    def writes_critiques(self) -> bool:
        return bool(self._judges.parts) or any(served.model.compares for served in self.models.values())

    def read(self, item: ScoreInput) -> ScoreInput:
        """The item as this version reads the text that it came as: by the policy's chat template, if it names one."""
        return item if self.policy_format is None else read_again(item, self.policy_format)

    def render(
        self,
        items: Sequence[ScoreInput],
        pointer: str = "",
        *,
        space: str = "",
        criteria: Sequence[str] = (),
        with_critiques: bool = False,
        with_steps: bool = True,
        caller: Caller = NO_CALLER,
    ) -> Prepared:
        """Items made ready, in any thread. Raises RewardError at `pointer/<index>`.

        items: as they were sent; `Prepared.items` are as this version reads them.

        space: whose sessions these are. criteria: names or texts that the items are to be scored by as well. caller:
        whose share of the queue the scoring takes. with_steps: False where rewards of steps are not read: none
        is flagged.
        """
        requested = tuple(dict.fromkeys(criteria))
        by_model = {name: self.spec.criteria(name) for name in self.models}
        if requested:
            if (name := self.criterion_model) is None:
                raise RewardError(
                    "no model of this endpoint has a criterion head, so it scores no criteria; remove `criteria`.",
                    pointer="/criteria",
                )
            by_model[name] = tuple(dict.fromkeys((*requested, *by_model[name])))
        rendered: dict[str, list[RenderedInput]] = {name: [] for name in self.models}
        rule_scores: dict[str, list[ModelScore]] = {rule.name: [] for rule in self._rules}
        judges = self._judges.required(with_critiques=with_critiques)
        inputs: list[Trajectory] = []
        truncated: list[bool] = []
        found: list[ScoreInput] = []
        for index, sent in enumerate(items):
            try:
                item = self.read(sent)
                found.append(item)
                self._render(item, space, rendered, rule_scores)
                if judges:
                    trajectory, is_truncated = readable(item)
                    inputs.append(trajectory)
                    truncated.append(is_truncated)
            except RewardError as error:
                raise error.at(f"{pointer}/{index}") from None
        cut_groups_alike(found, rendered, {name: served.model for name, served in self.models.items()})
        flags = [
            reading_flags(item, reads_reference=self._reads_reference, named_sources=self._named_sources)
            for item in found
        ]
        return Prepared(
            found,
            rendered,
            rule_scores,
            by_model,
            requested,
            judges,
            inputs,
            truncated,
            caller,
            flags,
            with_steps,
        )

    async def score(self, prepared: Prepared) -> list[ItemScore]:
        """Scores in order. Raises Overloaded, or RewardError with the pointer `/<index>` of the bad item."""
        futures = [
            self._batcher_for(self.models[name]).submit(
                self.models[name], batch, prepared.criteria.get(name, ()), prepared.caller
            )
            for name, batch in prepared.rendered.items()
        ]
        names = dict.fromkeys(part.judge for part in prepared.judges)
        judging = asyncio.gather(*(self._ask_judge(name, prepared) for name in names))
        try:
            scores, verified, opinions = await asyncio.gather(
                asyncio.gather(*map(asyncio.wrap_future, futures)),
                asyncio.gather(*(self._verify(verifier, prepared.items) for verifier in self._verifiers)),
                judging,
            )
        finally:
            judging.cancel()  # where there will be no reward, asking on would only cost money
        replies = _Replies(
            models=dict(zip(prepared.rendered, scores, strict=True)),
            verifiers={
                verifier.name: numbers for verifier, numbers in zip(self._verifiers, verified, strict=True)
            },
            judges={name: found for by_component in opinions for name, found in by_component.items()},
        )
        return [self._item_score(prepared, replies, index) for index in range(len(prepared.items))]

    async def preference(self, prepared: Prepared) -> float | None:
        """How likely the first of two items is the better one: the mean of asking in both orders. None where no model
        compares. Raises what `score` raises."""
        if self.pairwise_model is None:
            return None
        served = self.models[self.pairwise_model]
        a, b = (item.content for item in prepared.items)
        model: Any = served.model
        pairs = [model.render_pair(a, b), model.render_pair(b, a)]
        first, second = await asyncio.wrap_future(
            self._batcher_for(served).submit(served, pairs, (), prepared.caller)
        )
        return (logistic(first.raw) + logistic(-second.raw)) / 2

    def warm_up(self, content: Content | None = None) -> None:
        """Score one item by every model before the first caller does. Blocks; raises what scoring raises.

        content: without it, what each model can read.
        """
        is_pessimistic = any(isinstance(transform, Pessimism) for transform in self.spec.transforms)
        for name, served in self.models.items():
            rendered = [served.model.render(served.model.warm_up_content if content is None else content)]
            (score,) = self._batcher_for(served).submit(served, rendered, self.spec.criteria(name)).result()
            if is_pessimistic and score.std is None:
                raise RewardError(
                    f"pessimism needs an ensemble, and {name} has a single head; train it with `ensemble` above 1."
                )

    def warm_up_with(self, item: ScoreInput) -> None:
        """Have the models score an item that another version scored, so that what they keep of it is there. Blocks. An
        item that this version does not read is passed over."""
        try:
            prepared = self.render([item], caller=WARM_UP)
            futures = [
                self._batcher_for(self.models[name]).submit(
                    self.models[name], batch, prepared.criteria.get(name, ()), WARM_UP
                )
                for name, batch in prepared.rendered.items()
            ]
            for future in futures:
                future.result()
        except RewardError:
            return

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

    def _batcher_for(self, served: ServedModel) -> Batcher:
        return served.own_batcher or self._batcher

    async def _ask_judge(self, judge: str, prepared: Prepared) -> dict[str, list[Opinion]]:
        """By component: one after the other, since the second reuses the replies to the first."""
        parts = [part for part in prepared.judges if part.judge == judge]
        return {part.name: await self._ask(part, prepared.judge_inputs) for part in parts}

    def _render(
        self,
        item: ScoreInput,
        space: str,
        rendered: dict[str, list[RenderedInput]],
        rule_scores: dict[str, list[ModelScore]],
    ) -> None:
        content = item.content
        if isinstance(content, TrajectoryId):
            raise TypeError("a stored trajectory is read before it is rendered")
        session = Session(space, item.session) if item.session else None
        for name, served in self.models.items():
            rendered[name].append(served.model.render(content, session=session))
        if self._rules:
            model = self.tokenizer_model
            count: Any = len if model is None else model.count
            for rule in self._rules:
                rule_scores[rule.name].append(rate(rule, item, count))

    def _item_score(self, prepared: Prepared, replies: _Replies, index: int) -> ItemScore:
        models = {name: found[index] for name, found in replies.models.items()}
        steps = _step_count(prepared.items[index])
        scores = [
            self._component_score(component, models, prepared, replies, index, steps)
            for component in self._counted
        ]
        combined = combine(self._weighted, scores)
        criterion_model = self.criterion_model if prepared.request_criteria else None
        is_truncated = bool(prepared.truncated_for_judge) and prepared.truncated_for_judge[index]
        task_tokens = prepared.task_tokens(index)
        score = apply(
            self.spec.transforms,
            combined,
            is_additive=self.aggregation not in PROCESS_AGGREGATIONS,
            flags=(
                *self._flags(models, combined.std, steps, is_truncated=is_truncated),
                *("task_cut",) * (task_tokens is not None),
                *("steps:uncalibrated",)
                * (prepared.with_steps and steps > 1 and self._has_uncalibrated_steps),
                *prepared.flags[index],
            ),
            tokens=sum(score.tokens for score in models.values()),
            cached_tokens=sum(score.cached_tokens for score in models.values()),
            cut_tokens=prepared.cut_tokens(index),
            task_tokens=task_tokens,
            criteria=None
            if criterion_model is None
            else {name: models[criterion_model].criteria[name] for name in prepared.request_criteria},
            step_scores=step_scores(self.spec.transforms, combined)
            if self.aggregation in PROCESS_AGGREGATIONS
            else (),
            critiques=self._critiques(models, replies, index),
        )
        numbers = (score.reward, score.raw, score.offset, score.std or 0.0, *score.steps)
        if not all(map(math.isfinite, numbers)):
            raise RewardError("The components add up to no finite reward for this item.", pointer=f"/{index}")
        return score

    @property
    def _has_uncalibrated_steps(self) -> bool:
        """Whether steps are differences of a value that was learnt from comparisons of whole trajectories: such a value
        is only trained at the last step. Their correlation with the true credit was -0.06."""
        return self.aggregation == "value" and any(
            learnt_from_comparisons(served.model.manifest) for served in self.models.values()
        )

    def _component_score(
        self,
        component: Component,
        models: Mapping[str, ModelScore],
        prepared: Prepared,
        replies: _Replies,
        index: int,
        steps: int,
    ) -> ModelScore:
        """In the component's own units."""
        name = component.name
        if isinstance(component, RewardModelPart):
            return models[component.model]
        if isinstance(component, CriterionPart):
            criteria = self.models[component.model].model.criteria
            low, high = criteria.get(component.criterion, {}).get("scale", (0, 1))
            value = (models[component.model].criteria[component.criterion] - low) / (high - low)
            return ModelScore.at_last_step(value, steps)
        if isinstance(component, Verifier):
            return ModelScore.at_last_step(replies.verifiers[name][index], steps)
        if isinstance(component, JudgePart):
            return judge_score(component, replies.judges[name][index], steps, index)
        return prepared.rule_scores[name][index]

    def _weighted_component(self, component: Component) -> WeightedComponent:
        if not isinstance(component, RewardModelPart):
            return WeightedComponent(component.name, component.weight)
        model = self.models[component.model].model
        return WeightedComponent(component.name, component.weight, model.median, model.std, is_model=True)

    def _critiques(self, models: Mapping[str, ModelScore], replies: _Replies, index: int) -> dict[str, str]:
        written = {
            component.name: models[component.model].critique
            for component in self.spec.components
            if isinstance(component, RewardModelPart)
        } | {name: opinions[index].critique for name, opinions in replies.judges.items()}
        return {name: critique for name, critique in written.items() if critique is not None}

    def _flags(
        self, models: Mapping[str, ModelScore], std: float | None, steps: int, *, is_truncated: bool
    ) -> tuple[str, ...]:
        rewrites = steps > 1 and any(served.model.rewrites for served in self.models.values())
        return (
            *("truncated",) * (is_truncated or any(score.truncated for score in models.values())),
            *("out_of_distribution",) * any((score.ood_score or 0.0) > 1 for score in models.values()),
            *("uncertain",) * (std is not None and std > UNCERTAIN_ABOVE),
            *("template_rewrites",) * rewrites,
        )


def _step_count(item: ScoreInput) -> int:
    content = item.content
    if isinstance(content, Trajectory):
        return len(content.agent_steps)
    return len(content.rows) if isinstance(content, Features) else 1
