"""Bradley-Terry on preferences, with ties, both-bad, strengths, unreliable annotators and centring."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from workers.objectives import Example, Objective, ObjectiveBatch
from workers.objectives.distributions import certainty
from workers.objectives.length_effect import LengthEffect, chosen_pairs
from workers.schema import Choice, PreferenceRecord
from workers.schema.recipe import Recipe

# Of the prior of a learnt reliability, relative to the annotator's own choices: a model that learns these by heart
# takes each for right, and may then not outweigh what others said about the annotator.
PRIOR_WEIGHT = 2.0
_LEAST = 1e-6  # of a fixed reliability and its complement
_START = 0.8807970779778823  # s(2): a learnt reliability of which nothing is known, at first
# Names in checkpoints: of all choices, or of strict pairs, as it was for all models of ties.
LIKELIHOOD, STRICT_PAIRS = "likelihood", "strict pairs"
CHOICES: dict[Choice, int] = {"a": 0, "b": 1, "tie": 2, "both_bad": 3}


def preference_loss(
    a: Tensor, b: Tensor, margin: Tensor, reliability: Tensor, tie_threshold: Tensor, smoothing: float
) -> Tensor:
    """-log P(a preferred to b), elementwise; `a` is the one that was chosen.

    P = q s(d - margin - eta) + (1 - q) s(-d - margin - eta), d = a - b, s the logistic function.
    eta = tie_threshold >= 0: Rao & Kupper (1967). margin: Llama 2 (arXiv 2307.09288), eq. 2.
    q = reliability: Crowd-BT (Chen et al. 2013), eq. 3; smoothing mixes in the flipped log-likelihood.
    """
    right = functional.logsigmoid(a - b - margin - tie_threshold)
    wrong = functional.logsigmoid(b - a - margin - tie_threshold)
    q = reliability.clamp(1e-6, 1.0)
    # log(q e^right + (1 - q) e^wrong); at q = 1 exactly `right`.
    kept = torch.where(
        q >= 1.0, right, torch.logaddexp(right + q.log(), wrong + (1 - q).clamp(min=1e-12).log())
    )
    return -(1 - smoothing) * kept - smoothing * wrong


def tie_loss(a: Tensor, b: Tensor, tie_threshold: Tensor) -> Tensor:
    """-log P(tie) = -log[(e^(2 eta) - 1) s(d - eta) s(-d - eta)], elementwise (Rao & Kupper 1967)."""
    both = functional.logsigmoid(a - b - tie_threshold) + functional.logsigmoid(b - a - tie_threshold)
    return -(both + torch.expm1(2 * tie_threshold).log())


def davidson_log_probabilities(
    a: Tensor, b: Tensor, log_nu: Tensor, threshold: Tensor | None, margin: Tensor | float = 0.0
) -> Tensor:
    """[4, ...]: log P of a, b, tie and both-bad, which sum to 1.

    Both-bad: neither is acceptable, s(threshold - a) s(threshold - b), independently; 0 without a threshold. Otherwise
    a : b : tie = e^a : e^b : nu e^((a + b) / 2) (Davidson 1970), so that a - b is the log odds of a against b;
    margin: taken from a there, not where it is about being acceptable.
    """
    ahead = a - margin
    logits = torch.stack([ahead, b, log_nu + (ahead + b) / 2])
    decided = logits - logits.logsumexp(0)
    if threshold is None:
        return torch.cat([decided, torch.full_like(decided[:1], -math.inf)])
    bad = functional.logsigmoid(threshold - a) + functional.logsigmoid(threshold - b)
    rest = torch.log(-torch.expm1(bad.clamp(max=-1e-6)))
    return torch.cat([decided + rest, bad.unsqueeze(0)])


def davidson_loss(log_probabilities: Tensor, choice: Tensor, reliability: Tensor, smoothing: float) -> Tensor:
    """-log P(choice), elementwise. choice: of CHOICES; reliability, smoothing: as in `preference_loss`."""
    own = log_probabilities.gather(0, choice.unsqueeze(0)).squeeze(0)
    flipped = log_probabilities.gather(0, (1 - choice).clamp(min=0).unsqueeze(0)).squeeze(0)
    q = reliability.clamp(1e-6, 1.0)
    mixed = torch.logaddexp(own + q.log(), flipped + (1 - q).clamp(min=1e-12).log())
    strict = -(1 - smoothing) * torch.where(q >= 1.0, own, mixed) - smoothing * flipped
    return torch.where(choice <= 1, strict, -own)


def below_loss(raw: Tensor, threshold: Tensor) -> Tensor:
    """-log s(threshold - raw): this one is not acceptable."""
    return -functional.logsigmoid(threshold - raw)


def reliability_prior_loss(logit: Tensor, known: Tensor) -> Tensor:
    """-PRIOR_WEIGHT [k log q + (1 - k) log(1 - q)], elementwise, with q = s(logit): 0 slope where q = k.

    A Beta prior around what gold items and overlap say (k), of PRIOR_WEIGHT answers for each of the annotator's.
    """
    found = known * functional.logsigmoid(logit) + (1 - known) * functional.logsigmoid(-logit)
    return -PRIOR_WEIGHT * found


class BradleyTerry(Objective):
    """The loss with what it learns next to the model: the tie threshold, the acceptability threshold, reliabilities.

    Both-bad is two points under a learnt threshold. Who chose one of two could have said both-bad, so where a
    data set has any, the chosen one of every strict pair is a point above it; that keeps the threshold in place.
    Comparisons by a criterion are of the reward where the recipe names it, in `joint` of the criterion head.

    The strength of a strict choice is used as a margin (`margins`), or as a magnitude (`strength_weights`), with which
    its negative log-likelihood is multiplied, by either model of ties: scaled Bradley-Terry, -m log s(d) (Wang et al.
    2024, HelpSteer2-Preference, arXiv 2410.01257, eq. 3). Ties and both-bad have no strength.

    Where the model has a variance of each reward, probabilities are means over both rewards (`certainty`): of two that
    vary more, a difference says less (PURM, arXiv 2503.22480).
    """

    name = "bradley_terry"
    kinds = (PreferenceRecord,)
    reads_steps = False

    def __init__(self, recipe: Recipe, examples: Sequence[Example]) -> None:
        super().__init__(recipe, examples)
        self.recipe = recipe
        choices = {_record(example).choice for example in examples}
        names = sorted({example.annotator for example in examples})
        self.annotator_indices = {name: place for place, name in enumerate(names)}
        learns = recipe.annotators == "learnt" and names
        self.tie = nn.Parameter(torch.tensor([-1.0])) if "tie" in choices else None
        self.threshold = nn.Parameter(torch.tensor([0.0])) if "both_bad" in choices else None
        known = {example.annotator: _record(example).strict_reliability for example in examples}
        first = torch.tensor([_START if known[name] is None else known[name] for name in names])
        self.annotator = nn.Parameter(first.clamp(0.02, 0.98).logit()) if learns else None
        self.length: LengthEffect | None = None
        if recipe.length_control:
            self.length = LengthEffect(
                [pair for example in examples for pair in chosen_pairs(example.record)]
            )

    @classmethod
    def reject_reason(cls, record: PreferenceRecord, recipe: Recipe) -> str | None:
        if record.criterion == recipe.criterion or (recipe.objective == "joint" and recipe.criterion is None):
            return None
        return f"by the criterion {record.criterion!r}" if record.criterion else "without a criterion"

    @classmethod
    def validate_dataset(cls, examples: Sequence[Example], recipe: Recipe) -> str | None:
        choices = {_record(example).choice for example in examples}
        if not choices & {"a", "b"}:
            said = " and ".join({"tie": "ties", "both_bad": "both bad"}[choice] for choice in sorted(choices))
            return f"all {len(examples)} comparisons are {said}; nothing says which trajectory is better"
        return None

    @torch.no_grad()
    def fix_reliabilities(self, known: Mapping[str, float]) -> None:
        """Use these instead of learning them with the model; others stay where they begin."""
        if self.annotator is None:
            return
        for name, q in known.items():
            if name in self.annotator_indices:
                self.annotator[self.annotator_indices[name]] = math.log(max(q, _LEAST) / max(1 - q, _LEAST))
        self.annotator.requires_grad_(False)

    def reliabilities(self) -> dict[str, float] | None:
        """By annotator, where they are learnt."""
        if self.annotator is None:
            return None
        return dict(zip(self.annotator_indices, self.annotator.sigmoid().tolist(), strict=True))

    def forward(self, batch: ObjectiveBatch) -> Tensor:
        a, b = batch.scores(0), batch.scores(1)
        comparisons = batch.constant("comparisons", lambda: self._comparisons(batch.examples)).like(a)
        seen = self._with_length(comparisons, a, b)
        variances = batch.variances(0), batch.variances(1)
        loss = self._negative_log_likelihood(comparisons, *seen, self.recipe.label_smoothing, variances)
        if self.annotator is not None and self.annotator.requires_grad:
            loss = loss + self._prior(comparisons, self.annotator).unsqueeze(-1)
        return loss + self.recipe.centring * (a + b).square()

    def _comparisons(self, examples: Sequence[Example]) -> "_Comparisons":
        records = [_record(example) for example in examples]
        reliabilities = [record.strict_reliability for record in records]
        return _Comparisons(
            choice=torch.tensor([CHOICES[record.choice] for record in records], dtype=torch.long),
            margin=_numbers(self.recipe.margins[record.strength - 1] for record in records),
            magnitude=_numbers(self.recipe.strength_weights[record.strength - 1] for record in records),
            annotator=torch.tensor(
                [self.annotator_indices.get(record.annotator, -1) for record in records], dtype=torch.long
            ),
            reliability=_numbers(math.nan if q is None else q for q in reliabilities),
            lengths=self._lengths(records),
        )

    def _lengths(self, records: Sequence[PreferenceRecord]) -> Tensor:
        """[2, pairs]"""
        if self.length is None:
            return torch.zeros(2, len(records), dtype=torch.double)
        lengths = map(self.length.standardised, (side for record in records for side in (record.a, record.b)))
        return torch.tensor([*lengths], dtype=torch.double).view(-1, 2).T

    def _with_length(self, comparisons: "_Comparisons", a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        """What the annotators saw: rewards, and what length alone is worth to them."""
        if self.length is None:
            return a, b
        effects = self.length(comparisons.lengths).unsqueeze(-1)
        return a + effects[0], b + effects[1]

    def _negative_log_likelihood(
        self,
        comparisons: "_Comparisons",
        a: Tensor,
        b: Tensor,
        smoothing: float,
        variances: tuple[Tensor | None, Tensor | None] = (None, None),
    ) -> Tensor:
        """Of the choices. a, b: raw rewards [pairs, heads]; the result too. variances: of both, where they have any."""
        choice, margin = comparisons.choice.unsqueeze(-1), comparisons.margin.unsqueeze(-1)
        magnitude = torch.where(choice <= 1, comparisons.magnitude.unsqueeze(-1), 1.0)
        eta = a.new_zeros(()) if self.tie is None else functional.softplus(self.tie)
        q = self._reliability(comparisons).unsqueeze(-1).expand_as(a)
        chosen, other = torch.where(choice == 1, b, a), torch.where(choice == 1, a, b)
        if self.recipe.ties == "davidson":
            return magnitude * self._davidson(chosen, other, margin * (choice <= 1), choice, q, smoothing)
        both, (of_a, of_b) = _certainty(a, *variances), (_certainty(a, variance) for variance in variances)
        # What is inside of a logistic function is multiplied: s(k (a - b - margin - eta)).
        right, wrong = both * chosen, both * other
        loss = magnitude * preference_loss(right, wrong, both * margin, q, both * eta, smoothing)
        if self.tie is not None:
            loss = torch.where(choice == 2, tie_loss(both * a, both * b, both * eta), loss)
        if self.threshold is not None:
            of_chosen = torch.where(choice == 1, of_b, of_a)
            above = loss - functional.logsigmoid(of_chosen * (chosen - self.threshold))
            below = below_loss(of_a * a, of_a * self.threshold) + below_loss(of_b * b, of_b * self.threshold)
            loss = torch.where(choice == 3, below, torch.where(choice <= 1, above, loss))
        return loss

    def ignores_strengths(self, examples: Sequence[Example]) -> bool:
        """Whether the recipe uses strengths, and no comparison has another one than 1."""
        is_used = any(self.recipe.margins) or len({*self.recipe.strength_weights}) > 1
        return is_used and all(_record(example).strength == 1 for example in examples)

    def _davidson(
        self, chosen: Tensor, other: Tensor, margin: Tensor, choice: Tensor, q: Tensor, smoothing: float
    ) -> Tensor:
        """With the chosen one as the first: `b` is then its mirror image."""
        log_nu = chosen.new_full((), -math.inf) if self.tie is None else self.tie
        log_probabilities = davidson_log_probabilities(chosen, other, log_nu, self.threshold, margin)
        place = torch.where(choice <= 1, 0, choice).expand_as(chosen)
        return davidson_loss(log_probabilities, place, q, smoothing)

    def _prior(self, comparisons: "_Comparisons", logits: Tensor) -> Tensor:
        """[pairs]; 0 where nothing is known of the annotator."""
        known = comparisons.reliability
        loss = reliability_prior_loss(logits[comparisons.annotator], known.nan_to_num())
        return torch.where(known.isnan(), 0.0, loss)

    def validation_metrics(self, batch: ObjectiveBatch) -> dict[str, Tensor]:
        """Of the mean rewards: the negative log-likelihood, which what length is worth to annotators is part of, and
        over strict pairs, whether the right one has more reward.

        Davidson's is the one that is trained. The losses of Rao and Kupper with both-bad are of no distribution: there
        it is -log(q s(d) + (1 - q) s(-d)) of strict pairs, with d the difference and q the annotator's reliability.
        """
        places = self.measured(batch)
        a, b = (batch.scores(side).mean(-1, keepdim=True)[places] for side in (0, 1))
        comparisons = batch.constant(
            "measured comparisons", lambda: self._comparisons([batch.examples[place] for place in places])
        ).like(a)
        is_a = comparisons.choice.unsqueeze(-1) == 0
        difference = torch.where(is_a, a - b, b - a)
        seen_a, seen_b = self._with_length(comparisons, a, b)
        if self.recipe.ties == "davidson":
            loss = self._negative_log_likelihood(comparisons, seen_a, seen_b, 0.0)
        else:
            seen = torch.where(is_a, seen_a - seen_b, seen_b - seen_a)
            variances = (batch.variances(side) for side in (0, 1))
            found = [v if v is None else v.mean(-1, keepdim=True)[places] for v in variances]
            seen = _certainty(seen, *found) * seen
            q, zero = self._reliability(comparisons).unsqueeze(-1), torch.zeros_like(difference)
            loss = preference_loss(seen, zero, zero, q, zero, 0.0)
        strict = difference[comparisons.choice <= 1].squeeze(-1)
        return {
            "loss": loss.squeeze(-1),
            "accuracy": (strict > 0).to(a) + 0.5 * (strict == 0).to(a),
        }

    @property
    def validation_loss(self) -> str:
        """What `loss` of `validation_metrics` is, for checkpoints: losses of two kinds are not comparable."""
        return LIKELIHOOD if self.recipe.ties == "davidson" else STRICT_PAIRS

    def measured(self, batch: ObjectiveBatch) -> list[int]:
        """Strict pairs; with Davidson also ties and both-bad, where training had any."""
        known = {"a", "b"}
        if self.recipe.ties == "davidson":
            known |= {"tie"} if self.tie is not None else set()
            known |= {"both_bad"} if self.threshold is not None else set()
        return [place for place, example in enumerate(batch.examples) if _record(example).choice in known]

    def _reliability(self, comparisons: "_Comparisons") -> Tensor:
        """[pairs]. Below one half an annotator would count backwards; they are taken to guess instead.

        Learnt: one who is only in validation is as reliable as the others in the mean.
        """
        if self.annotator is not None:
            known = self.annotator.sigmoid()
            return torch.cat([known, known.mean(0, keepdim=True)])[comparisons.annotator]
        if self.recipe.annotators != "given":
            return torch.ones_like(comparisons.reliability)
        return comparisons.reliability.nan_to_num(1.0).clamp(min=0.5)


@dataclass(frozen=True, slots=True)
class _Comparisons:
    """[pairs] each. choice: of CHOICES. margin, magnitude: of its strength. annotator: index among those of training,
    -1 for another. reliability: what gold items and overlap say of strict choices, NaN where there is none. lengths:
    [2, pairs], `standardised` ones of both sides, or 0."""

    choice: Tensor
    margin: Tensor
    magnitude: Tensor
    annotator: Tensor
    reliability: Tensor
    lengths: Tensor

    def like(self, other: Tensor) -> "_Comparisons":
        """On its device, numbers of its type."""
        return _Comparisons(
            self.choice.to(other.device),
            self.margin.to(other),
            self.magnitude.to(other),
            self.annotator.to(other.device),
            self.reliability.to(other),
            self.lengths.to(other),
        )


def _certainty(like: Tensor, *variances: Tensor | None) -> Tensor:
    """Of a difference of rewards with these variances; 1 where they have none. like: a tensor on the same device."""
    known = [variance for variance in variances if variance is not None]
    return certainty(torch.stack(known).sum(0)) if known else like.new_ones(())


def _numbers(values: Iterable[float]) -> Tensor:
    return torch.tensor([*values], dtype=torch.double)


def _record(example: Example) -> Any:
    return example.record


OBJECTIVE = BradleyTerry
