"""A language model writes and is read: the same next to others as alone, and as transformers computes it."""

import pytest
import torch

from tests.workers.judge.judges import decoder, run_of
from tests.workers.judge.judges import writer as make_writer
from workers.models.generative.verdicts import MARK
from workers.models.generative.writer import Line, Writer, micro_batches


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Writer:
    return make_writer(decoder(tmp_path_factory.mktemp("decoder")))


def test_what_is_read_is_what_the_model_says_of_each_token(writer: Writer) -> None:
    lines = [Line((5, 6, 7, 8, 9), 2, (11,)), Line((5, 6, 7), 2), Line((9, 9, 9, 9), 4)]
    with torch.no_grad():
        read = writer.read(lines, entropy=True)
        for row, line in enumerate(lines):
            logits = writer.language(torch.tensor([[*line.ids, *line.before]])).logits[0].log_softmax(-1)
            own = [float(logits[place - 1, line.ids[place]]) for place in range(line.answer, len(line.ids))]
            assert read.log_probs[row, : len(own)].tolist() == pytest.approx(own, abs=1e-5)
            assert float(read.log_probs[row, len(own) :].abs().sum()) == 0
            assert read.mask[row].sum() == len(own)
            torch.testing.assert_close(read.next[row], logits[-1], atol=1e-5, rtol=0)
            spread = [
                -(logits[place - 1].exp() * logits[place - 1]).sum()
                for place in range(line.answer, len(line.ids))
            ]
            expected = float(sum(spread) / len(spread)) if spread else 0.0
            assert float(read.entropy[row]) == pytest.approx(expected, abs=1e-4)


def test_likeliest_words_are_the_same_alone_and_beside_others(writer: Writer) -> None:
    prompts = [writer.renderer.render(run_of(text)).ids for text in ("good", "bad lost and sent", "no")]
    together = writer.write(prompts)
    assert together == [writer.write([prompt])[0] for prompt in prompts]
    assert all(len(record.ids) <= writer.renderer.critique_tokens for record in together)


def test_samples_differ_and_come_in_a_row(writer: Writer) -> None:
    prompts = [writer.renderer.render(run_of(text)).ids for text in ("good", "bad")]
    torch.manual_seed(0)
    drawn = writer.write(prompts, temperature=1.0, samples=3)
    assert len(drawn) == 6 and len({mark.ids for mark in drawn}) > 3
    torch.manual_seed(0)
    assert writer.write(prompts, temperature=1.0, samples=3) == drawn


def test_it_stops_at_the_mark_and_the_mark_is_added_where_it_is_missing(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = writer.renderer.render(run_of("good"))
    wanted = [*writer.renderer.critique_ids("It was sent."), *writer.renderer.mark_ids]
    script = iter([*wanted, *[7] * 40])

    def scripted(module, args, kwargs, output):
        output.logits[:, -1] = (
            torch.nn.functional.one_hot(torch.tensor(next(script)), output.logits.shape[-1]).float() * 50
        )
        return output

    monkeypatch.setattr(writer.renderer, "critique_tokens", 40)
    handle = writer.language.register_forward_hook(scripted, with_kwargs=True)
    try:
        (written,) = writer.write([asked.ids])
    finally:
        handle.remove()
    assert written.is_formed and written.critique == "It was sent."
    assert list(written.ids) == wanted
    before = writer.renderer.words(asked).before
    formed = writer.line(asked, written.ids, is_formed=True)
    assert formed.ids == (*asked.ids, *wanted) and formed.before == before and formed.answer == len(asked.ids)
    forced = writer.line(asked, (7,), is_formed=False)
    assert writer.renderer.text(forced.ids[len(asked.ids) + 1 :]) == MARK


def test_parts_hold_every_line_once() -> None:
    lines = [Line(tuple(range(length)), 0) for length in (5, 1, 9, 5, 30)]
    parts = list(micro_batches(lines, 12))
    assert sorted(place for part in parts for place in part) == [0, 1, 2, 3, 4]
    assert all(
        len(part) == 1 or len(part) * max(len(lines[record].ids) for record in part) <= 12 for part in parts
    )


def test_what_the_models_folder_says_of_sampling_does_not_count(writer: Writer) -> None:
    prompt = writer.renderer.render(run_of("good")).ids
    own = writer.language.generation_config
    before = {name: getattr(own, name) for name in ("repetition_penalty", "top_k", "top_p", "do_sample")}
    torch.manual_seed(1)
    expected = writer.write([prompt], temperature=1.0, samples=3), writer.write([prompt])
    try:
        own.repetition_penalty, own.top_k, own.top_p, own.do_sample = 1.8, 1, 0.1, True
        torch.manual_seed(1)
        assert (writer.write([prompt], temperature=1.0, samples=3), writer.write([prompt])) == expected
    finally:
        own.update(**before)
