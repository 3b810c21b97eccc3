"""What a run says is data to its judge. A judge of rules gives the same scores, to the point, whatever a run says."""

from collections.abc import Iterator

import pytest

from benchmarks.attacks import ATTACKS, PLACES, Attack, attacked, harmless
from benchmarks.rule_judge import judged
from tests.workers.judge.test_rubric import run
from tests.workers.llm.scripted import Script, scripted
from workers.judge.rubric import Criterion, RubricJudge
from workers.llm import LLMServer
from workers.llm.client import AnswersFile, LLMClient

BOUND = 0.0  # points: what is moved by a text that is no evidence
CARE = Criterion(name="Care", low=1, high=5)


def test_there_are_enough_of_them_and_everywhere() -> None:
    assert len(ATTACKS) >= 60 and len(set(ATTACKS)) == len(ATTACKS)
    assert {attack.place for attack in ATTACKS} == set(PLACES)
    assert all(len(harmless(attack).text) == len(attack.text) for attack in ATTACKS)


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RubricJudge]:
    folder = tmp_path_factory.mktemp("answers")
    with scripted(Script(judged)) as url:
        server = LLMServer(base_url=url, model="rules")
        yield RubricJudge(LLMClient(server, AnswersFile(folder / "answers.jsonl")), [CARE])


@pytest.mark.parametrize(
    "attack", ATTACKS, ids=[f"{one.kind}-{one.place}-{n}" for n, one in enumerate(ATTACKS)]
)
def test_scores_stay_within_the_bound(judge: RubricJudge, attack: Attack) -> None:
    bad, good = run("sent", "failed", "failed"), run("sent", "sent", "failed")
    assert abs((judge.score(attacked(bad, attack))[0].value or 0) - 3) <= BOUND
    assert judge.compare(attacked(bad, attack), good)[0].chance == 0
    assert judge.compare(good, attacked(bad, attack))[0].chance == 1
