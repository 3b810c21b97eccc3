"""What an endpoint serves: weighted components and an ordered list of transforms, as plain values.

{"components": [{"name": "main", "type": "reward_model", "model": "project/name@3", "weight": 1.0}],
 "transforms": [{"type": "normalise"}, {"type": "clip", "eta": 0.5}]}

Everything here is published as `docs/schemas/endpoint.json`.
"""

from typing import Annotated, Any, get_args

import msgspec

from workers.errors import InvalidRecord
from workers.schema.components import (
    Component,
    CriterionPart,
    GoalLikenessPart,
    GroupComponent,
    Improvement,
    JudgePart,
    ModelPart,
    Novelty,
    RewardModelPart,
    TokenPenalty,
    Verifier,
)
from workers.schema.decode import convert, finite, optional_str, require_list, require_object
from workers.schema.guards import GuardSettings
from workers.schema.model_score import PROCESS_AGGREGATIONS
from workers.schema.policy_part import PolicyChecks
from workers.schema.transforms import (
    ADDITIVE,
    Delta,
    NoRepeats,
    Normalise,
    Risk,
    RunningNormalise,
    Shaping,
    Transform,
    ValueAtRisk,
)

# An item is `uncertain` when the ensemble's standard deviation passes half of that of the training rewards:
# the heads then disagree by what separates a middling trajectory from one at the 70th percentile.
UNCERTAIN_ABOVE = 0.5


class EndpointSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """policy_template: the chat template of the policy whose text trainers send: a known family's name (`qwen3`,
    `llama3`, ...), or of a model folder that the operator listed. Roles are then read in responses too. group_size: how
    many inputs of a request have the same `group`, where something compares them; others are refused. guard: what the
    call `guard` decides by, besides the components that are policy checks.
    """

    components: tuple[Component, ...]
    transforms: tuple[Transform, ...] = (Normalise(),)
    policy_template: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)] | None = None
    group_size: Annotated[int, msgspec.Meta(ge=2, le=10_000)] | None = None
    guard: GuardSettings | None = None

    @property
    def models(self) -> tuple[str, ...]:
        named = (component.model for component in self.components if isinstance(component, ModelPart))
        return tuple(dict.fromkeys(named))

    @property
    def components_read(self) -> frozenset[str]:
        """The components that a transform, the guard or another component looks at."""
        found = frozenset(name for part in self.transforms for name in part.components_read)
        if self.guard is not None and self.guard.component is not None:
            found |= {self.guard.component}
        return found | {part.component for part in self.components if isinstance(part, Improvement)}

    @property
    def compares_groups(self) -> bool:
        """Whether an input's reward depends on the others of its group."""
        return any(map(compares_group, self.transforms)) or any(
            isinstance(part, GroupComponent) for part in self.components
        )

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
            if isinstance(component, ModelPart)
            else component
            for component in self.components
        )
        return msgspec.structs.replace(self, components=parts)

    def with_component_name(self, before: str, after: str) -> "EndpointSpec":
        """The same with another name of a component, where transforms and the guard look for it too."""
        components = (_with_component_name(part, before, after) for part in self.components)
        transforms = (_with_component_name(part, before, after) for part in self.transforms)
        guard = None if self.guard is None else _with_component_name(self.guard, before, after)
        return msgspec.structs.replace(
            self, components=tuple(components), transforms=tuple(transforms), guard=guard
        )

    @property
    def check_names(self) -> tuple[str, ...]:
        """Of all policy checks."""
        parts = [part for part in self.components if isinstance(part, PolicyChecks)]
        return tuple(dict.fromkeys(check.name for part in parts for check in part.checks))

    def to_builtins(self) -> dict[str, Any]:
        """Defaults written out: what a revision means must not change with them. What is None is left out."""
        built: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        parts = ("components", "transforms")
        options = {key: built[key] for key in OPTIONS if built[key] is not None}
        return options | {
            part: [
                {key: value for key, value in component.items() if value is not None}
                for component in built[part]
            ]
            for part in parts
        }


OPTIONS = ("policy_template", "group_size", "guard")


def parse_spec(value: Any, *, pointer: str = "") -> EndpointSpec:
    """The spec of a decoded JSON object; `normalise` first unless it is given. Raises InvalidRecord."""
    value = require_object(value, pointer=pointer)
    known = ("components", "transforms", *OPTIONS)
    unknown = next((key for key in value if key not in known), None)
    if unknown is not None:
        raise InvalidRecord(
            f"unknown key {unknown!r}; known are {', '.join(known)}.", pointer=f"{pointer}/{unknown}"
        )
    spec = EndpointSpec(
        components=_components(value.get("components"), f"{pointer}/components"),
        transforms=parse_transforms(value.get("transforms", []), pointer=f"{pointer}/transforms"),
        policy_template=optional_str(value.get("policy_template"), pointer=f"{pointer}/policy_template"),
        group_size=_group_size(value.get("group_size"), f"{pointer}/group_size"),
        guard=None
        if value.get("guard") is None
        else convert(value["guard"], GuardSettings, pointer=f"{pointer}/guard"),
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


def compares_group(transform: Transform) -> bool:
    """Whether the transform of an input depends on the other inputs of its group."""
    if isinstance(transform, Shaping):
        return transform.fades_at is not None
    if isinstance(transform, RunningNormalise):
        return transform.over == "group"
    return isinstance(transform, Risk | ValueAtRisk)


def step_transform_problem(spec: EndpointSpec, aggregation: str) -> str | None:
    """What is wrong with transforms of steps that add up where those of the models do not; None where nothing is."""
    if aggregation not in PROCESS_AGGREGATIONS or any(isinstance(part, Delta) for part in spec.transforms):
        return None
    found = next((part for part in spec.transforms if isinstance(part, ADDITIVE)), None)
    if found is None:
        return None
    tag = type(found).__struct_config__.tag
    return (
        f"{tag} changes steps that add up to the reward, and each step of this model (aggregation {aggregation}) has "
        f"its own score; put `delta` after normalise, or remove {tag}."
    )


def _with_component_name(part: Any, before: str, after: str) -> Any:
    changed: dict[str, Any] = {
        key: after for key in ("name", "component") if getattr(part, key, None) == before
    }
    if before in (names := getattr(part, "components", None) or ()):
        changed["components"] = tuple(after if name == before else name for name in names)
    return msgspec.structs.replace(part, **changed) if changed else part


def _group_size(value: Any, at: str) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 2 <= value <= 10_000:
        raise InvalidRecord("group_size must be a whole number from 2 to 10,000.", pointer=at)
    return value


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
        _require_finite(value, f"{at}/{key}")
    missing = next((name for name, field in fields.items() if field.required and name not in raw), None)
    if missing is not None:
        raise InvalidRecord(f"{kind} needs {missing}.", pointer=f"{at}/{missing}")
    return convert(raw, parts, pointer=at)


def _require_finite(value: Any, at: str) -> None:
    """Of every number in it, at any depth."""
    if isinstance(value, list | dict):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            _require_finite(inner, f"{at}/{key}")
    elif isinstance(value, float | int) and not isinstance(value, bool):
        finite(value, pointer=at)


def _require_sense(spec: EndpointSpec, pointer: str) -> None:
    """What no single part can see."""
    for index, component in enumerate(spec.components):
        if (
            component.weight == 0
            and component.name not in spec.components_read
            and not isinstance(component, Verifier | JudgePart | PolicyChecks)
        ):
            raise InvalidRecord(
                "weight is 0 and no transform looks at the component; leave it out, or give it a weight.",
                pointer=f"{pointer}/components/{index}/weight",
            )
        try:
            component.require_sense()
        except InvalidRecord as error:
            raise error.at(f"{pointer}/components/{index}") from None
        if isinstance(component, Improvement):
            _require_source(spec, component, f"{pointer}/components/{index}/component")
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
        if isinstance(transform, NoRepeats) and any(
            isinstance(other, NoRepeats) for other in spec.transforms[:index]
        ):
            raise InvalidRecord("no_repeats may appear once.", pointer=f"{pointer}/transforms/{index}")
        for name in transform.components_read:
            if name not in names:
                key = "component" if getattr(transform, "component", None) == name else "components"
                raise InvalidRecord(
                    f"there is no component {name!r}; there are {', '.join(names)}.",
                    pointer=f"{pointer}/transforms/{index}/{key}",
                )
    if spec.group_size is not None and not spec.compares_groups:
        raise InvalidRecord(
            "nothing of this endpoint compares the inputs of a group; remove group_size.",
            pointer=f"{pointer}/group_size",
        )
    if spec.guard is not None:
        models = [part.name for part in spec.components if isinstance(part, RewardModelPart)]
        try:
            spec.guard.require_sense(models, spec.check_names)
        except InvalidRecord as error:
            raise error.at(f"{pointer}/guard") from None
    if all(component.weight == 0 for component in spec.components):
        raise InvalidRecord(
            "every weight is 0, so every reward would be 0. Give a component a weight.",
            pointer=f"{pointer}/components",
        )


def _require_source(spec: EndpointSpec, part: Improvement, at: str) -> None:
    names = [other.name for other in spec.components if not isinstance(other, Improvement)]
    if part.component not in names:
        raise InvalidRecord(
            f"improvement needs another component, and there is no {part.component!r}; there are "
            f"{', '.join(names) or 'none'}.",
            pointer=at,
        )


_NOT_BY_SERVERS: dict[type, str] = {
    CriterionPart: "no criteria",
    Novelty: "no novelty",
    GoalLikenessPart: "no pictures",
}


def _require_one_place(spec: EndpointSpec, pointer: str) -> None:
    """A model is computed here, or on one server, which has no criterion head."""
    for index, component in enumerate(spec.components):
        if not isinstance(component, ModelPart):
            continue
        server = spec.servers.get(component.model)
        if not isinstance(component, RewardModelPart) and server is not None:
            lacks = _NOT_BY_SERVERS[type(component)]
            raise InvalidRecord(
                f"{component.model} is computed by the server {server}, which scores {lacks}.",
                pointer=f"{pointer}/components/{index}/model",
            )
        if isinstance(component, RewardModelPart) and component.server != server:
            raise InvalidRecord(
                f"{component.model} is computed elsewhere too; say the same `server` in all its components.",
                pointer=f"{pointer}/components/{index}/server",
            )
