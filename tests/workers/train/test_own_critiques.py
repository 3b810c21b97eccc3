"""Verdicts are trained after the model's own critiques, single ones too; ratings are learnt; older runs are told."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.workers.judge.judges import decoder, recipe, records, run_of
from workers.errors import RewardError
from workers.models.generative.model import build_writer
from workers.objectives.generative import ordered, rating_loss
from workers.schema import CommentRecord, RatingRecord, write_records
from workers.schema.recipe import Recipe, parse_recipe, recipe_to_dict
from workers.train.checkpoints import newest_checkpoint, save_checkpoint
from workers.train.generative.losses import own_prompts
from workers.train.generative.questions import pairs_of, questions_of
from workers.train.generative.ratings import ratings_of, share_of_epoch
from workers.train.generative.sampling import write_critiques
from workers.train.generative.stages import recipe_to_resume, require_same_plan, stage_plan
from workers.train.generative.trainer import GenerativeTrainer
from workers.train.limits import TrainingLimits, TrainingStopped
from workers.train.pipeline import train


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return decoder(tmp_path_factory.mktemp("decoder"))


def rated(text: str, task: str, **keys: Any) -> RatingRecord:
    return RatingRecord(trajectory=run_of(text, task=task), annotator="ann", **keys)


# Of other trajectories than the comparisons, so that nothing but ratings tells them apart.
RATINGS: list[Any] = [
    rated("sent", "t1", accept=True),
    rated("no", "t1", rating=2.0, scale=(1.0, 5.0)),
    rated("bad lost", "t2", rating=5.0, scale=(1.0, 5.0), weight=0.0),
    CommentRecord(trajectory=run_of("sent", task="t1"), text="It was sent.", annotator="ann"),
]


def make_trainer(chosen: Recipe, *, ratings: bool = False, **keys: Any) -> GenerativeTrainer:
    writer = build_writer(chosen, device="cpu")
    asked = questions_of(pairs_of(records(4), chosen)[0], writer.renderer)
    found = ratings_of(RATINGS, chosen, writer.renderer) if ratings else []
    return GenerativeTrainer(
        writer, chosen, asked, [], seed=0, report=lambda **event: None, ratings=found, **keys
    )


def test_a_rating_and_an_order_by_hand() -> None:
    z, place = torch.tensor([1.0, -2.0]), torch.tensor([1.0, 0.25])
    expected = [math.log1p(math.exp(-1)), 0.25 * math.log1p(math.exp(2)) + 0.75 * math.log1p(math.exp(-2))]
    assert rating_loss(z, place).tolist() == pytest.approx(expected)
    better, other = ordered(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, -1.0]]))
    assert (better.tolist(), other.tolist()) == ([[1.0, 0.75]], [[0.75, 1.0]])


def test_verdicts_are_learnt_after_what_the_model_wrote(folder: Path) -> None:
    chosen = recipe(folder, critique_weight=0.0, pointwise_weight=2.0, centring=0.0)
    trainer = make_trainer(chosen)
    writer, batch, orders = trainer.writer, trainer.train[:2], [0, 1]
    writer.language.eval()
    torch.manual_seed(0)
    prompts = own_prompts(batch, orders)
    assert prompts[:2] == [batch[0].pair[0], batch[1].pair[1]]
    assert prompts[2:] == [batch[0].runs[0], batch[1].runs[0], batch[0].runs[1], batch[1].runs[1]]
    written = write_critiques(writer, prompts, 4096)
    assert any(critique.ids for critique in written)
    with torch.no_grad():
        loss = trainer.question_losses.own(batch, orders, written)
        for row, item in enumerate(batch):
            z = {}
            for name, place in (("pair", row), ("better", 2 + row), ("other", 4 + row)):
                line = writer.line(prompts[place], written[place].ids, is_formed=written[place].is_formed)
                z[name] = [
                    float(each) for each in writer.read([line]).words(writer.renderer.words(prompts[place]))
                ]
            assert item.pair[0].is_pair
            single = (z["better"][0] - z["better"][1]) - (z["other"][0] - z["other"][1])
            expected = -z["pair"][orders[row]] + 2.0 * math.log1p(math.exp(-single))
            assert float(loss[row]) == pytest.approx(expected, abs=1e-4)


def test_ratings_are_learnt_with_the_comments_on_them(folder: Path) -> None:
    chosen = recipe(folder)
    writer = build_writer(chosen, device="cpu")
    first, second = ratings_of(RATINGS, chosen, writer.renderer)
    assert (first.place, second.place) == (1.0, 0.25) and first.reasons and not second.reasons
    assert ratings_of(RATINGS, recipe(folder, rating_weight=0.0), writer.renderer) == []
    assert ratings_of(RATINGS, recipe(folder, criterion="kind"), writer.renderer) == []
    taken = [index for place in range(3) for index in share_of_epoch(7, place, 3)]
    assert taken == list(range(7)), "each once an epoch"
    trainer = make_trainer(recipe(folder, pointwise_weight=0.0, critique_weight=0.0), ratings=True)
    with torch.no_grad():
        lines = [trainer.writer.line(run.prompt, run.reasons, is_formed=False) for run in trainer.ratings]
        good, poor = trainer.writer.read(lines).words(trainer.writer.renderer.of_run)
        losses = rating_loss(good - poor, torch.tensor([1.0, 0.25]))
        torch.testing.assert_close(trainer.question_losses.rated(trainer.ratings), losses)
    batch = trainer.people.batch("teach", 0, trainer._seed)
    assert len(batch.ratings) == 2, "the only step of the epoch takes all"
    batch.questions.clear()
    batch.orders.clear()
    found = [trainer.people.backward(stage, batch, 4096) for stage in ("teach", "own")]
    assert found[0] == pytest.approx(float(losses.mean()), abs=1e-5) and found[1] > 0
    gradient = next(iter(trainer.writer.language.parameters())).grad
    assert gradient is not None and bool(gradient.abs().sum() > 0)


def test_stages_follow_each_other_where_critiques_are_written(folder: Path) -> None:
    chosen = recipe(folder, epochs=2, batch_pairs=4, own_critique_epochs=3, reinforce_steps=5)
    plan = stage_plan(chosen, 10, writes=True)
    assert (plan.teach, plan.own, plan.reinforce, plan.steps) == (6, 9, 5, 20)
    assert [plan.at(step) for step in (0, 5, 6, 14, 15)] == ["teach", "teach", "own", "own", "reinforce"]
    assert {3, 6, 9, 12, 15, 16, 20} <= plan.validation_steps
    assert stage_plan(chosen, 10, writes=False).own == 0, "no one wrote a critique to learn it from"


def older_state(trainer: GenerativeTrainer, folder: Path, limits: TrainingLimits) -> None:
    """A checkpoint as the version before the stages wrote it."""
    with pytest.raises(TrainingStopped):
        trainer.run()
    state, _ = newest_checkpoint(folder)
    assert state is not None
    for name in ("plan", "stage", "measured"):
        del state[name]
    save_checkpoint(folder, 9, state | {"reinforces": False, "taught": None})


def test_a_run_of_an_older_version_resumes_or_is_told_why_not(folder: Path, tmp_path: Path) -> None:
    keys: dict[str, Any] = {"batch_pairs": 2, "checkpoint_seconds": 0.0}
    stopped = TrainingLimits(lambda: True, None, tmp_path)
    as_before = recipe(folder, own_critique_epochs=0, **keys)
    older_state(make_trainer(as_before, limits=stopped), tmp_path, stopped)
    resumes = TrainingLimits(checkpoints=tmp_path)
    with pytest.raises(
        RewardError, match=r"older version.*own_critique_epochs = 0, rating_weight = 0 in the recipe"
    ):
        make_trainer(recipe(folder, **keys), ratings=True, limits=resumes).run()
    resumed, whole = make_trainer(as_before, limits=resumes), make_trainer(as_before)
    resumed.run()
    whole.run()
    assert resumed.losses == pytest.approx(whole.losses, abs=1e-5)
    plan = stage_plan(recipe(folder, **keys), 4, writes=True)
    state, _ = newest_checkpoint(tmp_path)
    assert state is not None
    with pytest.raises(RewardError, match=r"of 2 \+ 0 \+ 0 steps .* this training of 2 \+ 2 \+ 0"):
        require_same_plan(state | {"plan": [2, 0, 0]}, plan, as_before, ratings=0)
    adapters = recipe(folder, own_critique_epochs=0, reinforce_steps=2, reinforce_singles=False, lora_rank=2)
    older = {"reinforces": True}
    with pytest.raises(RewardError, match="this one merges them first"):
        require_same_plan(older, stage_plan(adapters, 4, writes=True), adapters, ratings=0)


def test_a_run_directory_of_an_older_version_continues_as_it_did(folder: Path, tmp_path: Path) -> None:
    """Its recipe has no keys of the stages, so that it is read with the defaults of today."""
    (tmp_path / "data").mkdir()
    for split, kept in {"train": [*records(4), *RATINGS], "validation": records(1, start=6)}.items():
        write_records(tmp_path / "data" / f"{split}.jsonl.zst", kept)
    values = recipe_to_dict(recipe(folder, batch_pairs=2, reinforce_steps=2, reinforce_samples=2))
    begun = {"own_critique_epochs": 0, "rating_weight": 0.0, "reinforce_singles": False}
    (tmp_path / "config.json").write_text(json.dumps({"recipe": values | begun, "device": "cpu"}))
    with pytest.raises(TrainingStopped):
        train(tmp_path, stop=lambda: True)
    older = {name: value for name, value in values.items() if name not in begun}
    (tmp_path / "config.json").write_text(json.dumps({"recipe": older, "device": "cpu"}))
    state, _ = newest_checkpoint(tmp_path / "checkpoints")
    assert state is not None
    chosen = parse_recipe(older)
    assert chosen.own_critique_epochs and chosen.reinforce_singles
    assert recipe_to_resume(chosen, tmp_path / "checkpoints") == chosen, "of this version"
    for name in ("plan", "stage", "measured"):
        del state[name]
    state |= {"reinforces": False, "taught": None}
    save_checkpoint(tmp_path / "checkpoints", state["step"], state)
    with pytest.raises(TrainingStopped):
        train(tmp_path, stop=lambda: True)
    assert "continues as that version did" in (tmp_path / "events.jsonl").read_text()
    state, _ = newest_checkpoint(tmp_path / "checkpoints")
    assert state is not None and state["step"] == 2 and state["plan"][1] == 0
    assert recipe_to_resume(chosen, tmp_path / "nothing") == chosen
