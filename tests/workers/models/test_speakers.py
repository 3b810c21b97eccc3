"""Models that are trained now read who spoke; models from before go on as they are."""

import dataclasses
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.workers.models.random_models import KINDS, save_random
from workers.models import LoadedModel, load
from workers.schema import ObservationResult, Part, PreferenceRecord, Step, Task, ToolCall, Trajectory
from workers.schema.recipe import Recipe, parse_recipe
from workers.text import ConversationRenderer, template_fingerprint
from workers.train.pipeline import train


def conversation(*speakers: str | None, task: str = "t") -> Trajectory:
    """What is said does not depend on who says it."""
    call = ToolCall(name="look", arguments={"at": "order"}, id="c")
    seen = ObservationResult(content=(Part(text="sent"),), call_id="c")
    names = iter(speakers)
    steps = [
        Step(source="user", speaker="ann", message=(Part(text="hello the order"),)),
        Step(source="agent", message=(Part(text="good plan"),)),
        Step(source="agent", tool_calls=(call,), observation=(seen,)),
        Step(source="agent", reasoning="bad", message=(Part(text="it was sent"),)),
    ]
    steps = [replace(step, speaker=next(names, None)) for step in steps]
    return Trajectory(steps=tuple(steps), task=Task(id=task))


def without_speakers(given: Trajectory) -> Trajectory:
    return replace(given, steps=tuple(replace(step, speaker=None) for step in given.steps))


RUN = conversation("ann", "bad", "order", "good")
SWAPPED = conversation("ann", "good", "order", "bad")


def raw(model: LoadedModel, *contents: Trajectory) -> list[float]:
    return [score.raw for score in model.score([model.render(content) for content in contents])]


@pytest.fixture(params=KINDS)
def folder(request, tmp_path: Path, tiny_recipe: Recipe, tiny_encoder: Path) -> Path:
    """The artifact of a model with random weights, as it is saved now."""
    known = [RUN, SWAPPED, without_speakers(RUN)]
    return save_random(request.param, tmp_path, known, tiny=tiny_recipe, encoder=tiny_encoder)


def made_before(folder: Path) -> LoadedModel:
    """The same model as a version that read no speakers saved it."""
    path = folder / "touchstone.json"
    manifest = json.loads(path.read_text())
    assert manifest["text"].pop("speakers") is True
    renderer = load(folder).renderer
    if dataclasses.is_dataclass(renderer):
        renderer = dataclasses.replace(renderer, names_speakers=False)
    else:
        renderer = ConversationRenderer(renderer.tokenizer, renderer.max_tokens)
    manifest["template_fingerprint"] = template_fingerprint(renderer)
    path.write_text(json.dumps(manifest))
    return load(folder)


def test_only_speakers_that_are_there_change_a_reward(folder: Path) -> None:
    model = load(folder)
    given, swapped, plain = raw(model, RUN, SWAPPED, without_speakers(RUN))
    assert len({round(given, 5), round(swapped, 5), round(plain, 5)}) == 3
    before = made_before(folder)
    assert raw(before, RUN, SWAPPED, without_speakers(RUN)) == pytest.approx([plain] * 3, abs=1e-6)
    assert (before.named_sources, "agent" in model.named_sources) == (frozenset(), True)


@pytest.mark.ml
@pytest.mark.parametrize("kind", ["linear", "step-encoder"])
def test_who_speaks_can_be_learnt(kind: str, run_directory, tiny_recipe: Recipe) -> None:
    """Alike in all but the speakers: one order of them is better."""

    def record(number: int) -> PreferenceRecord:
        sides = [
            conversation("ann", *names, task=f"t{number}")
            for names in (("bad", "order", "good"), ("good", "order", "bad"))
        ]
        sides = sides if number % 2 else sides[::-1]
        return PreferenceRecord(a=sides[0], b=sides[1], choice="a" if number % 2 else "b", annotator="ann")

    longer = dataclasses.replace(tiny_recipe, epochs=12, learning_rate=3e-3, width=32)
    recipe = parse_recipe({"backbone": "linear"}) if kind == "linear" else longer
    splits = {
        "train": [record(number) for number in range(32)],
        "validation": [record(number) for number in range(32, 40)],
        "test": [record(number) for number in range(40, 48)],
    }
    where = run_directory(recipe, splits)
    train(where)
    model = load(where / "model")
    good, bad = raw(model, RUN, SWAPPED)
    assert good > bad + 0.01
