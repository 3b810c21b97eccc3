"""llama.cpp's own server before a small decoder: `python -m tests.workers.llm.llama_cpp FILE.gguf PORT`."""

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_NORMAL, _CONTROL, _UNUSED = 1, 3, 5  # types of tokens
_LAYER = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def as_gguf(folder: Path, path: Path) -> Path:
    """A Qwen2 of `save_pretrained`, whose embeddings are tied, as llama.cpp reads it."""
    from gguf import GGUFWriter

    config = json.loads((folder / "config.json").read_text())
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    out = GGUFWriter(path, "qwen2")
    out.add_context_length(config["max_position_embeddings"])
    out.add_embedding_length(config["hidden_size"])
    out.add_block_count(config["num_hidden_layers"])
    out.add_feed_forward_length(config["intermediate_size"])
    out.add_head_count(config["num_attention_heads"])
    out.add_head_count_kv(config["num_key_value_heads"])
    out.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    out.add_layer_norm_rms_eps(config["rms_norm_eps"])
    out.add_chat_template((folder / "chat_template.jinja").read_text())
    tokens = _tokens(tokenizer, config["vocab_size"])
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("qwen2")
    out.add_token_list([text for text, _ in tokens])
    out.add_token_types([kind for _, kind in tokens])
    out.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
    out.add_eos_token_id(config["eos_token_id"])
    out.add_pad_token_id(config["pad_token_id"])
    out.add_add_bos_token(False)
    for name, values in _tensors(folder, config["num_hidden_layers"], len(tokens)):
        out.add_tensor(name, values)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return path


def _tokens(tokenizer: Any, count: int) -> list[tuple[str, int]]:
    """By id."""
    known = {number: (text, _NORMAL) for text, number in tokenizer["model"]["vocab"].items()}
    known |= {
        added_token["id"]: (added_token["content"], _CONTROL) for added_token in tokenizer["added_tokens"]
    }
    return [known.get(number, (f"unused {number}", _UNUSED)) for number in range(max(count, *known) + 1)]


def _tensors(folder: Path, layers: int, tokens: int) -> Iterator[tuple[str, Any]]:
    import numpy as np
    from safetensors.numpy import load_file

    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm"}
    for layer in range(layers):
        names |= {f"model.layers.{layer}.{ours}": f"blk.{layer}.{theirs}" for ours, theirs in _LAYER.items()}
    for name, values in load_file(folder / "model.safetensors").items():
        module, _, what = name.rpartition(".")
        if (
            module == "model.embed_tokens"
        ):  # a tokenizer has marks of its family that the model has no row for
            values = np.concatenate([values, np.zeros((tokens - len(values), values.shape[1]), "float32")])
        yield f"{names[module]}.{what}", values.astype("float32")


def serve(path: str, port: int) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.hostnames, params.port = ["127.0.0.1"], port
    params.n_ctx, params.n_parallel, params.warmup = 8192, 1, False
    params.cpuparams.n_threads = 1
    server = xllamacpp.Server(params)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    del server


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    serve(sys.argv[1], int(sys.argv[2]))
