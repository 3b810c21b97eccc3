"""What is on both sides of a split."""

import random

from workers.schema import OutcomeRecord, Part, Step, Task, Trajectory
from workers.schema.contamination import _of_records, find_contamination, signature

WORDS = [f"w{place}" for place in range(400)]


def record(text: str, task: str, *, told: str = "hello") -> OutcomeRecord:
    steps = (
        Step(source="user", message=(Part(text=told),)),
        Step(source="agent", message=(Part(text=text),)),
    )
    return OutcomeRecord(trajectory=Trajectory(steps=steps, task=Task(id=task)), success=True)


def text(seed: int, length: int = 60) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=length))


def jaccard(first: str, second: str) -> float:
    sets = []
    for words in (first.split(), second.split()):
        sets.append({tuple(words[start : start + 5]) for start in range(len(words) - 4)})
    return len(sets[0] & sets[1]) / len(sets[0] | sets[1])


def test_signatures_agree_as_often_as_the_texts_do() -> None:
    words = text(0, 300).split()
    for cut in (10, 60, 150):
        other = " ".join([*words[:-cut], *text(1, cut).split()])
        estimate = float((signature(" ".join(words)) == signature(other)).mean())
        assert abs(estimate - jaccard(" ".join(words), other)) < 0.12  # 3 sd of 128 hashes


def test_a_planted_near_copy_is_found_and_a_stranger_is_not() -> None:
    train = [record(text(seed), f"train-{seed}") for seed in range(50)]
    copy = text(7).split()
    copy[-1] = "changed"
    held_out = [record(" ".join(copy), "test-0"), record(text(900), "test-1")]
    found = find_contamination(train, held_out)
    assert (found["near_copies"], found["of"], found["tasks"]) == (1, 2, [])
    (pair,) = found["pairs"]
    assert pair["train"] == train[7].trajectory.content_hash
    assert pair["held_out"] == held_out[0].trajectory.content_hash
    assert pair["similarity"] >= 0.8


def test_tasks_on_both_sides() -> None:
    found = find_contamination([record(text(1), "t")], [record(text(2), "t"), record(text(3), "u")])
    assert found["tasks"] == ["t"]
    assert found["near_copies"] == 0


def test_what_they_were_told_does_not_count() -> None:
    """The same policy stands in every prompt."""
    policy = text(5, 500)
    found = find_contamination([record(text(1), "t", told=policy)], [record(text(2), "u", told=policy)])
    assert found["near_copies"] == 0


def test_prompts_with_a_word_more_are_near_copies() -> None:
    """50 of 50 held-out prompts are a training prompt and " please", under other names and with other answers."""
    train = [record(text(seed), f"a{seed}", told=text(1000 + seed, 80)) for seed in range(50)]
    held_out = [
        record(text(500 + seed), f"b{seed}", told=text(1000 + seed, 80) + " please") for seed in range(50)
    ]
    found = find_contamination(train, held_out)
    assert (found["tasks"], found["near_copies"], found["near_tasks"], found["of_tasks"]) == ([], 0, 50, 50)
    assert all(pair["train"][1:] == pair["held_out"][1:] for pair in found["task_pairs"])


def test_a_template_of_all_prompts_is_no_near_copy() -> None:
    """The same policy of 500 words, and 40 own words."""
    policy = text(5, 500)
    train = [record(text(seed), f"a{seed}", told=f"{policy} {text(1000 + seed, 40)}") for seed in range(20)]
    other = record(text(400), "b0", told=f"{policy} {text(2000, 40)}")
    copy = record(text(401), "b1", told=f"{policy} {text(1003, 40)} please")
    found = find_contamination(train, [other, copy])
    assert (found["near_tasks"], found["of_tasks"]) == (1, 2)
    assert [(pair["train"], pair["held_out"]) for pair in found["task_pairs"]] == [("a3", "b1")]


def test_a_prompt_keeps_four_bytes_for_each_of_its_first_words() -> None:
    told = " ".join(f"w{place}" for place in range(5000))
    found = _of_records([record("yes", "t", told=told)])
    assert found.shingles["t"].nbytes == 4 * (2000 - 4)
    near = find_contamination([record("yes", "t", told=told)], [record("no", "u", told=f"{told} please")])
    assert near["near_tasks"] == 1


def test_short_answers_are_alike_by_chance() -> None:
    assert signature("yes it was sent") is None
    assert find_contamination([record("yes", "t")], [record("yes", "u")])["near_copies"] == 0


def test_nothing_held_out() -> None:
    found = find_contamination([record(text(1), "t")], [])
    assert found == {
        **{key: [] for key in ("tasks", "pairs", "task_pairs")},
        **dict.fromkeys(("near_copies", "of", "near_tasks", "of_tasks"), 0),
    }
