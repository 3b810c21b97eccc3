"""`auto`: what is compared, what is taken, and what a stopped search has kept."""

import json
from itertools import count
from types import SimpleNamespace

import pytest
import torch

from tests.workers.conftest import preference
from workers.errors import RewardError
from workers.models import load
from workers.models.backbones import step_entries
from workers.schema import OutcomeRecord
from workers.schema.builtin_recipes import builtin_recipes, searched_recipe
from workers.schema.recipe import CONVEX, parse_recipe
from workers.schema.recipe_help import SEARCHED
from workers.train import recipe_search
from workers.train.convex import ConvexTrainer
from workers.train.limits import TrainingStopped
from workers.train.pipeline import train
from workers.train.recipe_search import RecipeSearch

pytestmark = pytest.mark.ml


@pytest.fixture
def records() -> list:
    return [preference(number) for number in range(40)]


@pytest.fixture
def make_search(tmp_path, records):
    def make(recipe=None, *, given=None, stop=lambda: False) -> tuple[RecipeSearch, list[str]]:
        said: list[str] = []
        search = RecipeSearch(
            recipe or parse_recipe({"search": ["linear"]}),
            records if given is None else given,
            0,
            torch.device("cpu"),
            lambda **event: said.append(event.get("message", "")),
            stop,
            tmp_path,
        )
        return search, said

    return make


def rows(**values) -> list[dict]:
    return [
        {"name": name, "value": value, "interval": [value - half, value + half]}
        for name, (value, half) in values.items()
    ]


class TestChoice:
    @pytest.mark.parametrize(
        ("candidates", "chosen"),
        [
            (rows(linear=(0.60, 0.04), frozen=(0.61, 0.04)), "linear"),
            (rows(linear=(0.60, 0.04), frozen=(0.63, 0.04)), "frozen"),  # a standard error is 0.0204
            (rows(linear=(0.60, 0.04), frozen=(0.62, 0.04), unfrozen=(0.66, 0.04)), "unfrozen"),
            ([{"name": "linear", "value": None}, *rows(frozen=(0.5, 0.1))], "frozen"),
            ([{"name": "linear", "value": None}], "linear"),
            ([{"name": "linear", "value": 0.99, "interval": None}, *rows(frozen=(0.98, 0.1))], "linear"),
        ],
    )
    def test_the_simplest_within_a_standard_error(self, make_search, candidates, chosen) -> None:
        search, _ = make_search()
        found = {"candidates": candidates, "too_few": False, "records": 40, "tasks": 40, "seconds": 1.0}
        assert search._choose(found) == chosen

    def test_few_records_take_the_simplest_untried(self, make_search, records) -> None:
        search, said = make_search(given=records[:20])
        found = search.run()
        assert (found["chosen"], found["candidates"], found["too_few"]) == ("linear", [], True)
        assert "too few to compare" in said[-1]


class TestCandidates:
    @pytest.mark.parametrize("name", [name for name in SEARCHED if name != "lora"])
    def test_each_is_a_recipe_of_its_own_that_learns_from_the_same_feedback(self, name) -> None:
        given = {"objective": "outcome", "annotators": "equal", "search": ["linear", "unfrozen"], "folds": 4}
        recipe = searched_recipe(parse_recipe(given), name)
        assert (recipe.objective, recipe.annotators, recipe.folds, recipe.search) == (
            "outcome",
            "equal",
            4,
            (),
        )
        assert recipe.backbone == (name if name in CONVEX else "step-encoder")
        assert recipe.unfrozen == (name == "unfrozen")

    def test_the_decoder_is_the_recipes_own(self) -> None:
        recipe = parse_recipe({"search": ["linear", "lora"], "decoder": "tiny"})
        assert (recipe.backbone, searched_recipe(recipe, "lora").decoder) == ("step-encoder", "tiny")

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ({"search": ["linear"], "backbone": "linear"}, "chooses the backbone itself"),
            ({"search": ["linear"], "heads_only": True}, "chooses the backbone itself"),
            ({"search": ["linear", "linear"]}, "twice"),
            ({"search": ["lora"]}, "needs `decoder`"),
            ({"search": ["lora"], "decoder": "a", "lora_rank": 0}, "the candidate 'lora' trains adapters"),
            ({"search": ["best"]}, "search"),
        ],
    )
    def test_what_cannot_be_searched_is_refused(self, values, message) -> None:
        with pytest.raises(RewardError, match=message):
            parse_recipe(values)

    def test_auto_searches(self) -> None:
        assert builtin_recipes()["auto"].search == ("linear", "hybrid", "frozen", "unfrozen")


class TestRun:
    def test_a_row_has_what_it_reached_and_how_long_it_took(self, make_search) -> None:
        search, _ = make_search()
        found = search.run()
        (row,) = found["candidates"]
        assert row["value"] > 0.9
        assert row["interval"][0] <= row["value"] <= row["interval"][1]
        assert 0 < row["seconds"] == found["seconds"]
        assert (found["measure"], found["records"], found["tasks"]) == (["preference", "accuracy"], 40, 40)
        assert json.loads((search.folder / "search.json").read_text()) == found

    def test_outcomes_are_compared_by_auc(self, make_search, records) -> None:
        outcomes = [
            OutcomeRecord(trajectory=side, success=is_good)
            for record in records
            for side, is_good in (
                (record.a, record.choice == "a"),
                (record.b, record.choice == "b"),
            )
        ]
        recipe = parse_recipe({"objective": "outcome", "search": ["linear"]})
        search, _ = make_search(recipe, given=outcomes)
        found = search.run()
        assert found["measure"] == ["outcome", "auc"]
        assert found["candidates"][0]["value"] > 0.9

    def test_what_is_not_done_in_time_says_so(self, make_search) -> None:
        recipe = parse_recipe({"search": ["linear", "frozen"], "search_seconds": 1e-6})
        found = make_search(recipe)[0].run()
        notes = [row["note"] for row in found["candidates"]]
        assert notes == [
            "stopped: not done within the 1e-06 seconds of the search",
            "not tried: the time budget was used up",
        ]
        assert found["chosen"] == "linear"

    def test_what_cannot_learn_says_why(self, make_search, records) -> None:
        recipe = parse_recipe({"objective": "outcome", "search": ["linear"]})
        found = make_search(recipe)[0].run()
        assert "usable feedback records" in found["candidates"][0]["note"]
        assert found["chosen"] == "linear"

    def test_a_stopped_search_goes_on_where_it_was(self, make_search, monkeypatch) -> None:
        tried: list[str] = []
        measure = RecipeSearch._measure

        def counted(self, name, found):
            tried.append(name)
            if tried == ["linear", "frozen"]:
                raise TrainingStopped
            if name == "frozen":
                return {"name": name, "value": 0.1, "interval": [0.0, 0.2], "seconds": 0.0, "note": ""}
            return measure(self, name, found)

        monkeypatch.setattr(recipe_search.RecipeSearch, "_measure", counted)
        recipe = parse_recipe({"search": ["linear", "frozen"]})
        with pytest.raises(TrainingStopped):
            make_search(recipe)[0].run()
        assert make_search(recipe)[0].run()["chosen"] == "linear"
        assert tried == ["linear", "frozen", "frozen"]

    def test_what_a_stopped_candidate_took_counts_when_the_search_is_resumed(
        self, make_search, monkeypatch
    ) -> None:
        recipe = parse_recipe({"search": ["linear"], "search_seconds": 100})
        clock = count(step=40)
        monkeypatch.setattr(recipe_search, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))

        def stopped(*_: object) -> None:
            raise TrainingStopped

        monkeypatch.setattr(RecipeSearch, "_cross_validated", stopped)
        for seconds in (40.0, 80.0):
            with pytest.raises(TrainingStopped):
                make_search(recipe, stop=lambda: True)[0].run()
            assert json.loads((make_search()[0].folder / "search.json").read_text())["seconds"] == seconds
        found = make_search(recipe)[0].run()
        assert found["candidates"][0]["seconds"] == found["seconds"] == 120.0

    @pytest.mark.parametrize(
        "error", [torch.OutOfMemoryError("full"), MemoryError(), RuntimeError("can't allocate memory: 9 GB")]
    )
    def test_a_candidate_without_enough_memory_says_so(self, make_search, monkeypatch, error) -> None:
        reached = RecipeSearch._cross_validated

        def fail(self, name, is_late):
            if name == "frozen":
                raise error
            return reached(self, name, is_late)

        monkeypatch.setattr(RecipeSearch, "_cross_validated", fail)
        found = make_search(parse_recipe({"search": ["frozen", "linear"]}))[0].run()
        assert [row["note"] for row in found["candidates"]] == ["stopped: it ran out of memory", ""]
        assert found["chosen"] == "linear"

    def test_another_error_ends_the_search(self, make_search, monkeypatch) -> None:
        def fail(*_: object) -> None:
            raise RuntimeError("a bug")

        monkeypatch.setattr(RecipeSearch, "_cross_validated", fail)
        with pytest.raises(RuntimeError, match="a bug"):
            make_search()[0].run()

    def test_folds_of_the_linear_candidate_read_each_text_once(self, make_search, monkeypatch) -> None:
        read: list[tuple[str, str]] = []
        entries = step_entries.text_entries
        monkeypatch.setattr(
            step_entries,
            "text_entries",
            lambda *texts: (read.extend(zip(*texts, strict=True)), entries(*texts))[1],
        )
        make_search()[0].run()
        assert len(read) == len(set(read)) == 10

    def test_the_run_is_of_the_chosen_recipe(self, run_directory, records) -> None:
        recipe = parse_recipe({"search": ["linear"]})
        splits = {"train": records[:30], "validation": records[30:34], "test": records[34:]}
        folder = run_directory(recipe, splits=splits)
        report = train(folder)
        assert report["search"]["chosen"] == "linear"
        assert report["search"]["records"] == 34  # the test split is not looked at
        assert load(folder / "model").manifest["backbone"]["kind"] == "linear"
        assert report["preference"]["accuracy"] == 1.0

    def test_a_budget_is_of_the_search_and_the_training_together(
        self, run_directory, records, monkeypatch
    ) -> None:
        found = {"chosen": "linear", "seconds": 30.0}
        seconds: list[float | None] = []
        monkeypatch.setattr(
            RecipeSearch, "run", lambda self: (seconds.append(self.recipe.search_seconds), found)[1]
        )

        def stopped(self) -> None:
            seconds.append(self.limits.seconds)
            raise TrainingStopped

        monkeypatch.setattr(ConvexTrainer, "run", stopped)
        recipe = parse_recipe({"search": ["linear"]})
        splits = {"train": records[:30], "validation": [], "test": []}
        with pytest.raises(TrainingStopped):
            train(run_directory(recipe, splits=splits, budget={"seconds": 40}))
        assert seconds == [40.0, 10.0]
