"""What an endpoint serves: weighted components and an ordered list of transforms, as plain values.

{"components": [{"name": "main", "type": "reward_model", "model": "project/name@3", "weight": 1.0}],
 "transforms": [{"type": "normalise"}, {"type": "clip", "eta": 0.5}]}

Everything here is published as `docs/schemas/endpoint.json`.
"""

from typing import Annotated, Any, get_args

import msgspec

from workers.errors import InvalidRecord
from workers.schema.decode import convert, finite, optional_str, require_list, require_object
from workers.schema.patterns import compiled

# An item is `uncertain` when the ensemble's standard deviation passes half of that of the training rewards:
# the heads then disagree by what separates a middling trajectory from one at the 70th percentile.
UNCERTAIN_ABOVE = 0.5

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
Count = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]
Positive = Annotated[float, msgspec.Meta(gt=0)]


class _Part(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", forbid_unknown_fields=True):
    """What components have in common. name: its key in the reply's `components`."""

    name: Name
    weight: float = 1.0


class RewardModelPart(_Part, frozen=True, kw_only=True, tag="reward_model"):
    """A reward model's normalised reward. model: `project/name@version`.

    server: the name of the vLLM server that computes it, one of the configured servers; else it is computed locally.
    """

    model: Name
    server: Name | None = None


class CriterionPart(_Part, frozen=True, kw_only=True, tag="criterion"):
    """A model's score on one criterion, as its place on the criterion's scale: 0 to 1.

    criterion: the name of one the model was trained on, or the text of a new one.
    """

    model: Name
    criterion: Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]


class StepPenalty(_Part, frozen=True, kw_only=True, tag="step_penalty"):
    """-1 for every agent step beyond `free`: at most 0."""

    free: Count = 0


class TokenPenalty(_Part, frozen=True, kw_only=True, tag="token_penalty"):
    """-(tokens the agent wrote beyond `free`) / `per`, in tokens of the endpoint's first model: at most 0."""

    free: Count = 0
    per: Annotated[int, msgspec.Meta(ge=1)] = 1000


class RepetitionPenalty(_Part, frozen=True, kw_only=True, tag="repetition_penalty"):
    """-(repeated n-grams of words / all n-grams) of what the agent wrote: -1 to 0."""

    ngram: Annotated[int, msgspec.Meta(ge=1, le=100)] = 4


class ToolFormat(_Part, frozen=True, kw_only=True, tag="tool_format"):
    """The share of tool calls with a name and a JSON object of arguments: 0 to 1; 1 without a call."""


class ToolMatch(_Part, frozen=True, kw_only=True, tag="tool_match"):
    """How well the calls match those of the item's `reference` in tool name, parameter names and values: 0 to 1
    (ToolRL, arXiv 2504.13958, section 3.3)."""


class Pattern(_Part, frozen=True, kw_only=True, tag="pattern"):
    """1 where `expression` (RE2 syntax) matches the last agent message, or `all` of them; else 0."""

    expression: Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]
    within: Annotated[str, msgspec.Meta(pattern="^(last|all)$")] = "last"


class Verifier(_Part, frozen=True, kw_only=True, tag="verifier"):
    """A number from an HTTP service: POST {"inputs": [ITEM, ...]} to `url` -> {"rewards": [number, ...]}.

    With a weight of 0 it is no part of the reward, and what the reward is watched against (gold).
    """

    url: Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]
    timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=30)] = 10.0


class JudgePart(_Part, frozen=True, kw_only=True, tag="judge"):
    """What a language model says of the run by a rubric, as its place on the scale: 0 to 1; and why, in words.

    judge: the name of a judge of the project that scores. criterion: one of its rubric's; without it, the mean of those
    that apply, by the rubric's weights. otherwise: the number where the judge cannot tell; else that is an error.
    timeout_seconds: of a call. With a weight of 0 it is no part of the reward, and asked for critiques only.
    """

    judge: Name
    criterion: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None
    otherwise: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=300)] = 60.0


Component = (
    RewardModelPart
    | CriterionPart
    | StepPenalty
    | TokenPenalty
    | RepetitionPenalty
    | ToolFormat
    | ToolMatch
    | Pattern
    | Verifier
    | JudgePart
)


class _Transform(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", forbid_unknown_fields=True):
    pass


class Normalise(_Transform, frozen=True, kw_only=True, tag="normalise"):
    """(raw - median) / std over the distinct training trajectories. Always the first transform. Unbounded."""


class Clip(_Transform, frozen=True, kw_only=True, tag="clip"):
    """min(reward - eta, 0): in (-inf, 0]. Nothing is gained beyond eta (arXiv 2410.15115)."""

    eta: float = 0.0


class Squash(_Transform, frozen=True, kw_only=True, tag="squash"):
    """scale * tanh(reward / scale): in [-scale, scale], order kept, slope 1 at zero."""

    scale: Positive = 3.0


class Delta(_Transform, frozen=True, kw_only=True, tag="delta"):
    """Scores of single steps become differences, so that what has gathered after any step is that step's score
    (arXiv 2410.15115, section 4). For the aggregations sum, mean and min; refused on value, which has differences."""


class Gate(_Transform, frozen=True, kw_only=True, tag="gate"):
    """`otherwise` where the component's value is below `at_least`; else unchanged (DeepTravel: a verifier first)."""

    component: Name
    at_least: float = 0.5
    otherwise: float = -1.0


class Pessimism(_Transform, frozen=True, kw_only=True, tag="pessimism"):
    """reward - k * std: at most the reward. For ensembles (Coste et al., arXiv 2310.02743)."""

    k: Annotated[float, msgspec.Meta(ge=0)] = 1.0


Transform = Normalise | Clip | Squash | Delta | Gate | Pessimism


class EndpointSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """policy_template: the chat template of the policy whose text trainers send: a known family's name (`qwen3`,
    `llama3`, ...), or of a model folder that the operator listed. Roles are then read in responses too.
    """

    components: tuple[Component, ...]
    transforms: tuple[Transform, ...] = (Normalise(),)
    policy_template: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)] | None = None

    @property
    def models(self) -> tuple[str, ...]:
        named = (
            component.model
            for component in self.components
            if isinstance(component, RewardModelPart | CriterionPart)
        )
        return tuple(dict.fromkeys(named))

    @property
    def gates(self) -> frozenset[str]:
        """The components that a transform looks at."""
        return frozenset(transform.component for transform in self.transforms if isinstance(transform, Gate))

    def criteria(self, model: str) -> tuple[str, ...]:
        """What the model is asked to score, by its components."""
        asked = (
            component.criterion
            for component in self.components
            if isinstance(component, CriterionPart) and component.model == model
        )
        return tuple(dict.fromkeys(asked))

    @property
    def servers(self) -> dict[str, str]:
        """By model, the server that computes it."""
        parts = (component for component in self.components if isinstance(component, RewardModelPart))
        return {part.model: part.server for part in parts if part.server is not None}

    def with_models(self, names: dict[str, str]) -> "EndpointSpec":
        """The same with other names of its models: full ones for what people wrote."""
        parts = tuple(
            msgspec.structs.replace(component, model=names[component.model])
            if isinstance(component, RewardModelPart | CriterionPart)
            else component
            for component in self.components
        )
        return msgspec.structs.replace(self, components=parts)

    def with_component_name(self, before: str, after: str) -> "EndpointSpec":
        """The same with another name of a component, where the gates look for it too."""
        components = (
            msgspec.structs.replace(part, name=after) if part.name == before else part
            for part in self.components
        )
        transforms = (
            msgspec.structs.replace(part, component=after)
            if isinstance(part, Gate) and part.component == before
            else part
            for part in self.transforms
        )
        return msgspec.structs.replace(self, components=tuple(components), transforms=tuple(transforms))

    def to_builtins(self) -> dict[str, Any]:
        """Defaults written out: what a revision means must not change with them. What is None is left out."""
        built: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        parts = ("components", "transforms")
        named = {} if self.policy_template is None else {"policy_template": self.policy_template}
        return named | {
            part: [
                {key: value for key, value in component.items() if value is not None}
                for component in built[part]
            ]
            for part in parts
        }


def parse_spec(value: Any, *, pointer: str = "") -> EndpointSpec:
    """The spec of a decoded JSON object; `normalise` first unless it is given. Raises InvalidRecord."""
    value = require_object(value, pointer=pointer)
    known = ("components", "transforms", "policy_template")
    unknown = next((key for key in value if key not in known), None)
    if unknown is not None:
        raise InvalidRecord(
            f"unknown key {unknown!r}; known are {', '.join(known)}.", pointer=f"{pointer}/{unknown}"
        )
    spec = EndpointSpec(
        components=_components(value.get("components"), f"{pointer}/components"),
        transforms=parse_transforms(value.get("transforms", []), pointer=f"{pointer}/transforms"),
        policy_template=optional_str(value.get("policy_template"), pointer=f"{pointer}/policy_template"),
    )
    _require_sense(spec, pointer)
    return spec


def parse_transforms(value: Any, *, pointer: str = "") -> tuple[Transform, ...]:
    """The transforms of a decoded JSON array, in order, `normalise` first. Raises InvalidRecord."""
    transforms = [
        _parsed(raw, Transform, f"{pointer}/{index}")
        for index, raw in enumerate(require_list(value, pointer=pointer))
    ]
    for index, transform in enumerate(transforms):
        if isinstance(transform, Normalise) and index:
            raise InvalidRecord(
                "normalise must be the first transform and appear once.", pointer=f"{pointer}/{index}"
            )
    return tuple(
        transforms if transforms and isinstance(transforms[0], Normalise) else [Normalise(), *transforms]
    )


def _components(value: Any, at: str) -> tuple[Component, ...]:
    components: list[Any] = []
    for index, raw in enumerate(require_list(value, pointer=at)):
        raw = require_object(raw, pointer=f"{at}/{index}")
        components.append(_parsed({"type": "reward_model"} | raw, Component, f"{at}/{index}"))
    if not components:
        raise InvalidRecord("an endpoint needs at least one component.", pointer=at)
    for index, component in enumerate(components):
        if component.name in {other.name for other in components[:index]}:
            raise InvalidRecord(f"two components are named {component.name!r}.", pointer=f"{at}/{index}/name")
    return tuple(components)


def _parsed(raw: Any, parts: Any, at: str) -> Any:
    """raw as one of the alternatives `parts`, with errors that name what there is to choose from."""
    raw = require_object(raw, pointer=at)
    by_tag = {type_.__struct_config__.tag: type_ for type_ in get_args(parts)}
    kind = raw.get("type")
    if not isinstance(kind, str) or kind not in by_tag:
        raise InvalidRecord(f"unknown type {kind!r}; known are {', '.join(by_tag)}.", pointer=f"{at}/type")
    fields = {field.name: field for field in msgspec.structs.fields(by_tag[kind])}
    for key, value in raw.items():
        if key not in fields and key != "type":
            known = ", ".join(["type", *sorted(fields)])
            raise InvalidRecord(f"unknown key {key!r}; known are {known}.", pointer=f"{at}/{key}")
        if isinstance(value, float | int) and not isinstance(value, bool):
            finite(value, pointer=f"{at}/{key}")
    missing = next((name for name, field in fields.items() if field.required and name not in raw), None)
    if missing is not None:
        raise InvalidRecord(f"{kind} needs {missing}.", pointer=f"{at}/{missing}")
    return convert(raw, parts, pointer=at)


def _require_sense(spec: EndpointSpec, pointer: str) -> None:
    """What no single part can see."""
    for index, component in enumerate(spec.components):
        if (
            component.weight == 0
            and component.name not in spec.gates
            and not isinstance(component, Verifier | JudgePart)
        ):
            raise InvalidRecord(
                "weight is 0 and no gate looks at the component; leave it out, or give it a weight.",
                pointer=f"{pointer}/components/{index}/weight",
            )
        if isinstance(component, Pattern):
            try:
                compiled(component.expression)
            except InvalidRecord as error:
                raise error.at(f"{pointer}/components/{index}/expression") from None
        if isinstance(component, TokenPenalty) and not spec.models:
            raise InvalidRecord(
                "a token penalty counts in a model's tokens, and the endpoint has no model; use step_penalty.",
                pointer=f"{pointer}/components/{index}",
            )
    _require_one_place(spec, pointer)
    names = [component.name for component in spec.components]
    for index, transform in enumerate(spec.transforms):
        if isinstance(transform, Delta) and index != 1:
            raise InvalidRecord(
                "delta must come directly after normalise: it computes differences of the model's values.",
                pointer=f"{pointer}/transforms/{index}",
            )
        if isinstance(transform, Gate) and transform.component not in names:
            raise InvalidRecord(
                f"there is no component {transform.component!r}; there are {', '.join(names)}.",
                pointer=f"{pointer}/transforms/{index}/component",
            )
    if all(component.weight == 0 for component in spec.components):
        raise InvalidRecord(
            "every weight is 0, so every reward would be 0. Give a component a weight.",
            pointer=f"{pointer}/components",
        )


def _require_one_place(spec: EndpointSpec, pointer: str) -> None:
    """A model is computed here, or on one server, which has no criterion head."""
    for index, component in enumerate(spec.components):
        if not isinstance(component, RewardModelPart | CriterionPart):
            continue
        server = spec.servers.get(component.model)
        if isinstance(component, CriterionPart) and server is not None:
            raise InvalidRecord(
                f"{component.model} is computed by the server {server}, which scores no criteria.",
                pointer=f"{pointer}/components/{index}/model",
            )
        if isinstance(component, RewardModelPart) and component.server != server:
            raise InvalidRecord(
                f"{component.model} is computed elsewhere too; say the same `server` in all its components.",
                pointer=f"{pointer}/components/{index}/server",
            )
