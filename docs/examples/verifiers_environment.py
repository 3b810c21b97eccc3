"""An environment of `verifiers` whose reward is an endpoint's: a support desk with one tool. This file is all of it.

pip install "verifiers>=0.4,<0.5" uv ./client
TOUCHSTONE_KEY=tsk_... PYTHONPATH=docs/examples vf-eval verifiers-environment --no-push
    --env.taskset.task.url http://127.0.0.1:8000 --env.taskset.task.endpoint sample
    --env.agent.harness.id null --env.agent.runtime.type subprocess
    --model MODEL --client.base-url http://127.0.0.1:9000/v1 --client.api-key-var MODEL_KEY -r 4

Without --no-push, vf-eval uploads what it ran.
"""

import os
from functools import cache

import verifiers.v1 as vf
from touchstone_client import verifiers_reward
from touchstone_client.verifiers import VerifiersReward

__all__ = ["DeskTaskset"]

ORDERS = {
    "1041": "in the mail since Monday, expected on Thursday",
    "1042": "lost by the carrier, a refund of 12.50 is allowed",
    "1043": "cancelled by the customer yesterday, nothing was charged",
}
REQUESTS = {
    "1041": "Where is my order 1041?",
    "1042": "Order 1042 has not come. I want my money back.",
    "1043": "Was I charged for order 1043? I cancelled it.",
}


class DeskTools(vf.Toolset[vf.ToolsetConfig]):
    @vf.tool
    def look_up_order(self, order: str) -> str:
        """What is known of an order, by its number."""
        return ORDERS.get(order, f"there is no order {order!r}")


class DeskData(vf.TaskData):
    order: str


class DeskTaskConfig(vf.TaskConfig):
    """`--env.taskset.task.*`. key_variable: the environment variable that holds the key, which is never written down
    with the configuration."""

    url: str = "http://127.0.0.1:8000"
    endpoint: str = "sample"
    key_variable: str = "TOUCHSTONE_KEY"
    policy_run: str | None = None
    tools: vf.ToolsetConfig = vf.ToolsetConfig()


class DeskTask(vf.Task[DeskData, vf.State, DeskTaskConfig]):
    @classmethod
    def toolsets(cls, config: DeskTaskConfig) -> list[vf.Toolset]:
        return [DeskTools(config.tools)]

    @vf.reward(weight=1.0)
    async def endpoint_reward(self, trace: vf.Trace) -> float:
        settings = self.config
        reward = _endpoint(settings.url, settings.endpoint, settings.key_variable, settings.policy_run)
        return await reward(self.data, trace)


class DeskConfig(vf.TasksetConfig):
    task: DeskTaskConfig = DeskTaskConfig()


class DeskTaskset(vf.Taskset[DeskTask, DeskConfig]):
    def load(self) -> list[DeskTask]:
        return [
            DeskTask(
                DeskData(
                    id=order,
                    prompt=request,
                    system_prompt="You answer at a support desk. Look up the order first.",
                    order=order,
                ),
                self.config.task,
            )
            for order, request in REQUESTS.items()
        ]


@cache
def _endpoint(url: str, endpoint: str, key_variable: str, run: str | None) -> VerifiersReward:
    """One for all rollouts, so that those that end together are scored in one request."""
    key = os.environ.get(key_variable)
    if not key:
        raise ValueError(
            f"the environment variable {key_variable} has no key with the scope `reward`: set it"
        )
    return verifiers_reward(url, endpoint, key, run=run)


if __name__ == "__main__":
    DeskTools.run()
