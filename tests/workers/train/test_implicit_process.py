"""Policies trained against a frozen reference model: TRL's loss, the artifact, its export, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM

from tests.workers.decoders import configs, save_decoder, tokenizer
from workers.errors import RewardError
from workers.influence.record_influence import trace
from workers.models import load, renderer_of
from workers.models.build import build
from workers.models.exporting import ExportOptions, export
from workers.objectives import Examples, collect
from workers.schema import OutcomeRecord, Part, Step, Task, Trajectory
from workers.schema.recipe import Recipe, parse_recipe
from workers.train.limits import TrainingLimits, TrainingStopped
from workers.train.multi_objective import MultiObjectiveModule
from workers.train.pipeline import train
from workers.train.trainer import RewardTrainer

BETA = 0.3


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    return save_decoder(tmp_path_factory.mktemp("policy"), "qwen2")


@pytest.fixture
def recipe(base) -> Recipe:
    return parse_recipe(
        {
            "objective": "implicit_process",
            "backbone": "decoder",
            "decoder": str(base),
            "beta": BETA,
            "max_tokens": 128,
            "lora_rank": 4,
            "epochs": 8,
            "learning_rate": 0.01,
            "batch_pairs": 4,
            "precision": "float32",
            "patience": 0,
            "evaluations_per_epoch": 1,
        }
    )


def trainer(recipe: Recipe, records, **fields) -> RewardTrainer:
    torch.manual_seed(1)
    module = MultiObjectiveModule(recipe, collect(records, renderer_of(recipe), recipe), seed=1)
    return RewardTrainer(module, recipe, Examples(), seed=1, report=lambda **event: None, **fields)


def said(*turns: tuple[str, str]) -> Trajectory:
    steps = tuple(Step(source=source, message=(Part(text=text),)) for source, text in turns)
    return Trajectory(steps=steps, task=Task(id="t"))


TURNS = said(("user", "hello"), ("agent", "the order was sent"), ("user", "yes?"), ("agent", "no refund"))


def perturb(model, size: float = 0.05) -> None:
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(size * torch.randn_like(parameter))


@pytest.mark.parametrize("rank", [0, 4])
def test_it_begins_as_its_reference_model(recipe, rank: int) -> None:
    model = build(replace(recipe, lora_rank=rank))
    item = model.backbone.renderer.render(TURNS)
    assert model([item]).rewards.abs().max() < 1e-5
    perturb(model)
    assert model([item]).rewards.abs().max() > 1e-2


@pytest.mark.parametrize("name", ["qwen2", "gpt2"])
def test_loss_and_gradient_are_those_of_trl(
    recipe, make_preference, make_trajectory, tmp_path, name: str
) -> None:
    """On what our renderer makes of a batch, two of its trajectories with several steps of the agent."""
    pytest.importorskip("trl")
    from datasets import Dataset
    from trl import DPOConfig, DPOTrainer

    folder = save_decoder(tmp_path / "decoder", name)
    recipe = replace(recipe, decoder=str(folder), lora_rank=0)
    longer = make_preference(1)
    longer = type(longer)(a=TURNS, b=make_trajectory("lost"), choice="a", annotator="ann")
    records = [make_preference(0), make_preference(3), longer]
    module = MultiObjectiveModule(recipe, collect(records, renderer_of(recipe), recipe), seed=1)
    policy = module.model.backbone.policy
    perturb(policy)
    module.train()
    ours = module(range(len(records)), len(records))
    ours.backward()

    theirs, reference = (AutoModelForCausalLM.from_pretrained(folder) for _ in range(2))
    theirs.base_model.load_state_dict(policy.base.state_dict())
    theirs.lm_head.weight.data.copy_(policy.weight.data)
    dataset = Dataset.from_list([{"prompt": "a", "chosen": "b", "rejected": "c"}])
    options = {"report_to": [], "bf16": False, "use_cpu": True, "activation_checkpointing": False}
    peer = DPOTrainer(
        theirs,
        reference,
        DPOConfig(output_dir=str(tmp_path / "trl"), beta=BETA, disable_dropout=True, **options),
        train_dataset=dataset,
        processing_class=tokenizer(),
    )
    rendered, items = module.examples.rendered, module.examples.items
    sides = [
        rendered[item.trajectory_indices[0 if (item.record.choice == "a") == is_chosen else 1]]
        for is_chosen in (True, False)
        for item in items
    ]
    width = max(len(side.ids) for side in sides)
    ids, seen, written = torch.zeros(3, len(sides), width, dtype=torch.long).unbind()
    for row, side in enumerate(sides):
        ids[row, : len(side.ids)] = torch.tensor(side.ids)
        seen[row, : len(side.ids)] = 1
        for start, end in side.kept_spans:
            written[row, start:end] = 1
    theirs_loss = peer._compute_loss(
        theirs, {"input_ids": ids, "attention_mask": seen, "completion_mask": written}, return_outputs=False
    )
    theirs_loss.backward()
    assert ours.item() == pytest.approx(theirs_loss.item(), abs=1e-5)
    mine = {key: one.grad for key, one in policy.base.named_parameters() if one.grad is not None}
    other = {key: one.grad for key, one in theirs.base_model.named_parameters() if one.grad is not None}
    assert mine.keys() == other.keys() and mine
    largest = max(float(one.abs().max()) for one in other.values())
    assert max(float((mine[key] - other[key]).abs().max()) for key in other) < 1e-4 * largest
    assert theirs.lm_head.weight.grad == pytest.approx(policy.weight.grad, abs=1e-4 * largest)


@pytest.mark.parametrize("rank", [0, 4])
def test_it_learns_and_moves_the_policy_alone(recipe, preferences, rank: int) -> None:
    run = trainer(replace(recipe, lora_rank=rank, learning_rate=0.01 if rank else 1e-3), preferences)
    before = {name: tensor.detach().clone() for name, tensor in run.model.named_parameters()}
    run.run()
    assert sum(run.losses[-6:]) < 0.7 * sum(run.losses[:6])
    moved = {name for name, tensor in run.model.named_parameters() if not torch.equal(tensor, before[name])}
    assert moved == {name for name, tensor in run.model.named_parameters() if tensor.requires_grad}
    assert all("lora" in name for name in moved) if rank else not any("reference" in name for name in moved)


def test_outcomes_alone_teach_it(recipe, preferences) -> None:
    outcomes = [
        OutcomeRecord(trajectory=side, success=(side is record.a) == (record.choice == "a"))
        for record in preferences
        for side in (record.a, record.b)
    ]
    run = trainer(recipe, outcomes)
    run.run()
    rows = [run.examples.rendered[item.trajectory_indices[0]] for item in run.examples.items]
    rewards = run.model(rows).rewards.squeeze(1)
    success = torch.tensor([item.record.success for item in run.examples.items])
    assert ((rewards > 0) == success).float().mean() > 0.9


@pytest.mark.parametrize("rank", [0, 4])
def test_resumed_it_is_the_same(recipe, preferences, tmp_path, rank: int) -> None:
    recipe = replace(recipe, lora_rank=rank, epochs=2, learning_rate=1e-3)
    whole = trainer(recipe, preferences[:12])
    whole.run()
    stopped = trainer(recipe, preferences[:12])
    stopped.limits = TrainingLimits(lambda: stopped.step == 4, checkpoints=tmp_path)
    with pytest.raises(TrainingStopped):
        stopped.run()
    again = trainer(recipe, preferences[:12], limits=TrainingLimits(checkpoints=tmp_path))
    again.run()
    assert again.losses == whole.losses


def step_log_ratios(policy: Path, reference: Path, item) -> list[float]:
    """Of each agent step, as transformers' own classes give them."""
    found = []
    for folder in (policy, reference):
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([item.ids])).logits[0, :-1].log_softmax(-1)
        found.append(logits.gather(-1, torch.tensor(item.ids[1:]).unsqueeze(-1)).squeeze(-1))
    ratio = found[0] - found[1]
    return [float(ratio[start - 1 : end - 1].sum()) for start, end in item.kept_spans]


@pytest.mark.parametrize(("name", "rank"), [("qwen2", 4), ("gpt2", 0)])
def test_the_artifact_scores_as_the_two_models_that_are_exported(
    run_directory, recipe, preferences, tmp_path, with_linear_baseline, name: str, rank: int
) -> None:
    """And it orders pairs by the sum of its step rewards as it was trained to. gpt2: its LM head is its embeddings."""
    folder = save_decoder(tmp_path / "decoder", name)
    rate = 0.01 if rank else 2e-3
    run = run_directory(replace(recipe, decoder=str(folder), lora_rank=rank, learning_rate=rate))
    report = train(run)
    assert report["preference"]["accuracy"] == 1.0
    assert report["train"]["by_objective"] == {"implicit_process": 12}
    assert report["preference"]["baselines"]["linear"]["accuracy"] > 0.9
    model = load(run / "model")
    manifest = model.manifest
    assert (manifest["objective"], manifest["aggregation"]) == ("implicit_process", "sum")
    assert (manifest["backbone"]["kind"], manifest["backbone"]["beta"]) == ("implicit-process", BETA)
    for record in preferences:
        a, b = model.score([model.render(record.a), model.render(record.b)])
        assert [score.raw for score in (a, b)] == pytest.approx(
            [sum(score.step_rewards) for score in (a, b)], abs=1e-6
        )
        assert (sum(a.step_rewards) > sum(b.step_rewards)) is (record.choice == "a")
    export(run / "model", "transformers", tmp_path / "out", ExportOptions())
    item = model.render(TURNS)
    (score,) = model.score([item])
    ratios = step_log_ratios(tmp_path / "out" / "policy", tmp_path / "out" / "reference", item)
    assert len(ratios) == 2
    assert list(score.step_rewards) == pytest.approx([BETA * ratio for ratio in ratios], abs=1e-5)
    before = AutoModelForCausalLM.from_pretrained(folder).state_dict()
    after = AutoModelForCausalLM.from_pretrained(tmp_path / "out" / "reference").state_dict()
    assert all(torch.equal(before[key], after[key]) for key in before)


def test_a_trained_policy_is_the_next_reference_model(run_directory, recipe, preferences) -> None:
    first = run_directory(replace(recipe, epochs=1))
    train(first)
    second = run_directory(replace(recipe, epochs=1, decoder=str(first / "model")))
    train(second)
    policy, reference = (load(folder / "model").model.backbone for folder in (first, second))
    theirs = dict(reference.reference.named_parameters())
    assert all(torch.equal(one, theirs[name]) for name, one in policy.policy.named_parameters())


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("values", "key", "words"),
        [
            ({"backbone": "step-encoder"}, "backbone", "two causal language models"),
            ({"backbone": "linear"}, "backbone", "use the backbone 'decoder'"),
            ({"ensemble": 3}, "ensemble", "has one policy"),
            ({"aggregation": "min"}, "aggregation", "adds up the log-ratios"),
            ({"heads_only": True}, "heads_only", "has no heads"),
            ({"conditioned": ["reference"]}, "conditioned", "no conditions"),
            ({"sharding": "always"}, "sharding", "whole copy"),
            ({"base_weights": "nf4"}, "base_weights", "4 bits would be another"),
            ({"annotators": "learnt"}, "annotators", "'given' or 'equal'"),
            ({"beta": 0}, "beta", "log-ratio of the policy"),
        ],
    )
    def test_recipes(self, values, key: str, words: str) -> None:
        with pytest.raises(RewardError, match=words) as caught:
            parse_recipe({"objective": "implicit_process", "backbone": "decoder", "decoder": "qwen"} | values)
        assert caught.value.pointer == f"/{key}"

    def test_a_model_that_is_no_language_model(self, recipe, tmp_path) -> None:
        headless = tmp_path / "headless"
        torch.manual_seed(1)
        AutoModel.from_config(configs()["qwen2"]).save_pretrained(headless)
        tokenizer().save_pretrained(headless)
        with pytest.raises(
            RewardError, match=r"headless is no causal language model: .* Qwen2Model"
        ) as caught:
            build(replace(recipe, decoder=str(headless)))
        assert caught.value.pointer == "/decoder"
        config = AutoConfig.from_pretrained(headless)
        config.architectures, config.tie_word_embeddings = ["Qwen2ForCausalLM"], False
        config.save_pretrained(headless)
        with pytest.raises(RewardError, match=r"lm_head\.weight missing in its files"):
            build(replace(recipe, decoder=str(headless)))

    def test_tracing_its_feedback(self, run_directory, recipe, preferences) -> None:
        folder = run_directory(replace(recipe, epochs=1))
        train(folder)
        (folder / "parent").mkdir()
        (folder / "model").rename(folder / "parent" / "model")
        with pytest.raises(RewardError, match="not off a head, so its feedback cannot be traced"):
            trace(folder)

    def test_a_parent(self, run_directory, recipe, preferences, tmp_path) -> None:
        first = run_directory(replace(recipe, epochs=1))
        train(first)
        again = run_directory(recipe, parent={"name": "p/m@1"})
        (again / "parent").mkdir()
        (first / "model").rename(again / "parent" / "model")
        with pytest.raises(RewardError, match="stays its reference model") as caught:
            train(again)
        assert caught.value.pointer == "/parent"
