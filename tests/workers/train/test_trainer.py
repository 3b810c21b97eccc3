"""The loop on a tiny model: it learns, every parameter it should move moves, and what is wrong stops it by name."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import torch

from workers.errors import RewardError
from workers.models import renderer_of
from workers.models.backbones import chunk_encoder
from workers.objectives import Examples, collect
from workers.schema import OutcomeRecord, Task
from workers.train import early_stopping
from workers.train.early_stopping import is_not_clearly_worse
from workers.train.limits import MemoryHalved, TrainingLimits, TrainingStopped
from workers.train.multi_objective import MultiObjectiveModule, bootstrap_weights
from workers.train.optimiser import set_learning_rate
from workers.train.trainer import RewardTrainer


@pytest.fixture
def fit(tiny_recipe, preferences):
    """make(recipe, **fields) -> RewardTrainer and what it reported."""

    def make(
        recipe=tiny_recipe, *, records=preferences, validation=None, **fields
    ) -> tuple[RewardTrainer, list[dict]]:
        said: list[dict] = []
        renderer = renderer_of(recipe)
        torch.manual_seed(1)
        module = MultiObjectiveModule(recipe, collect(records, renderer, recipe), seed=1)
        values = {
            "validation": collect(validation, renderer, recipe) if validation else Examples(),
            "seed": 1,
            "report": lambda **event: said.append(event),
            "cache": module.model.backbone.new_cache(10**7),
        } | fields
        return RewardTrainer(module, recipe, **values), said

    return make


def replace_task(record, name):
    sides = {side: msgspec.structs.replace(getattr(record, side), task=Task(id=name)) for side in ("a", "b")}
    return msgspec.structs.replace(record, **sides)


def weights(trainer: RewardTrainer) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().clone() for name, tensor in trainer.model.named_parameters()}


def test_it_learns_which_is_better(fit, tiny_recipe) -> None:
    one, _ = fit(replace(tiny_recipe, epochs=12, learning_rate=0.02, dropout=0.0))
    one.run()
    assert sum(one.losses[-6:]) < 0.5 * sum(one.losses[:6])


def test_joint_weighs_objectives_however_many_records_each_has(tiny_recipe, preferences) -> None:
    """What is trained and what stops training are one number: the weighted mean of the objectives' means."""
    recipe = replace(tiny_recipe, objective="joint", joint_weights={"outcome": 3.0}, ensemble=1, centring=0.0)
    outcomes = [
        OutcomeRecord(trajectory=side, success=index % 2 == 0)
        for record in preferences[1:10]
        for index, side in enumerate((record.a, record.b))
    ]
    module = MultiObjectiveModule(
        recipe, collect([*preferences[:2], *outcomes], renderer_of(recipe), recipe), seed=0
    ).eval()
    assert module.weights == {"bradley_terry": 0.25, "outcome": 0.75}
    everything = list(range(20))
    with torch.no_grad():
        losses = module.losses(everything)
        metrics, _ = module.validation_metrics([module.validation_values(module.examples, everything)])
    # 2 comparisons and 18 outcomes: each comparison counts 0.25 * 20 / 2, each outcome 0.75 * 20 / 18.
    assert float(losses[:2].mean()) == pytest.approx(2.5 * metrics["bradley_terry loss"], abs=1e-5)
    assert float(losses[2:].mean()) == pytest.approx(0.8333333 * metrics["outcome loss"], abs=1e-5)
    assert float(losses.mean()) == pytest.approx(metrics["loss"], abs=1e-5)


@pytest.mark.parametrize("unfrozen", [False, True])
def test_every_parameter_that_is_trained_moves_and_no_other(fit, tiny_recipe, unfrozen) -> None:
    one, _ = fit(replace(tiny_recipe, unfrozen=unfrozen, epochs=2))
    before = weights(one)
    one.run()
    still = {name for name, tensor in weights(one).items() if torch.equal(tensor, before[name])}
    encoder = {name for name in before if name.startswith("backbone.encoder.")}
    # BERT's pooler is not on the way to the embeddings, which are means over tokens.
    never = {name for name in encoder if name.startswith("backbone.encoder.pooler.")}
    assert still == (never if unfrozen else encoder)


def test_ties_and_both_bad_are_learnt_from(fit, tiny_recipe, make_preference) -> None:
    choices = ["tie", "both_bad", "a", "b"]
    one, _ = fit(
        tiny_recipe, records=[make_preference(number, choice=choices[number % 4]) for number in range(16)]
    )
    before = {name: tensor.detach().clone() for name, tensor in one.module.parts.named_parameters()}
    one.run()
    assert before
    assert all(not torch.equal(tensor, before[name]) for name, tensor in one.module.parts.named_parameters())


def scarce(trainer: RewardTrainer, most: int):
    """The model's passes, with memory for so many examples at once."""
    forward = trainer.module.forward

    def pass_through(chosen, whole, cache=None):
        if len(chosen) > most:
            raise torch.OutOfMemoryError("no memory")
        return forward(chosen, whole, cache)

    return pass_through


def test_out_of_memory_in_one_of_several_processes_all_start_again_with_half(
    fit, tiny_recipe, monkeypatch, make_preference, tmp_path
) -> None:
    records = [replace_task(make_preference(number), "one") for number in range(1, 5)]
    recipe = replace(tiny_recipe, unfrozen=True, micro_tokens=64)
    limits = TrainingLimits(checkpoints=tmp_path / "checkpoints")
    one, _ = fit(recipe, records=records, limits=limits)
    monkeypatch.setattr(one.module, "forward", scarce(one, 1))
    one.process_group.world_size, one.process_group.is_sharded = 2, True
    with pytest.raises(MemoryHalved):
        one._train_step(one.batches[0])
    assert one.micro_tokens <= 32
    again, _ = fit(recipe, records=records, limits=limits)
    assert again.micro_tokens == one.micro_tokens


def test_micro_tokens_split_a_task(fit, tiny_recipe, monkeypatch, make_preference) -> None:
    """Before, a group went through whole: 65,055 tokens at micro_tokens = 4,096."""
    records = [replace_task(make_preference(number), "one") for number in range(1, 13)]
    one, _ = fit(
        replace(tiny_recipe, unfrozen=True, batch_pairs=12, batch_tasks=1, micro_tokens=24), records=records
    )
    assert max(group.cost for group in one.batches[0]) > 24
    passes: list[int] = []
    forward = one.module.forward

    def spy(chosen, whole, cache=None):
        rows = {index for example in chosen for index in one.examples.items[example].trajectory_indices}
        passes.append(one.model.backbone.cost([one.examples.rendered[row] for row in rows]))
        return forward(chosen, whole, cache)

    monkeypatch.setattr(one.module, "forward", spy)
    one._train_step(one.batches[0])
    assert len(passes) > 1 and max(passes) <= 24


@pytest.mark.parametrize("unfrozen", [False, True])
def test_out_of_memory_a_batch_goes_on_in_parts_with_the_same_losses(
    fit, tiny_recipe, monkeypatch, make_preference, unfrozen
) -> None:
    """Without dropout, which is drawn again for each part. Unfrozen, all is of one task: a group has to be split."""
    recipe = replace(tiny_recipe, dropout=0.0, epochs=1, unfrozen=unfrozen, batch_tasks=1)
    records = [replace_task(make_preference(number), "one") for number in range(1, 13)]
    whole, _ = fit(recipe, records=records)
    parted, said = fit(recipe, records=records)
    for record in (whole, parted):
        for module in record.module.modules():
            if isinstance(module, torch.nn.Dropout):  # the encoder's own
                module.p = 0.0
    whole.run()
    monkeypatch.setattr(parted.module, "forward", scarce(parted, 1))
    parted.run()
    assert parted.losses == pytest.approx(whole.losses, abs=1e-4)
    told = [event["message"] for event in said if "out of memory" in event.get("message", "")]
    assert told
    assert parted.micro_tokens < 64
    assert len(told) <= 2 + len(parted.batches)  # it stays at what it found


def test_one_comparison_that_does_not_fit_is_an_error(fit, monkeypatch) -> None:
    one, _ = fit()
    monkeypatch.setattr(one.module, "forward", scarce(one, 0))
    with pytest.raises(RewardError, match="one comparison alone does not fit"):
        one.run()


def test_a_loss_that_is_no_number_stops_and_names_the_pairs(fit, tiny_recipe, make_preference) -> None:
    records = [make_preference(number) for number in range(7)]
    records.append(make_preference(7, weight=float("inf"), item="the odd one"))
    one, _ = fit(replace(tiny_recipe, ensemble=1), records=records)
    with pytest.raises(RewardError, match="the odd one"):
        one.run()


def test_the_best_measurement_is_kept(fit, tiny_recipe, preferences, monkeypatch) -> None:
    monkeypatch.setattr(early_stopping, "_MIN_VALIDATION_RECORDS", 6)
    one, said = fit(
        replace(tiny_recipe, epochs=30, patience=2, learning_rate=0.05),
        records=preferences[:12],
        validation=preferences[12:],
    )
    one.run()
    measured = [event["validation"]["loss"] for event in said if "validation" in event]
    assert one.early_stopping.best is not None
    assert one.early_stopping.best["loss"] == min(measured)
    assert any("stopped early" in event.get("message", "") for event in said)
    kept = one.model.state_dict()
    assert one.early_stopping.best["weights"]
    assert all(torch.equal(kept[name], tensor) for name, tensor in one.early_stopping.best["weights"].items())


@pytest.mark.parametrize(
    ("worse", "expected"),
    [
        ([0.0] * 40, True),  # the same
        ([0.1] * 40, False),  # every judgement a little
        ([0.5, -0.49] * 20, True),  # who knows
        ([0.5, -0.4] * 20, False),  # one can know it of forty judgements,
        ([0.5, -0.4], True),  # not of two
        ([0.1], False),  # nothing is known of one's spread
    ],
)
def test_what_is_not_known_to_be_worse_is_as_good(worse: list[float], *, expected: bool) -> None:
    best_losses = torch.rand(len(worse), dtype=torch.double)
    assert (
        is_not_clearly_worse(best_losses + torch.tensor(worse, dtype=torch.double), best_losses) is expected
    )


def test_a_later_measurement_that_is_as_good_is_kept(fit, tiny_recipe, preferences, monkeypatch) -> None:
    """Losses as they were told: the third is worse by chance, the fourth for sure."""
    monkeypatch.setattr(early_stopping, "_MIN_VALIDATION_RECORDS", 6)
    one, _ = fit(replace(tiny_recipe, epochs=4), records=preferences[:12], validation=preferences[12:])
    told = iter(
        torch.tensor(each, dtype=torch.double)
        for each in ([1.0, 1.0, 1.0], [0.5, 0.6, 0.7], [0.9, 0.1, 0.9], [0.8, 0.9, 1.0])
    )
    steps = []

    def measure(*given: object) -> tuple[dict[str, float], torch.Tensor]:
        losses = next(told)
        steps.append(one.step)
        return {"loss": float(losses.mean())}, losses

    monkeypatch.setattr(one.module, "validation_metrics", measure)
    one.run()
    assert one.early_stopping.best is not None and one.early_stopping.best["loss"] == pytest.approx(0.6)
    assert (
        len(steps) == 4
        and one.early_stopping.best["step"] == steps[2]
        and one.early_stopping.patience_count == 1
    )


@pytest.mark.parametrize(
    ("epochs", "patience", "falls_until", "trained"),
    [
        (20, 5, 1, 8),
        (20, 5, 8, 9),  # measured once more: it falls no longer
        (20, 5, 12, 13),
        (20, 5, 99, 20),
        (100, 5, 1, 40),
        (3, 5, 1, 3),
        (20, 0, 1, 20),
    ],
)
def test_few_judgements_do_not_tell_when_to_stop(
    fit, tiny_recipe, preferences, monkeypatch, epochs: int, patience: int, falls_until: int, trained: int
) -> None:
    recipe = replace(tiny_recipe, epochs=epochs, patience=patience)
    one, said = fit(recipe, records=preferences[:12], validation=preferences[12:])
    measured = []

    def measure(*given: object) -> tuple[dict[str, float], torch.Tensor]:
        measured.append(one.step)
        loss = 1 - 0.01 * min(len(measured), falls_until) + 0.02 * max(0, len(measured) - falls_until)
        return {"loss": loss}, torch.full((6,), loss, dtype=torch.double)

    monkeypatch.setattr(one.module, "validation_metrics", measure)
    one.run()
    assert len(measured) == trained and one.step == measured[-1]
    told = [event["message"] for event in said if "too few for early stopping" in event.get("message", "")]
    assert len(told) == (trained < epochs)
    assert (one.early_stopping.best is None) is bool(patience)


def test_without_validation_it_ends_by_itself(fit, tiny_recipe, preferences) -> None:
    one, _ = fit(replace(tiny_recipe, epochs=20, patience=5), records=preferences[:12], validation=[])
    one.run()
    assert one.step == one.early_stopping.earliest_stop_step == 8 * len(one.batches) // 20


def test_a_budget_of_time(fit, tiny_recipe) -> None:
    one, said = fit(replace(tiny_recipe, epochs=500), limits=TrainingLimits(seconds=0.0))
    one.run()
    assert one.step == 0
    assert said[-1]["message"] == "stopped at the budget of 0 seconds"


@pytest.mark.parametrize("unfrozen", [False, True])
@pytest.mark.parametrize("after", [1, 7, 18])
def test_stopped_and_taken_up_again_it_is_the_same(
    fit, tiny_recipe, preferences, tmp_path: Path, monkeypatch, unfrozen: bool, after: int
) -> None:
    monkeypatch.setattr(early_stopping, "_MIN_VALIDATION_RECORDS", 6)
    recipe = replace(tiny_recipe, unfrozen=unfrozen, patience=3)
    data = {"records": preferences[:18], "validation": preferences[18:]}
    whole, _ = fit(recipe, **data)
    whole.run()

    stopped, _ = fit(recipe, **data)
    stopped.limits = TrainingLimits(lambda: stopped.step == after, checkpoints=tmp_path)
    with pytest.raises(TrainingStopped):
        stopped.run()
    again, said = fit(recipe, **data, limits=TrainingLimits(checkpoints=tmp_path))
    again.run()

    assert said[0]["message"] == f"resumed from the checkpoint at step {after}"
    assert again.losses == whole.losses
    ours, theirs = weights(again), weights(whole)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_what_a_chunk_is_encoded_with_does_not_depend_on_where_training_was_stopped(
    fit, preferences, tmp_path, monkeypatch
) -> None:
    """Rounding depends on a chunk's company in its batch; here by enough to be seen."""

    def encode(encoder, chunks, *, pooling, bfloat16):
        return plain_encode(encoder, chunks, pooling=pooling, bfloat16=bfloat16) + 0.01 * len(chunks)

    plain_encode = chunk_encoder.encode
    monkeypatch.setattr(chunk_encoder, "encode", encode)
    data = {"records": preferences[:18], "validation": preferences[18:]}
    whole, _ = fit(**data)
    whole.run()
    stopped, _ = fit(**data)
    stopped.limits = TrainingLimits(lambda: stopped.step == 3, checkpoints=tmp_path)
    with pytest.raises(TrainingStopped):
        stopped.run()
    again, _ = fit(**data, limits=TrainingLimits(checkpoints=tmp_path))
    again.run()
    assert again.losses == whole.losses


def test_a_run_resumes_with_the_batches_it_began_with(
    fit, tiny_recipe, make_preference, tmp_path, monkeypatch
) -> None:
    """A checkpoint of an earlier version: no limits of batches, one random state, losses in another order."""
    monkeypatch.setattr(early_stopping, "_MIN_VALIDATION_RECORDS", 6)
    records = [replace_task(make_preference(number), f"task-{number % 2}") for number in range(16)]
    data = {"records": records, "validation": [make_preference(number) for number in range(20, 28)]}
    recipe = replace(tiny_recipe, unfrozen=True, batch_tasks=1)
    whole, _ = fit(recipe, **data)
    whole.run()
    stopped, _ = fit(recipe, **data)
    stopped.limits = TrainingLimits(lambda: stopped.step == 6, checkpoints=tmp_path)
    with pytest.raises(TrainingStopped):
        stopped.run()
    path = max(tmp_path.glob("*.pt"))
    state = torch.load(path, weights_only=True)
    torch.save({name: state[name] for name in state if name not in ("batches", "random_by_rank")}, path)
    again, _ = fit(replace(recipe, batch_tasks=4), **data, limits=TrainingLimits(checkpoints=tmp_path))
    assert again.batches != whole.batches
    again.run()
    assert again.batches == whole.batches
    assert again.losses == whole.losses


@pytest.mark.parametrize(
    ("ties", "after", "kept"), [("davidson", 2, 0), ("rao_kupper", 2, 1), ("davidson", 3, 1)]
)
def test_validation_losses_of_an_earlier_kind_are_not_compared(
    fit, tiny_recipe, preferences, tmp_path, ties: str, after: int, kept: int
) -> None:
    """With Davidson's ties they were of strict pairs. Where no validation is left, the best remain the best."""
    recipe = replace(tiny_recipe, ties=ties, epochs=3, batch_pairs=100)
    data = {"records": preferences[:18], "validation": preferences[18:]}
    stopped, _ = fit(recipe, **data)
    stopped.limits = TrainingLimits(lambda: stopped.step == after, checkpoints=tmp_path)
    with pytest.raises(TrainingStopped):
        stopped.run()
    path = max(tmp_path.glob("*.pt"))
    state = torch.load(path, weights_only=True)
    assert state["validation_loss"] == ("likelihood" if ties == "davidson" else "strict pairs")
    del state["validation_loss"]
    state["best"] |= {"loss": -1.0, "losses": state["best"]["losses"] - 9}
    torch.save(state, path)
    again, said = fit(recipe, **data, limits=TrainingLimits(checkpoints=tmp_path))
    again.run()
    assert again.step == 3
    assert (again.early_stopping.best["loss"] == -1.0) is bool(kept)
    assert any("strict pairs" in event.get("message", "") for event in said) is not bool(kept)


def test_validation_is_the_same_however_it_is_shared_out(fit, preferences, make_preference) -> None:
    """Ties have no loss; the losses of the others are in the order of the records."""
    validation = [*preferences[:5], make_preference(30, choice="tie"), *preferences[5:9]]
    one, _ = fit(validation=validation)
    metrics, losses = one.module.validation_metrics([one.module.validation_values(one.validation, range(10))])
    parts = [
        one.module.validation_values(one.validation, part) for part in ([9, 2, 5], [8], [7, 0, 1, 6, 3, 4])
    ]
    shared, in_order = one.module.validation_metrics(parts)
    assert len(losses) == 9
    assert in_order == pytest.approx(losses, abs=1e-6)
    assert shared == pytest.approx(metrics, abs=1e-6)


def test_validation_is_planned_once_and_by_ranks_equal(
    fit, tiny_recipe, make_preference, monkeypatch
) -> None:
    recipe = replace(tiny_recipe, unfrozen=True)
    validation = [replace_task(make_preference(number), str(number)) for number in range(1, 71)]
    one, _ = fit(recipe, validation=validation)
    expected = one._validate()
    found, worked = [], []
    for rank in (0, 1):
        trainer, _ = fit(recipe, validation=validation)
        group, backbone = trainer.process_group, trainer.model.backbone
        group.rank, group.world_size = rank, 2
        monkeypatch.setattr(
            backbone, "work", lambda batch, cost=backbone.cost: worked.append(1) or cost(batch)
        )
        monkeypatch.setattr(group, "all_gather", lambda own: found.append(own) or [own])
        trainer._validate()
        trainer._validate()
    assert len(worked) == 2 * 70
    metrics, losses = one.module.validation_metrics([values for own in found[::2] for values in own])
    assert metrics == pytest.approx(expected, abs=1e-6)
    assert losses == pytest.approx(one.early_stopping.best["losses"], abs=1e-6)


def test_a_checkpoint_of_other_data_is_refused(fit, preferences, tmp_path) -> None:
    one, _ = fit(limits=TrainingLimits(checkpoints=tmp_path))
    one.run()
    other, _ = fit(records=preferences[:10], limits=TrainingLimits(checkpoints=tmp_path))
    with pytest.raises(RewardError, match="other training data"):
        other.run()


def test_a_spoilt_checkpoint_is_named_and_the_one_before_used(fit, tiny_recipe, tmp_path) -> None:
    recipe = replace(tiny_recipe, checkpoint_seconds=0.0)
    one, _ = fit(recipe, limits=TrainingLimits(checkpoints=tmp_path))
    one.run()
    newest = max(tmp_path.glob("*.pt"))
    newest.write_bytes(b"spoilt")
    again, said = fit(recipe, limits=TrainingLimits(checkpoints=tmp_path))
    again.run()
    assert said[0]["message"].startswith(f"the checkpoint {newest.name} cannot be read")
    assert again.losses == one.losses


def test_the_learning_rate_rises_and_falls() -> None:
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.0)
    optimiser.param_groups[0]["peak"] = 2.0
    rates = [set_learning_rate(optimiser, step, 10, 0.2) for step in range(10)]
    assert rates[:2] == [1.0, 2.0]
    assert rates[2] == 2.0
    assert rates[6] == pytest.approx(1.0)  # half of the fall, cos(pi / 2) = 0
    assert rates == sorted(rates[:2]) + sorted(rates[2:], reverse=True)


def test_what_an_objective_learns_has_a_rate_of_its_own(fit, tiny_recipe, preferences) -> None:
    one, _ = fit(replace(tiny_recipe, annotators="learnt", learning_rate=1e-3), records=preferences)
    beside = {id(parameter) for parameter in one.module.parts.parameters()}
    peaks = {
        (id(parameter) in beside): group["peak"]
        for group in one.optimiser.param_groups
        for parameter in group["params"]
    }
    assert peaks == {True: 0.03, False: 1e-3}


def test_the_bootstrap_draws_items_with_all_their_judgements() -> None:
    """Three judgements of an item have one weight in each head; where each has its own item nothing changes."""
    drawn = bootstrap_weights(["a", "a", "b", "a", "c"], 200, 3)
    assert drawn.shape == (5, 200)
    assert bool((drawn[0] == drawn[1]).all()) and bool((drawn[0] == drawn[3]).all())
    assert not bool((drawn[0] == drawn[2]).all())
    generator = torch.Generator().manual_seed(3)
    alone = torch.poisson(torch.ones(4, 7), generator=generator)
    assert bool((bootstrap_weights([1, 2, 3, 4], 7, 3) == alone).all())
    assert bool((bootstrap_weights(["a", "b"], 1, 3) == 1).all())
