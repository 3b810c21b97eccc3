"""Trainers' own code reads what is exported for them: TRL, OpenRLHF, verl, LLaMA-Factory, and `datasets` the Parquet.

What the code of a peer imports besides, to train, is replaced by empty modules.
"""

import json
import sys
import types
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.accounts.models import Project
from apps.datasets.exports.formats import EXPORTS, write_folder
from apps.datasets.exports.parquet import export as export_parquet
from apps.datasets.models import DatasetVersion
from tests.datasets.feedback import freeze
from tests.datasets.trap_feedback import PIXEL, UNICODE, import_traps
from tests.peer_modules import PEERS, Anything, EmptyModules

pytestmark = pytest.mark.slow  # importing the peers takes some ten seconds

NOT_INSTALLED = (
    *("ray", "pylatexenc", "torchaudio", "tensordict", "omegaconf", "hydra", "codetiming", "flash_attn"),
    *("deepspeed", "vllm", "av", "librosa", "torchdata", "math_verify", "cachetools", "optree"),
)
# A template with the marks that say what the agent wrote, calls and thoughts included.
TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>"
    "{% if m['role'] == 'assistant' %}{% generation %}{{ m['content'] }}"
    "{% for c in m.get('tool_calls') or [] %} {{ c['function']['name'] }}{% endfor %}<|end|>{% endgeneration %}"
    "{% else %}{{ m['content'] }}<|end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@pytest.fixture(autouse=True)
def peers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if not (PEERS / "verl").is_dir():
        pytest.skip("the peers are not installed: `make install-dev` fetches them from PyPI")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(sys, "path", [*sys.path, str(PEERS)])
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, EmptyModules(*NOT_INSTALLED)])
    # verl's needs names that transformers 5 has not, for the positions of pictures.
    monkeypatch.setitem(
        sys.modules, "verl.models.transformers.qwen2_vl", Anything("verl.models.transformers.qwen2_vl")
    )
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.split(".")[0] in (*NOT_INSTALLED, "verl", "openrlhf", "llamafactory"):
            del sys.modules[name]


@pytest.fixture
def traps(project: Project) -> DatasetVersion:
    import_traps(project)
    return freeze(project, test_tasks=["ranked"])


@pytest.fixture
def tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: code for code, letter in enumerate(alphabet)}
    fast = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(tokenizer_object=fast, eos_token="<|end|>", pad_token="<|pad|>")
    made.chat_template = TEMPLATE
    return made


def load(version: DatasetVersion, format: str, tmp_path: Path) -> Any:
    """The rows of a format of lines, as `datasets` reads the file."""
    import datasets

    path = tmp_path / f"{format}.jsonl"
    path.write_text("".join(EXPORTS[format](version, None, Counter())), encoding="utf-8")
    return datasets.load_dataset(
        "json", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache")
    )


def folder_of(version: DatasetVersion, format: str, tmp_path: Path) -> Path:
    folder = tmp_path / format
    folder.mkdir()
    assert sum(1 for _ in write_folder(version, format, None, Counter(), folder)) > 0
    return folder


def trained_text(tokenizer: Any, ids: Any, mask: Any) -> str:
    return str(tokenizer.decode([int(i) for i, keep in zip(ids, mask, strict=True) if keep]))


# Of TRL and transformers among themselves.
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning", "ignore::DeprecationWarning")
def test_trl_trains_on_the_turns_that_were_not_marked_bad(
    traps: DatasetVersion, tokenizer: Any, tmp_path: Path
) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel
    from trl import SFTConfig, SFTTrainer

    rows = load(traps, "trl-sft", tmp_path)
    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=len(tokenizer), n_embd=8, n_layer=1, n_head=1, n_positions=2048)
    )
    config = SFTConfig(
        output_dir=str(tmp_path), report_to=[], use_cpu=True, assistant_only_loss=True, max_length=None,
        per_device_train_batch_size=1,
    )  # fmt: skip
    trainer = SFTTrainer(model=model, args=config, train_dataset=rows, processing_class=tokenizer)
    assert len(trainer.train_dataset) == len(rows)
    seen = {}
    for row, given in zip(trainer.train_dataset, rows, strict=True):
        batch = trainer.data_collator([row])
        labels = batch["labels"][0].tolist()
        text = trained_text(tokenizer, batch["input_ids"][0].tolist(), [label != -100 for label in labels])
        seen.setdefault(given["task"], []).append(text)
    assert seen["plain"] == ["one<|end|>", "three<|end|>"]
    # The third step is the first error.
    assert seen["calls"] == [" weather<|end|>Yes, it rains.<|end|>", "No.<|end|>"]
    assert seen["unicode"] == [UNICODE + "<|end|>"]


def test_openrlhf_reads_preferences_trajectories_and_prompts(
    traps: DatasetVersion, tokenizer: Any, tmp_path: Path
) -> None:
    from openrlhf.datasets.prompts_dataset import PromptDataset
    from openrlhf.datasets.reward_dataset import RewardDataset
    from openrlhf.datasets.sft_dataset import SFTDataset

    def strategy(**data: Any) -> Any:
        args = types.SimpleNamespace(data=types.SimpleNamespace(apply_chat_template=True, **data))
        return types.SimpleNamespace(args=args, is_rank_0=lambda: False)

    sides = {"chosen_key": "chosen_messages", "rejected_key": "rejected_messages"}
    rows = load(traps, "openrlhf", tmp_path)
    reward = RewardDataset(rows, tokenizer, 4096, strategy(**sides), num_processors=1)
    assert len(reward) == len(rows) == 6 and all(
        a != b for a, b in zip(reward.chosens, reward.rejects, strict=True)
    )
    assert reward.collate_fn([reward[0], reward[1]])[0].shape[0] == 2 and reward.extras[0] == pytest.approx(
        1 / 3
    )

    rows = load(traps, "openrlhf-dpo", tmp_path)
    dpo = RewardDataset(
        rows, tokenizer, 4096, strategy(prompt_key="prompt_messages", **sides), is_dpo=True, num_processors=1
    )
    assert len(dpo) == 6
    (at,) = (at for at, chosen in enumerate(dpo.chosens) if "weather" in chosen)
    assert dpo.prompts[at].endswith("umbrella in Ulm?<|end|><|assistant|>")
    assert dpo.rejects[at] == "No idea.<|end|>"

    rows = load(traps, "openrlhf-sft", tmp_path)
    sft = SFTDataset(rows, tokenizer, 4096, strategy(input_key="messages"), num_processors=1, multiturn=True)
    texts = {}
    for place, row in enumerate(rows):
        ids, _, mask = sft[place]
        shifted = [False, *(bool(keep) for keep in mask[0][:-1])]
        texts[row["task"]] = trained_text(tokenizer, ids[0], shifted)
    assert texts["plain"].startswith("one") and "two" not in texts["plain"] and "three" not in texts["plain"]
    assert "weather" in texts["calls"] and "rain" in texts["calls"] and "umbrella" not in texts["calls"]

    rows = load(traps, "openrlhf-prompts", tmp_path)
    prompts = PromptDataset(rows, tokenizer, strategy(input_key="input", label_key="label"))
    assert len(prompts) == len(rows) and prompts[0][0] == "desk/first@1"
    assert all(prompt.endswith("<|assistant|>") for prompt in prompts.prompts)


def test_verl_reads_prompts_trajectories_and_preferences(
    traps: DatasetVersion, tokenizer: Any, tmp_path: Path
) -> None:
    from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset
    from verl.utils.dataset.rl_dataset import RLHFDataset
    from verl.utils.dataset.rm_dataset import RMDataset

    folder = folder_of(traps, "verl", tmp_path)
    config = {
        "cache_dir": str(tmp_path / "cache"),
        "max_prompt_length": 4096,
        "filter_overlong_prompts_workers": 1,
    }
    rl = RLHFDataset([str(folder / "rl/train.parquet"), str(folder / "rl/test.parquet")], tokenizer, config)
    rows = [rl[place] for place in range(len(rl))]
    assert {row["data_source"] for row in rows} == {"desk/first"}
    assert all(set(row["reward_model"]) == {"style", "ground_truth"} for row in rows)
    assert "ranked" in {row["extra_info"]["task"] for row in rows}
    assert all(row["raw_prompt"][-1]["role"] == "user" for row in rows if row["extra_info"]["task"] != "talk")

    files = sorted(map(str, (folder / "sft").glob("*.parquet")))
    sft = MultiTurnSFTDataset(
        files, tokenizer, {"max_length": 2048, "pad_mode": "no_padding", "ignore_input_ids_mismatch": True}
    )
    texts = [
        trained_text(tokenizer, row["input_ids"], row["loss_mask"])
        for row in (sft[n] for n in range(len(sft)))
    ]
    assert "one<|end|>" in texts and not [text for text in texts if "two" in text]
    assert " weather<|end|>Yes, it rains.<|end|>" in texts and UNICODE + "<|end|>" in texts

    files = sorted(map(str, (folder / "rm").glob("*.parquet")))
    rm = RMDataset(files, tokenizer, cache_dir=str(tmp_path / "cache"), max_length=512)
    assert len(rm) == 6 and rm[0]["input_ids"].shape == (2, 512)


def test_llamafactory_converts_every_row(traps: DatasetVersion, tmp_path: Path) -> None:
    from datasets import load_dataset
    from llamafactory.data.converter import get_dataset_converter
    from llamafactory.data.parser import get_dataset_list

    folder = folder_of(traps, "llamafactory", tmp_path)
    info = json.loads((folder / "dataset_info.json").read_text())
    assert set(info) == {"first_preference", "first_kto", "first_sft"}
    found = {}
    for attributes in get_dataset_list(list(info), str(folder)):
        path = str(folder / attributes.dataset_name)
        rows = load_dataset("json", data_files=path, split="train", cache_dir=str(tmp_path / "cache"))
        converter = get_dataset_converter(
            attributes.formatting, attributes, types.SimpleNamespace(media_dir=str(folder))
        )
        found[attributes.dataset_name] = [converter(row) for row in rows]
    for name, rows in found.items():
        assert rows and all(row["_prompt"] and row["_response"] for row in rows), name
        assert all(len(row["_prompt"]) % 2 == 1 for row in rows), name
    assert {len(row["_response"]) for row in found["sft.jsonl"]} == {1}
    assert {len(row["_response"]) for row in found["preference.jsonl"]} == {2}
    (calls,) = (row for row in found["sft.jsonl"] if "weather" in str(row["_prompt"]))
    thoughts, _, call = calls["_prompt"][1]["content"].rpartition("\n\n")
    assert thoughts == "<think>\nLook it up.\n</think>" and calls["_system"] == "You are a clerk."
    assert json.loads(call) == [{"name": "weather", "arguments": {"city": "Ulm"}}]
    assert json.loads(calls["_tools"])[0]["function"]["name"] == "weather"
    labels = [row["_response"][0]["content"] != "" for row in found["kto.jsonl"]]
    assert True in labels and False in labels


def test_datasets_loads_every_kind_with_its_features(traps: DatasetVersion, tmp_path: Path) -> None:
    import pyarrow.parquet
    from datasets import Features, get_dataset_config_names, load_dataset

    folder = tmp_path / "hub"
    folder.mkdir()
    # Files of a few rows each: their columns are the same, whatever is null in them.
    assert sum(1 for _ in export_parquet(traps, None, Counter(), folder, shard_bytes=1)) == sum(
        traps.splits.values()
    )
    cache = {"cache_dir": str(tmp_path / "cache")}
    kinds = get_dataset_config_names(str(folder))
    assert set(kinds) == set(traps.records)
    for kind in kinds:
        loaded = load_dataset(str(folder), kind, **cache)
        assert sum(loaded.num_rows.values()) == traps.records[kind], kind
        schemas = {
            pyarrow.parquet.read_schema(path).to_string() for path in folder.glob(f"data/{kind}/*.parquet")
        }
        assert len(schemas) == 1
        first = next(iter(loaded.values()))
        schema = pyarrow.parquet.read_schema(next(folder.glob(f"data/{kind}/*.parquet")))
        assert first.features == Features.from_arrow_schema(schema)
    default = load_dataset(str(folder), **cache)
    most = max(traps.records.values())
    assert sum(default.num_rows.values()) == most
    pairs = load_dataset(str(folder), "pairwise", split="train", **cache)
    (calls,) = (row for row in pairs if row["task"] == "calls")
    call = calls["a"]["messages"][2]["tool_calls"][0]["function"]
    assert (call["name"], json.loads(call["arguments"])) == ("weather", {"city": "Ulm"})
    assert calls["a"]["messages"][2]["reasoning_content"] == "Look it up."
    (picture,) = (row for row in pairs if row["task"] == "picture")
    assert picture["a"]["messages"][0]["images"] == [PIXEL]
    (numbers,) = (row for row in pairs if row["task"] == "Pendulum-v1 9")
    assert numbers["a"]["messages"][0]["features"] == [1.0, 0.0, 0.1, 0.2]
    (talk,) = (row for row in pairs if row["task"] == "talk")
    assert [message["name"] for message in talk["a"]["messages"]] == ["Ann", "Bo", "Cy", "Dee", "Bo"]


def test_the_card_says_what_there_is(traps: DatasetVersion, tmp_path: Path) -> None:
    from huggingface_hub import DatasetCard

    folder = folder_of(traps, "parquet", tmp_path)
    card = DatasetCard.load(folder / "README.md")
    data = card.data.to_dict()
    assert data["license"] == "unknown"
    assert [config["config_name"] for config in data["configs"] if config.get("default")] == ["rating"]
    assert traps.content_hash in card.text and "imported: collected elsewhere" in card.text
    assert (
        "agreement, rating: two annotators of an item give the same answer in 33.3 % of 3 pairs" in card.text
    )
