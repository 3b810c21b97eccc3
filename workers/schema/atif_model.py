"""What ATIF's published model (harbor.models.trajectories, version 1.8) takes, to write documents that it takes.

Stricter than that model where it converts values ("5" to 5), never laxer. Unknown fields are refused everywhere.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any, Literal

import msgspec

from workers.schema.decode import require_object

ImageType = Literal["image/jpeg", "image/png", "image/gif", "image/webp"]
AudioType = Literal[
    "audio/wav", "audio/mpeg", "audio/mp4", "audio/aac", "audio/ogg", "audio/flac", "audio/webm", "audio/aiff"
]
Extra = dict[str, Any] | None


class AtifObject(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An object of an ATIF document."""


class AtifSource(AtifObject, frozen=True):
    media_type: ImageType | AudioType
    path: str
    duration_sec: float | None = None


class AtifPart(AtifObject, frozen=True):
    type: Literal["text", "image", "audio"]
    text: str | None = None
    source: AtifSource | None = None

    def __post_init__(self) -> None:
        if (self.type == "text") == (self.text is None) or (self.type == "text") != (self.source is None):
            raise ValueError("a text part has a text and no source, the others a source and no text")
        if self.source is None:
            return
        if not self.source.media_type.startswith(self.type):
            raise ValueError("the source is of another type")
        if self.type == "image" and self.source.duration_sec is not None:
            raise ValueError("an image has no duration")


Content = str | list[AtifPart]


class AtifAgent(AtifObject, frozen=True):
    name: str
    version: str
    model_name: str | None = None
    tool_definitions: list[dict[str, Any]] | None = None
    extra: Extra = None


class AtifMetrics(AtifObject, frozen=True):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    prompt_token_ids: list[int] | None = None
    completion_token_ids: list[int] | None = None
    logprobs: list[float] | None = None
    extra: Extra = None


class AtifFinalMetrics(AtifObject, frozen=True):
    total_prompt_tokens: int | None = None
    total_completion_tokens: int | None = None
    total_cached_tokens: int | None = None
    total_cost_usd: float | None = None
    total_steps: int | None = None
    extra: Extra = None

    def __post_init__(self) -> None:
        if (self.total_steps or 0) < 0:
            raise ValueError("a number of steps is not negative")


class AtifSubagentReference(AtifObject, frozen=True):
    trajectory_id: str | None = None
    session_id: str | None = None
    trajectory_path: str | None = None
    extra: Extra = None

    def __post_init__(self) -> None:
        if self.trajectory_id is None and self.trajectory_path is None:
            raise ValueError("a reference has the trajectory_id or the trajectory_path")


class AtifCall(AtifObject, frozen=True):
    tool_call_id: str
    function_name: str
    arguments: dict[str, Any]
    extra: Extra = None


class AtifResult(AtifObject, frozen=True):
    source_call_id: str | None = None
    content: Content | None = None
    subagent_trajectory_ref: list[AtifSubagentReference] | None = None
    extra: Extra = None


class AtifObservation(AtifObject, frozen=True):
    results: list[AtifResult]


class AtifStep(AtifObject, frozen=True):
    step_id: int
    source: Literal["system", "user", "agent"]
    message: Content
    timestamp: str | None = None
    model_name: str | None = None
    reasoning_effort: str | float | None = None
    reasoning_content: str | None = None
    tool_calls: list[AtifCall] | None = None
    observation: AtifObservation | None = None
    metrics: AtifMetrics | None = None
    is_copied_context: bool | None = None
    llm_call_count: int | None = None
    extra: Extra = None

    def __post_init__(self) -> None:
        if self.timestamp is not None:
            datetime.fromisoformat(self.timestamp.replace("Z", "+00:00"))  # ValueError
        if (self.llm_call_count or 0) < 0:
            raise ValueError("a number of calls is not negative")
        forbidden = agent_only_fields(self.source, self.llm_call_count)
        if any(getattr(self, name) is not None for name in forbidden):
            raise ValueError(f"{', '.join(forbidden)}: only of steps of agents that called a model")
        known = {call.tool_call_id for call in self.tool_calls or ()}
        results = self.observation.results if self.observation else ()
        if any(result.source_call_id not in {None, *known} for result in results):
            raise ValueError("a result names a call that the step does not have")


class AtifTrajectory(AtifObject, frozen=True):
    schema_version: str
    agent: AtifAgent
    steps: list[AtifStep]
    session_id: str | None = None
    trajectory_id: str | None = None
    notes: str | None = None
    final_metrics: AtifFinalMetrics | None = None
    continued_trajectory_ref: str | None = None
    subagent_trajectories: "list[AtifTrajectory] | None" = None
    extra: Extra = None

    def __post_init__(self) -> None:
        if not self.steps or [step.step_id for step in self.steps] != list(range(1, len(self.steps) + 1)):
            raise ValueError("the steps are numbered from 1")
        names = [subagent.trajectory_id for subagent in self.subagent_trajectories or ()]
        if None in names or len(set(names)) != len(names):
            raise ValueError("each sub-agent's trajectory has an id, which no other has")


def agent_only_fields(source: str, llm_call_count: Any) -> tuple[str, ...]:
    """The fields that a step of this source does not have."""
    if source != "agent":
        return ("model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics")
    return ("metrics", "reasoning_content") if llm_call_count == 0 else ()


_FIELDS: dict[type[AtifObject], dict[str, Any]] = {
    model: {field.name: field.type for field in msgspec.structs.fields(model)}
    for model in (
        *(AtifAgent, AtifMetrics, AtifFinalMetrics, AtifCall, AtifResult, AtifStep, AtifTrajectory, AtifPart),
        AtifSource,
    )
}


def field_fits(model: type[AtifObject], name: str, value: Any) -> bool:
    """Whether `model` has a field of this name that takes `value`."""
    if name not in _FIELDS[model]:
        return False
    try:
        msgspec.convert(value, _FIELDS[model][name])
        if model is AtifStep and name == "timestamp" and isinstance(value, str):
            datetime.fromisoformat(value.replace("Z", "+00:00"))
    except (msgspec.ValidationError, ValueError):
        return False
    return True


# Where documents keep what this model has no place for, so that nothing is lost between writing and reading.
ARGUMENTS_TEXT = "__raw__"  # the only argument: the text of arguments that are no JSON object
EXTRA_AS_WAS = (
    "__extra__"  # in `extra`: all of our own `extra`, where names in it have a meaning in ATIF or here
)
UNFIT = "__atif__"  # in `extra`: fields of the object that the model does not take, by name
PARTS = "__parts__"  # in `extra`: by index, the fields of content parts that the part in the document does not give
MADE_SESSION = "made_session_id"  # among these fields: the session_id written for a trajectory without an id
RESERVED = frozenset((EXTRA_AS_WAS, UNFIT, PARTS))


def fit_object(
    model: type[AtifObject],
    values: dict[str, Any],
    *,
    defaults: dict[str, Any] | None = None,
    extra: dict[str, Any] | None = None,
    forbidden: Collection[str] = (),
) -> dict[str, Any]:
    """An object that `model` takes; `read_unfit` gives `values` back.

    defaults: of required fields that values have not, or not in a form that fits. extra: ours, added to that of values.
    forbidden: fields that do not fit here, whatever they hold.
    """
    given = values.get("extra")
    own = given if isinstance(given, dict) and given and not RESERVED & given.keys() else {}
    fields: dict[str, Any] = {}
    unfit: dict[str, Any] = dict.fromkeys(defaults or ())
    for name, value in values.items():
        if name == "extra" and own:
            continue
        if value is not None and name not in ("extra", *forbidden) and field_fits(model, name, value):
            fields[name] = value
            unfit.pop(name, None)
        else:
            unfit[name] = value
    merged = own | (extra or {}) | ({UNFIT: unfit} if unfit else {})
    return (defaults or {}) | fields | ({"extra": merged} if merged else {})


def read_unfit(raw: dict[str, Any], *, pointer: str) -> dict[str, Any]:
    """The values that `fit_object` was given, of the object it made; other objects as they are."""
    extra = raw.get("extra")
    if not isinstance(extra, dict) or UNFIT not in extra:
        return raw
    unfit = require_object(extra[UNFIT], pointer=f"{pointer}/extra/{UNFIT}")
    rest = {name: value for name, value in extra.items() if name != UNFIT}
    return {name: value for name, value in raw.items() if name != "extra"} | (
        {"extra": rest} | unfit if rest else unfit
    )
