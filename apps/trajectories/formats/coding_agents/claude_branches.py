"""The branches of a session of Claude Code: a prompt that a person edited, or went back from, has another next to it.

Events form a tree by `parentUuid`. Two prompts of a person after the same event are a fork: what follows the one that
the session did not go on with was abandoned. (Results of parallel calls fork too, and are no branches.)
"""

from dataclasses import dataclass, field
from typing import Any

from apps.trajectories.formats.coding_agents.claude_events import has_result, is_answer, message_of

Event = dict[str, Any]
MARK = (
    "abandoned"  # key of the first event of a branch's document: the uuid of the prompt that it begins with
)
_MOST_BRANCHES = 50  # of one session; one with more stays in the order of its log


@dataclass(slots=True)
class _Tree:
    """parents: places of the events before, by place. forks: of each event, the fork that is nearest above it.
    above: of each fork, that nearest above it."""

    parents: list[int | None] = field(default_factory=list)
    forks: list[int | None] = field(default_factory=list)
    above: dict[int, int | None] = field(default_factory=dict)
    prompts: list[int] = field(default_factory=list)  # of forks

    def path(self, leaf: int) -> set[int]:
        """The forks that are passed on the way from the start to an event."""
        found: set[int] = set()
        fork = self.forks[leaf]
        while fork is not None:
            found.add(fork)
            fork = self.above[fork]
        return found

    def is_on(self, place: int, path: set[int]) -> bool:
        """Whether an event is on a path, and after no fork that is not."""
        fork = self.forks[place]
        return fork is None or (fork in path)


def branches(events: list[Any]) -> list[list[Any]]:
    """The events of the session as it went on, then those of each abandoned branch from the start on; the events alone
    where nothing was abandoned. Prompts that were abandoned before an answer are in none."""
    tree = _tree(events)
    spoken = [place for place, event in enumerate(events) if message_of(event) is not None]
    if not tree.prompts or not spoken or len(tree.prompts) > _MOST_BRANCHES:
        return [events]
    leaves = dict.fromkeys(tree.prompts, 0)
    for place in spoken:
        for fork in tree.path(place):
            leaves[fork] = place
    path = tree.path(spoken[-1])
    found = [[event for place, event in enumerate(events) if tree.is_on(place, path)]]
    for fork in tree.prompts:
        leaf = leaves[fork]
        own = tree.path(leaf)
        is_answered = any(
            is_answer(events[place]) for place in range(fork, leaf + 1) if tree.is_on(place, own)
        )
        if fork in path or not is_answered or _goes_on(fork, leaves, tree):
            continue
        kept = [events[place] for place in range(leaf + 1) if tree.is_on(place, own)]
        found.append([{MARK: events[fork].get("uuid")}, *kept])
    return found


def _goes_on(fork: int, leaves: dict[int, int], tree: _Tree) -> bool:
    """Whether its last event is behind a further fork, whose branch begins with this one then."""
    return any(
        other != fork and leaves[other] == leaves[fork] and fork in tree.path(other) for other in leaves
    )


def _tree(events: list[Any]) -> _Tree:
    places: dict[str, int] = {}
    tree, after = _Tree(), dict[int, list[int]]()
    for place, event in enumerate(events):
        above = places.get(str(event.get("parentUuid"))) if isinstance(event, dict) else None
        tree.parents.append(above)
        if not isinstance(event, dict):
            continue
        if isinstance(uuid := event.get("uuid"), str):
            if uuid in places:
                continue  # a resumed session begins with what was said before
            places[uuid] = place
        if above is not None and _is_prompt(event):
            after.setdefault(above, []).append(place)
    tree.prompts = [place for prompts in after.values() if len(prompts) > 1 for place in prompts]
    forks = set(tree.prompts)
    for place, above in enumerate(tree.parents):
        before = None if above is None else tree.forks[above]
        if place in forks:
            tree.above[place] = before
        tree.forks.append(place if place in forks else before)
    return tree


def _is_prompt(event: Event) -> bool:
    message = message_of(event)
    return (
        message is not None
        and event.get("type") == "user"
        and event.get("isSidechain") is not True
        and not event.get("isMeta")
        and not event.get("isCompactSummary")
        and not has_result(message.get("content"))
    )
