"""Inductions from their folder to their result, bad ones above all."""

import json
from pathlib import Path
from typing import Any

import pytest

from workers.errors import RewardError
from workers.induce.comment_points import MAX_POINTS
from workers.induce.pipeline import induce
from workers.schema import Trajectory, from_messages, write_trajectories
from workers.schema.messages import build_trajectory
from workers.schema.records import Task

BLAME = ("Rude to the customer.", "The tone is insulting.", "So unfriendly and rude.")
PRAISE = ("Polite and friendly.", "A kind and friendly tone.", "Polite to the customer.")
GERMAN = "Der Assistent hat die Bestellung leider überhaupt nicht nachgesehen und war unfreundlich."


def run(number: int, rude: bool) -> Trajectory:
    reply = "Read the terms yourself." if rude else "I am glad to help you with that."
    messages = [
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "content": f"{reply} {number}"},
    ]
    built = build_trajectory(from_messages(messages), Task(id=f"task-{number}"))
    return Trajectory(
        **{name: getattr(built, name) for name in built.__struct_fields__} | {"id": str(number)}
    )


def said(number: int, text: str, sign: int | None, **fields: Any) -> dict[str, Any]:
    return {"id": f"c{number}", "trajectory": str(number), "text": text, "sign": sign, "steps": None} | fields


def usual(count: int = 12) -> list[dict[str, Any]]:
    return [said(n, (BLAME if n % 2 else PRAISE)[n % 3], -1 if n % 2 else 1) for n in range(count)]


def folder(path: Path, comments: list[dict[str, Any]], runs: int = 12) -> Path:
    write_trajectories(path / "trajectories.jsonl.zst", (run(n, bool(n % 2)) for n in range(runs)))
    (path / "comments.jsonl").write_text("".join(json.dumps(comment) + "\n" for comment in comments))
    (path / "config.json").write_text('{"seed": 0}')
    return path


def group(points: list[tuple[str, str]]) -> dict[str, Any]:
    return {"name": "a", "definition": "", "points": points}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_an_induction(tmp_path: Path) -> None:
    write_trajectories(tmp_path / "others.jsonl.zst", [run(50, True)])
    result = induce(folder(tmp_path, usual()))
    texts = {value["text"] for value in usual()}
    for metric in result["metrics"]:
        assert {*metric["good"], *metric["bad"]} <= texts, "nothing is invented"
    aspects = lines(tmp_path / "aspects.jsonl")
    assert [aspect["feedback"] for aspect in aspects] == [value["text"] for value in usual()]
    assert {aspect["step"] for aspect in aspects} == {1}
    traits = lines(tmp_path / "traits.jsonl")
    assert len(traits) == 13 * len(result["metrics"])
    assert result["judged"] == 13
    for trait in traits:
        assert trait["sign"] in (-1, 0, 1)
        if trait["because"] is not None:
            assert aspects[trait["because"]]["trajectory"] != trait["trajectory"]
    assert result["warnings"] == []
    assert json.loads((tmp_path / "result.json").read_text())["coverage"] == result["coverage"]


def test_the_same_folder_gives_the_same(tmp_path: Path) -> None:
    first = induce(folder(tmp_path, usual()))
    assert induce(tmp_path) == first


def test_metrics_that_people_decided_on(tmp_path: Path) -> None:
    comments = usual()
    groups = [
        [(comment["id"], comment["text"]) for comment in comments[:6]],
        [(comment["id"], comment["text"]) for comment in comments[6:]],
    ]
    (tmp_path / "groups.json").write_text(json.dumps([group(each_group) for each_group in groups]))
    result = induce(folder(tmp_path, comments))
    assert [metric["aspects"] for metric in result["metrics"]] == [
        sorted(range(6), key=lambda n: (n % 2, n)),
        sorted(range(6, 12), key=lambda n: (n % 2, n)),
    ]
    assert "held_out" not in result
    (tmp_path / "groups.json").write_text(
        json.dumps([group(record) for record in [*groups, [("gone", "Nobody said it.")]]])
    )
    with pytest.raises(RewardError, match="metric 3 was made of is there any more"):
        induce(tmp_path)


def test_metrics_of_before_are_known_again(tmp_path: Path) -> None:
    before = [
        {"id": "7", "name": "tone", "good": list(PRAISE), "bad": list(BLAME)},
        {"id": "8", "name": "sums", "good": ["The sum of the columns adds up."], "bad": []},
    ]
    (tmp_path / "previous.json").write_text(json.dumps(before))
    result = induce(folder(tmp_path, usual()))
    known = [metric["before"]["id"] for metric in result["metrics"] if metric["before"]]
    assert known == ["7"]


@pytest.mark.parametrize(
    ("comments", "why"),
    [
        ([], "no comment was written"),
        (usual(3), "3 comments make 3 points of praise or blame on 3 trajectories"),
        (
            [said(0, PRAISE[n % 3], 1, id=f"c{n}") for n in range(12)],
            "12 points of praise or blame on 1 trajectories",
        ),
        ([said(n, "...", None) for n in range(12)], "12 comments make 0 points"),
    ],
)
def test_too_little_is_refused(tmp_path: Path, comments: list[dict[str, Any]], why: str) -> None:
    with pytest.raises(RewardError, match=why):
        induce(folder(tmp_path, comments))
    assert not (tmp_path / "result.json").exists()


def test_what_is_strange_is_said(tmp_path: Path) -> None:
    comments = usual()
    comments[0] |= {"text": GERMAN, "sign": -1}
    comments[1] |= {"text": "It was rude. " * 8000}
    comments.append(said(99, "Polite.", 1))
    result = induce(folder(tmp_path, comments))
    told = " ".join(result["warnings"])
    assert "1 of 13 comments do not read as English" in told
    assert f"Comment c1 has 104,000 characters; at most {MAX_POINTS} points of it were read." in told
    assert result["left_out"] == [{"comment": "c99", "why": "its trajectory was deleted"}]


def test_one_sign_is_said(tmp_path: Path) -> None:
    comments = [said(n, BLAME[n % 3], -1) for n in range(12)]
    result = induce(folder(tmp_path, comments))
    assert "Every point blames, so no metric knows what good looks like" in result["warnings"][0]
    assert all(not metric["good"] for metric in result["metrics"])
