"""Reinforcement: every token that was drawn has its gradient, the end token too; logits of prompts are not computed;
with adapters the reference is the model itself."""

import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.workers.judge.judges import decoder, recipe, records
from workers.models.generative import writer as writer_module
from workers.models.generative.model import build_writer
from workers.models.generative.writer import Line, Writer
from workers.schema.recipe import Recipe
from workers.train.generative import trainer as trainer_module
from workers.train.generative.adapters import ReferenceModel, add_adapter, merge_adapter, trained_weights
from workers.train.generative.losses import QuestionLosses
from workers.train.generative.questions import Question, pairs_of, questions_of
from workers.train.generative.reinforcement import Reinforcement
from workers.train.generative.sampling import log_probs_of, sample
from workers.train.generative.trainer import GenerativeTrainer
from workers.train.limits import TrainingLimits, TrainingStopped

END = 2  # of the decoder: <|im_end|>


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return decoder(tmp_path_factory.mktemp("decoder"))


def asked_of(chosen: Recipe, writer: Writer, count: int = 2) -> list[Question]:
    return questions_of(pairs_of(records(count), chosen)[0], writer.renderer)


def made(chosen: Recipe) -> Writer:
    writer = build_writer(chosen, device="cpu")
    writer.language.eval()
    return writer


def test_the_end_token_has_the_gradient_of_any_other(folder: Path) -> None:
    """Of a model that ends with probability 1/2 after every token, all others alike, the numbers are known. TRL's
    GRPOTrainer counts a completion up to its first end token, inclusive, too."""
    chosen = recipe(folder, reinforce_samples=8, reinforce_kl=0.0)
    writer = made(chosen)
    head = writer.language.get_output_embeddings()
    vocabulary = head.weight.shape[0]
    with torch.no_grad():
        head.weight.zero_()
    logits: list[torch.Tensor] = []

    def favour_the_end(module: Any, args: Any, output: torch.Tensor) -> torch.Tensor:
        output = output + torch.nn.functional.one_hot(torch.tensor(END), vocabulary) * math.log(
            vocabulary - 1
        )
        if output.requires_grad:
            output.retain_grad()
        logits.append(output)
        return output

    head.register_forward_hook(favour_the_end)
    torch.manual_seed(0)
    batch = asked_of(chosen, writer)
    drawn = sample(writer, batch, chosen, 4096, writes=True)
    ended = [
        place
        for place, line in enumerate(drawn.lines[: drawn.pairs])
        if line.targets[-1:] == (END,) and drawn.advantages[place]
    ]
    assert len(ended) > 5
    assert any(len(drawn.lines[place].targets) > 1 for place in ended)
    reinforcement = Reinforcement(writer, chosen, QuestionLosses(writer, chosen, True), None)
    for place in ended:
        line, advantage = drawn.lines[place], float(drawn.advantages[place])
        others = len(line.targets) - 1
        expected = [math.log(0.5 / (vocabulary - 1))] * others + [math.log(0.5)]
        assert drawn.old[place, : others + 1].tolist() == pytest.approx(expected, abs=1e-5)
        assert float(drawn.old[place, -1]) == pytest.approx(math.log(0.5)), "the verdict, A or B alike"
        assert drawn.mask[place].sum() == others + 2
        reinforcement._gain([place], writer.read([line]), drawn, drawn.old, defaultdict(float)).backward()
        at = logits[-1].shape[1] - 1 - (len(line.ids) + len(line.before) - line.answer) + others
        gradient = logits[-1].grad
        assert gradient is not None
        assert float(gradient[0, at, END]) == pytest.approx(-advantage / drawn.tokens * 0.5, rel=1e-4)
        assert float(gradient[0, at, 7]) == pytest.approx(
            advantage / drawn.tokens * 0.5 / (vocabulary - 1), rel=1e-4
        )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_what_was_drawn_is_what_trl_counts(folder: Path, tmp_path: Path) -> None:
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer

    writer = made(recipe(folder))
    counted: list[list[int]] = []

    def reward(completion_ids: list[list[int]], **more: Any) -> list[float]:
        counted.extend(completion_ids)
        return [float(len(ids)) for ids in completion_ids]

    options = GRPOConfig(
        output_dir=str(tmp_path),
        per_device_train_batch_size=32,
        num_generations=32,
        max_completion_length=200,
        max_steps=1,
        report_to=[],
        use_cpu=True,
        save_strategy="no",
    )
    trainer = GRPOTrainer(
        AutoModelForCausalLM.from_pretrained(folder),
        reward_funcs=reward,
        args=options,
        train_dataset=Dataset.from_dict({"prompt": ["It was lost."] * 32}),
        processing_class=AutoTokenizer.from_pretrained(folder),
    )
    trainer.train()
    ended = [ids for ids in counted if ids[-1] == END]
    assert ended, "none of them ended"
    for ids in ended:
        padded = [*ids, 0, 0]
        assert list(writer._written(padded, 0).drawn) == ids


def test_logits_are_computed_from_the_answers_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = made(recipe(folder))
    lines = [
        Line((5, 6, 7, 8, 9, 10, 11, 12), 6, (11,)),
        Line((5, 6, 7, 9, 9, 12, 13, 14, 15, 16, 17), 8, drawn=(15, 16, 17, END)[:3]),
        Line((9, 9, 9, 9), 4, (3,)),
    ]
    seen: list[tuple[int, ...]] = []
    head = writer.language.get_output_embeddings()
    head.register_forward_hook(lambda module, args, output: seen.append(tuple(args[0].shape[:2])))

    def read() -> tuple[list[torch.Tensor], torch.Tensor]:
        found = writer.read(lines, entropy=True)
        writer.language.zero_grad()
        (found.log_probs.sum() + found.next[:, 3].sum()).backward()
        gradient = next(iter(writer.language.parameters())).grad
        assert gradient is not None
        return [found.log_probs, found.mask, found.entropy, found.next], gradient.clone()

    kept, gradient = read()
    assert seen == [(3, 4)], "of 11 places the last three, and the one before them"
    monkeypatch.setattr(writer_module, "_forward_parameters", lambda kind: frozenset({"position_ids"}))
    full, full_gradient = read()
    assert seen[1] == (3, 11)
    for some, every in zip(kept, full, strict=True):
        torch.testing.assert_close(some, every, atol=1e-6, rtol=0)
    torch.testing.assert_close(gradient, full_gradient, atol=1e-6, rtol=1e-5)
    alone = [writer.read([line]).log_probs[0] for line in lines]
    for row, own in enumerate(alone):
        torch.testing.assert_close(kept[0][row, : len(own)], own, atol=1e-6, rtol=0)


def test_with_adapters_the_reference_is_the_model_without_them(folder: Path) -> None:
    from trl.trainer.utils import use_adapter

    chosen = recipe(folder, lora_rank=2, reinforce_samples=2)
    base, writer = made(chosen), made(chosen)
    parameters = sum(parameter.numel() for parameter in base.language.parameters())
    writer.language = add_adapter(writer.language, chosen).eval()
    reference = ReferenceModel(writer, has_adapter=True)
    batch = asked_of(chosen, writer)
    torch.manual_seed(1)
    drawn = sample(writer, batch, chosen, 4096, writes=True)
    with torch.no_grad():
        for name, parameter in writer.language.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.3)
    expected = log_probs_of(base, drawn, 4096)
    with reference.active() as other:
        torch.testing.assert_close(log_probs_of(other, drawn, 4096), expected, atol=1e-6, rtol=0)
        assert other.language is writer.language
    with use_adapter(writer.language, None):  # as TRL's GRPOTrainer takes it
        torch.testing.assert_close(log_probs_of(writer, drawn, 4096), expected, atol=1e-6, rtol=0)
    assert float((log_probs_of(writer, drawn, 4096) - expected).abs().max()) > 0.01
    assert reference.copied is None
    adapters = sum(weight.numel() for weight in trained_weights(writer.language).values())
    assert (
        sum(each.numel() for each in writer.language.parameters()) == parameters + adapters < 1.2 * parameters
    )


def test_what_was_learnt_before_is_merged_and_the_reference(folder: Path) -> None:
    chosen = recipe(folder, lora_rank=2)
    writer = made(chosen)
    line = Line(tuple(range(5, 25)), 10)
    writer.language = add_adapter(writer.language, chosen).eval()
    with torch.no_grad():
        for name, parameter in writer.language.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.1)
    before = writer.read([line]).log_probs.detach()
    writer.language = add_adapter(merge_adapter(writer.language), chosen).eval()
    reference = ReferenceModel(writer, has_adapter=True)
    with reference.active() as other:
        torch.testing.assert_close(other.read([line]).log_probs.detach(), before, atol=1e-5, rtol=0)
    torch.testing.assert_close(writer.read([line]).log_probs.detach(), before, atol=1e-5, rtol=0)


def test_reinforcement_of_adapters_resumes_with_the_same_losses(folder: Path, tmp_path: Path) -> None:
    chosen = recipe(
        folder,
        lora_rank=2,
        batch_pairs=2,
        own_critique_epochs=0,
        reinforce_steps=3,
        reinforce_samples=2,
        reinforce_rate=1e-2,
        checkpoint_seconds=0.0,
    )

    def trainer(limits: TrainingLimits) -> GenerativeTrainer:
        writer = build_writer(chosen, device="cpu")
        asked = asked_of(chosen, writer, 4)
        torch.manual_seed(0)
        return GenerativeTrainer(
            writer, chosen, asked, [], seed=0, report=lambda **event: None, limits=limits
        )

    whole = trainer(TrainingLimits())
    whole.run()
    polled = iter(range(3))
    with pytest.raises(TrainingStopped):
        trainer(TrainingLimits(lambda: next(polled, None) is None, None, tmp_path)).run()
    resumed = trainer(TrainingLimits(checkpoints=tmp_path))
    resumed.run()
    assert len(whole.losses) == 2 + 3 and resumed.losses == pytest.approx(whole.losses, abs=1e-5)
    assert whole.curve[-1]["divergence"] > 0
    assert resumed.curve[-1]["divergence"] == pytest.approx(whole.curve[-1]["divergence"], rel=1e-3)


@pytest.mark.parametrize("rank", [0, 2])
def test_reinforcement_gives_nothing_worse_than_it_began_with(
    folder: Path, monkeypatch: pytest.MonkeyPatch, rank: int
) -> None:
    """At such a rate the model is spoilt at once, and its verdicts on validation are fewer right ones."""
    keys: dict[str, Any] = {"batch_pairs": 2, "own_critique_epochs": 0, "reinforce_rate": 1.0}
    chosen = recipe(folder, lora_rank=rank, reinforce_steps=2, reinforce_samples=2, **keys)
    writer = made(chosen)
    asked = asked_of(chosen, writer)
    line = Line(tuple(range(5, 25)), 10)
    given: list[torch.Tensor] = []

    def measured(losses: QuestionLosses, *rest: Any) -> dict[str, float]:
        with torch.no_grad():
            given.append(losses.writer.read([line]).log_probs.clone())
        return {"loss": 1.0, "right": 1.0 / len(given), "pointwise": 0.5}

    monkeypatch.setattr(trainer_module, "validation_metrics", measured)
    trainer = GenerativeTrainer(writer, chosen, asked, asked, seed=0, report=lambda **event: None)
    trainer.run()
    assert trainer.best is not None and trainer.best["step"] == 1, "where reinforcement begins"
    _, start, *reinforced = given
    assert len(reinforced) == 2 and not torch.allclose(start, reinforced[-1], atol=0.1)
    with torch.no_grad():
        torch.testing.assert_close(writer.read([line]).log_probs, start, atol=1e-5, rtol=0)
