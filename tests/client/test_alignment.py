"""Where a prompt ends in a query that a tokenizer has decoded."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from touchstone_client.alignment import align

TURN = "<|im_start|>user\nWhere is my order 1007?<|im_end|>\n<|im_start|>assistant\n"
COMPOSED = "Où est mon café? Ça fait déjà une semaine."


@pytest.mark.parametrize(
    ("query", "prompt", "response", "is_exact"),
    [
        (TURN + "No idea.", TURN, "No idea.", True),
        ("<s>" + TURN + "No.", TURN, "No.", True),
        ("<|endoftext|>" * 20 + TURN + "No.", TURN, "No.", True),
        ("<｜begin▁of▁sentence｜>Hi? No.", "Hi?", " No.", True),
        (COMPOSED + "No.", unicodedata.normalize("NFD", COMPOSED), "No.", False),
        ("한국어? 네.", unicodedata.normalize("NFD", "한국어?"), " 네.", False),
        ("It's here, they said.No.", "It 's here , they said .", "No.", False),
        ("Where\nis it?No.", "Where\r\nis it?", "No.", False),
        ("Where is it?No.", "  Where is it?", "No.", False),
        ("<s> [INST] Where is it? [/INST] No.", "<s>[INST] Where is it? [/INST]", " No.", False),
        ("is my order 1007?<|im_end|>\n<|im_start|>assistant\nNo.", TURN, "No.", False),
        ("anything", "", "anything", True),
    ],
)
def test_the_response_is_found(query: str, prompt: str, response: str, is_exact: bool) -> None:
    found = align(query, prompt)
    assert found is not None
    assert (found.response, found.is_exact) == (response, is_exact)


@pytest.mark.parametrize(
    ("query", "prompt"),
    [("cd", "x"), ("something else", "hello"), ("", "hello"), ("No, it is. Yes", "is it?")],
)
def test_a_query_without_its_prompt_is_none(query: str, prompt: str) -> None:
    assert align(query, prompt) is None


@given(st.text(max_size=60), st.text(max_size=60))
def test_prompt_and_response_come_apart_as_they_were_put_together(prompt: str, response: str) -> None:
    found = align(prompt + response, prompt)
    assert found is not None and found.is_exact
    assert found.response == response


@given(st.text(min_size=1, max_size=60), st.text(alphabet="abc ", max_size=20))
def test_normalisation_moves_no_letter_of_the_response(prompt: str, response: str) -> None:
    prompt = prompt + "?"
    found = align(unicodedata.normalize("NFC", prompt) + "|" + response, unicodedata.normalize("NFD", prompt))
    assert found is not None
    assert found.response == "|" + response
