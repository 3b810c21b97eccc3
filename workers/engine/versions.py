"""A version of an endpoint, loaded: it renders and scores items until its last request is answered."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from workers.engine.batcher import Batcher, ServedModel
from workers.engine.components import Part, combine
from workers.engine.fair import NO_CALLER, Caller
from workers.engine.judging import Ask, Bench, Opinion, no_judge, rated, readable
from workers.engine.protocol import Content, Rated, RawScore, Rendered, Scorer
from workers.engine.rules import rate
from workers.engine.transforms import Whole, apply
from workers.errors import RewardError
from workers.schema import Features, Item, Trajectory, TrajectoryId
from workers.schema.endpoints import (
    UNCERTAIN_ABOVE,
    CriterionPart,
    Delta,
    EndpointSpec,
    JudgePart,
    Pessimism,
    RewardModelPart,
    Verifier,
)
from workers.schema.logistic import logistic
from workers.text import Session


@dataclass(frozen=True, slots=True)
class Score:
    """reward: transforms included. raw, baseline, steps: model units. std, components: the reward scale.

    unit: what one model unit is worth on the reward scale. step_scores: of process rewards (aggregations mean and
    min), each step's own score, treated as a reward is. critiques: by component, of models that write and of judges.
    preferred: of two that were compared by a model that can, how likely this one is the better.
    """

    reward: float
    raw: float
    baseline: float
    std: float | None
    steps: tuple[float, ...]
    components: dict[str, float]
    flags: tuple[str, ...]
    tokens: int
    cached_tokens: int
    criteria: dict[str, float] | None = None
    unit: float = 1.0
    step_scores: tuple[float, ...] = ()
    critiques: dict[str, str] = field(default_factory=dict)
    preferred: float | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """Items ready to be scored. rendered: by model name. rated: by component, what rules said already.

    criteria: what each model is asked to score, by its name. asked: what the request asked for itself. judges: who is
    asked of them; runs: as these read them; cut: whether they leave something out.
    caller: whose turn the scoring takes.
    """

    items: Sequence[Item]
    rendered: Mapping[str, list[Rendered]]
    rated: Mapping[str, list[Rated]]
    criteria: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    asked: tuple[str, ...] = ()
    judges: Sequence[JudgePart] = ()
    runs: Sequence[Trajectory] = ()
    cut: Sequence[bool] = ()
    caller: Caller = NO_CALLER

    @property
    def tokens(self) -> int:
        """Of the model in whose tokens the endpoint counts; an item without any counts as one."""
        batch = next(iter(self.rendered.values()), [])
        return sum(max(one.tokens, 1) for one in batch) if batch else len(self.items)

    @property
    def truncated(self) -> int | None:
        """The first item that is too long to be read whole."""
        by_model = [[one.truncated for one in batch] for batch in self.rendered.values()]
        found = zip(*by_model, *([self.cut] if self.judges else []), strict=True)
        return next((index for index, all_ in enumerate(found) if any(all_)), None)


@dataclass(frozen=True, slots=True)
class _Said:
    """What was answered, by item. by_model: by the model's name; verified, opinions: by component."""

    by_model: Mapping[str, list[RawScore]]
    verified: Mapping[str, list[float]]
    opinions: Mapping[str, list[Opinion]]


Verify = Callable[[Verifier, Sequence[Item]], Awaitable[list[float]]]


async def no_verifier(verifier: Verifier, items: Sequence[Item]) -> list[float]:
    raise RewardError(f"{verifier.url} cannot be asked from here: this engine calls nobody.")


class Version:
    """Made beside the running one, swapped in, closed when drained. `lease`, `retire`: one thread only."""

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
        self.number = number
        self.spec = spec
        self.models = models
        self._batcher = batcher
        self._on_close = on_close
        self._verify = verify
        self._ask = ask
        self._bench = Bench.of(spec)
        self._active = 0
        self._retired = False
        self._deltas = any(isinstance(one, Delta) for one in spec.transforms)
        self._own_aggregation = _aggregation(spec, models)
        self._rules = [
            one
            for one in spec.components
            if not isinstance(one, RewardModelPart | CriterionPart | Verifier | JudgePart)
        ]
        for served in models.values():
            if not (math.isfinite(served.model.median) and 0 < served.model.std < math.inf):
                raise RewardError(
                    f"{served.name} has no usable reward statistics (median {served.model.median}, standard "
                    f"deviation {served.model.std}); train it on trajectories it can tell apart."
                )
            if spec.criteria(served.name) and not served.model.scores_criteria:
                raise RewardError(
                    f"{served.name} scores no criteria; train one on rubric scores, or a judge with "
                    "`principles = true`."
                )

    @property
    def aggregation(self) -> str:
        """How steps make a reward. Differences (of `delta`) add up to it as those of `value` do."""
        return "value" if self._deltas else self._own_aggregation

    @property
    def counter(self) -> Scorer | None:
        """The model in whose tokens the endpoint counts: the first."""
        return next((served.model for served in self.models.values()), None)

    @property
    def scorer(self) -> str | None:
        """The name of the model that scores the criteria a request asks for: the first that can."""
        return next((name for name, served in self.models.items() if served.model.scores_criteria), None)

    def render(
        self,
        items: Sequence[Item],
        pointer: str = "",
        *,
        space: str = "",
        criteria: Sequence[str] = (),
        writes: bool = False,
        caller: Caller = NO_CALLER,
    ) -> Prepared:
        """Items made ready, in any thread. Raises RewardError at `pointer/<index>`.

        space: whose sessions these are. criteria: names or texts that the items are to be scored by as well. writes:
        whether critiques are wanted. caller: whose turn the scoring takes.
        """
        asked = tuple(dict.fromkeys(criteria))
        if asked and self.scorer is None:
            raise RewardError(
                "no model of this endpoint has a criterion head, so it scores no criteria; leave `criteria` out.",
                pointer="/criteria",
            )
        by_model = {name: self.spec.criteria(name) for name in self.models}
        if asked and self.scorer is not None:
            by_model[self.scorer] = tuple(dict.fromkeys((*asked, *by_model[self.scorer])))
        rendered: dict[str, list[Rendered]] = {name: [] for name in self.models}
        by_rule: dict[str, list[Rated]] = {one.name: [] for one in self._rules}
        judges, read = self._bench.asked(writes=writes), list[tuple[Trajectory, bool]]()
        for index, item in enumerate(items):
            try:
                self._render(item, space, rendered, by_rule)
                if judges:
                    read.append(readable(item))
            except RewardError as error:
                raise error.at(f"{pointer}/{index}") from None
        runs, cut = [run for run, _ in read], [short for _, short in read]
        return Prepared(items, rendered, by_rule, by_model, asked, judges, runs, cut, caller)

    async def score(self, prepared: Prepared) -> list[Score]:
        """Scores in order. Raises Overloaded, or RewardError with the pointer `/<index>` of the bad item."""
        futures = [
            self._batcher_of(self.models[name]).submit(
                self.models[name], batch, prepared.criteria.get(name, ()), prepared.caller
            )
            for name, batch in prepared.rendered.items()
        ]
        verifiers = [one for one in self.spec.components if isinstance(one, Verifier)]
        judging = asyncio.gather(*(self._judged(name, prepared) for name in _names(prepared.judges)))
        try:
            scores, verified, opinions = await asyncio.gather(
                asyncio.gather(*map(asyncio.wrap_future, futures)),
                asyncio.gather(*(self._verify(one, prepared.items) for one in verifiers)),
                judging,
            )
        finally:
            judging.cancel()  # where there is no reward anyhow, nobody goes on paying for it
        said = _Said(
            by_model=dict(zip(prepared.rendered, scores, strict=True)),
            verified={one.name: numbers for one, numbers in zip(verifiers, verified, strict=True)},
            opinions={name: each for one in opinions for name, each in one.items()},
        )
        return [self._combine(prepared, said, index) for index in range(len(prepared.items))]

    async def _judged(self, judge: str, prepared: Prepared) -> dict[str, list[Opinion]]:
        """By component: one after the other, since the second asks what was answered to the first."""
        parts = [one for one in prepared.judges if one.judge == judge]
        return {one.name: await self._ask(one, prepared.runs) for one in parts}

    @property
    def judge(self) -> str | None:
        """The name of the model that compares two items at once: the only one that counts."""
        counted = [one for one in self.spec.components if one.weight]
        if len(counted) != 1 or not isinstance(counted[0], RewardModelPart):
            return None
        name = counted[0].model
        return name if self.models[name].model.compares else None

    @property
    def writes(self) -> bool:
        """Whether a model of it says why, or a judge does."""
        return bool(self._bench.parts) or any(served.model.compares for served in self.models.values())

    async def preference(self, prepared: Prepared) -> float | None:
        """How likely the first of two items is the better one: the mean of asking in both orders. None where no model
        compares. Raises what `score` raises."""
        if self.judge is None:
            return None
        served = self.models[self.judge]
        a, b = (item.content for item in prepared.items)
        model: Any = served.model
        asked = [model.render_pair(a, b), model.render_pair(b, a)]
        first, second = await asyncio.wrap_future(
            self._batcher_of(served).submit(served, asked, (), prepared.caller)
        )
        return (logistic(first.raw) + logistic(-second.raw)) / 2

    def warm_up(self, content: Content | None = None) -> None:
        """Score one item by every model before the first caller does. Blocks; raises what scoring raises.

        content: what each model can read, without.
        """
        cautious = any(isinstance(one, Pessimism) for one in self.spec.transforms)
        for name, served in self.models.items():
            rendered = [served.model.render(served.model.greeting if content is None else content)]
            (score,) = self._batcher_of(served).submit(served, rendered, self.spec.criteria(name)).result()
            if cautious and score.std is None:
                raise RewardError(
                    f"pessimism needs an ensemble, and {name} has a single head; train it with `ensemble` above 1."
                )

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

    def _batcher_of(self, served: ServedModel) -> Batcher:
        return served.lane or self._batcher

    def _close_if_drained(self) -> None:
        if self._retired and self._active == 0:
            self._on_close(self)

    def _render(
        self, item: Item, space: str, rendered: dict[str, list[Rendered]], by_rule: dict[str, list[Rated]]
    ) -> None:
        content = item.content
        if isinstance(content, TrajectoryId):
            raise TypeError("a stored trajectory is read before it is rendered")
        session = Session(space, item.session) if item.session else None
        for name, served in self.models.items():
            rendered[name].append(served.model.render(content, session=session))
        count: Any = len if self.counter is None else self.counter.count
        for rule in self._rules:
            by_rule[rule.name].append(rate(rule, item, count))

    def _combine(self, prepared: Prepared, said: "_Said", index: int) -> Score:
        scores = {name: found[index] for name, found in said.by_model.items()}
        steps = _steps(prepared.items[index])
        counted = [
            one
            for one in self.spec.components
            if not isinstance(one, JudgePart) or one.name in self._bench.counted
        ]
        combined = combine([self._part(one, scores, prepared.rated, said, index, steps) for one in counted])
        whole = apply(self.spec.transforms, combined)
        numbers = (whole.reward, whole.raw, whole.baseline, whole.std or 0.0, *whole.steps)
        if not all(map(math.isfinite, numbers)):
            raise RewardError("The components add up to no finite reward for this item.", pointer=f"/{index}")
        asked = {name: scores[self.scorer].criteria[name] for name in prepared.asked if self.scorer}
        return Score(
            reward=whole.reward,
            raw=whole.raw,
            baseline=whole.baseline,
            std=whole.std,
            steps=whole.steps,
            components=whole.components,
            flags=self._flags(scores.values(), whole.std, steps, bool(prepared.cut) and prepared.cut[index]),
            tokens=sum(score.tokens for score in scores.values()),
            cached_tokens=sum(score.cached_tokens for score in scores.values()),
            criteria=asked or None,
            unit=whole.unit,
            step_scores=self._step_scores(combined) if self.aggregation in ("mean", "min") else (),
            critiques={
                one.name: words
                for one in self.spec.components
                if isinstance(one, RewardModelPart) and (words := scores[one.model].critique) is not None
            }
            | {name: opinions[index].critique for name, opinions in said.opinions.items()},
        )

    def _step_scores(self, whole: Whole) -> tuple[float, ...]:
        rows = (replace(whole, reward=whole.zero + whole.unit * step) for step in whole.steps)
        return tuple(apply(self.spec.transforms, row).reward for row in rows)

    def _part(
        self,
        component: Any,
        scores: Mapping[str, RawScore],
        by_rule: Mapping[str, list[Rated]],
        said: "_Said",
        index: int,
        steps: int,
    ) -> Part:
        name, weight = component.name, component.weight
        if isinstance(component, RewardModelPart):
            model = self.models[component.model].model
            return Part.of_model(name, weight, scores[component.model], model.median, model.std)
        if isinstance(component, CriterionPart):
            scale = (
                self.models[component.model].model.criteria.get(component.criterion, {}).get("scale", (0, 1))
            )
            low, high = scale
            value = (scores[component.model].criteria[component.criterion] - low) / (high - low)
        elif isinstance(component, Verifier):
            value = said.verified[name][index]
        elif isinstance(component, JudgePart):
            return Part.of_rule(name, weight, rated(component, said.opinions[name][index], steps, index))
        else:
            return Part.of_rule(name, weight, by_rule[name][index])
        return Part.of_rule(name, weight, Rated(value, (*[0.0] * (steps - 1), value)))

    def _flags(self, scores: Any, std: float | None, steps: int, cut: bool) -> tuple[str, ...]:
        rewrites = steps > 1 and any(served.model.rewrites for served in self.models.values())
        return (
            *("truncated",) * (cut or any(score.truncated for score in scores)),
            *("out_of_distribution",) * any((score.ood_score or 0.0) > 1 for score in scores),
            *("uncertain",) * (std is not None and std > UNCERTAIN_ABOVE),
            *("template_rewrites",) * rewrites,
        )


def _aggregation(spec: EndpointSpec, models: Mapping[str, ServedModel]) -> str:
    """The models' own; rules alone are summed. Raises RewardError where models differ, or delta has nothing to do."""
    names = {one.model for one in spec.components if isinstance(one, RewardModelPart) and one.weight}
    found = sorted({models[name].model.aggregation for name in names})
    if len(found) > 1:
        raise RewardError(
            f"the components aggregate their steps differently ({', '.join(found)}); "
            "their step rewards cannot be added. Deploy models of one aggregation together."
        )
    if found == ["value"] and any(isinstance(one, Delta) for one in spec.transforms):
        raise RewardError(
            "delta makes differences of step scores, and the steps of this model (aggregation value) are differences "
            "already; leave the transform out."
        )
    return found[0] if found else "sum"


def _names(parts: Sequence[JudgePart]) -> list[str]:
    return list(dict.fromkeys(one.judge for one in parts))


def _steps(item: Item) -> int:
    content = item.content
    if isinstance(content, Trajectory):
        return len(content.agent_steps)
    return len(content.rows) if isinstance(content, Features) else 1
