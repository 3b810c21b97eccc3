"""Which key nodes of a task a trajectory reaches, where, and what it saw there."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from workers.engine.rules.agent_text import agent_steps, message_of, step_text
from workers.engine.rules.policy_checks import passes
from workers.engine.rules.references import reference_text
from workers.engine.rules.tools import tool_calls
from workers.errors import InvalidRecord, RewardError
from workers.schema import ScoreInput, Step, Trajectory, parse_json
from workers.schema.key_nodes import KeyNode, KeyNodes, read_key_nodes
from workers.schema.model_score import ModelScore
from workers.schema.part_text import parts_text
from workers.schema.patterns import TextPattern, compiled
from workers.schema.reference_parts import KeyNodeShare

_ADDRESS = TextPattern(r"^(?:[a-z][a-z0-9+.-]*://|www\.)\S+$")
_ADDRESS_KEYS = ("url", "page_url", "current_url")
_HINT = (
    "the key nodes of the task are in the key `key_nodes` of the reference or the metadata: "
    '{"nodes": [{"name", "tools", "when", "url", "text"}], "in_order": false}, or the list alone'
)


@dataclass(frozen=True, slots=True)
class ReachedNode:
    """step: its place among all steps, None where the node is not reached. agent_step: among those of the agent.
    observed: what was observed there, of a node that expects something. is_expected: whether that is it, whatever the
    white space; None where nothing is expected or nothing reached."""

    node: KeyNode
    step: int | None = None
    agent_step: int | None = None
    observed: str | None = None

    @property
    def is_reached(self) -> bool:
        return self.step is not None

    @property
    def is_expected(self) -> bool | None:
        if self.node.expected is None or self.observed is None:
            return None
        return self.node.expected.split() == self.observed.split()


@dataclass(slots=True)
class _Turn:
    """A step of the agent, and the observations before its next one. steps: each with its place."""

    agent_step: int
    steps: list[tuple[int, Step]]

    @property
    def agent(self) -> tuple[int, Step]:
        return self.steps[0]

    def seen(self) -> Iterator[tuple[int, str]]:
        """Texts of results and observations, each with the place of its step."""
        for place, step in self.steps:
            if step.source == "environment" and (text := message_of(step)):
                yield place, text
            for result in step.observation:
                if text := parts_text(result.content):
                    yield place, text

    def addresses(self) -> Iterator[tuple[int, str]]:
        place, step = self.agent
        for call in tool_calls(step):
            for value in (call.arguments or {}).values():
                if isinstance(value, str) and _ADDRESS.match(value.strip()):
                    yield place, value.strip()
        for place, step in self.steps:
            for about in (step.extra, *(result.extra for result in step.observation)):
                for key in _ADDRESS_KEYS:
                    if isinstance(value := about.get(key), str) and value:
                        yield place, value


def reached_nodes(key_nodes: KeyNodes, steps: Sequence[Step]) -> list[ReachedNode]:
    """For each node, the first step that reaches it. steps: all of a trajectory. Several nodes may be reached in one
    step; of those in order, wherever in it."""
    turns, found = _turns(steps), list[ReachedNode]()
    begin: int | None = 0  # the first turn that may reach the next node; None: a node before it is missing
    for node in key_nodes.nodes:
        reached = None
        for turn in turns[begin:] if begin is not None else ():
            if (place := _place_in(node, turn)) is not None:
                observed = _observed(node, turn) if node.expected is not None else None
                reached = ReachedNode(node, place, turn.agent_step, observed)
                break
        found.append(reached or ReachedNode(node))
        if key_nodes.in_order:
            begin = reached.agent_step if reached is not None else None
    return found


def step_addresses(steps: Sequence[Step], index: int) -> list[str]:
    """Addresses that `url` of a node is looked for in, at this step."""
    found = [text for turn in _turns(steps) for place, text in turn.addresses() if place == index]
    return list(dict.fromkeys(found))


def rate(part: KeyNodeShare, item: ScoreInput, count: Callable[[str], int]) -> ModelScore:
    """Reached / all: 0 to 1, each node paid at the agent step that first reaches it. Raises RewardError for an item
    without key nodes."""
    key_nodes = _key_nodes_of(item)
    content = item.content
    steps = content.steps if isinstance(content, Trajectory) else agent_steps(item)
    earned = [0.0] * item.step_count
    for reached in reached_nodes(key_nodes, steps):
        if reached.agent_step is not None:
            earned[reached.agent_step] += 1 / len(key_nodes.nodes)
    return ModelScore.sum_of_steps(earned)


def _turns(steps: Sequence[Step]) -> list[_Turn]:
    """What was seen before the agent's first step, it has not reached."""
    turns = list[_Turn]()
    for place, step in enumerate(steps):
        if step.source == "agent":
            turns.append(_Turn(len(turns), [(place, step)]))
        elif turns and step.source == "environment":
            turns[-1].steps.append((place, step))
    return turns


def _place_in(node: KeyNode, turn: _Turn) -> int | None:
    """The last step that it takes, of those that are in the turn; None where a part of the pattern is not there."""
    places = list[int]()
    if node.tools:
        if _call_place(node, turn.agent[1]) is None:
            return None
        places.append(turn.agent[0])
    if node.url is not None:
        place = _found(node.url, turn.addresses())
        if place is None:
            return None
        places.append(place)
    if node.text is not None:
        said = [(turn.agent[0], step_text(turn.agent[1]))] if node.within != "seen" else []
        place = _found(node.text, [*said, *(turn.seen() if node.within != "said" else ())])
        if place is None:
            return None
        places.append(place)
    return max(places)


def _found(expression: str, texts: Any) -> int | None:
    search = compiled(expression).search
    return next((place for place, text in texts if search(text) is not None), None)


def _call_place(node: KeyNode, step: Step) -> int | None:
    """Of the first call that the node is about. Arguments that are no JSON object pass no test."""
    for place, call in enumerate(tool_calls(step)):
        if node.concerns_tool(call.name) and all(passes(test, call.arguments or {}) for test in node.when):
            return place
    return None


def _observed(node: KeyNode, turn: _Turn) -> str:
    """The result of the call that the node is about, where it can be told from others; all that was seen otherwise."""
    step = turn.agent[1]
    if node.tools and (place := _call_place(node, step)) is not None and place < len(step.tool_calls):
        own = step.tool_calls[place].id
        results = [each for each in step.observation if own is not None and each.call_id == own]
        if len(results) == 1:
            return parts_text(results[0].content)
    return "\n".join(text for _, text in turn.seen())


def _key_nodes_of(item: ScoreInput) -> KeyNodes:
    found = _given(item)
    if found is None:
        raise RewardError(f"the item has no key nodes; {_HINT}.", pointer="/reference")
    try:
        return read_key_nodes(found)
    except InvalidRecord as error:
        raise RewardError(f"{error.message.rstrip('.')} ({_HINT}).", pointer="/reference") from None


def _given(item: ScoreInput) -> Any:
    text = reference_text(item)
    if text is not None:
        try:
            value = parse_json(text)
        except InvalidRecord:
            value = None
        if isinstance(value, dict) and "key_nodes" in value:
            return value["key_nodes"]
    content = item.content
    stored = content.task.metadata if isinstance(content, Trajectory) else {}
    return item.metadata.get("key_nodes", stored.get("key_nodes"))
