"""The transforms of an endpoint, applied to the reward in order: a struct for each kind.

Each says what bounds it, and whether a policy that is best for the reward before it is best after it.
"""

from typing import Annotated, ClassVar

import msgspec

from workers.schema.part_base import Name

Positive = Annotated[float, msgspec.Meta(gt=0)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
Names = Annotated[tuple[Name, ...], msgspec.Meta(min_length=1, max_length=20)]


class _Transform(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", forbid_unknown_fields=True):
    """title: of the card in the builder. The docstring of each is the help on it."""

    title: ClassVar[str]

    @property
    def components_read(self) -> tuple[str, ...]:
        """The components that the transform looks at."""
        single = getattr(self, "component", None)
        return (*((single,) if single is not None else ()), *(getattr(self, "components", None) or ()))


class Normalise(_Transform, frozen=True, kw_only=True, tag="normalise"):
    """(raw - median) / std over the distinct training trajectories. Always the first transform. Unbounded. The best
    policy stays the best."""

    title: ClassVar[str] = "Normalise"


class Clip(_Transform, frozen=True, kw_only=True, tag="clip"):
    """min(reward - eta, 0): in (-inf, 0]. Nothing is gained beyond eta (arXiv 2410.15115). What is best stays among the
    best; what passes eta becomes equal."""

    title: ClassVar[str] = "Clip"
    eta: float = 0.0


class Squash(_Transform, frozen=True, kw_only=True, tag="squash"):
    """scale * tanh(reward / scale): in [-scale, scale], order kept, slope 1 at zero. The best policy stays the best
    where each policy has one outcome; among chances it favours the safe ones."""

    title: ClassVar[str] = "Squash"
    scale: Positive = 3.0


class Delta(_Transform, frozen=True, kw_only=True, tag="delta"):
    """Scores of single steps become differences, so that what has gathered after any step is that step's score. For the
    aggregations sum, mean and min; refused on value, which has differences. The reward becomes the last step's score,
    so the best policy can be another one. arXiv 2410.15115 subtracts the next step's score instead: there, what is
    still to come is the step's score, and the sum is the first step's."""

    title: ClassVar[str] = "Differences of step scores"


class Gate(_Transform, frozen=True, kw_only=True, tag="gate"):
    """`otherwise` where the component's value is below `at_least`; else unchanged (DeepTravel: a verifier first). The
    best policy can be another one: that is its purpose."""

    title: ClassVar[str] = "Gate"
    component: Name
    at_least: float = 0.5
    otherwise: float = -1.0


class Pessimism(_Transform, frozen=True, kw_only=True, tag="pessimism"):
    """reward - k * std: at most the reward. For ensembles (Coste et al., arXiv 2310.02743). The best policy can be
    another one, about which the ensemble agrees."""

    title: ClassVar[str] = "Pessimism"
    k: NotNegative = 1.0


class StepClip(_Transform, frozen=True, kw_only=True, tag="step_clip"):
    """Each step's reward becomes min(step - eta, 0), and the reward changes by as much: no number of steps gathers more
    than 0 (arXiv 2410.15115, section 4). Longer trajectories never gain, so the best policy can be a shorter one."""

    title: ClassVar[str] = "Clip each step"
    eta: float = 0.0


class StepSquash(_Transform, frozen=True, kw_only=True, tag="step_squash"):
    """Each step's reward becomes scale * tanh(step / scale), and what has gathered after any step is kept within
    [-total, total]; the reward changes by as much. The best policy can be another one: large steps count less."""

    title: ClassVar[str] = "Squash each step"
    scale: Positive = 1.0
    total: Positive = 3.0


class Shaping(_Transform, frozen=True, kw_only=True, tag="shaping"):
    """Adds weight * (gamma * phi(after) - phi(before)) to each step; phi: the component's value so far, squashed to
    [-bound, bound], and 0 after the last step (`end` is `zero`). The best policy stays the best (Ng et al., 1999;
    Grzes, 2017) for trainers that discount steps by the same gamma: what has gathered, discounted, is between -2 and 2
    times weight * bound after any step, and -weight * phi(start) at the end. The reward changes by that. `end`: `kept`
    for trajectories that were cut off; only then do different ends gain differently.

    fades_at: adaptive: the weight is multiplied by the share of the other inputs of the group whose reward is below
    it, so that shaping ends where the task is solved. A weight that does not depend on the trajectory leaves the best
    policy the best (Devlin and Kudenko, 2012).
    """

    title: ClassVar[str] = "Potential-based shaping"
    component: Name
    gamma: Share = 1.0
    weight: Positive = 1.0
    bound: Positive = 3.0
    end: Annotated[str, msgspec.Meta(pattern="^(zero|kept)$")] = "zero"
    fades_at: float | None = None


class Redistribute(_Transform, frozen=True, kw_only=True, tag="redistribute"):
    """The reward stays, and steps share what they gathered in proportion to the progress of `components` (the sum of
    their increases at the step; equal shares where nothing increases): what has gathered never passes the total. The
    best policy stays the best, since every trajectory keeps its return (RUDDER, arXiv 1806.07857; latent sub-scores:
    arXiv 2412.11120)."""

    title: ClassVar[str] = "Redistribute by progress"
    components: Names


class GeometricMean(_Transform, frozen=True, kw_only=True, tag="krc"):
    """The n-th root of the product of the components' sizes, below zero where one of them is: in place of their
    weighted sum, and at most the largest size (Lucy-SKG's KRC, arXiv 2305.15801). A step has the change of it. The best
    policy can be another one, good at all of them."""

    title: ClassVar[str] = "Geometric mean (KRC)"
    components: Names


class TurnGate(_Transform, frozen=True, kw_only=True, tag="turn_gate"):
    """A step gains nothing where the component's score of the step is below `at_least`; what it loses stays lost, and
    the reward falls by as much: at most the reward. With a gate after it, a hierarchy: a verifier of the whole decides,
    one of turns refines (DeepTravel). The best policy can be another one."""

    title: ClassVar[str] = "Gate for each step"
    component: Name
    at_least: float = 0.5


class NoRepeats(_Transform, frozen=True, kw_only=True, tag="no_repeats"):
    """Equal and nearly equal steps (`similarity` of their words and calls, 0 to 1) gain together no more than the best
    of them; what they lose stays lost, and the reward falls by as much: at most the reward. The best policy stays the
    best where it repeats no step that gains."""

    title: ClassVar[str] = "No gain from repeats"
    similarity: Share = 0.9


class Risk(_Transform, frozen=True, kw_only=True, tag="risk"):
    """reward - k * (reward - mean of the group) ** 2: its mean over the group is the mean minus k variances, and it is
    at most the mean + 1 / (4 k) (gradient: Tamar et al., arXiv 1206.6404). The best policy can be another one, with
    less variance; where each policy has one outcome, it stays the best."""

    title: ClassVar[str] = "Variance penalty (risk)"
    k: Positive = 0.5


class ValueAtRisk(_Transform, frozen=True, kw_only=True, tag="cvar"):
    """q + min(reward - q, 0) / alpha, q being the alpha-quantile of the group: at most q, and its mean over the group
    is the mean of the worst share alpha (CVaR; Rockafellar and Uryasev, 2000). The best policy can be another one, with
    a better worst case."""

    title: ClassVar[str] = "Conditional value at risk (CVaR)"
    alpha: Share = 0.25


class RunningNormalise(_Transform, frozen=True, kw_only=True, tag="running_normalise"):
    """(reward - mean) / std, kept within [-clip, clip] (PPO-max, arXiv 2307.04964). The best policy stays the best as
    long as mean and std are the same for all, and nothing is clipped. over: `group` and `request` take mean and std of
    these, so that the same request gets the same rewards; `running` of all inputs that this version has scored in this
    process since it was loaded: the same request then gets other rewards later."""

    title: ClassVar[str] = "Running normalisation"
    over: Annotated[str, msgspec.Meta(pattern="^(request|group|running)$")] = "request"
    clip: Positive = 5.0


# Transforms of steps that add up: refused where each step has its own score, unless delta makes differences of them.
ADDITIVE = (StepClip, StepSquash, Shaping, Redistribute, GeometricMean, TurnGate, NoRepeats)
Transform = (
    Normalise
    | Clip
    | Squash
    | Delta
    | Gate
    | Pessimism
    | StepClip
    | StepSquash
    | Shaping
    | Redistribute
    | GeometricMean
    | TurnGate
    | NoRepeats
    | Risk
    | ValueAtRisk
    | RunningNormalise
)
