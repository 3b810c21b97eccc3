"""llama.cpp's own embeddings, unrounded: `python -m tests.workers.llm.llama_embedding FILE.gguf RANK|LAST IDS`."""

import json
import sys
import urllib.request

import xllamacpp


def embedding(path: str, pooling: str, ids: list[int]) -> list[float]:
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx, params.n_parallel, params.warmup = 512, 1, False
    params.cpuparams.n_threads = 1
    params.embedding, params.embd_normalize = True, -1
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.pooling_type = getattr(xllamacpp.llama_pooling_type, f"LLAMA_POOLING_TYPE_{pooling}")
    server = xllamacpp.Server(params)
    request = urllib.request.Request(
        f"{server.listening_address}/embedding",
        json.dumps({"content": [ids], "embd_normalize": -1}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as reply:
        found: list[float] = json.loads(reply.read())[0]["embedding"][0]
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(embedding(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))) + "\n")
