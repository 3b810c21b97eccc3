"""Which spans of a trace are one agent's run."""

from typing import Any

from apps.trajectories.formats.tracing.otel_conversation import message_key
from apps.trajectories.formats.tracing.otel_spans import Span
from apps.trajectories.formats.tracing.span_content import SpanContent


def start_of(span: Span) -> int:
    return int(span["start"])


class AgentRuns:
    """Which agent's run each span is part of. spans: by the id of the agent's span, the trace's own under ""."""

    def __init__(self, known: dict[str, Span], contents: dict[str, SpanContent]) -> None:
        self._known, self._contents = known, contents
        self._owners: dict[str, str] = {}
        self.spans: dict[str, list[Span]] = {}
        for span in sorted(known.values(), key=start_of):
            self.spans.setdefault(self.find(span), []).append(span)
        self._join_continued()
        self._join_wrappers()

    def find(self, span: Span) -> str:
        """The id of the span of the agent that a span is part of; its own where it is an agent's; empty for none."""
        path: list[str] = []
        seen: set[str] = set()  # spans may be each other's parents
        owner = ""
        while span["id"] not in seen:
            seen.add(span["id"])
            path.append(span["id"])
            if span["id"] in self._owners:
                owner = self._owners[span["id"]]
                break
            if self._contents[span["id"]].kind == "agent":
                owner = span["id"]
                break
            if (above := self._known.get(span["parent"])) is None:
                break
            span = above
        self._owners |= dict.fromkeys(path, owner)
        return owner

    def above(self, agent: str) -> str:
        """The agent that an agent is part of."""
        span = self._known.get(self._known[agent]["parent"]) if agent else None
        owner = "" if span is None else self.find(span)
        return "" if owner == agent else owner

    def with_calls(self) -> list[str]:
        return [agent for agent, spans in self.spans.items() if any(map(self._is_call, spans))]

    def _is_call(self, span: Span) -> bool:
        found = self._contents[span["id"]]
        return found.kind == "model" and bool(found.answer)

    def _join_continued(self) -> None:
        """Agents of one name under one agent, of which the later was told what the earlier answered."""
        answered: dict[tuple[str, str], list[tuple[str, Any]]] = {}  # an agent and its last answer
        for agent in self.with_calls():
            if not agent:
                continue
            calls = [self._contents[span["id"]] for span in self.spans[agent] if self._is_call(span)]
            place = self.above(agent), self._contents[agent].agent or self._known[agent]["name"]
            told = {message_key(message) for call in calls for message in call.asked}
            earlier = answered.get(place, [])
            owner = next((name for name, key in earlier if key in told), agent)
            if owner != agent:
                self.spans[owner] += self.spans.pop(agent)
            answered[place] = [
                *(entry for entry in earlier if entry[0] != owner),
                (owner, message_key(calls[-1].answer[-1])),
            ]

    def _join_wrappers(self) -> None:
        """What called no model, but ran one agent that did, is part of that agent's run."""
        callers = set(self.with_calls())
        below: dict[str, list[str]] = {}
        for agent in self._from_the_innermost():
            if agent in callers:
                held = agent
            elif len(below.get(agent, ())) == 1:
                (held,) = below[agent]
                self.spans[held] += self.spans.pop(agent)
            else:
                continue
            if agent:
                below.setdefault(self.above(agent), []).append(held)

    def _from_the_innermost(self) -> list[str]:
        below: dict[str, list[str]] = {}
        for agent in self.spans:
            if agent:
                below.setdefault(self.above(agent), []).append(agent)
        order = [""] if "" in self.spans or "" in below else []
        for agent in order:  # grows as it goes
            order += below.get(agent, ())
        return [agent for agent in reversed(order) if agent in self.spans]
