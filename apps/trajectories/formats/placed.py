"""Messages that stand in several places of a document, as the steps of one run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.stated import call_metrics, run_facts
from workers.errors import InvalidRecord
from workers.schema import Step, Trajectory, clean, from_messages
from workers.schema.decode import is_clean, json_type_name

Placed = tuple[str, Any]  # a message, and its pointer in the document


def placed(messages: Any, pointer: str) -> list[Placed]:
    """Each of a list, a text or one message with its pointer. Raises InvalidRecord."""
    if messages is None or messages == "":
        return []
    if isinstance(messages, str):
        return [(pointer, {"role": "user", "content": messages})]
    if isinstance(messages, dict):
        return [(pointer, messages)]
    if not isinstance(messages, list):
        raise InvalidRecord(f"expected messages, got {json_type_name(messages)}.", pointer=pointer)
    return [(f"{pointer}/{index}", message) for index, message in enumerate(messages)]


def steps_of(messages: Sequence[Placed]) -> tuple[Step, ...]:
    """Raises InvalidRecord with the pointer of the bad message. `source_index` counts over all of them."""
    try:
        return from_messages([message for _, message in messages])
    except InvalidRecord as error:
        _, index, *rest = [*(error.pointer or "").split("/"), ""]
        if not index.isdigit():
            raise
        pointer = messages[int(index)][0] + "".join(f"/{name}" for name in rest if name)
        raise InvalidRecord(error.message, pointer=pointer) from None


def spoken(steps: Iterable[Step], speakers: Mapping[int, str]) -> tuple[Step, ...]:
    """With who spoke, by `source_index`."""
    return tuple(
        replace(step, speaker=name) if (name := speakers.get(_index(step), "")) else step for step in steps
    )


def metered(steps: Iterable[Step], usages: Mapping[int, Any]) -> tuple[Step, ...]:
    """With the usage of the call of a model as the metrics of the last agent step that came of it, by the index of
    its message."""
    found = list(steps)
    for index, usage in usages.items():
        places = [
            place for place, step in enumerate(found) if step.source == "agent" and _index(step) == index
        ]
        if places and (metrics := call_metrics(usage)):
            found[places[-1]] = replace(found[places[-1]], metrics=found[places[-1]].metrics | metrics)
    return tuple(found)


def _index(step: Step) -> int:
    index = step.extra.get("source_index")
    return index if isinstance(index, int) else -1


def storable(read: Callable[[Any], Trajectory]) -> Callable[[Any], Trajectory]:
    """A `read` of a format, of whose trajectories nothing that stands around the messages has NUL characters or lone
    surrogates either."""

    @wraps(read)
    def storing(document: Any) -> Trajectory:
        found = read(document)
        around = {"metadata": found.metadata, "agent": found.agent, "id": found.id}
        task = found.task
        about_task = {"id": task.id, "instruction": task.instruction}
        if not is_clean([around, about_task, [[step.speaker, step.metrics] for step in found.steps]]):
            around, _ = clean(around)
            steps = tuple(
                replace(step, speaker=clean(step.speaker)[0], metrics=clean(step.metrics)[0])
                for step in found.steps
            )
            return replace(found, steps=steps, task=replace(task, **clean(about_task)[0]), **around)
        return found

    return storing


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; none of anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def object_at(value: Any, *keys: str) -> dict[str, Any]:
    """The object under the first of the keys that has one; empty where none has."""
    if isinstance(value, dict):
        for key in keys:
            if isinstance(value.get(key), dict):
                found: dict[str, Any] = value[key]
                return found
    return {}


def text_at(value: Any, *keys: str) -> str:
    """The text under the first of the keys that has one; empty where none has."""
    for key in keys if isinstance(value, dict) else ():
        if isinstance(value.get(key), str) and value[key]:
            return str(value[key])
    return ""


@dataclass(frozen=True, slots=True)
class MessageReader:
    """How the messages of a framework say who spoke, what a call of the model used, and which model it was."""

    speaker: Callable[[dict[str, Any]], str] = lambda message: ""
    usage: Callable[[dict[str, Any]], Any] = lambda message: message.get("usage")
    model: Callable[[dict[str, Any]], str] = lambda message: text_at(message, "model", "model_name")
    consumed: tuple[str, ...] = ("usage", "model", "model_name")  # keys of a message that these read

    def read(
        self, messages: Sequence[Placed], speakers: Mapping[int, str] | None = None
    ) -> tuple[tuple[Step, ...], dict[str, Any]]:
        """The steps, and what is known of the run: its model, and the usage of all its calls. speakers: by the place
        of the message, where it is not the message that tells it. Raises InvalidRecord."""
        objects_ = {index: each for index, (_, each) in enumerate(messages) if isinstance(each, dict)}
        usages = {
            index: usage for index, each in objects_.items() if isinstance(usage := self.usage(each), dict)
        }
        steps = metered(steps_of(messages), usages)
        named = {index: name for index, each in objects_.items() if (name := self.speaker(each))}
        steps = spoken(steps, named if speakers is None else speakers)
        model = next(filter(None, map(self.model, objects_.values())), "")
        steps = tuple(_without_consumed(step, self.consumed) for step in steps)
        return steps, run_facts(summed(usages.values()), model=model)


def _without_consumed(step: Step, keys: tuple[str, ...]) -> Step:
    """What became the speaker and the metrics needs not be kept as fields of the message too."""
    results = tuple(
        replace(result, extra=_without(result.extra, keys)) if "message" in result.extra else result
        for result in step.observation
    )
    return replace(step, extra=_without(step.extra, keys), observation=results)


def _without(extra: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    kept = extra.get("message")
    if not isinstance(kept, dict) or kept.keys().isdisjoint(keys):
        return extra
    kept = {key: value for key, value in kept.items() if key not in keys}
    return {key: value for key, value in extra.items() if key != "message"} | (
        {"message": kept} if kept else {}
    )


def summed(usages: Iterable[Any]) -> dict[str, Any]:
    """The tokens and the cost of several calls together."""
    found: dict[str, Any] = {}
    for usage in usages:
        facts = run_facts(usage)
        for name, count in (facts.pop("usage", {}) | facts).items():
            found[name] = found.get(name, 0) + count
    return found
