"""Models that read a reference answer, a goal, a principle or a persona next to a trajectory."""

import asyncio
import dataclasses
import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from tests import forked
from tests.workers.models.random_models import KINDS, save_random
from workers.engine.batcher import Batcher, ServedModel
from workers.engine.versions import Version
from workers.errors import RewardError
from workers.models import LoadedModel, load
from workers.models.exporting import export
from workers.models.exporting.source import ExportOptions
from workers.schema import (
    OutcomeRecord,
    Part,
    PreferenceRecord,
    RankingRecord,
    RatingRecord,
    ScoreRecord,
    Step,
    Task,
    Trajectory,
    parse_item,
)
from workers.schema.conditions import (
    CONDITIONS,
    conditioned_records,
    hindsight_records,
    opposite,
    split_opposite,
    training_records,
    with_conditions,
)
from workers.schema.endpoints import parse_spec
from workers.schema.parents import require_parent
from workers.schema.recipe import Recipe, parse_recipe
from workers.schema.records import record_trajectories
from workers.text import template_fingerprint
from workers.train.pipeline import train

ALL = tuple(CONDITIONS)


def run(*texts: str, task: str = "t", reference: str | None = None, **metadata: object) -> Trajectory:
    steps = [Step(source="user", message=(Part(text="Where is the order?"),))]
    steps += [Step(source="agent", message=(Part(text=text),)) for text in texts]
    return Trajectory(steps=tuple(steps), task=Task(id=task, reference=reference), metadata=dict(metadata))


def raw(model: LoadedModel, *contents: Trajectory) -> list[float]:
    return [score.raw for score in model.score([model.render(content) for content in contents])]


RUN = run("good plan", "the order was sent")
STATED = {
    "reference": "the order was sent",
    "goal": "order known",
    "principle": "good: short plan",
    "persona": "ann",
}


GIVEN = [with_conditions(RUN, ALL, {name: "the order was sent"}) for name in ALL]


@pytest.fixture(params=KINDS)
def folder(request, tmp_path: Path, tiny_recipe: Recipe, tiny_encoder: Path) -> Path:
    """The artifact of a model with random weights that reads all conditions."""
    return save_random(
        request.param, tmp_path, [RUN, *GIVEN], tiny=tiny_recipe, encoder=tiny_encoder, conditioned=ALL
    )


def test_each_condition_is_read_and_counts_by_its_kind(folder: Path) -> None:
    model = load(folder)
    assert model.conditioned == ALL
    rewards = raw(model, RUN, *GIVEN)
    assert len({round(reward, 6) for reward in rewards}) == 1 + len(ALL)
    assert raw(model, *GIVEN, RUN) == pytest.approx([*rewards[1:], rewards[0]], abs=1e-5)


def test_what_stored_data_state_is_read_wherever_a_model_is_asked(folder: Path) -> None:
    model = load(folder)
    stated = run("good plan", "the order was sent", reference="the order was sent")
    assert model.render(stated).key == model.render(GIVEN[0]).key
    assert model.render(with_conditions(stated, ALL, {"reference": "good"})).key != model.render(stated).key


def test_a_model_that_reads_one_condition_is_not_moved_by_others(folder: Path) -> None:
    manifest = json.loads((folder / "touchstone.json").read_text())
    model = load(folder)
    renderer = model.renderer
    assert manifest["text"]["conditioned"] == [*ALL]
    both = with_conditions(RUN, ALL, STATED)
    renderer_of_goals = (
        dataclasses.replace(renderer, conditioned=("goal",))
        if dataclasses.is_dataclass(renderer)
        else renderer
    )
    if renderer_of_goals is renderer:
        renderer.conditioned = ("goal",)
    only = with_conditions(RUN, ("goal",), STATED)
    assert renderer_of_goals.render(both).key == renderer_of_goals.render(only).key
    assert renderer_of_goals.render(both).key != renderer_of_goals.render(RUN).key


def test_the_step_encoder_reads_what_a_negation_is_about_and_turns_it(
    tmp_path: Path, tiny_recipe: Recipe, tiny_encoder: Path
) -> None:
    """Artifacts from before that have no such key, and read the words as they stand."""
    folder = save_random(
        "step-encoder", tmp_path, [RUN, *GIVEN], tiny=tiny_recipe, encoder=tiny_encoder, conditioned=ALL
    )
    texts = ("good short plan", "never good short plan", "The opposite of: good short plan")
    said = [with_conditions(RUN, ALL, {"principle": text}) for text in texts]
    model = load(folder)
    plain, never, opposite_of = (model.render(each) for each in said)
    assert [chunk.ids for chunk in plain.chunks] == [chunk.ids for chunk in never.chunks]
    assert never.key == opposite_of.key != plain.key
    positive, *negative = raw(model, *said)
    assert negative[0] == pytest.approx(negative[1], abs=1e-9) != pytest.approx(positive, abs=1e-6)
    assert raw(model, said[1], said[0]) == pytest.approx([negative[0], positive], abs=1e-9)

    manifest = json.loads((folder / "touchstone.json").read_text())
    del manifest["text"]["splits_negations"]
    before = dataclasses.replace(model.renderer, splits_negations=False)
    manifest["template_fingerprint"] = template_fingerprint(before)
    assert manifest["template_fingerprint"] != template_fingerprint(model.renderer)
    (folder / "touchstone.json").write_text(json.dumps(manifest))
    old = load(folder)
    assert [old.render(each).key for each in said] == [before.render(each).key for each in said]
    assert old.render(said[1]).chunks[0].ids != old.render(said[0]).chunks[0].ids
    assert raw(old, said[0], RUN) == pytest.approx(raw(model, said[0], RUN), abs=1e-9)


def test_an_endpoint_gives_the_reward_of_the_model_by_the_conditions_of_the_request(folder: Path) -> None:
    model = load(folder)
    spec = parse_spec({"components": [{"name": "main", "model": "p/m@1"}]})
    batcher = Batcher()
    version = Version(1, spec, {"p/m@1": ServedModel("p/m@1", model)}, batcher, lambda version: None)
    messages = [{"role": "user", "content": "Where is the order?"}]
    messages += [{"role": "assistant", "content": text} for text in ("good plan", "the order was sent")]
    items = [
        parse_item({"messages": messages} | given)
        for given in ({}, *({name: STATED["reference"]} for name in ALL))
    ]
    scores = asyncio.run(version.score(version.render(items)))
    batcher.close()
    wanted = raw(model, RUN, *GIVEN)
    assert [score.raw for score in scores] == pytest.approx(wanted, abs=1e-5)
    assert len({round(score.raw, 6) for score in scores}) == 1 + len(ALL)


def test_an_export_says_what_the_model_reads_and_how(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.models.exporting.standalone.run", forked.run_code)
    form = "transformers" if "decoder" in str(load(folder).manifest["backbone"]["kind"]) else "standalone"
    usage = export(folder, form, tmp_path / "out", ExportOptions())
    told = dict(usage.sections)["What it reads next to a conversation"]
    assert "reference, goal, principle, persona" in told
    assert ("Judge by this principle:" in told) == (form == "transformers")


def test_the_rendering_of_conditions_is_part_of_the_fingerprint(folder: Path) -> None:
    renderer = load(folder).renderer
    before = template_fingerprint(renderer)
    if dataclasses.is_dataclass(renderer):
        renderer = dataclasses.replace(renderer, conditioned=())
    else:
        renderer.conditioned = ()
    assert template_fingerprint(renderer) != before


def test_content_with_other_conditions_has_another_hash_and_without_any_the_old_one() -> None:
    hashes = {with_conditions(RUN, ALL, {name: "x"}).content_hash for name in ALL}
    assert len(hashes | {RUN.content_hash}) == 1 + len(ALL)
    assert len({with_conditions(RUN, ALL, STATED).content_hash, with_conditions(RUN, ALL).content_hash}) == 2
    assert with_conditions(RUN, ALL).content_hash == RUN.content_hash


def test_conditions_are_read_from_where_data_states_them() -> None:
    stated = run("x", reference="42", goal={"place": 3}, persona="ann")
    task = replace(stated.task, metadata={"goal": "of the task", "principle": "short"})
    found = with_conditions(replace(stated, task=task), ALL).conditions
    assert found == {"reference": "42", "goal": '{"place": 3}', "principle": "short", "persona": "ann"}
    assert with_conditions(stated, ("persona",), {"goal": "not read"}).conditions == {"persona": "ann"}


def test_feedback_by_criteria_becomes_feedback_by_principles() -> None:
    good, bad = run("good"), run("bad")
    preference = PreferenceRecord(a=good, b=bad, choice="a", criterion="short", annotator="ann")
    score = ScoreRecord(
        trajectory=good, criterion="short", value=4, scale=(1, 5), definition="says little", annotator="ann"
    )
    plain = conditioned_records([preference, score], ("principle",))
    assert isinstance(plain[0], PreferenceRecord)
    assert (plain[0].choice, plain[0].criterion) == ("a", None)
    assert plain[0].a.conditions == {"principle": "short: says little"}
    assert isinstance(plain[1], RatingRecord)
    assert (plain[1].rating, plain[1].scale) == (4, (1, 5))
    assert conditioned_records(plain, ("principle",)) == plain
    assert conditioned_records([preference], ()) == [preference]


def test_a_share_of_what_principles_say_is_turned_around_for_training_alone() -> None:
    good, bad = (with_conditions(run(text), ("principle", "goal"), STATED) for text in ("good", "bad"))
    records = [
        PreferenceRecord(a=good, b=bad, choice="a", annotator="ann"),
        RankingRecord(trajectories=(good, bad), ranks=(1, 2), annotator="ann"),
        RatingRecord(trajectory=good, rating=4, scale=(1, 5), annotator="ann"),
        RatingRecord(trajectory=good, accept=True, annotator="ann"),
    ]
    unturned = [
        PreferenceRecord(a=good, b=bad, choice="both_bad", annotator="ann"),
        OutcomeRecord(trajectory=good, success=True),
        PreferenceRecord(a=run("x"), b=run("y"), choice="a", annotator="ann"),
    ]
    turned = training_records([*records, *unturned], negate=0.999, hindsight=0, seed=1)
    assert [turned[0].choice, turned[1].ranks, turned[2].rating, turned[3].accept] == ["b", (2, 1), 2, False]
    for record in turned[:4]:
        for side in record_trajectories(record):
            principle, is_opposite = split_opposite(side.conditions["principle"])
            assert (principle, is_opposite, side.conditions["goal"]) == (
                STATED["principle"],
                True,
                STATED["goal"],
            )
    assert turned[4:] == unturned
    many = training_records(records[:1] * 200, negate=0.25, hindsight=0, seed=1)
    assert 30 < sum(record.choice == "b" for record in many) < 70
    assert many == training_records(records[:1] * 200, negate=0.25, hindsight=0, seed=1)
    assert training_records(records, negate=0.0, hindsight=0, seed=1) == records


@pytest.mark.parametrize(
    ("recipe", "pointer", "words"),
    [
        ({"conditioned": ["goal", "goal"]}, "/conditioned", "twice"),
        ({"conditioned": ["mood"]}, "/conditioned", "reference"),
        ({"conditioned": ["reference"], "backbone": "features"}, "/conditioned", "numbers"),
        ({"conditioned": ["principle"], "criterion": "short"}, "/criterion", "every criterion"),
        ({"channels": ["conditions"], "backbone": "linear"}, "/channels", "conditioned"),
        (
            {"conditioned": ["goal"], "objective": "generative", "backbone": "decoder", "decoder": "x"},
            "/conditioned",
            "principles = true",
        ),
    ],
)
def test_recipes_that_make_no_sense_are_refused(recipe: dict, pointer: str, words: str) -> None:
    with pytest.raises(RewardError) as caught:
        parse_recipe(recipe)
    assert caught.value.pointer == pointer
    assert words in caught.value.message


@pytest.mark.parametrize("theirs", [[], ["goal"], ["reference", "goal"]])
def test_a_parent_must_read_the_same(theirs: list[str]) -> None:
    manifest = {"backbone": {"kind": "linear"}, "text": {"conditioned": theirs} if theirs else {}}
    recipe = parse_recipe({"backbone": "linear", "conditioned": ["goal"]})
    if theirs == ["goal"]:
        require_parent(recipe, manifest)
        return
    with pytest.raises(RewardError, match="next to a trajectory") as caught:
        require_parent(recipe, manifest)
    assert caught.value.pointer == "/conditioned"


TOPICS = [
    "red",
    "blue",
    "green",
    "round",
    "square",
    "heavy",
    "light",
    "wooden",
    "metal",
    "glass",
    "paper",
    "silver",
    "golden",
    "warm",
    "cold",
]


def topic_records(seed: int, tasks: range, topics: list[str]) -> list[PreferenceRecord]:
    """Two runs that each name another topic: the one that names the principle's is better."""
    dice = random.Random(seed)
    found = []
    for number in tasks:
        wanted, other = dice.sample(topics, 2)
        sides = [
            run(f"I looked and found the {topic} order.", task=f"t{number}") for topic in (wanted, other)
        ]
        is_first = dice.random() < 0.5
        sides = sides if is_first else sides[::-1]
        choice = "a" if is_first else "b"
        criterion = f"the run names something {wanted}"
        found.append(
            PreferenceRecord(a=sides[0], b=sides[1], choice=choice, criterion=criterion, annotator="ann")
        )
    return found


def accuracy(
    model: LoadedModel, records: list[PreferenceRecord], phrase: Callable[[str], str] = str
) -> float:
    right = []
    for record in records:
        given = {"principle": phrase(str(record.criterion))}
        a, b = raw(model, *(with_conditions(side, ("principle",), given) for side in (record.a, record.b)))
        right.append((a > b) == (record.choice == "a"))
    return float(np.mean(right))


@pytest.mark.ml
def test_a_principle_never_seen_in_training_is_followed_and_its_opposite_too(run_directory) -> None:
    known, unseen = TOPICS[:10], TOPICS[10:]
    recipe = parse_recipe({"search": ["linear"], "conditioned": ["principle"], "folds": 2})
    splits = {
        "train": topic_records(1, range(150), known),
        "validation": topic_records(2, range(150, 180), known),
        "test": topic_records(3, range(180, 220), known),
    }
    where = run_directory(recipe, splits)
    train(where)
    model = load(where / "model")
    records = topic_records(4, range(300, 360), unseen)
    assert accuracy(model, records) > 0.95
    assert accuracy(model, records, opposite) < 0.05
    assert accuracy(model, records, lambda text: text.replace("names", "never names")) < 0.05
    report = json.loads((where / "report.json").read_text())
    assert report["preference"]["accuracy"] > 0.95
    assert report["search"]["chosen"] == "linear"
    assert report["pooled"]["preference"]["n"] == 220  # every comparison once, none of them turned around
    assert report["pooled"]["preference"]["accuracy"] > 0.95


def test_what_was_reached_becomes_a_goal_that_was_reached_and_others_do_not() -> None:
    records = [
        OutcomeRecord(
            trajectory=run(f"run {place}", task=place, goal="harbour", reached=[place]), success=False
        )
        for place in ("market", "station", "harbour road")
    ]
    stated = conditioned_records(records, ("goal",))
    found = hindsight_records(stated, 2, seed=3)
    assert [(record.trajectory.conditions["goal"], record.success) for record in found if record.success] == [
        ("market", True),
        ("station", True),
        ("harbour road", True),
    ]
    for record in found:
        own = record.trajectory.metadata["reached"]
        assert (record.trajectory.conditions["goal"] in own) == record.success
        assert record.trajectory.conditions["goal"] != "harbour"
    assert len(found) == 6
    assert hindsight_records(stated, 2, seed=3) == found
    assert hindsight_records(stated, 0) == []


@pytest.mark.ml
@pytest.mark.parametrize("in_words", [False, True])
def test_a_numeric_model_scores_a_place_by_the_goal(in_words: bool, run_directory) -> None:
    """All runs failed their own goal; hindsight tells where each one went."""
    places = {"left": -1.0, "right": 1.0}

    def record(number: int) -> OutcomeRecord:
        name = ("left", "right")[number % 2]
        end = places[name] + 0.05 * (number % 5)
        steps = tuple(
            Step(source="agent", features=(end * share, 0.1 * number % 1)) for share in (0.3, 0.7, 1.0)
        )
        reached: object = name if in_words else [round(places[name], 1)]
        return OutcomeRecord(
            trajectory=Trajectory(
                steps=steps,
                task=Task(id=f"t{number}"),
                metadata={"reached": reached, "goal": "moon" if in_words else [9.0]},
            ),
            success=False,
        )

    recipe = parse_recipe(
        {
            "backbone": "features",
            "objective": "outcome",
            "conditioned": ["goal"],
            "hindsight": 1,
            "width": 16,
            "epochs": 60,
            "ensemble": 1,
            "learning_rate": 0.01,
        }
    )
    splits = {
        "train": [record(number) for number in range(60)],
        "validation": [record(number) for number in range(60, 70)],
        "test": [record(number) for number in range(70, 80)],
    }
    where = run_directory(recipe, splits)
    train(where)
    model = load(where / "model")
    goals = {"left": "left", "right": "right"} if in_words else {"left": "[-1.0]", "right": "[1.0]"}
    for name in places:
        ended = record(("left", "right").index(name)).trajectory
        by_goal = {
            goal: raw(model, with_conditions(ended, ("goal",), {"goal": text}))[0]
            for goal, text in goals.items()
        }
        assert max(by_goal, key=lambda goal: by_goal[goal]) == name
    with pytest.raises(RewardError, match="words" if in_words else "list"):
        model.render(with_conditions(ended, ("goal",), {"goal": "[1, 2]" if in_words else "right"}))
