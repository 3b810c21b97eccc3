"""Agent-Lightning with an endpoint's reward: each rollout returns it, and its spans are kept for import.

pip install agentlightning==0.3.0 ./client
TOUCHSTONE_KEY=tsk_... python docs/examples/agentlightning_rollouts.py --url http://127.0.0.1:8000 --endpoint sample
    --model MODEL --model-url http://127.0.0.1:9000/v1 [--spans spans.jsonl]

`Trainer.dev` runs every task once, without a GPU; `Trainer.fit` with an algorithm trains on the same rewards. The
tracer is `OtelTracer`: the default, AgentOps, sends what it records elsewhere where it has a key. OtelTracer records no
calls of models, so the agent writes a span for each by the GenAI conventions of OpenTelemetry, which
`import_trajectories --format otel-spans` reads.
"""

import argparse
import asyncio
import json
import os
from pathlib import Path
from typing import Any

import agentlightning as agl
from openai import OpenAI
from opentelemetry import trace
from touchstone_client import RewardClient

SYSTEM = "You answer at a support desk, in one sentence."
REQUESTS = ("Where is my order 1041?", "Order 1042 has not come.", "Was I charged for order 1043?")


class DeskAgent(agl.LitAgent[dict[str, Any]]):
    """A task is {"request": text}."""

    def __init__(self, client: RewardClient) -> None:
        super().__init__()
        self._rewards = client

    def rollout(self, task: dict[str, Any], resources: agl.NamedResources, rollout: agl.Rollout) -> float:
        """The endpoint's reward: a float, which Agent-Lightning stores as the rollout's last span."""
        llm = resources["llm"]
        assert isinstance(llm, agl.LLM)
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": task["request"]}]
        messages.append({"role": "assistant", "content": answered(llm, messages)})
        scores = self._rewards.score([{"messages": messages}], steps=False, uncertainty=False)
        return scores.rewards[0]


def answered(llm: agl.LLM, messages: list[dict[str, str]]) -> str:
    """What the model answers, with a span of the call."""
    with trace.get_tracer("desk").start_as_current_span("chat") as span:
        client = OpenAI(base_url=llm.endpoint, api_key=llm.api_key or "none")
        reply = client.chat.completions.create(model=llm.model, messages=messages)
        text = reply.choices[0].message.content or ""
        span.set_attributes(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": llm.model,
                "gen_ai.input.messages": json.dumps([_parts(message) for message in messages]),
                "gen_ai.output.messages": json.dumps([_parts({"role": "assistant", "content": text})]),
            }
        )
    return text


def _parts(message: dict[str, str]) -> dict[str, Any]:
    return {"role": message["role"], "parts": [{"type": "text", "content": message["content"]}]}


def train(
    client: RewardClient, *, model: str, model_url: str, requests: tuple[str, ...] = REQUESTS
) -> list[Any]:
    """The spans of all rollouts."""
    store = agl.InMemoryLightningStore()
    trainer = agl.Trainer(
        n_runners=1,
        algorithm=agl.Baseline(polling_interval=0.1),
        tracer=agl.OtelTracer(),
        store=store,
        strategy=agl.SharedMemoryExecutionStrategy(n_runners=1, main_thread="algorithm"),
        initial_resources={"llm": agl.LLM(endpoint=model_url, model=model)},
    )
    trainer.dev(DeskAgent(client), [{"request": request} for request in requests])
    return asyncio.run(spans_of(store))


async def spans_of(store: agl.LightningStore) -> list[Any]:
    rollouts = await store.query_rollouts()
    return [span for rollout in rollouts for span in await store.query_spans(rollout.rollout_id)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", required=True)
    parser.add_argument("--endpoint", default="sample")
    parser.add_argument("--model", required=True)
    parser.add_argument("--model-url", required=True)
    parser.add_argument("--spans", type=Path, help="a file for the spans, one a line")
    options = parser.parse_args()
    with RewardClient(
        options.url, options.endpoint, os.environ["TOUCHSTONE_KEY"], run="agentlightning"
    ) as client:
        spans = train(client, model=options.model, model_url=options.model_url)
    for span in spans:
        print(span.rollout_id, span.name, agl.get_reward_value(span))
    if options.spans:
        options.spans.write_text("".join(f"{span.model_dump_json()}\n" for span in spans))


if __name__ == "__main__":
    main()
