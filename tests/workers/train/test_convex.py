"""The linear backbone and its fit: against scikit-learn, against closed forms, and by what it must not do."""

import json
from contextlib import nullcontext
from itertools import count
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge

from tests.workers.conftest import trajectory
from workers.errors import RewardError
from workers.models import Lineage, load, renderer_of, save
from workers.models.backbones.design_matrix import UNSEEN, DesignMatrix
from workers.models.backbones.step_entries import FIRST_STRUCTURE, STRUCTURE_SCALE
from workers.objectives import Examples, collect, collect_training
from workers.schema import OutcomeRecord, PreferenceRecord, RatingRecord, Text, TokenIds, write_records
from workers.schema.recipe import parse_recipe, recipe_to_dict
from workers.train import convex, convex_memory, laplace_draws
from workers.train.convex import ConvexTrainer
from workers.train.convex_memory import fit_bytes
from workers.train.limits import TrainingLimits, TrainingStopped
from workers.train.multi_objective import MultiObjectiveModule
from workers.train.penalty_choice import ChosenPenalty
from workers.train.pipeline import train
from workers.train.reward_statistics import score_rendered

pytestmark = pytest.mark.ml
WORDS = ["good", "fine", "sent", "late", "lost", "wrong", "done", "kind", "rude", "slow", "fast", "open"]


def prepared(records, *, variance: float | None = 0.1, validation=(), limits=None, **values):
    """A trainer before its run, and what it reports. variance: None has it chosen."""
    recipe = parse_recipe({"backbone": "linear", "ensemble": 1} | values)
    examples = collect_training(records, renderer_of(recipe), recipe)
    held_out = collect(validation, renderer_of(recipe), recipe)
    said: list[dict] = []
    trainer = ConvexTrainer(
        MultiObjectiveModule(recipe, examples, seed=0),
        recipe,
        held_out,
        seed=0,
        report=lambda **event: said.append(event),
        limits=limits or TrainingLimits(),
    )
    if variance is not None:
        trainer.penalty = ChosenPenalty(variance, trainer.backbone.embedding_weight)
    return trainer, said


def fitted(records, **values):
    """A trainer after its run, and what it reported."""
    trainer, said = prepared(records, **values)
    trainer.run()
    return trainer, said


def noisy(count: int, *, seed: int = 0, tasks: int = 30) -> list:
    """Comparisons of random words, of which "good" wins and "wrong" loses more often than not."""
    dice = np.random.default_rng(seed)
    found = []
    for number in range(count):
        a, b = (" ".join(dice.choice(WORDS, 4)) for _ in range(2))
        if a == b:
            continue
        gain = [text.count("good") - text.count("wrong") for text in (a, b)]
        is_first = dice.random() < 1 / (1 + np.exp(2.0 * (gain[1] - gain[0])))
        task = f"t{number % tasks}"
        sides = {"a": trajectory(a, task=task), "b": trajectory(b, task=task)}
        found.append(PreferenceRecord(**sides, choice="a" if is_first else "b", annotator="ann"))
    return found


def design(trainer: ConvexTrainer, records):
    """The sums of features over steps, [trajectories, known features], of both sides of comparisons."""
    backbone = trainer.backbone
    sides = [[backbone.renderer.render(getattr(record, side)) for record in records] for side in "ab"]
    return [DesignMatrix().rows(side, backbone.known).matrix for side in sides]


def test_rows_of_known_features_share_nothing_with_others() -> None:
    """Against the same matrix, entry by entry."""
    items = [
        renderer_of(parse_recipe({"backbone": "linear"})).render(Text(text))
        for text in ("good sent", "late", "")
    ]
    matrix = DesignMatrix()
    known = matrix.columns(items)
    rows = matrix.rows(items, known)
    dense = rows.matrix.toarray()
    assert (rows.matrix.dtype, rows.unseen.nnz) == (np.float64, 0)
    some = matrix.rows(items, known[::2])
    assert (some.matrix.toarray() == dense[:, ::2]).all()
    missing = np.zeros((len(items), UNSEEN))
    np.add.at(missing.T, known[1::2] % UNSEEN, dense[:, 1::2].T)
    assert some.unseen.toarray() == pytest.approx(missing, abs=1e-12)


class TestFit:
    def test_comparisons_give_the_weights_of_a_logistic_regression(self) -> None:
        records = noisy(120)
        trainer, _ = fitted(records)
        a, b = design(trainer, records)
        peer = LogisticRegression(C=0.1, fit_intercept=False, tol=1e-10, max_iter=5_000)
        peer.fit(a - b, [record.choice == "a" for record in records])
        weight = trainer.backbone.weight.detach().numpy()[:, 0]
        assert weight == pytest.approx(peer.coef_[0], abs=2e-4)
        assert np.abs(weight).max() > 0.05

    def test_outcomes_give_the_weights_and_the_intercept_of_one(self) -> None:
        dice = np.random.default_rng(1)
        texts = [" ".join(dice.choice(WORDS, 4)) for _ in range(80)]
        records = [
            OutcomeRecord(
                trajectory=trajectory(text, task=f"t{number}"),
                success=bool(dice.random() < (0.9 if "good" in text else 0.4)),
            )
            for number, text in enumerate(texts)
        ]
        trainer, _ = fitted(records, objective="outcome")
        backbone = trainer.backbone
        rows = DesignMatrix().rows(
            [backbone.renderer.render(record.trajectory) for record in records], backbone.known
        )
        peer = LogisticRegression(C=0.1, tol=1e-10, max_iter=5_000)
        peer.fit(rows.matrix, [record.success for record in records])
        assert backbone.weight.detach().numpy()[:, 0] == pytest.approx(peer.coef_[0], abs=2e-4)
        assert float(backbone.intercept.detach()) == pytest.approx(peer.intercept_[0], abs=2e-3)

    def test_ratings_give_the_weights_and_the_intercept_of_a_ridge_regression(self) -> None:
        """No learnt scale takes the penalty away."""
        dice = np.random.default_rng(2)
        texts = [" ".join(dice.choice(WORDS, 4)) for _ in range(80)]
        records = [
            RatingRecord(
                trajectory=trajectory(text, task=f"t{number}"),
                rating=float(np.clip(3 + 2 * text.count("good") + dice.normal(), 1, 5)),
                scale=(1.0, 5.0),
                annotator="ann",
            )
            for number, text in enumerate(texts)
        ]
        trainer, _ = fitted(records, objective="regression")
        backbone = trainer.backbone
        rows = DesignMatrix().rows(
            [backbone.renderer.render(record.trajectory) for record in records], backbone.known
        )
        peer = Ridge(alpha=5.0).fit(rows.matrix.toarray(), [(record.rating - 1) / 4 for record in records])
        weight = backbone.weight.detach().numpy()[:, 0]
        assert weight == pytest.approx(peer.coef_, abs=2e-4)
        assert np.abs(weight).max() > 0.01

    def test_the_spread_of_the_heads_is_that_of_the_posterior(self) -> None:
        """Var of a reward by (H + I / variance)^-1 in closed form; many heads, so that their spread is exact."""
        records = noisy(150)
        trainer, _ = fitted(records, variance=0.05, ensemble=64)
        a, b = (side.toarray() for side in design(trainer, records))
        difference, weight = a - b, trainer.backbone.weight.detach().numpy()[:, 0]
        p = 1 / (1 + np.exp(-difference @ weight))
        hessian = difference.T @ (difference * (p * (1 - p))[:, None]) + np.eye(len(weight)) / 0.05
        covariance = np.linalg.inv(hessian)
        probes = difference[:40]
        expected = np.sqrt(np.einsum("nw,wv,nv->n", probes, covariance, probes))
        deviations = trainer.backbone.deviations[..., 0].numpy()
        assert np.abs(deviations.mean(1)).max() < 1e-9
        found = (probes @ deviations).std(1)
        assert np.corrcoef(found, expected)[0, 1] > 0.6
        assert found.mean() == pytest.approx(expected.mean(), rel=0.15)

    def test_unseen_words_are_worth_nothing_and_leave_more_open(self) -> None:
        trainer, _ = fitted(noisy(300), ensemble=64, variance=3.0)
        model = trainer.model
        with torch.no_grad():
            known, unknown = (
                model([model.backbone.renderer.render(Text(text))]).rewards[0]
                for text in ("good good sent", "zzyzx qwerty uiop")
            )
        shape = trainer.backbone.renderer.render(Text("zzyzx qwerty uiop")).structure
        weight = trainer.backbone.weight.detach()[:, 0]
        of_shape = sum(
            STRUCTURE_SCALE * float(value) * float(weight[place])
            for column, value in enumerate(shape[0])
            for place in np.flatnonzero(trainer.backbone.known == FIRST_STRUCTURE + column)
        )
        assert float(unknown.mean()) == pytest.approx(of_shape, abs=1e-9)
        assert float(unknown.std()) > 1.1 * float(known.std())

    def test_the_penalty_is_chosen_by_tasks_that_are_held_out(self) -> None:
        """Labels by a coin: the strongest penalty there is. A rule that always holds: a weaker one."""
        dice = np.random.default_rng(0)
        coin = [msgspec.structs.replace(record, choice=str(dice.choice(["a", "b"]))) for record in noisy(150)]
        _, said = fitted(coin, variance=None)
        messages = [event["message"] for event in said if "message" in event]
        assert messages[0] == "choosing a ridge penalty by 3 folds over the tasks of 150 of 150 examples"
        assert messages[1].startswith(f"ridge penalty {1 / convex.VARIANCES[0]:g}, ")
        rule = [
            record
            for record in noisy(400, tasks=60)
            if record.a.steps[1].message[0].text.count("good")
            != record.b.steps[1].message[0].text.count("good")
        ]
        ruled = [
            msgspec.structs.replace(
                record,
                choice="a"
                if record.a.steps[1].message[0].text.count("good")
                > record.b.steps[1].message[0].text.count("good")
                else "b",
            )
            for record in rule
        ]
        trainer, _ = fitted(ruled, variance=None)
        assert trainer.backbone.penalty <= 1 / 0.03

    def test_few_tasks_take_the_default(self) -> None:
        trainer, _ = fitted(noisy(20, tasks=3), variance=None)
        assert trainer.backbone.penalty == 1 / convex.DEFAULT_VARIANCE


class TestLimits:
    def test_it_stops_when_asked(self) -> None:
        with pytest.raises(TrainingStopped):
            fitted(noisy(30), limits=TrainingLimits(lambda: True))

    def test_a_budget_that_ends_in_the_choice_of_the_penalty_leaves_a_fit_of_all(self, monkeypatch) -> None:
        """The clock counts the evaluations of the loss; the 50th is of the second fold or penalty."""
        records = noisy(60)
        trainer, said = prepared(records, variance=None, limits=TrainingLimits(seconds=50.0), ensemble=4)
        clock = count()
        monkeypatch.setattr(convex, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
        trainer._started = 0.0
        trainer.run()
        messages = [event.get("message") for event in said]
        assert "the budget of 50 seconds left no time to choose a penalty" in messages
        assert messages[-2] == "stopped at the budget of 50 seconds"
        assert 0 < trainer.step <= convex._LEAST_STEPS
        backbone = trainer.backbone
        assert backbone.penalty == 1 / convex.DEFAULT_VARIANCE
        a, b = (side @ backbone.weight.detach().numpy()[:, 0] for side in design(trainer, records))
        right = [
            (margin > 0) == (record.choice == "a") for margin, record in zip(a - b, records, strict=True)
        ]
        assert np.mean(right) > 0.7
        backbone.finish_training()
        assert not backbone.deviates

    def test_a_budget_that_ends_in_a_line_search_keeps_the_best_weights(self, monkeypatch) -> None:
        """It ends after the first evaluation that is worse than one before it."""
        records = noisy(30)
        losses = fitted(records, variance=100.0)[0].losses
        worse = next(n for n in range(convex._LEAST_STEPS, len(losses)) if losses[n] > min(losses[:n]))
        trainer, said = prepared(records, variance=100.0, limits=TrainingLimits(seconds=worse + 0.5))
        trainer._started = 0.0
        monkeypatch.setattr(convex, "time", SimpleNamespace(monotonic=lambda: float(trainer.step)))
        trainer.run()
        assert trainer.step == worse + 1
        assert "stopped at the budget" in said[-2]["message"]
        size = len(trainer.examples)
        with torch.no_grad():
            ridge = float(trainer.backbone.weight.square().sum()) / (2 * 100.0 * size)
            reached = float(trainer.module(range(size), size, trainer.cache)) + ridge
        assert reached == pytest.approx(min(losses[:worse]), abs=1e-12)
        assert reached < losses[worse] - 1e-7

    @pytest.mark.parametrize("ending", [TrainingStopped, convex._BudgetReached])
    def test_what_ends_the_draw_of_the_heads_leaves_a_usable_model(self, monkeypatch, ending) -> None:
        def end(*_: object) -> None:
            raise ending

        monkeypatch.setattr(laplace_draws, "_conjugate_gradients", end)
        trainer, _ = prepared(noisy(30), ensemble=4, limits=TrainingLimits(seconds=600.0))
        drawn = trainer.module.bootstrap
        with pytest.raises(TrainingStopped) if ending is TrainingStopped else nullcontext():
            trainer.run()
        assert trainer.module.bootstrap is drawn
        assert not trainer.backbone.deviations.requires_grad
        assert not trainer.backbone.deviates
        assert float(trainer.backbone.weight.detach().abs().max()) > 0.01

    def test_too_little_memory_is_refused_with_what_it_would_take(self, monkeypatch) -> None:
        trainer, _ = prepared(noisy(10))
        trainer.run()
        needed = fit_bytes(trainer.end_cache, trainer.examples.rendered, trainer.backbone.readout, 10_000)
        rows = trainer.backbone.design_rows(trainer.examples.rendered, trainer.end_cache).matrix
        assert 62 * rows.nnz < needed < 62 * rows.nnz + 300 * rows.nnz
        monkeypatch.setattr(convex_memory, "memory_bytes", lambda: needed)
        with pytest.raises(RewardError, match=r"needs about .* GB of memory, .* fewer or shorter traj"):
            fitted(noisy(10))
        monkeypatch.setattr(convex_memory, "memory_bytes", lambda: 2 * needed)
        fitted(noisy(10))

    def test_it_is_fitted_on_the_cpu_wherever_it_was(self, monkeypatch) -> None:
        trainer, _ = prepared(noisy(10))
        moved: list[object] = []
        monkeypatch.setattr(trainer.module, "cpu", lambda: moved.append(trainer.backbone.columns.shape))
        trainer.run()
        assert moved == [(0,)]  # before anything is read into it

    def test_one_thread_fits_it(self, monkeypatch) -> None:
        threads: list[int] = []
        monkeypatch.setattr(ConvexTrainer, "_fit", lambda *_, **__: threads.append(torch.get_num_threads()))
        before = torch.get_num_threads()
        torch.set_num_threads(2)
        try:
            fitted(noisy(10))
            assert set(threads) == {1}
            assert torch.get_num_threads() == 2
        finally:
            torch.set_num_threads(before)

    def test_one_process_fits_it(self) -> None:
        class Two:
            world_size = 2

        recipe = parse_recipe({"backbone": "linear"})
        examples = collect_training(noisy(10), renderer_of(recipe), recipe)
        with pytest.raises(RewardError, match="one process"):
            ConvexTrainer(
                MultiObjectiveModule(recipe, examples, seed=0),
                recipe,
                Examples(),
                seed=0,
                report=lambda **event: None,
                process_group=Two(),  # type: ignore[arg-type]
            )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("linear")
    (folder / "data").mkdir()
    splits = {"train": noisy(90), "validation": [], "test": noisy(30, seed=5)}
    for split, records in splits.items():
        write_records(folder / "data" / f"{split}.jsonl.zst", records)
    recipe = recipe_to_dict(parse_recipe({"backbone": "linear", "ensemble": 4}))
    config = {"recipe": recipe, "seed": 0, "device": "cpu", "budget": {"seconds": None}, "attempt": 1}
    (folder / "config.json").write_text(json.dumps(config | {"snapshot": {"name": "p/d@1", "hash": "h"}}))
    train(folder)
    return folder


class TestModel:
    def test_a_loaded_model_scores_as_the_report_says(self, folder) -> None:
        model = load(folder / "model")
        good, bad, long = model.score(
            [model.render(Text(text)) for text in ("good good", "wrong", "good " * 90)]
        )
        assert good.raw > bad.raw
        assert good.std is not None
        assert good.std > 0
        assert good.raw == pytest.approx(good.offset + sum(good.step_rewards), abs=1e-9)
        report = json.loads((folder / "report.json").read_text())
        assert report["preference"]["accuracy"] > 0.6
        assert model.manifest["backbone"]["kind"] == "linear"
        assert long.truncated is False

    def test_equal_scores_whatever_it_is_batched_with(self, folder) -> None:
        model = load(folder / "model")
        texts = [model.render(Text(text)) for text in ("good good", "wrong", "never seen before", "")]
        together = model.score(texts)
        alone = [model.score([text])[0] for text in texts]
        assert [score.raw for score in together] == pytest.approx([score.raw for score in alone], abs=1e-12)

    def test_a_saved_model_scores_exactly_as_the_one_that_was_evaluated(self, tmp_path) -> None:
        trainer, _ = fitted(noisy(40), ensemble=4)
        trainer.backbone.deviations.requires_grad_(True)  # whatever it was left as
        trainer.backbone.finish_training()
        reward = {"median": 0.0, "std": 1.0}
        save(trainer.model, tmp_path, recipe=trainer.recipe, reward=reward, criteria={}, lineage=Lineage())
        items = [trainer.backbone.renderer.render(Text(text)) for text in ("good sent", "never seen before")]
        expected = score_rendered(trainer.model, items)
        found = score_rendered(load(tmp_path).model, items)
        assert found.raw.tolist() == expected.raw.tolist()
        assert found.spread.tolist() == expected.spread.tolist()
        assert min(found.spread.tolist()) > 0

    def test_token_ids_are_refused(self, folder) -> None:
        with pytest.raises(RewardError, match="no tokenizer"):
            load(folder / "model").render(TokenIds((1, 2)))
