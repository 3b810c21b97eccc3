"""Reasons: what a word's deletion does to the reward, what events add, and that long texts are bounded."""

import time

import numpy as np
import pytest
from msgspec import structs

from tests.workers.models.linear_models import agent, asked, linear_model
from workers.errors import RewardError
from workers.models import ChunkCache, LoadedModel
from workers.models.backbones import chunk_encoder
from workers.models.reasons import MOST_WORDS, attribute, find_reasons
from workers.schema import Part, Text, TokenIds
from workers.schema.reasons import EventReason, Rescoring, WordReason
from workers.text import STRUCTURE
from workers.text.event_names import EVENT_NAMES
from workers.text.ngrams import word_columns
from workers.text.word_deletion import agent_words, without_word

pytestmark = pytest.mark.ml
SEVERAL = asked(
    agent(
        "Sorry, the Parcel is late.",
        reasoning="The parcel must be late",
        call="parcel",
        observation="error: none",
    ),
    agent("Your parcel comes today! Thanks.", call="parcel", observation="not found"),
    agent("I could not find it; sorry."),
)
KINDS = [
    {"aggregation": "value"},
    {"aggregation": "sum"},
    {"aggregation": "mean"},
    {"aggregation": "min"},
    {"aggregation": "sum", "reward_from": "labels"},
    {"aggregation": "mean", "reward_from": "labels"},
]


def raw(model: LoadedModel, content) -> float:
    return model.score([model.render(content)])[0].raw


@pytest.fixture(params=KINDS, ids=lambda kind: "-".join(kind.values()))
def model(request) -> LoadedModel:
    return linear_model([SEVERAL], **request.param)


class TestWords:
    def test_deleting_a_word_by_hand_changes_the_reward_by_what_is_told(self, model) -> None:
        by_hand = asked(
            agent(
                "Sorry, the  is late.",
                reasoning="The  must be late",
                call="parcel",
                observation="error: none",
            ),
            agent("Your  comes today! Thanks.", call="parcel", observation="not found"),
            agent("I could not find it; sorry."),
        )
        (reason,) = (
            found
            for found in find_reasons(model, SEVERAL, limit=500)
            if isinstance(found, WordReason) and found.text == "parcel"
        )
        expected = (raw(model, SEVERAL) - raw(model, by_hand)) / 0.7
        assert reason.by == pytest.approx(expected, abs=1e-9)
        assert (reason.step, reason.count) == (None, 3)

    def test_every_word_is_exact_and_the_largest_is_first(self, model) -> None:
        found = find_reasons(model, SEVERAL, limit=500)
        spoken = [word for step in agent_words(SEVERAL) for word in step]
        told = [reason for reason in found if isinstance(reason, WordReason)]
        assert len(told) > 5
        for reason in told:
            changed = raw(model, without_word(SEVERAL, reason.text))
            assert reason.by == pytest.approx((raw(model, SEVERAL) - changed) / 0.7, abs=1e-9)
            assert reason.count == spoken.count(reason.text)
        sizes = [abs(reason.by) for reason in found]
        assert sizes == sorted(sizes, reverse=True)
        assert find_reasons(model, SEVERAL, limit=3) == found[:3]

    def test_a_word_of_one_step_names_it(self) -> None:
        found = find_reasons(linear_model([SEVERAL]), SEVERAL, limit=500)
        steps = {reason.text: reason.step for reason in found if isinstance(reason, WordReason)}
        assert steps["today"] == 1
        assert steps["could"] == 2
        assert steps["sorry"] is None

    def test_texts_have_reasons_too(self) -> None:
        model = linear_model([Text("good work, Good")])
        found = find_reasons(model, Text("good work, Good"), limit=500)
        (reason,) = (word for word in found if isinstance(word, WordReason) and word.text == "good")
        changed = raw(model, Text(" work, "))
        assert reason.by == pytest.approx((raw(model, Text("good work, Good")) - changed) / 0.7, abs=1e-9)
        assert (reason.step, reason.count) == (0, 2)

    def test_the_cheap_order_finds_the_words_that_matter(self) -> None:
        """Among 200 words of which 60 are tried, against trying each."""
        words = [f"w{number:03}" for number in range(200)]
        content = Text(" ".join(words))
        model = linear_model([content])
        found = find_reasons(model, content, limit=500)
        told = [reason for reason in found if isinstance(reason, WordReason)]
        everything = [(raw(model, content) - raw(model, without_word(content, word))) / 0.7 for word in words]
        best = {words[place] for place in np.argsort(-np.abs(everything))[:10]}
        assert len(best & {reason.text for reason in told}) >= 7


class TestDeletion:
    def test_only_what_the_agent_wrote_is_changed(self) -> None:
        changed = without_word(SEVERAL, "parcel")
        first = changed.steps[1]
        assert first.message[0].text == "Sorry, the  is late."
        assert first.reasoning == "The  must be late"
        assert first.tool_calls == SEVERAL.steps[1].tool_calls
        assert first.observation == SEVERAL.steps[1].observation
        assert without_word(SEVERAL, "order") == SEVERAL  # of the user alone

    def test_whole_words_alone(self) -> None:
        text = Text("late later LATE late_1 late-comer zu spät")
        assert without_word(text, "late") == Text(" later  late_1 -comer zu spät")
        assert without_word(text, "spät") == Text("late later LATE late_1 late-comer zu ")

    def test_an_image_stays(self) -> None:
        step = structs.replace(agent("late"), message=(Part(type="image", source="x"), Part(text="late")))
        assert without_word(asked(step), "late").steps[1].message == (
            Part(type="image", source="x"),
            Part(text=""),
        )

    @pytest.mark.parametrize(
        "text", ["a b_c-d", "ÖL İx Kelvin K", "漢字 ok", "\ud800 x", "x\x00y\u00a0z", ""]
    )
    def test_words_are_those_that_the_model_reads(self, text: str) -> None:
        assert len(agent_words(Text(text))[0]) == len(word_columns(text)[0])


class TestEvents:
    def test_words_and_events_add_up_to_the_raw_reward(self, model) -> None:
        found = attribute(model, model.render(SEVERAL))
        total = found.start + found.texts.sum() + found.events.sum() + found.embeddings.sum()
        assert total == pytest.approx(raw(model, SEVERAL), abs=1e-9)

    def test_an_event_is_its_value_times_its_weight(self, model) -> None:
        found = attribute(model, model.render(SEVERAL))
        told = {
            reason.name: reason
            for reason in find_reasons(model, SEVERAL, limit=500)
            if isinstance(reason, EventReason)
        }
        apologies = found.events[:, found.names.index("apologies")]
        assert set(np.flatnonzero(apologies)) <= {0, 2}
        if apologies.any():
            assert told["apologies"].by == pytest.approx(apologies.sum() / 0.7, abs=1e-9)
            assert told["apologies"].steps == tuple(np.flatnonzero(apologies))
        assert sum(reason.by for reason in told.values()) == pytest.approx(found.events.sum() / 0.7, abs=1e-9)

    def test_every_event_has_a_name_of_its_own(self) -> None:
        assert set(EVENT_NAMES) == set(STRUCTURE)
        assert len(set(EVENT_NAMES.values())) == len(STRUCTURE)


class TestBounds:
    @pytest.mark.parametrize(
        "text",
        [
            pytest.param("a" * 2**20, id="one word"),
            pytest.param("late parcel " * 2**17, id="two words", marks=pytest.mark.long),
            pytest.param(" ".join(f"{n:x}" for n in range(2**17)), id="many words"),
            pytest.param("é!" * 2**18, id="signs", marks=pytest.mark.long),
        ],
    )
    def test_a_megabyte_takes_seconds(self, text: str) -> None:
        model = linear_model([SEVERAL])
        started = time.process_time()
        found = find_reasons(model, asked(agent(text)))
        assert time.process_time() - started < 30
        assert len(found) <= 10
        assert all(len(reason.text) <= 64 for reason in found if isinstance(reason, WordReason))

    def test_fewer_words_of_longer_texts_are_scored(self, monkeypatch) -> None:
        model = linear_model([SEVERAL])
        content = Text(" ".join(f"w{number}" for number in range(100)))
        rendered: list[object] = []
        original = LoadedModel.render
        monkeypatch.setattr(
            LoadedModel,
            "render",
            lambda self, content: (rendered.append(content), original(self, content))[1],
        )
        model.reasons(content)
        assert len(rendered) == 1 + MOST_WORDS
        rendered.clear()
        model.reasons(content, rescoring=Rescoring(most_characters=5 * 900))
        assert len(rendered) == 1 + 5

    def test_fewer_words_of_many_short_steps_are_scored(self, monkeypatch) -> None:
        model = linear_model([SEVERAL])
        batches: list[int] = []
        score = LoadedModel.score
        monkeypatch.setattr(
            LoadedModel,
            "score",
            lambda self, batch, **options: (batches.append(len(batch)), score(self, batch, **options))[1],
        )
        model.reasons(asked(*(agent(f"w{number % 100}") for number in range(1000))))
        assert batches == [1] * 5  # itself, and four of its copies, one at a time

    def test_events_name_at_most_twenty_steps(self) -> None:
        content = asked(*(agent(f"step {number}") for number in range(50)))
        found = find_reasons(linear_model([content]), content, limit=500)
        assert max(len(reason.steps) for reason in found if isinstance(reason, EventReason)) == 20

    def test_what_the_model_does_not_read_is_refused(self) -> None:
        with pytest.raises(RewardError, match="no tokenizer"):
            linear_model([SEVERAL]).reasons(TokenIds((1, 2)))


class TestAnEncoder:
    """What a hybrid model's encoder reads for reasons: only the chunks that a word's deletion changes."""

    content = asked(
        *(agent(f"step {number} finds order{number} " + "again and " * 20) for number in range(12))
    )

    @pytest.fixture
    def hybrid(self, tiny_encoder) -> LoadedModel:
        return linear_model([self.content], backbone="hybrid", encoder=str(tiny_encoder), chunk_tokens=16)

    @pytest.fixture
    def read(self, monkeypatch) -> list[int]:
        """The tokens of each call of the encoder."""
        calls: list[int] = []
        original = chunk_encoder.encode

        def encode(encoder, chunks, **options):
            calls.append(sum(map(len, chunks)))
            return original(encoder, chunks, **options)

        monkeypatch.setattr(chunk_encoder, "encode", encode)
        return calls

    def test_the_chunks_of_the_served_cache_are_not_read_again(self, hybrid, read) -> None:
        cache = ChunkCache(2**24)
        rendered = hybrid.render(self.content)
        hybrid.score([rendered], cache=cache)
        known = {chunk for step in rendered.chunks for chunk in step}
        read.clear()
        charged: list[int] = []
        found = hybrid.reasons(
            self.content, limit=500, rescoring=Rescoring(cache=cache, charge=charged.append)
        )
        told = [reason for reason in found if isinstance(reason, WordReason)]
        copies = [hybrid.render(without_word(self.content, reason.text)) for reason in told]
        new = {chunk for copy in copies for step in copy.chunks for chunk in step} - known
        assert sum(read) == sum(map(len, new))
        assert 0 < sum(read) < sum(copy.tokens for copy in copies) / 2
        assert sum(charged) == sum(copy.tokens for copy in copies)
        for reason in told[:5]:
            changed = raw(hybrid, without_word(self.content, reason.text))
            assert reason.by == pytest.approx((raw(hybrid, self.content) - changed) / 0.7, abs=1e-5)

    def test_words_in_too_many_chunks_are_left_out(self, hybrid, read) -> None:
        """Without "again" or "and" every step is another; without a number, one is."""
        found = hybrid.reasons(self.content, limit=500, rescoring=Rescoring(most_tokens=150))
        (original,) = {sum(len(chunk) for step in hybrid.render(self.content).chunks for chunk in step)}
        assert sum(read) <= original + 150
        words = {reason.text for reason in found if isinstance(reason, WordReason)}
        assert words and not words & {"again", "and"}

    def test_a_batch_is_small_enough_for_others_to_have_their_turn(self, hybrid, read, monkeypatch) -> None:
        monkeypatch.setattr("workers.models.reasons._BATCH_TOKENS", 400)
        cache = ChunkCache(2**24)
        hybrid.score([hybrid.render(self.content)], cache=cache)
        read.clear()
        hybrid.reasons(self.content, limit=500, rescoring=Rescoring(cache=cache, most_tokens=2000))
        assert len(read) > 3
        assert max(read) <= 400

    def test_what_a_charge_raises_ends_it(self, hybrid) -> None:
        def refuse(tokens: int) -> None:
            raise RewardError("the limit of the key is reached.")

        with pytest.raises(RewardError, match="the limit of the key"):
            hybrid.reasons(self.content, rescoring=Rescoring(charge=refuse))
