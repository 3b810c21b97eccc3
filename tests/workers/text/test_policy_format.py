"""A policy's chat template that an endpoint names: by its family, or by its tokenizer's folder."""

from pathlib import Path

import pytest

from benchmarks.chat_templates import template_text
from tests.workers.decoders import tokenizer
from workers.errors import RewardError
from workers.schema.chat_text import FORMATS, read_pair, read_whole
from workers.text.policy_format import policy_format

OWN = (
    "{{ bos_token }}{% for message in messages %}### {{ message.role }} says:\n{{ message.content }} ###end\n"
    "{% endfor %}{% if add_generation_prompt %}### assistant says:\n{% endif %}"
)


def test_families_by_name() -> None:
    assert policy_format("qwen3") is FORMATS["chatml"]
    assert policy_format("Llama-3") is FORMATS["llama3"]


def test_a_folder_of_a_known_family(tmp_path: Path) -> None:
    tokenizer(template_text("gemma3")).save_pretrained(tmp_path)
    assert policy_format(str(tmp_path)) is FORMATS["gemma"]


def test_a_folder_with_a_template_of_its_own(tmp_path: Path) -> None:
    made = tokenizer(OWN)
    made.save_pretrained(tmp_path)
    format_ = policy_format(str(tmp_path))
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "When?"},
    ]
    prompt = made.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    found = read_pair(prompt, "Today. ###end\n", format_)
    assert found is not None
    assert found.messages == [*messages, {"role": "assistant", "content": "Today."}]
    whole = made.apply_chat_template(found.messages, tokenize=False)
    assert read_whole(whole) is None
    read = read_whole(whole, format_)
    assert read is not None and (read.messages, read.flags) == (found.messages, ())


VICUNA = (
    "{% if messages[0].role == 'system' %}{{ messages[0].content }}{% set messages = messages[1:] %}"
    "{% else %}A chat between a user and an assistant.{% endif %}"
    "{% for message in messages %}{% if message.role == 'user' %}{{ ' USER: ' + message.content }}"
    "{% else %}{{ ' ASSISTANT: ' + message.content + eos_token }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ ' ASSISTANT:' }}{% endif %}"
)
CASES = (
    "{% for message in messages %}"
    "{{ {'user': '<USR>', 'assistant': '<usr>', 'system': '<SYS>'}[message.role] }}"
    "{{ message.content }}<E>{% endfor %}{% if add_generation_prompt %}<usr>{% endif %}"
)


@pytest.mark.parametrize("chat_template", [VICUNA, CASES])
@pytest.mark.parametrize("system", ["Be kind.", None])
def test_a_prompt_that_the_template_opens_is_read(
    tmp_path: Path, chat_template: str, system: str | None
) -> None:
    made = tokenizer(chat_template)
    made.save_pretrained(tmp_path)
    format_ = policy_format(str(tmp_path))
    asked = [{"role": "system", "content": system}] if system else []
    asked += [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    asked += [{"role": "user", "content": "When?"}]
    prompt = made.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
    if system is None and chat_template is VICUNA:
        asked = [{"role": "system", "content": "A chat between a user and an assistant."}, *asked]
    said = {"role": "assistant", "content": "Today."}
    for response in (" Today.", "Today.</s>"):
        found = read_pair(prompt, response, format_)
        assert found is not None and (found.messages, found.flags) == ([*asked, said], ())
    whole = read_whole(made.apply_chat_template([*asked, said], tokenize=False), format_)
    assert whole is not None and (whole.messages, whole.flags) == ([*asked, said], ())
    assert read_pair("What is a USER: or a <usr> mark?", "x", format_) is None


def test_results_of_tools_in_a_template_of_its_own(tmp_path: Path) -> None:
    made = tokenizer(OWN)
    made.save_pretrained(tmp_path)
    said = [("user", "Hi"), ("assistant", "Wait."), ("tool", "ok"), ("assistant", "Done.")]
    shown = [{"role": role, "content": content} for role, content in said]
    prompt = made.apply_chat_template(shown[:-1], tokenize=False, add_generation_prompt=True)
    found = read_pair(prompt, "Done. ###end\n", policy_format(str(tmp_path)))
    assert found is not None and found.messages == shown


@pytest.mark.parametrize(
    ("chat_template", "says"),
    [
        (None, "has no chat template"),
        ("{% for message in messages %}{{ message.content }}\n{% endfor %}", "does not mark whose a turn is"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, chat_template: str | None, says: str) -> None:
    tokenizer(chat_template).save_pretrained(tmp_path)
    with pytest.raises(RewardError, match=says):
        policy_format(str(tmp_path))
    with pytest.raises(RewardError, match="there is no folder"):
        policy_format(str(tmp_path / "none"))
