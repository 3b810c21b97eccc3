"""The keys of cached completions: what was paid for before an upgrade is found after it.

A key is made of the model's name, the messages and the JSON schema of the answer. The schema holds the names of the
classes it is made from, so that renaming one of them would have every question asked again.
"""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from workers.induce.induction_files import Aspect, Comment, Trait
from workers.induce.llm_prompts import NamedMetric, render_trajectory
from workers.induce.llm_questions import InductionQuestions
from workers.judge.rubric import Criterion, RubricJudge
from workers.llm import LLMServer
from workers.llm.client import LLMClient, NoAnswer
from workers.llm.completions import Completion, Wanted
from workers.prompts import templates
from workers.schema import Part, Step, Task, Trajectory

RUN = Trajectory(
    id="7",
    task=Task(id="parcels", instruction="Send the parcels."),
    steps=[
        Step(source="user", message=[Part(type="text", text="Send three parcels.")]),
        Step(source="agent", message=[Part(type="text", text="I sent two of them.")]),
        Step(source="agent", message=[Part(type="text", text="Done.")]),
    ],
)
ASPECTS = [
    Aspect(
        trajectory="7", behaviour="I sent two.", feedback="only two were sent", sign=-1, step=1, comment="1"
    ),
    Aspect(trajectory="7", behaviour="Done.", feedback="it was polite", sign=1, step=2, comment="2"),
]
METRIC = NamedMetric("Care", "All parcels are sent.", [0])
CRITERION = Criterion(name="Care", definition="How many parcels arrive.", low=1, high=5)


class Keys:
    """Knows no completion, and notes what was looked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def get(self, key: str) -> Any:
        self.asked.append(key)

    def keep(self, key: str, answer: Any, about: Mapping[str, str]) -> None:
        raise AssertionError("no answer was given")


class Silent:
    def complete(self, wanted: Wanted) -> Completion:
        raise NoAnswer("It says nothing.")


@pytest.fixture
def keys() -> Keys:
    return Keys()


@pytest.fixture
def model(keys: Keys) -> LLMClient:
    return LLMClient(LLMServer(model="fixed"), keys, model=Silent())


def test_of_a_judge(model: LLMClient, keys: Keys) -> None:
    for judge in (RubricJudge(model, [CRITERION]), RubricJudge(model, [CRITERION], version=2, samples=2)):
        with pytest.raises(NoAnswer):
            judge.score(RUN)
        with pytest.raises(NoAnswer):
            judge.compare(RUN, RUN)
    assert keys.asked == [
        "9f9bd2d985df794418c06cef01d4689a4da80341a99b21d77675682c09ebc0c9",
        "5c8fdce3214c3be6eb18d27971b55cd8ce5a06faa2a817b26d50dae5ea318d36",
        "bd563a8248ce56ac951ae6872d684d52c89bc3ddb7393430280f1decbd51b1bc",
        "2bda5fbdf5f18d7886f6a9e56620689c70c0c7e9485f557034e91668cffeb7c8",
    ]


def test_of_an_induction(model: LLMClient, keys: Keys) -> None:
    questions, run = InductionQuestions(model, seed=0), render_trajectory(RUN)
    questions.ground([Comment(id="1", trajectory="7", text="Only two were sent.", sign=-1)], {"7": run})
    with pytest.raises(Exception, match="No metrics could be proposed"):
        questions.propose(ASPECTS, [0, 1], 2, [])
    questions.place(ASPECTS, [METRIC])
    questions.judge([run], [METRIC])
    trait = Trait(trajectory="7", metric="Care", sign=-1, step=1, reason="One is missing.")
    questions.match_to_verdicts([0], ASPECTS, {"7": [trait]})
    assert keys.asked == [
        "6942f514a85de39fb7d61e1449416b0e9ce858c4bb6d914bca47eadc8f6e6f8f",
        "94912e1a708f015351fcb2444023a972f46f48ef5c3a720507bfef48a3c92339",
        "3f4d88d14a85b56a784fd81caae589ef1a670f9b1ea89b93b1ab5f7146e46ee8",
        "7b4bc4dd341a7e62f328e6681196d9b3ef848637225713662442876e06a82d2d",
        "67139350538d4a3a00cb96040cee6fa6297789670d82fc49f8bfda0b3b0ae218",
    ]


def test_prompts_that_were_used_never_change() -> None:
    folder = Path(templates.__file__).parent
    assert {path.name: sha256(path.read_bytes()).hexdigest()[:16] for path in folder.glob("*.txt")} == {
        "ask.v1.txt": "2d64d397df062b1a",
        "attribute.v1.txt": "02b60236f907c743",
        "compare.v1.txt": "a7fa74a37fb789f2",
        "compare.v2.txt": "2e7a6a3fd4a6adb9",
        "compare_by_items.v1.txt": "ffa8e5852248da9b",
        "criticise_program.v1.txt": "9644d01ccee3156e",
        "criticise_program.v2.txt": "c40ae45303eb3702",
        "debate_side.v1.txt": "429c9ac2087e7fc4",
        "debate_verdict.v1.txt": "8f9eeeea1ee34e28",
        "draft_program.v1.txt": "94521a541bc59c87",
        "ground.v1.txt": "ccfb8086625e2041",
        "group.v1.txt": "85676069cc1b96c5",
        "judge.v1.txt": "28d0a5efcd221bba",
        "label_steps.v1.txt": "a76fb6a5e8132850",
        "label_window.v1.txt": "c9a324375a39bae5",
        "match.v1.txt": "4a111341713aa583",
        "place.v1.txt": "4885483dd123257d",
        "policy_rules.v1.txt": "88bbd1b9f4c02822",
        "propose.v1.txt": "f6f0b6cd9baa9bbe",
        "propose_subgoals.v1.txt": "e200b364c56c96c1",
        "revise_program.v1.txt": "39ab23009e436494",
        "score.v1.txt": "42c469cb7d6845cf",
        "score.v2.txt": "efd1c1c4eb526529",
        "score_by_items.v1.txt": "b9891478f7f792a6",
        "task_in_hindsight.v1.txt": "2eb1dc8800407f23",
        "verdict_pair.v1.txt": "56abf6112fbbd9b1",
        "verdict_run.v1.txt": "0f89dc8e40dfa1fc",
        "write_rubric.v1.txt": "056e16fa871e3239",
    }
