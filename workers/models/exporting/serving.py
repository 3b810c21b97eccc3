"""How other servers are started with an export, for its README: commands of the versions that `servers` names."""

from workers.models.exporting import servers
from workers.models.exporting.snippets import normalisation
from workers.models.exporting.source import ExportSource

_NAME = "reward"
_JSON = "-H 'Content-Type: application/json'"


def sequence_classifier(source: ExportSource, architecture: str) -> str:
    peers = {
        "vLLM": (servers.vllm_serves, servers.VLLM, _vllm),
        "SGLang": (servers.sglang_serves, servers.SGLANG, _sglang),
        "TEI": (servers.tei_serves, servers.TEI, _tei),
    }
    parts = [
        text(source, architecture) if serves(architecture) else _not_served(peer, version, architecture)
        for peer, (serves, version, text) in peers.items()
    ]
    parts.append(
        "**TRL**: `RewardTrainer(model=FOLDER)` trains it further; `GRPOTrainer(reward_funcs=FOLDER)` scores "
        "completions by it, by the chat template of this folder."
    )
    return "\n\n".join(parts)


def token_classifier(source: ExportSource, architecture: str) -> str:
    if not servers.vllm_serves(architecture):
        return _not_served("vLLM", servers.VLLM, architecture)
    return f"""**vLLM** {servers.VLLM}

```
vllm serve FOLDER --served-model-name {_NAME} --runner pooling --convert classify \\
  --pooler-config.task token_classify --max-model-len {source.max_tokens}
curl http://localhost:8000/pooling {_JSON} -d '{{"model": "{_NAME}", "input": [TOKEN_IDS]}}'
```

`data[0].data` has one number for each token; those at `step_ends` are the values of the steps. It is the logit, since
`problem_type` in config.json is `regression`. SGLang and TEI give no number for each token."""


def checkpoint(source: ExportSource, architecture: str) -> str:
    """Of a model in its maker's layout."""
    if source.kind != "process-decoder":
        return sequence_classifier(source, architecture)
    if not (servers.vllm_serves(architecture) or architecture in servers.VLLM_PROCESS):
        return _not_served("vLLM", servers.VLLM, architecture)
    return f"""**vLLM** {servers.VLLM}

```
vllm serve FOLDER --served-model-name {_NAME} --runner pooling --pooler-config.task token_classify
curl http://localhost:8000/pooling {_JSON} -d '{{"model": "{_NAME}", "input": [TOKEN_IDS]}}'
```

`data[0].data` has the numbers of each token that is read. SGLang and TEI give none for each token."""


def _vllm(source: ExportSource, architecture: str) -> str:
    return f"""**vLLM** {servers.VLLM}

```
vllm serve FOLDER --served-model-name {_NAME} --runner pooling --convert classify \\
  --pooler-config.task classify --max-model-len {source.max_tokens}
curl http://localhost:8000/classify {_JSON} -d '{{"model": "{_NAME}", "messages": [
  {{"role": "user", "content": "..."}}, {{"role": "assistant", "content": "..."}}]}}'
```

`data[0].probs[0]` is the raw reward, since `problem_type` in config.json is `regression`; ask older versions with
`"use_activation": false`. For normalised rewards, start it with
`--pooler-config '{{"task": "classify", "logit_mean": {source.median!r}, "logit_sigma": {source.std!r}}}'`.
{normalisation(source)} Versions without `--runner` take `--task classify`."""


def _sglang(source: ExportSource, architecture: str) -> str:
    bias = ""
    if architecture in servers.SGLANG_RANDOM_BIAS:
        bias = (
            f" Mind that SGLang's {architecture} adds a bias to the head, which no checkpoint has and which stays as "
            "it was drawn: all rewards are shifted by one number, until the next start."
        )
    return f"""**SGLang** {servers.SGLANG}

```
python -m sglang.launch_server --model-path FOLDER --is-embedding --context-length {source.max_tokens}
curl http://localhost:30000/classify {_JSON} -d '{{"model": "FOLDER", "text": ["..."]}}'
```

The text is the conversation after the chat template; `[0].embedding[0]` is the raw reward.{bias}"""


def _tei(source: ExportSource, architecture: str) -> str:
    return f"""**TEI** {servers.TEI}

```
text-embeddings-router --model-id FOLDER
curl http://localhost:8080/predict {_JSON} -d '{{"inputs": "...", "raw_scores": true}}'
```"""


def _not_served(server: str, version: str, architecture: str) -> str:
    return f"**{server}** {version} has no {architecture}."
