"""Whether a spec can be served: its models and judges exist, and support what it needs."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from msgspec import structs

from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.core.http.outgoing import check_url
from apps.core.storage.model_folders import known_names
from apps.judges.models import Judge
from apps.judges.selectors import get_judge_by_name
from apps.reward_programs.selectors import part_with_code
from apps.rewards.servers import server_key, unknown_server_message
from apps.training.models import RewardModel
from apps.training.selectors import model_named
from workers.schema.chat_text.formats import ALIASES, FORMATS, named_format
from workers.schema.components import (
    Component,
    CriterionPart,
    GoalLikenessPart,
    JudgePart,
    ModelPart,
    RewardModelPart,
    Verifier,
)
from workers.schema.endpoints import EndpointSpec, parse_spec, parse_transforms, step_transform_problem
from workers.schema.program_part import PythonProgram
from workers.schema.recipe import VIOLATION
from workers.schema.transforms import Delta, Pessimism


@dataclass(frozen=True, slots=True)
class CheckedSpec:
    """spec: with the full names of its models. models: by these. judges: by name."""

    spec: EndpointSpec
    models: dict[str, RewardModel]
    judges: dict[str, Judge]

    @property
    def artifacts(self) -> dict[str, str]:
        return {name: model.artifact for name, model in self.models.items()}


def checked_spec(*, project: Project, spec: Any) -> CheckedSpec:
    """A spec as decoded JSON. Raises InvalidRecord or DomainError with the pointer of the bad field."""
    parsed = _with_code(parse_spec(spec), project)
    models, names, judges = dict[str, RewardModel](), dict[str, str](), dict[str, Judge]()
    for index, component in enumerate(parsed.components):
        at = f"/components/{index}"
        if isinstance(component, ModelPart):
            with error_pointer(f"{at}/model"):
                model = model_named(component.model, project=project)
            names[component.model] = str(model)
            models[str(model)] = model
            _require_server(component, project, f"{at}/server")
        elif isinstance(component, Verifier):
            with error_pointer(f"{at}/url"):
                check_url(component.url)
        elif isinstance(component, JudgePart):
            judges[component.judge] = _judge(component, project, at)
    _check_policy_template(parsed.policy_template)
    full = parsed.with_models(names)
    check_models(full, models)
    return CheckedSpec(full, models, judges)


def _with_code(spec: EndpointSpec, project: Project) -> EndpointSpec:
    """The same with the code of the reward programs that it names."""
    parts: list[Component] = []
    for index, part in enumerate(spec.components):
        if isinstance(part, PythonProgram):
            with error_pointer(f"/components/{index}/program"):
                part = part_with_code(part, project=project)
        parts.append(part)
    return structs.replace(spec, components=tuple(parts))


def spec_with_model(
    active: EndpointSpec | None, model: RewardModel, transforms: Sequence[Mapping[str, Any]] | None
) -> EndpointSpec:
    """The active revision's spec with `model` in place of its model, all else kept; without one, the model alone.

    transforms: instead of those of the active revision; where nothing compares the inputs of a group then, its
    group_size goes too. Raises DomainError where it is not clear which model is replaced.
    """
    given = None if transforms is None else parse_transforms(list(transforms), pointer="/transforms")
    if active is None:
        part = RewardModelPart(name=model.name, model=str(model))
        return EndpointSpec((part,), given or parse_transforms([]))
    previous = _replaced_model(active, model)
    names = {name: name for name in active.models} | {previous: str(model)}
    spec = active.with_models(names)
    own_name = _model_name(previous)
    is_named_after_it = any(
        isinstance(part, RewardModelPart) and (part.name, part.model) == (own_name, previous)
        for part in active.components
    )
    if is_named_after_it and model.name not in {part.name for part in spec.components}:
        spec = spec.with_component_name(own_name, model.name)
    if given is None:
        return spec
    spec = structs.replace(spec, transforms=given)
    return spec if spec.compares_groups else structs.replace(spec, group_size=None)


def _replaced_model(active: EndpointSpec, model: RewardModel) -> str:
    """The only model of the active revision; of several, the one with the name of the new model."""
    of_name = [name for name in active.models if _model_name(name) == model.name]
    found = active.models if len(active.models) == 1 else of_name
    if len(found) != 1:
        served = ", ".join(active.models) or "no model"
        raise DomainError(
            f"The active revision has {served}, so it is not clear what {model} replaces; compose the new revision "
            "from the spec of the active one.",
            pointer="/model",
        )
    return found[0]


def _model_name(full_name: str) -> str:
    """`name` of `project/name@version`."""
    return full_name.rpartition("/")[2].partition("@")[0]


def _check_policy_template(name: str | None) -> None:
    """A known family, or a folder that the operator listed: never a path, see `apps.core.storage.model_folders`."""
    if name is None or named_format(name) is not None or name in settings.MODEL_DIRS:
        return
    raise DomainError(
        f"{name[:60]!r} is neither a known chat template ({', '.join([*FORMATS, *ALIASES])}) nor the name of a model "
        f"folder; {known_names()}.",
        pointer="/policy_template",
    )


@contextmanager
def error_pointer(pointer: str) -> Iterator[None]:
    """DomainErrors of the block get this pointer into the spec."""
    try:
        yield
    except DomainError as error:
        error.pointer = pointer
        raise


def _require_mode(judge: Judge, part: JudgePart) -> None:
    if judge.mode == Judge.Mode.COMPARE:
        raise DomainError(
            f"The judge {judge.name} compares two trajectories; choose a judge that scores each trajectory."
        )
    if judge.mode == Judge.Mode.STEPS and not part.each_step:
        raise DomainError(
            f"The judge {judge.name} labels steps; set `each_step`, or choose a judge that scores each trajectory."
        )
    if judge.mode == Judge.Mode.SCORE and part.each_step:
        raise DomainError(
            f"The judge {judge.name} scores whole trajectories; remove `each_step`, or choose a judge "
            "that labels steps."
        )


def _judge(part: JudgePart, project: Project, at: str) -> Judge:
    with error_pointer(f"{at}/judge"):
        judge = get_judge_by_name(project, part.judge)
        _require_mode(judge, part)
        if judge.llm_connection is None:
            raise DomainError(
                f"The LLM connection of {judge.name} was deleted; create a judge with another one."
            )
    if part.each_step:
        return judge
    assert judge.rubric is not None
    weights = {
        entry.criterion.name: entry.weight for entry in judge.rubric.entries.select_related("criterion")
    }
    if part.criterion is None and not any(weights.values()):
        raise DomainError(
            f"Every weight in {judge.rubric} is 0, so it has no mean; set `criterion`.",
            pointer=f"{at}/criterion",
        )
    if part.criterion is not None and part.criterion not in weights:
        raise DomainError(
            f"{judge.name} has no criterion {part.criterion!r}; its criteria are {', '.join(weights)}.",
            pointer=f"{at}/criterion",
        )
    return judge


def _require_server(component: ModelPart, project: Project, pointer: str) -> None:
    server = component.server if isinstance(component, RewardModelPart) else None
    if server is None:
        return
    own = list(project.model_servers.values_list("name", flat=True))
    if server_key(project.slug, server, {(project.slug, name) for name in own}) is None:
        raise DomainError(unknown_server_message(server, own), pointer=pointer)


def check_models(spec: EndpointSpec, models: Mapping[str, RewardModel]) -> None:
    """By the manifests of the models. Raises DomainError where one does not support what the spec needs."""
    summed = [
        models[component.model]
        for component in spec.components
        if isinstance(component, RewardModelPart) and component.weight
    ]
    _refuse_mixed_aggregations(summed)
    if summed and (problem := step_transform_problem(spec, str(summed[0].manifest.get("aggregation")))):
        raise DomainError(problem, pointer="/transforms")
    _require_violation_model(spec, models)
    for index, component in enumerate(spec.components):
        if isinstance(component, CriterionPart) and not models[component.model].manifest.get("criteria"):
            raise DomainError(
                f"{component.model} scores no criteria; train one on rubric scores, or a judge with "
                "`principles = true`.",
                pointer=f"/components/{index}/model",
            )
        if isinstance(component, GoalLikenessPart) and not models[component.model].compares_with_text:
            raise DomainError(
                f"{component.model} compares no pictures with a text; import an encoder of texts and pictures (CLIP, "
                "SigLIP) with the type goal-likeness.",
                pointer=f"/components/{index}/model",
            )
    for index, transform in enumerate(spec.transforms):
        at = f"/transforms/{index}"
        single = [name for name, model in models.items() if _heads(model) == 1]
        if isinstance(transform, Pessimism) and single:
            raise DomainError(
                f"pessimism needs an ensemble, and {single[0]} has a single head; train it with `ensemble` above 1.",
                pointer=at,
            )
        values = [str(model) for model in summed if model.manifest.get("aggregation") == "value"]
        if isinstance(transform, Delta) and values:
            raise DomainError(
                f"delta makes differences of step scores, and those of {values[0]} (aggregation value) are differences "
                "already; remove the transform.",
                pointer=at,
            )


def _require_violation_model(spec: EndpointSpec, models: Mapping[str, RewardModel]) -> None:
    name = None if spec.guard is None else spec.guard.component
    for part in spec.components:
        if (
            isinstance(part, RewardModelPart)
            and part.name == name
            and models[part.model].manifest.get("objective") != VIOLATION
        ):
            raise DomainError(
                f"{part.model} does not say how likely a violation comes; train a model with the objective "
                f"{VIOLATION!r} on step labels.",
                pointer="/guard/component",
            )


def _heads(model: RewardModel) -> int | None:
    """Of the ensemble; None where the manifest has no count."""
    heads = model.manifest.get("heads") or {}
    return heads.get("ensemble")


def _refuse_mixed_aggregations(models: Sequence[RewardModel]) -> None:
    found = sorted({str(model.manifest.get("aggregation")) for model in models})
    if len(found) > 1:
        raise DomainError(
            f"The models aggregate their steps differently ({', '.join(found)}), so their step rewards cannot be "
            "added; combine models of one aggregation.",
            pointer="/components",
        )
