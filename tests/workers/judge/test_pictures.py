"""Pictures in the questions of judges: which, how large, how they are named, and that others' own code reads them."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from PIL import Image
from pydantic import TypeAdapter
from transformers.cli.serving.utils import BaseHandler, Modality
from transformers.image_utils import load_image

from tests.picture_files import BLUE, RED, coloured, data_url, file_of, noise
from tests.workers.llm.scripted import Body, Script, scripted
from tests.workers.llm.seeing import is_red, opened, pictures_of, scored_by_colour, text_of
from workers.errors import InvalidRecord
from workers.judge.attribution import attribute
from workers.judge.debate import DebateJudge
from workers.judge.repeats import step_repeats
from workers.judge.rubric import Criterion, RubricJudge
from workers.judge.rubric_first import RubricFirstJudge
from workers.judge.steps import StepJudge
from workers.judge.windows import WindowJudge
from workers.llm import LLMServer
from workers.llm.client import AnswersFile, LLMClient, NoAnswer
from workers.prompts.pictures import PICTURE_BYTES, PictureLimits, choose_pictures, spread, view_trajectory
from workers.prompts.trajectory_text import shown
from workers.schema import Part, Step, Task, Trajectory
from workers.schema.pictures import encode_jpeg
from workers.text.pictures import forget_pictures, use_pictures

CRITERION = Criterion(name="Care", definition="How the page looks.", low=1, high=5)
Json = dict[str, Any]


def url(colour: tuple[int, int, int]) -> str:
    return data_url(file_of(coloured(colour)))


def looks(*colours: tuple[int, int, int], text: str = "Look.") -> Trajectory:
    """A picture before each step of the agent."""
    steps = []
    for colour in colours:
        steps.append(Step(source="user", message=(Part(text=text), Part(type="image", source=url(colour)))))
        steps.append(Step(source="agent", message=(Part(text="Done."),)))
    return Trajectory(steps=tuple(steps), task=Task(id="t", instruction="Make it look right."))


def asked_by(tmp_path: Path, script: Script, work: Any, **server: Any) -> tuple[Any, list[Body]]:
    with scripted(script) as address:
        given = {"pictures": 8} | server
        model = LLMClient(
            LLMServer(base_url=address, model="seeing", retries=0, **given), AnswersFile(tmp_path / "a.jsonl")
        )
        return work(model), script.asked


def score(run: Trajectory) -> Any:
    return lambda model: RubricJudge(model, [CRITERION]).score(run)[0]


def test_the_first_and_the_last_and_others_evenly_between() -> None:
    assert spread(3, 8) == [0, 1, 2]
    assert spread(9, 5) == [0, 2, 4, 6, 8]
    assert spread(100, 4) == [0, 33, 66, 99]
    assert spread(7, 1) == [6]
    for count in range(1, 60):
        for most in range(2, 17):
            found = spread(count, most)
            assert found == sorted(set(found)) and len(found) == min(count, most)
            assert found[0] == 0 and found[-1] == count - 1


def test_what_is_left_out_is_named_in_the_prompt() -> None:
    run = looks(*[RED] * 5)
    lines = [json.loads(line) for line in view_trajectory(run, PictureLimits(3)).text.splitlines()]
    assert lines[1] == {"pictures": 5, "that follow": [1, 3, 5]}
    by_step = {line["step"]: line for line in lines if "step" in line}
    assert by_step[0]["pictures"] == [1] and by_step[2]["pictures left out"] == [2]
    assert view_trajectory(run, PictureLimits(0)).text == shown(run), "as before, for a model that reads none"


def test_a_picture_that_is_not_at_hand_is_left_out() -> None:
    away = Part(type="image", source="https://example.org/a.png")
    run = looks(RED)
    step = Step(source="user", message=(away,))
    run = Trajectory(steps=(step, *run.steps), task=run.task)
    view = view_trajectory(run, PictureLimits(8))
    assert [place.number for place in view.chosen] == [2]
    assert '"pictures left out": [1]' in view.text


def test_red_and_blue_differ_and_a_judge_without_pictures_cannot_tell(tmp_path: Path) -> None:
    for pictures, scores in ((8, [4.0, 5.0]), (0, [5.0, 5.0])):
        found = []
        for colour in (RED, BLUE):
            folder = tmp_path / f"{pictures}{colour}"
            folder.mkdir()
            answer, asked = asked_by(
                folder, Script(scored_by_colour), score(looks(colour)), pictures=pictures
            )
            found.append(answer.value)
            assert len(pictures_of(asked[0])) == min(pictures, 1)
        assert found == scores


def test_answers_are_kept_by_the_pictures(tmp_path: Path) -> None:
    script = Script(scored_by_colour)
    for colour, asked in ((RED, 1), (BLUE, 2), (RED, 2)):
        asked_by(tmp_path, script, score(looks(colour)))
        assert len(script.asked) == asked
    asked_by(tmp_path, script, score(looks(RED)), picture_pixels=64)
    assert len(script.asked) == 3, "what is seen at another size is another question"


def test_openai_and_transformers_serve_read_the_request(tmp_path: Path) -> None:
    """By their own types and code."""
    _, (body,) = asked_by(tmp_path, Script(scored_by_colour), score(looks(RED, BLUE)))
    TypeAdapter(CompletionCreateParamsNonStreaming).validate_python(body)
    inputs = BaseHandler.get_processor_inputs_from_messages(body["messages"], Modality.VLM)
    pictures = [load_image(part["url"]) for part in inputs[-1]["content"] if part["type"] == "image"]
    assert [is_red(picture) for picture in pictures] == [True, False]
    assert pictures[0].size == (60, 40), "not larger than it was"


def test_pictures_are_scaled_down_encoded_again_and_bare(tmp_path: Path) -> None:
    photo = noise(1, 2000, 1200)
    exif = Image.Exif()
    exif[0x010E] = "a secret place"
    data = file_of(photo, "JPEG", exif=exif, quality=95)
    assert b"a secret place" in data and len(data) > PICTURE_BYTES
    run = Trajectory(
        steps=(
            Step(source="user", message=(Part(type="image", source=data_url(data, "image/jpeg")),)),
            Step(source="agent", message=(Part(text="Done."),)),
        ),
        task=Task(id="t"),
    )
    (sent,) = view_trajectory(run, PictureLimits(8, 512)).pictures()
    assert len(sent.jpeg) <= PICTURE_BYTES and b"secret" not in sent.jpeg
    picture = opened(sent.jpeg)
    assert max(picture.size) <= 512 and picture.format == "JPEG" and not picture.getexif()


def test_a_picture_that_stays_too_large_is_halved() -> None:
    import numpy as np

    small = encode_jpeg(np.asarray(noise(2, 768, 768)), 768, 20_000)
    assert len(small) <= 20_000 and max(opened(small).size) in (384, 192, 96)


def test_a_damaged_picture_is_refused(tmp_path: Path) -> None:
    run = Trajectory(
        steps=(
            Step(source="user", message=(Part(type="image", source=data_url(b"no picture")),)),
            Step(source="agent", message=(Part(text="Done."),)),
        ),
        task=Task(id="t"),
    )
    with pytest.raises(InvalidRecord, match="cannot be read"):
        asked_by(tmp_path, Script(scored_by_colour), score(run))


def test_two_share_the_pictures_and_are_told_apart(tmp_path: Path) -> None:
    def compared(model: LLMClient) -> Any:
        judge = RubricJudge(model, [CRITERION])
        return judge.compare(a, b), judge.count_pictures(a, b)

    a, b = looks(RED, RED, RED), looks(BLUE, BLUE, BLUE)
    verdict = {"reason": "x", "step_a": None, "step_b": None, "better": "A"}
    script = Script(lambda body: json.dumps({"c0": verdict}))
    (_, seen), (first, swapped) = asked_by(tmp_path, script, compared, pictures=4)
    assert seen == 4
    for body, letters in ((first, "AB"), (swapped, "BA")):
        of_red = {label["picture of"] for label, picture in pictures_of(body) if is_red(picture)}
        assert of_red == {f"run {letters[0]}"} and len(pictures_of(body)) == 4
        assert [label["number"] for label, _ in pictures_of(body)] == [1, 3, 1, 3]


def test_advocates_and_the_verdict_see_both(tmp_path: Path) -> None:
    def answer(body: Body) -> str:
        if "\nYour run" in text_of(body):
            return json.dumps({"c0": {"merit": "m", "merit_step": None, "fault": "f", "fault_step": None}})
        return json.dumps({"c0": {"reason": "x", "step_a": None, "step_b": None, "better": "tie"}})

    def argued(model: LLMClient) -> Any:
        return DebateJudge(model, [CRITERION]).compare(looks(RED), looks(BLUE))

    _, asked = asked_by(tmp_path, Script(answer), argued)
    names = [[label["picture of"] for label, _ in pictures_of(body)] for body in asked]
    assert names == [["your run", "the other run"]] * 2 + [["run A", "run B"]] * 2
    assert [is_red(pictures_of(body)[0][1]) for body in asked] == [True, False, True, False]


def test_a_rubric_is_written_for_what_the_opening_looks_like(tmp_path: Path) -> None:
    script = Script(scored_by_colour)
    for run in (looks(RED), looks(BLUE)):
        asked_by(tmp_path, script, partial(_scored_by_own_rubric, run))
    written = [body for body in script.asked if "\nThe task and what precedes" in text_of(body)]
    assert [is_red(pictures_of(body)[0][1]) for body in written] == [True, False]
    assert len(script.asked) == 4


def _scored_by_own_rubric(run: Trajectory, model: LLMClient) -> Any:
    return RubricFirstJudge(model, [CRITERION]).score(run)


def test_a_judge_of_steps_sees_those_of_the_steps_it_labels(tmp_path: Path) -> None:
    run = looks(*[RED] * 16, *[BLUE] * 4)

    def labelled(body: Body) -> str:
        steps = json.loads(text_of(body).partition("Steps to label: ")[2].partition("\n")[0])
        return json.dumps({"steps": [{"step": step, "reason": "x", "label": "good"} for step in steps]})

    def label(model: LLMClient) -> Any:
        judge = StepJudge(model)
        return judge.label(run), judge.count_pictures(run)

    (verdicts, seen), (first, second) = asked_by(tmp_path, Script(labelled), label, pictures=4)
    assert len(verdicts) == 20 and seen == 7, "one stands between the two calls"
    assert [place["step"] for place, _ in pictures_of(second)] == [32, 34, 36, 38]
    assert pictures_of(first)[0][0]["step"] == 0 and not any(
        is_red(found) for _, found in pictures_of(second)
    )


def test_windows_of_equal_text_and_other_pictures_are_other_windows(tmp_path: Path) -> None:
    same, other = looks(RED, RED, RED), looks(RED, RED, BLUE)
    limits = PictureLimits(8)
    assert list(step_repeats(same, limits)) == [0, 1, 0]  # no picture follows the last step
    assert list(step_repeats(other, limits)) == [0, 0, 0]
    assert list(step_repeats(other)) == [0, 1, 0], "to one that sees nothing they read the same"
    script = Script(lambda body: json.dumps({"reason": "x", "label": "good"}))
    judge: Any = lambda model: WindowJudge(model, window=1)  # noqa: E731
    _, asked = asked_by(tmp_path, script, lambda model: judge(model).label(other))
    assert [label["picture of"] for label, _ in pictures_of(asked[0])] == ["the opening", "the window"]
    assert asked_by(tmp_path, script, lambda model: judge(model).count_pictures(other))[0] == 3


def test_what_attributes_a_score_sees_the_pictures(tmp_path: Path) -> None:
    answer = json.dumps({"c0": {"reason": "x", "steps": [{"step": 1, "points": 2}]}})
    _, (body,) = asked_by(
        tmp_path, Script(lambda body: answer), lambda model: attribute(model, [CRITERION], looks(RED))
    )
    assert len(pictures_of(body)) == 1


def test_an_answer_that_is_refused_is_asked_again_with_the_pictures(tmp_path: Path) -> None:
    replies = iter(["nonsense", None])

    def answer(body: Body) -> Any:
        return next(replies) or json.dumps({"c0": {"reason": "x", "step": None, "score": 3}})

    found, asked = asked_by(tmp_path, Script(answer), score(looks(RED)))
    assert found.value == 3 and len(asked) == 2
    assert [part["type"] for part in asked[1]["messages"][1]["content"]].count("image_url") == 1


def test_a_server_that_reads_no_pictures_is_an_error_and_no_guess(tmp_path: Path) -> None:
    refusal = (400, {"error": {"message": "This model does not support image_url."}})
    with pytest.raises(NoAnswer, match="does not support image_url"):
        asked_by(tmp_path, Script(lambda body: refusal), score(looks(RED)))


def test_pictures_of_a_job_come_from_its_archive(tmp_path: Path) -> None:
    from workers.schema.picture_archive import PICTURES, write_pictures

    digest = "0" * 63 + "a"
    write_pictures(tmp_path / PICTURES, [(digest, file_of(coloured(RED)))])
    step = Step(source="user", message=(Part(type="image", source=f"sha256:{digest}"),))
    run = Trajectory(steps=(step, Step(source="agent", message=(Part(text="Done."),))), task=Task(id="t"))
    assert choose_pictures(run, PictureLimits(8)) == ()
    use_pictures(tmp_path)
    try:
        (sent,) = view_trajectory(run, PictureLimits(8)).pictures()
    finally:
        forget_pictures()
    assert is_red(opened(sent.jpeg)) and sent.key == f"{digest} 768"


def test_completions_have_the_pictures_tokens(tmp_path: Path) -> None:
    def counted(model: LLMClient) -> int:
        score(looks(RED, BLUE))(model)
        return model.usage.prompt_tokens

    found, _ = asked_by(tmp_path, Script(scored_by_colour), counted)
    assert found == 10 + 2 * 300
