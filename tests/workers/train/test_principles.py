"""A judge that follows principles: each comparison by its own criterion, some turned round, served with any."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.workers.judge.judges import decoder, recipe, run_of
from workers.errors import RewardError
from workers.evaluate import RecordScorer, evaluate
from workers.models import Lineage, load_scorer, save_generative
from workers.models.generative.model import GenerativeModel, build_writer
from workers.models.generative.verdicts import opposite, principle
from workers.schema import (
    CommentRecord,
    FeedbackRecord,
    PreferenceRecord,
    RankingRecord,
    ScoreRecord,
    write_records,
)
from workers.schema.logistic import logistic
from workers.schema.recipe import Recipe, parse_recipe, recipe_to_dict
from workers.train.generative.questions import Pair, pairs_of, principles_of, questions_of
from workers.train.generative.trainer import GenerativeTrainer
from workers.train.limits import TrainingLimits, TrainingStopped
from workers.train.pipeline import train

CRITERIA = (None, "kind", "short")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return decoder(tmp_path_factory.mktemp("decoder"))


def silent(**event: Any) -> None:
    pass


def compared(number: int, criterion: str | None, **keys: Any) -> PreferenceRecord:
    """Overall and by "kind" the good one is better, by "short" the other."""
    good, bad = run_of("good", task=f"t{number}"), run_of("bad lost", task=f"t{number}")
    sides: dict[str, Any] = {"a": good, "b": bad, "choice": "b" if criterion == "short" else "a"}
    return PreferenceRecord(**{"annotator": "ann", "criterion": criterion} | sides | keys)


def records(count: int, *, start: int = 0) -> list[FeedbackRecord]:
    found: list[FeedbackRecord] = []
    for number in range(start, start + count):
        found += [compared(number, criterion) for criterion in CRITERIA]
        if number % 2:
            found.append(
                CommentRecord(trajectory=run_of("good", task=f"t{number}"), text="Good.", annotator="ann")
            )
    return found


def defined(name: str, definition: str | None) -> ScoreRecord:
    return ScoreRecord(
        trajectory=run_of("x"),
        criterion=name,
        value=1.0,
        scale=(1.0, 5.0),
        definition=definition,
        annotator="ann",
    )


def following(folder: Path, **keys: Any) -> Recipe:
    return recipe(folder, **{"principles": True, "negate": 0.5} | keys)


def make_trainer(chosen: Recipe, *, limits: TrainingLimits | None = None) -> GenerativeTrainer:
    writer = build_writer(chosen, device="cpu")
    principles = principles_of(records(4))
    asked = questions_of(pairs_of(records(4), chosen, principles)[0], writer.renderer, with_opposites=True)
    held_out = questions_of(pairs_of(records(1, start=4), chosen, principles)[0], writer.renderer)
    return GenerativeTrainer(
        writer, chosen, asked, held_out, seed=0, report=silent, limits=limits or TrainingLimits()
    )


def test_a_criterion_is_a_principle_in_the_words_of_its_definition() -> None:
    kept = [*records(1), defined("kind", "Says please."), defined("short", None), defined("brave", "Dares.")]
    known = principles_of([*kept, compared(1, "tied", choice="tie"), compared(1, "idle", weight=0.0)])
    assert known == {
        "kind": {"text": "kind: Says please.", "scale": [0.0, 1.0]},
        "short": {"text": "short", "scale": [0.0, 1.0]},
    }
    said = [
        principle(name, known) for name in ("kind", "The opposite of: kind", "The opposite of: new", "new")
    ]
    assert said == [
        "kind: Says please.",
        "The opposite of: kind: Says please.",
        "The opposite of: new",
        "new",
    ]


def test_each_comparison_is_asked_by_its_own(folder: Path) -> None:
    chosen, kept = following(folder), [*records(2), compared(0, "brave")]
    pairs, skipped = pairs_of(kept, chosen, principles_of(records(2)))
    assert Counter(pair.by for pair in pairs) == {None: 2, "kind": 2, "short": 2}
    assert skipped == {"by the criterion 'brave'": 1}
    renderer = build_writer(chosen, device="cpu").renderer
    asked = {question.of.by: question for question in questions_of(pairs, renderer)}
    texts = {by: renderer.text(one.pair[0].ids) for by, one in asked.items()}
    assert 'Judge by this alone: "kind"\n' in texts["kind"] and "Judge by" not in texts[None]
    assert 'Judge by this alone: "short"\n' in renderer.text(asked["short"].runs[1].ids)
    good, bad = run_of("good", task="t1"), run_of("bad lost", task="t1")
    assert (asked["kind"].of.better, asked["short"].of.better) == (good, bad)
    assert asked["kind"].pair[0].ids == renderer.pair(good, bad, by="kind").ids
    assert all(request.opposite is None for request in asked.values())


def test_by_the_opposite_the_other_run_is_better_and_nobody_says_why(folder: Path) -> None:
    good, bad = run_of("good"), run_of("bad")
    pair = Pair(better=good, other=bad, reasons=("It was good.", ""), weight=2.0, smoothing=0.1, by="kind")
    turned = Pair(
        better=bad, other=good, reasons=("", ""), weight=2.0, smoothing=0.1, by="The opposite of: kind"
    )
    assert pair.opposite == turned
    renderer = build_writer(following(folder), device="cpu").renderer
    overall = Pair(better=good, other=bad, reasons=("", ""), weight=1.0, smoothing=0.0)
    asked, plain = questions_of([pair, overall], renderer, with_opposites=True)
    assert asked.opposite is not None and asked.opposite.opposite is None
    assert asked.opposite.pair[0].ids == renderer.pair(bad, good, by=opposite("kind")).ids
    assert asked.opposite.runs[0].ids == renderer.render(bad, by=opposite("kind")).ids
    assert asked.pair_reasons[0] and asked.opposite.pair_reasons == ([], [])
    assert plain.opposite is None, "an overall comparison has no principle that could be turned round"


def test_the_loss_of_a_turned_question_is_that_of_the_other_run(folder: Path) -> None:
    trainer = make_trainer(following(folder, centring=0.0))
    trainer.writer.language.eval()
    (asked,) = [
        record for record in trainer.train if record.of.by == "kind" and record.of.better.task.id == "t0"
    ]
    assert asked.opposite is not None
    good, bad = run_of("good", task="t0"), run_of("bad lost", task="t0")
    renderer, by = trainer.writer.renderer, opposite("kind")
    with torch.no_grad():
        loss = float(trainer.question_losses.taught([asked.opposite], [1]))
        lines = [renderer.pair(good, bad, by=by), renderer.render(good, by=by), renderer.render(bad, by=by)]
        read = [trainer.writer.read([trainer.writer.line(line, [], is_formed=False)]) for line in lines]
        right = float(read[0].words(renderer.of_pair)[1])  # B, the bad run, is the better by the opposite
        on_good, on_bad = (
            float(yes - no) for yes, no in (record.words(renderer.of_run) for record in read[1:])
        )
    expected = -right - torch.nn.functional.logsigmoid(torch.tensor(on_bad - on_good))
    assert loss == pytest.approx(float(expected), abs=1e-4), "and no critique is taught beside it"


def test_which_are_turned_depends_on_seed_and_step_alone(folder: Path) -> None:
    trainer, other = make_trainer(following(folder)), make_trainer(following(folder))
    drawn = []
    for step in range(60):
        trainer.step = other.step = step
        batch = trainer.people.by_principles(trainer.train, trainer._seed("opposites"))
        assert [record.of for record in batch] == [
            by_principle.of
            for by_principle in other.people.by_principles(other.train, other._seed("opposites"))
        ]
        drawn.append(tuple(record.of.by for record in batch))
        assert [record.of.by for record in trainer.train if record.of.by is None] == [
            by for by in drawn[-1] if by is None
        ]
    assert len(set(drawn)) > 50
    by = [each_step for step in drawn for each_step in step if each_step is not None]
    assert sum(entry.startswith("The opposite of: ") for entry in by) / len(by) == pytest.approx(
        0.5, abs=0.08
    )
    never = make_trainer(following(folder, negate=0.0))
    assert never.people.by_principles(never.train, 0) == never.train


@pytest.mark.long  # test_generative.py has the same without principles
def test_a_training_that_was_stopped_goes_on_with_the_same_losses(folder: Path, tmp_path: Path) -> None:
    chosen = following(
        folder, epochs=1, batch_pairs=4, reinforce_steps=2, reinforce_samples=2, checkpoint_seconds=0.0
    )
    whole = make_trainer(chosen)
    whole.run()
    assert len(whole.losses) == 3 + 3 + 2
    for steps in (4, 7):
        place = tmp_path / str(steps)
        with pytest.raises(TrainingStopped):
            make_trainer(chosen, limits=TrainingLimits(_after(steps), None, place)).run()
        resumed = make_trainer(chosen, limits=TrainingLimits(checkpoints=place))
        resumed.run()
        assert resumed.losses == pytest.approx(whole.losses, abs=1e-5)


def _after(steps: int) -> Callable[[], bool]:
    """Asks to stop once it was polled so often."""
    polled = iter(range(steps - 1))
    return lambda: next(polled, None) is None


def test_what_excludes_each_other_is_said(folder: Path) -> None:
    with pytest.raises(
        RewardError, match="each comparison by its own criterion, criterion = 'kind' all by one"
    ):
        following(folder, criterion="kind")
    with pytest.raises(RewardError, match="means nothing to the objective 'bradley_terry'") as error:
        parse_recipe({"principles": True})
    assert error.value.pointer == "/principles"
    with pytest.raises(RewardError) as error:
        following(folder, negate=1.0)
    assert error.value.pointer == "/negate"


def run_directory(place: Path, chosen: Recipe, train_on: list[FeedbackRecord]) -> Path:
    (place / "data").mkdir()
    splits = {"train": train_on, "validation": records(1, start=4), "test": records(3, start=5)}
    for split, kept in splits.items():
        write_records(place / "data" / f"{split}.jsonl.zst", kept)
    (place / "config.json").write_text(
        json.dumps({"recipe": recipe_to_dict(chosen), "seed": 1, "device": "cpu"})
    )
    return place


@pytest.fixture(scope="module")
def finished(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory to its end."""
    chosen = following(folder, epochs=4, batch_pairs=6, learning_rate=1e-2)
    place = tmp_path_factory.mktemp("run")
    return run_directory(place, chosen, [*records(4), defined("kind", "Says please.")])


@pytest.fixture(scope="module")
def artifact(finished: Path) -> Path:
    train(finished)
    return finished / "model"


def test_the_report_asks_each_comparison_by_its_own(finished: Path, artifact: Path) -> None:
    report = json.loads((finished / "report.json").read_text())
    assert report["preference"]["n"] == 9 == report["position"]["n"]
    subsets = report["preference"]["subsets"]
    assert {name: one["n"] for name, one in subsets.items()} == {"overall": 3, "by kind": 3, "by short": 3}
    judge = load_scorer(artifact)
    assert isinstance(judge, GenerativeModel)
    for name, by in (("overall", None), ("by kind", "kind"), ("by short", "short")):
        kept = [
            record
            for record in records(3, start=5)
            if isinstance(record, PreferenceRecord) and record.criterion == by
        ]
        answers = judge.compare([(record.a, record.b) for record in kept], by=by)
        right = [(said.log_odds > 0) == (one.choice == "a") for one, said in zip(kept, answers, strict=True)]
        assert subsets[name]["accuracy"] == pytest.approx(sum(right) / 3)


def test_scores_and_rankings_by_a_principle_are_held_against_its_own(artifact: Path) -> None:
    judge = load_scorer(artifact)
    assert isinstance(judge, GenerativeModel)
    good, bad = run_of("good"), run_of("bad lost")
    scored = [
        ScoreRecord(trajectory=run, criterion=name, value=value, scale=(1.0, 5.0), annotator="ann")
        for run, value in ((good, 5.0), (bad, 1.0))
        for name in ("kind", "brave")
    ]
    ranked = RankingRecord(trajectories=(good, bad), ranks=(1, 2), criterion="kind", annotator="ann")
    asks = RecordScorer(judge)
    by_kind, by_brave, *_ = asks(scored)
    odds = judge.log_odds(good, by="kind")
    assert by_kind.scores[0].criteria == {"kind": logistic(odds)} and by_kind.scores[0].raw == odds
    assert by_brave.scores[0].criteria == {}, "a criterion it did not learn is measured by the reward"
    (found,) = asks([ranked])
    assert [score.raw for score in found.scores] == [odds, judge.log_odds(bad, by="kind")]
    report = evaluate(asks, [*scored, ranked])
    assert report["scores"]["n"] == 4 and report["preference"]["n"] == 1


def test_the_artifact_is_asked_by_any_principle(artifact: Path) -> None:
    judge = load_scorer(artifact)
    assert isinstance(judge, GenerativeModel)
    assert judge.scores_criteria and judge.manifest["criteria"] == judge.criteria
    assert judge.criteria["kind"] == {"text": "kind: Says please.", "scale": [0.0, 1.0]}
    asked = judge.render(run_of("good"))
    (plain,) = judge.score([asked])
    names = ["kind", "The opposite of: kind", "never lost"]
    (said,) = judge.score([asked], criteria=names)
    assert list(said.criteria) == names and all(0 < chance < 1 for chance in said.criteria.values())
    assert len(set(said.criteria.values())) == 3
    assert (said.raw, said.step_rewards, said.critique) == (plain.raw, plain.step_rewards, plain.critique)
    assert said.tokens > plain.tokens, "what is asked by principles is counted too"
    line = 'Judge by this alone: "The opposite of: kind: Says please."\n'
    by_opposite = judge.renderer.render(run_of("good"), by="The opposite of: kind: Says please.")
    assert line in judge.renderer.text(by_opposite.ids)
    (answer,) = judge.answers([by_opposite])
    assert said.criteria["The opposite of: kind"] == logistic(answer.log_odds)
    (pair,) = judge.score([judge.render_pair(run_of("good"), run_of("bad"))], criteria=["kind"])
    (compared_,) = judge.compare([(run_of("good"), run_of("bad"))], by="kind")
    assert pair.criteria["kind"] == logistic(compared_.first.log_odds)


def test_saved_and_loaded_it_scores_the_same(folder: Path, tmp_path: Path) -> None:
    chosen, known = following(folder), principles_of(records(2))
    writer = build_writer(chosen, device="cpu")
    before = GenerativeModel(writer, {"criteria": known})
    reward = {"median": 0.0, "std": 1.0}
    save_generative(
        writer, tmp_path / "model", recipe=chosen, reward=reward, criteria=known, lineage=Lineage()
    )
    after = load_scorer(tmp_path / "model")
    one, other = (
        judge.score([judge.render(run_of("bad lost"))], criteria=["short", "kind"])[0]
        for judge in (before, after)
    )
    assert (one.raw, one.criteria) == (other.raw, other.criteria)


def test_without_comparisons_by_criteria_there_is_nothing_to_follow(folder: Path, tmp_path: Path) -> None:
    overall: list[FeedbackRecord] = [compared(number, None) for number in range(4)]
    with pytest.raises(RewardError, match="none that name a better side") as error:
        train(run_directory(tmp_path, following(folder), overall))
    assert error.value.pointer == "/principles"


def test_without_overall_comparisons_it_says_what_its_reward_is_worth(folder: Path, tmp_path: Path) -> None:
    place = run_directory(tmp_path, following(folder), [compared(number, "kind") for number in range(4)])
    train(place)
    assert "the reward without a principle was not learnt" in (place / "events.jsonl").read_text()
