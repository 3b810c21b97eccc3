"""The shipped sample: what the generator makes, of the right shapes, judged as intended."""

import io
import json
from collections import Counter, defaultdict
from itertools import combinations
from typing import Any

import msgspec
import pytest

from apps.annotation.feedback.incoming import Incoming
from apps.annotation.feedback.readers import READERS
from apps.demo import generate
from apps.demo.agents import Conversation, conversations
from apps.demo.annotators import ANNOTATORS
from apps.demo.remarks import agent_places
from apps.demo.world import TASKS, hidden_reward
from workers.schema import from_messages

FILES = {path.name: path for path in sorted(generate.SAMPLE.iterdir())}


@pytest.fixture(scope="module")
def talks() -> dict[str, Conversation]:
    return {talk.id: talk for talk in conversations()}


def records(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in FILES[f"{name}.jsonl"].read_text(encoding="utf-8").splitlines()]


def test_the_shipped_files_are_what_the_generator_makes() -> None:
    made = generate.files()
    assert set(FILES) == set(made)
    for name, text in made.items():
        assert FILES[name].read_bytes() == text.encode(), f"run python -m apps.demo.generate: {name} differs"


def test_the_sample_is_small() -> None:
    assert sum(path.stat().st_size for path in FILES.values()) < 2_000_000


def test_held_out_tasks_are_three_of_each_family() -> None:
    held_out = FILES["test_tasks.txt"].read_text().split()
    assert sorted(Counter(TASKS[task].family for task in held_out).values()) == [3] * 8


def test_three_hundred_distinct_trajectories_over_all_tasks() -> None:
    lines = records("trajectories")
    assert len(lines) == 300
    assert len({json.dumps([line["task"]["id"], line["messages"]]) for line in lines}) == 300
    assert Counter(line["task"]["id"] for line in lines) == dict.fromkeys(TASKS, 5)
    assert all(line["metadata"]["simulated"] for line in lines)


def test_the_hidden_reward_is_written_nowhere(talks: dict[str, Conversation]) -> None:
    lines = records("trajectories")
    assert all(set(line["metadata"]) == {"family", "simulated"} for line in lines)
    agree = sum(line["success"] == (talks[line["id"]].world.reward >= 0.9) for line in lines)
    assert 0.75 <= agree / len(lines) <= 0.95  # a verifier that errs, and does not see the manner


def test_the_hidden_reward_is_found_again_from_the_messages(talks: dict[str, Conversation]) -> None:
    for line in records("trajectories"):
        assert hidden_reward(line["messages"], line["task"]["id"]) == talks[line["id"]].world.reward


def test_agents_are_as_good_as_they_are_meant_to_be(talks: dict[str, Conversation]) -> None:
    rewards = defaultdict(list)
    for talk in talks.values():
        rewards[talk.agent].append(talk.world.reward)
    mean = {agent: sum(values) / len(values) for agent, values in rewards.items()}
    careful, hasty, wordy, rude, generous, confused, brief = (mean[f"desk-{letter}"] for letter in "abcdefg")
    assert min(careful, brief, wordy) > rude > hasty > generous > confused
    assert all(max(values) - min(values) > 0.2 for values in rewards.values())  # no agent is its name alone


def test_neither_length_nor_steps_give_quality_away(talks: dict[str, Conversation]) -> None:
    longer, fewer = [], []
    for pair in records("pairs"):
        if pair["choice"] in ("a", "b"):
            names = ("a", "b") if pair["choice"] == "a" else ("b", "a")
            chosen, rejected = (talks[pair[name]["trajectory_id"]] for name in names)
            longer.append(_wins(_length(chosen), _length(rejected)))
            fewer.append(_wins(len(rejected.world.credit), len(chosen.world.credit)))
    for wins in (longer, fewer):
        assert 0.42 <= sum(wins) / len(wins) <= 0.58


def test_good_conversations_have_many_lengths(talks: dict[str, Conversation]) -> None:
    good = [len(talk.world.credit) for talk in talks.values() if talk.world.reward > 0.95]
    assert {2, 3, 4, 5, 6} <= set(good)


def test_annotators_are_as_reliable_as_they_are_meant_to_be(talks: dict[str, Conversation]) -> None:
    right: dict[str, list[float]] = defaultdict(list)
    for pair in records("pairs"):
        if pair["choice"] in ("a", "b"):
            a, b = (talks[pair[name]["trajectory_id"]].world.reward for name in ("a", "b"))
            right[pair["annotator"]].append(_wins(a, b) if pair["choice"] == "a" else _wins(b, a))
    shares = [sum(right[annotator.name]) / len(right[annotator.name]) for annotator in ANNOTATORS]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.93
    assert 0.55 < shares[-1] < 0.75


def test_pairs_have_all_choices_strengths_and_items_with_three_annotators() -> None:
    lines = records("pairs")
    assert 600 <= len(lines) <= 900
    assert {line["choice"] for line in lines} == {"a", "b", "tie", "both_bad"}
    assert {line["strength"] for line in lines} == {1, 2, 3}
    items = Counter((line["a"]["trajectory_id"], line["b"]["trajectory_id"]) for line in lines)
    assert sum(count == 3 for count in items.values()) >= 150
    assert all((b, a) not in items for a, b in items)


@pytest.mark.parametrize("name", ["pairs", "comments", "outcomes"])
def test_the_importer_reads_every_record(name: str) -> None:
    read = [one for _, one in READERS[name](io.BytesIO(FILES[f"{name}.jsonl"].read_bytes()))]
    assert len(read) == len(records(name))
    assert all(isinstance(record, Incoming) and record.origin == "simulated" for record in read)


class _Item(msgspec.Struct, forbid_unknown_fields=True):
    trajectory_id: str


class _Head(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    task: dict[str, str]
    trajectory: _Item
    annotator: str
    campaign: str
    origin: str


class _Steps(_Head, kw_only=True):
    labels: dict[str, str] | None = None
    first_error: int | msgspec.UnsetType | None = msgspec.UNSET


class _Score(_Head, kw_only=True):
    criterion: str
    definition: str
    value: float
    scale: tuple[float, float]


def test_step_labels_have_their_shape(talks: dict[str, Conversation]) -> None:
    seen: Counter[str] = Counter()
    for line in records("steps"):
        record = msgspec.convert(line, _Steps)
        count = len(talks[record.trajectory.trajectory_id].world.credit)
        assert (record.labels is None) != (record.first_error is msgspec.UNSET)
        assert all(0 <= int(index) < count for index in record.labels or {})
        if isinstance(record.first_error, int):
            assert 0 <= record.first_error < count
        seen.update((record.labels or {}).values())
        assert record.origin == "simulated"
    assert set(seen) == {"good", "neutral", "bad"}


def test_scores_have_their_shape(talks: dict[str, Conversation]) -> None:
    values = defaultdict(set)
    for line in records("rubric"):
        record = msgspec.convert(line, _Score)
        assert record.trajectory.trajectory_id in talks
        assert record.scale[0] <= record.value <= record.scale[1]
        assert record.origin == "simulated"
        values[record.criterion].add(record.value)
    assert set(values) == {"polite", "correct", "efficient", "follows_policy"}
    assert all(len(seen) >= 3 for seen in values.values())


def test_comments_point_at_agent_steps(talks: dict[str, Conversation]) -> None:
    lines = records("comments")
    for line in lines:
        talk = talks[line["trajectory"]["trajectory_id"]]
        if line["anchor"]:
            first, last = line["anchor"]["steps"]
            assert first == last
            assert first in agent_places(talk)
    assert {line["sign"] for line in lines} == {1, -1, None}
    assert len({line["text"] for line in lines}) > 40


def test_agent_places_are_the_steps_of_the_schema(talks: dict[str, Conversation]) -> None:
    for talk in talks.values():
        steps = from_messages(talk.messages)
        assert agent_places(talk) == [index for index, step in enumerate(steps) if step.source == "agent"]
        assert len(talk.world.credit) == len(agent_places(talk))


def test_within_tasks_quality_differs(talks: dict[str, Conversation]) -> None:
    groups = defaultdict(list)
    for talk in talks.values():
        groups[talk.task.id].append(talk.world.reward)
    pairs = [abs(a - b) > 0.05 for group in groups.values() for a, b in combinations(group, 2)]
    assert sum(pairs) / len(pairs) > 0.75


def _wins(a: float, b: float) -> float:
    return 0.5 if a == b else float(a > b)


def _length(talk: Conversation) -> int:
    return sum(len(json.dumps(message)) for message in talk.messages)
