"""A small language model that is taught to judge, from random weights, by the very questions judges ask.

Agents send parcels, and the better of two runs lost fewer. A teacher who reads a question as a model does, and knows
the rule, sits where the model would; what he was asked and what is right to say to it are the lessons.
"""

import json
import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import PreTrainedModel

from benchmarks.small_decoder import save_decoder
from workers.llm.completions import Completion, Wanted
from workers.models.backbones.decoder import conversation_renderer
from workers.models.generative.model import load_language
from workers.schema import Part, Step, Task, Trajectory
from workers.text.conversations import ConversationRenderer

GOOD, BAD = ("sent", "signed", "paid"), ("lost", "broken", "late")
STEPS = 12
KINDS = ("score", "compare", "debate_side", "debate_verdict")
_SIGHTED = re.compile("|".join(BAD))
# Numbers, what became of a parcel, and verdicts are tokens of their own; what is always the same is few tokens.
_APART = rf"\d+|\b({'|'.join((*GOOD, *BAD))})\b|\b(A|B|tie|null)\b"
_RATE = 2e-3
# Of the numbers that advocates give in lessons about verdicts: they err, and have to be looked up.
_MISLED = 0.2


@dataclass(frozen=True, slots=True)
class TeacherQuestion:
    """of: one of KINDS. messages: of a question. said: the right answer. first: whether the first run is better; None
    where there is only one, or none comes first."""

    of: str
    messages: tuple[Mapping[str, str], ...]
    said: str
    first: bool | None = None


def pair_of(dice: random.Random) -> tuple[Trajectory, Trajectory]:
    """The better run, and the worse."""
    worse = dice.randint(1, STEPS - 3)
    better = max(worse - dice.choice((1, 1, 2, 3)), 0)
    return run_of(better, dice), run_of(worse, dice)


def run_of(went_wrong: int, dice: random.Random) -> Trajectory:
    words = [*dice.choices(BAD, k=went_wrong), *dice.choices(GOOD, k=STEPS - went_wrong)]
    dice.shuffle(words)
    steps = (Step(source="agent", message=(Part(text=f"parcel {word}"),)) for word in words)
    return Trajectory(steps=tuple(steps), task=Task(id="parcels", instruction=f"Send {STEPS} parcels."))


@dataclass(slots=True)
class Teacher:
    """A `Model`. In the place of an advocate he now and then says a wrong number."""

    dice: random.Random
    lessons: list[TeacherQuestion] = field(default_factory=list)

    def complete(self, wanted: Wanted) -> Completion:
        runs = _runs(wanted.messages[1]["content"])
        lesson = _lesson(wanted, runs)
        self.lessons.append(lesson)
        said = lesson.said
        if lesson.of == "debate_side":
            own, other = runs
            said = json.dumps({"c0": _side(own, other, self._misled(), self._misled())})
        return Completion(said=said)

    def _misled(self) -> int:
        return self.dice.choice((-1, 1)) if self.dice.random() < _MISLED else 0


def _lesson(wanted: Wanted, runs: Sequence[Sequence[bool]]) -> TeacherQuestion:
    messages = tuple(wanted.messages)
    if wanted.name == "Scores":
        (run,) = runs
        answer: dict[str, Any] = {"reason": f"{sum(run)} went wrong.", "step": _first(run, True)}
        return TeacherQuestion("score", messages, json.dumps({"c0": answer | {"score": STEPS - sum(run)}}))
    a, b = runs
    if wanted.name == "Sides":
        return TeacherQuestion("debate_side", messages, json.dumps({"c0": _side(a, b)}))
    answer = {
        "reason": f"{sum(a)} went wrong in A, {sum(b)} in B.",
        "step_a": _first(a, True),
        "step_b": _first(b, True),
        "better": "A" if sum(a) < sum(b) else "B",
    }
    kind = "debate_verdict" if "advocate" in messages[0]["content"] else "compare"
    return TeacherQuestion(kind, messages, json.dumps({"c0": answer}), sum(a) < sum(b))


def _side(own: Sequence[bool], other: Sequence[bool], more: int = 0, worse: int = 0) -> dict[str, Any]:
    good, bad = (min(max(count, 0), STEPS) for count in (STEPS - sum(own) + more, sum(other) + worse))
    well, wrong = _first(own, False), _first(other, True)
    return {
        "merit": f"{good} went well." if good else "",
        "merit_step": well if good else None,
        "fault": f"{bad} went wrong." if bad else "",
        "fault_step": wrong if bad else None,
    }


def _first(run: Sequence[bool], what: bool) -> int | None:
    return next((place for place, went_wrong in enumerate(run) if went_wrong == what), None)


def _runs(question: str) -> list[list[bool]]:
    """Of each run that is shown, which steps went wrong."""
    found: list[list[bool]] = []
    for line in question.split("\n"):
        if line.startswith('{"task"'):
            found.append([])
        elif line.startswith('{"step"'):
            found[-1].append(_SIGHTED.search(line) is not None)
    return found


def decoder(folder: Path, lessons: Sequence[TeacherQuestion], seed: int) -> Path:
    texts = [message["content"] for lesson in lessons for message in lesson.messages] + [
        lesson.said for lesson in lessons
    ]
    return save_decoder(folder, texts, seed=seed, vocabulary=3000, width=96, layers=3, heads=4, apart=_APART)


def teach(
    folder: Path, lessons: Sequence[Sequence[TeacherQuestion]], *, epochs: int, batch: int, seed: int
) -> list[float]:
    """Of the model in the folder, which keeps what it learnt; the loss of every hundredth step, and of the last.

    lessons: those of each pair of runs, one of each kind, which are learnt together. batch: pairs.
    """
    texts = conversation_renderer(folder, max_tokens=4096)
    module = load_language(folder, device="cpu").train()
    known = [[_ids(text, texts) for text in pair] for pair in lessons]
    batches = [
        order[place : place + batch]
        for epoch in range(epochs)
        for order in [random.Random(f"{seed}/{epoch}").sample(range(len(known)), len(known))]
        for place in range(0, len(known), batch)
    ]
    chooser = torch.optim.AdamW(module.parameters(), lr=_RATE, weight_decay=0.01, betas=(0.9, 0.95))
    slope = torch.optim.lr_scheduler.LambdaLR(chooser, lambda step: _pace(step / len(batches)))
    losses = []
    for step, some in enumerate(batches):
        loss = _loss(module, [index for place in some for index in known[place]])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        chooser.step()
        slope.step()
        chooser.zero_grad()
        if step % 100 == 0 or step == len(batches) - 1:
            losses.append(float(loss.detach()))
    module.save_pretrained(folder)
    return losses


def _pace(done: float) -> float:
    return min(done / 0.05, 0.5 + 0.5 * math.cos(math.pi * done)) + 0.01


def _ids(lesson: TeacherQuestion, texts: ConversationRenderer) -> tuple[list[int], int]:
    """Of question and answer, and where the answer begins."""
    system, user = (Part(text=message["content"]) for message in lesson.messages)
    asked = texts.question([Step(source="system", message=(system,)), Step(source="user", message=(user,))])
    return [*asked, *texts.encode(lesson.said), int(texts.tokenizer.eos_token_id)], len(asked)


def _loss(module: PreTrainedModel, some: Sequence[tuple[list[int], int]]) -> Tensor:
    """Mean over the tokens of answers. Rows are filled up behind, where nothing before can see it."""
    longest = max(len(ids) for ids, _ in some)
    rows = torch.tensor([ids + [0] * (longest - len(ids)) for ids, _ in some])
    told = torch.tensor([[start <= at < len(ids) for at in range(1, longest)] for ids, start in some])
    states = module.base_model(input_ids=rows, use_cache=False).last_hidden_state[:, :-1]
    return F.cross_entropy(module.lm_head(states[told]), rows[:, 1:][told])
