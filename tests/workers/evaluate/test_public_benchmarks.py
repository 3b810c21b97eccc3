"""Published benchmarks: their files, and numbers that their own code gives for the same rewards."""

import itertools
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from workers.errors import RewardError
from workers.evaluate import public_benchmarks
from workers.evaluate.public_benchmarks import (
    BENCHMARKS,
    best_of_all,
    evaluate_published,
    first_rank,
    process_bench_records,
    rows_of,
    style_matrix,
    ties_score,
    two_order_right,
)
from workers.schema.published import PUBLISHED

# What reward-bench's process_single_model, RM-Bench's compute_accuracy and JudgeBench's compute_final_metrics say.
TIES = [
    *(("ref:0", 1, [0.2, -1.32, -0.25, 0.42]), ("tied:0", 3, [2.77, 2.25, 1.92, -0.78, 0.75, 1.63])),
    *(("ref:1", 1, [1.27, -1.23, -0.96, 1.6]), ("tied:1", 3, [2.3, 1.33, 2.16, -1.16, -0.63, -0.49])),
    *(("ref:2", 1, [0.29, 0.55, -0.06, -0.59]), ("tied:2", 3, [2.4, 2.61, 1.38, -0.26, -0.98, -0.17])),
    *(("ref:3", 1, [-0.29, 0.02, -0.04, -0.3]), ("tied:3", 3, [1.68, 2.0, 1.65, -1.36, 0.22, -1.11])),
    *(("ref:4", 1, [2.17, 0.72, -2.0, 0.27]), ("tied:4", 3, [1.65, 2.22, 2.22, -1.99, -0.23, -0.26])),
    *(("ref:5", 1, [1.96, -1.18, 0.74, -1.1]), ("tied:5", 3, [2.03, 1.78, 2.92, 0.57, 2.43, 0.64])),
]
STYLES = [
    [1.3, 1.3, -0.1, -0.1, 1.4, -0.4],
    [0.7, 0.5, 1.1, -0.4, -0.2, 0.2],
    [0.6, -0.4, 1.4, -1.3, -1.2, -1.3],
    [1.5, 0.1, -0.5, -1.1, 0.4, -1.1],
    [-0.8, 1.1, -0.7, -0.3, -0.0, -0.4],
    [0.4, 1.8, -0.0, -1.3, -1.8, -0.2],
    [0.1, 0.8, 0.0, -0.5, -0.7, -0.5],
]
DECISIONS = list(itertools.product(["A>B", "B>A"], *[["A>B", "B>A", "A=B", None]] * 2))
RIGHT = {1, 2, 3, 9, 13, 20, 22, 23, 24, 28}  # of them, in this order


def test_the_peers_numbers() -> None:
    assert ties_score(TIES) == pytest.approx(0.5108019342980435)
    found = style_matrix(STYLES)
    assert [found[name] for name in ("hard", "normal", "easy")] == pytest.approx([6 / 7, 17 / 21, 16 / 21])
    labels, first, second = zip(*DECISIONS, strict=True)
    assert {place for place, one in enumerate(two_order_right(labels, first, second)) if one} == RIGHT


def test_the_best_of_four() -> None:
    assert best_of_all([1.0, 0.5, 0.2, -1.0]) == 1.0
    assert best_of_all([0.5, 1.0, 0.2, -1.0]) == 0.0
    assert best_of_all([1.0, 1.0, 0.2, -1.0]) == 0.5
    assert best_of_all([1.0, 1.0, 1.0, -1.0]) == pytest.approx(1 / 3)


def test_ties_need_both_kinds() -> None:
    assert ties_score(TIES[1::2]) is None


def test_a_style_matrix_by_hand() -> None:
    """One prompt: chosen 1, 2, 3 in rising fancy; rejected 0, 1.5, 9."""
    found = style_matrix([[1.0, 2.0, 3.0, 0.0, 1.5, 9.0]])
    assert found["matrix"] == [[1, 0, 0], [1, 1, 0], [1, 1, 0]]
    assert (found["hard"], found["normal"], found["easy"]) == pytest.approx((0, 2 / 3, 1))


class Longer:
    """Rewards are lengths: what each file's measure must come to is then known."""

    criteria: dict = {}
    manifest = {"criterion": None}


@pytest.fixture
def lengths(monkeypatch):
    """A model that rewards characters."""

    def score_records(model, records, **options):
        from types import SimpleNamespace

        from workers.evaluate.predictions import ScoredRecord
        from workers.objectives.length_effect import agent_text_length

        out = []
        for record in records:
            one = record.trajectory
            steps = [-float(len(step.text)) for step in one.steps if step.source == "agent"]
            score = SimpleNamespace(
                raw=float(agent_text_length(one)), labels=None, step_rewards=steps, dropped=()
            )
            out.append(ScoredRecord(record, (score,)))
        return out

    monkeypatch.setattr(public_benchmarks, "score_records", score_records)
    return Longer()


def write(path: Path, rows: list[dict]) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_llmbar_as_published(lengths, tmp_path, shared_data) -> None:
    rows = json.loads((shared_data / "llmbar" / "Natural.json").read_text())
    found = evaluate_published(lengths, "llmbar", shared_data / "llmbar" / "Natural.json")
    longer = [
        0.5 if len(row["output_1"]) == len(row["output_2"])
        else float((len(row["output_1"]) > len(row["output_2"])) == (row["label"] == 1))
        for row in rows
    ]  # fmt: skip
    assert (found["n"], found["score"]) == (100, pytest.approx(sum(longer) / 100))


def test_judgebench_rows(lengths, tmp_path) -> None:
    row = {"question": "q", "response_A": "long one", "response_B": "short"}
    rows = [
        row | {"pair_id": "1", "source": "mmlu-pro-law", "label": "A>B"},
        row | {"pair_id": "2", "source": "mmlu-pro-math", "label": "B>A"},
        row | {"pair_id": "3", "source": "livebench-reasoning", "label": "A>B"},
    ]
    found = evaluate_published(lengths, "judgebench", write(tmp_path / "j.jsonl", rows))
    assert found["score"] == pytest.approx(2 / 3)
    assert found["subsets"] == {"mmlu-pro": {"score": 0.5, "n": 2}, "livebench": {"score": 1.0, "n": 1}}


def test_rm_bench_rows(lengths, tmp_path) -> None:
    row = {"prompt": "p", "chosen": ["a", "aaa", "aaaaa"], "rejected": ["", "bb", "bbbb"]}
    rows = [row | {"id": 1, "domain": "chat"}, row | {"id": 2, "domain": "safety-refuse"}]
    found = evaluate_published(lengths, "rm-bench", write(tmp_path / "r.jsonl", rows))
    assert found["normal"] == found["easy"] == 1.0
    assert found["hard"] == 0.0
    assert found["score"] == pytest.approx(2 / 3)
    assert set(found["subsets"]) == {"chat", "safety"}


def test_reward_bench_2_rows(lengths, tmp_path) -> None:
    rows = [
        {
            "id": "1",
            "prompt": "p",
            "chosen": ["longest of all"],
            "rejected": ["a", "bb", "c"],
            "subset": "Math",
        },
        {"id": "2", "prompt": "p", "chosen": ["a"], "rejected": ["aaa", "bb", "c"], "subset": "Math"},
        {"id": "ref:7", "prompt": "p", "chosen": ["aaaaa"], "rejected": ["a", "b"], "subset": "Ties"},
        {"id": "tied:7", "prompt": "p", "chosen": ["aaaaa", "bbbbb"], "rejected": ["a"], "subset": "Ties"},
    ]
    found = evaluate_published(lengths, "rewardbench2", write(tmp_path / "b.jsonl", rows))
    assert found["subsets"]["Math"] == {"score": 0.5, "n": 2}
    # The smooth part of an infinite ratio is 1.
    assert found["subsets"]["Ties"]["score"] == pytest.approx(1.0 + 0.01)


def test_reward_math_as_published(lengths, tmp_path) -> None:
    """Rows of its repository (MIT, (c) 2024 Sunghwan Kim), and what ArmoRM gave all 483 problems there: table 3 of the
    paper says 20.5 %, its own code 42.182 for the mean reciprocal rank. 66 right answers share their reward."""
    published = json.loads((Path(__file__).parent / "reward_math.json").read_text())
    cases = BENCHMARKS["rewardmath"].read(published["rows"])
    assert [len(case.answers) for case in cases] == [10, 10]
    found = BENCHMARKS["rewardmath"].measure(
        [replace(cases[0], id=str(place)) for place in range(483)], published["ArmoRM"]
    )
    assert round(100 * found["score"], 3) == 20.497
    assert round(100 * found["mean_reciprocal_rank"], 3) == 42.182

    path = write(tmp_path / "m.jsonl", published["rows"])
    mine = evaluate_published(lengths, "rewardmath", path)
    places = [
        first_rank([len("".join(row["eval_solution"])) for row in published["rows"][start : start + 10]])
        for start in (0, 10)
    ]
    assert mine["mean_reciprocal_rank"] == pytest.approx(sum(1 / place for place in places) / 2)
    with pytest.raises(RewardError, match="problem 0 has 0 chosen answers and 9 rejected ones"):
        evaluate_published(lengths, "rewardmath", write(tmp_path / "n.jsonl", published["rows"][1:]))


def test_a_reward_that_is_no_number_is_not_the_highest() -> None:
    assert [first_rank([reward, 1.0, 2.0]) for reward in (3.0, 2.0, 1.5, float("nan"))] == [1, 2, 2, 3]
    assert first_rank([1.0, float("nan")]) == 2


def test_processbench_rows(lengths, tmp_path) -> None:
    """The wrong step is the long one, which minus its length finds; every fifth row fits the threshold."""
    rows = [
        {
            "id": f"gsm8k-{place}",
            "problem": "p",
            "steps": ["ok", "ok", "wrong " * 5 if place % 2 else "ok", "ok"],
            "label": 2 if place % 2 else -1,
        }
        for place in range(20)
    ]
    found = evaluate_published(lengths, "processbench", write(tmp_path / "p.jsonl", rows))
    assert (found["n"], found["score"]) == (16, 1.0)
    assert found["subsets"]["gsm8k"]["n"] == 16
    assert [record.first_error for record in process_bench_records(rows[:2])] == [None, 2]


def test_parquet_and_arrays(tmp_path) -> None:
    import pyarrow
    import pyarrow.parquet

    rows = [{"a": 1, "b": ["x"]}, {"a": 2, "b": []}]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "r.parquet")
    (tmp_path / "r.json").write_text(json.dumps(rows))
    assert rows_of(tmp_path / "r.parquet") == rows_of(tmp_path / "r.json") == rows


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(RewardError, match="pip install pyarrow, or save the file as JSON lines"):
        rows_of(tmp_path / "r.parquet")


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_file_of_something_else(lengths, tmp_path, name: str) -> None:
    path = write(tmp_path / "x.jsonl", [{"something": "else"}])
    with pytest.raises(RewardError, match=rf"not what {name} publishes"):
        evaluate_published(lengths, name, path)
    path.write_text("{")
    with pytest.raises(RewardError, match="neither a JSON array nor JSON lines"):
        evaluate_published(lengths, name, path)
