"""Episodes of Kaggle Environments and its Game Arena: {"name", "steps": [[{"action", "observation", "reward", "status",
"info"}, ...]], "rewards", "statuses", "info": {"TeamNames"}}: a trajectory for each player.

In a step, an action is what a player did after the step before, if it was its turn (`ACTIVE` there); the observation is
what it saw then. Language models say what they thought: `thoughts`, `generate_returns` and `actionString` of an action.
"""

import json
from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats.computer_use.screens import in_turn
from apps.trajectories.formats.placed import object_at, objects, storable, text_at
from workers.errors import InvalidRecord
from workers.schema import ObservationResult, Part, Step, Task, ToolCall, Trajectory, clean
from workers.schema.decode import finite, require_list, require_object
from workers.schema.messages import build_trajectory

SIGN = "an object with `steps` that are lists of players with `action` and `observation`, and `rewards`"
READ = ("/player", "/steps/*/*/observation", "/rewards/*")
_PLAYER = "player"
_THOUGHTS = ("thoughts", "thought", "reasoning")


def sniff(document: Any) -> bool:
    steps = document.get("steps") if isinstance(document, dict) else None
    if not isinstance(steps, list) or not steps or not isinstance(document.get("rewards"), list):
        return False
    first = steps[0]
    return (
        isinstance(first, list) and bool(first) and isinstance(first[0], dict) and "observation" in first[0]
    )


def split(document: Any) -> Iterator[tuple[str, Any]]:
    """A document for each player, with its own column of the steps."""
    document = require_object(document)
    if _PLAYER in document:
        yield "", document
        return
    steps = require_list(document.get("steps"), pointer="/steps")
    count = max((len(step) for step in steps if isinstance(step, list)), default=0)
    for player in range(count):
        own = [step[player : player + 1] if isinstance(step, list) else [] for step in steps]
        columns = {
            key: value[player : player + 1]
            for key, value in document.items()
            if key in ("rewards", "statuses") and isinstance(value, list)
        }
        yield "", document | columns | {"steps": own, _PLAYER: player}


@storable
def read(document: Any) -> Trajectory:
    document, _ = clean(require_object(document))
    column = [objects(step)[:1] for step in require_list(document.get("steps"), pointer="/steps")]
    turns = list(_turns([each[0] if each else {} for each in column]))
    if not any(step is not None for _, step in turns):
        raise InvalidRecord(
            "a player that never had its turn, so there is nothing to judge.", pointer="/steps"
        )
    player, info = document.get(_PLAYER), object_at(document, "info")
    names = info.get("TeamNames")
    name = (
        names[player] if isinstance(names, list) and isinstance(player, int) and player < len(names) else ""
    )
    rewards = document.get("rewards")
    reward = rewards[0] if isinstance(rewards, list) and rewards else None
    known = ("steps", "rewards", "name", "id")
    episode = info.get("EpisodeId", document.get("id"))
    return build_trajectory(
        in_turn(text_at(document, "description"), turns),
        Task(id=text_at(document, "name"), instruction=text_at(document, "description")),
        pointer="/steps",
        id=None if episode is None else f"{episode}/{player}",
        agent=str(name or ""),
        reward=finite(reward, pointer="/rewards"),
        metadata={key: value for key, value in document.items() if key not in known},
    )


def _turns(column: list[dict[str, Any]]) -> Iterator[tuple[ObservationResult | None, Step | None]]:
    for index, given in enumerate(column):
        before = column[index - 1] if index else {}
        step = _acted(given, index) if before.get("status") == "ACTIVE" else None
        yield None, step
        yield _seen(given, with_action=step is None), None


def _seen(given: dict[str, Any], *, with_action: bool) -> ObservationResult | None:
    """with_action: of a step in which the player had no turn, whose action is what the environment put there."""
    view = {
        key: value
        for key, value in object_at(given, "observation").items()
        if value not in (None, "", [], {})
    }
    hidden = ("observation",) if with_action else ("action", "observation")
    about = {key: value for key, value in given.items() if key not in hidden and value not in (None, {})}
    text = text_at(view, "observationString") or json.dumps(view, ensure_ascii=False)
    rest = {key: value for key, value in view.items() if key != "observationString"}
    extra = about | ({"observation": rest} if "observationString" in view else {})
    return ObservationResult(content=(Part(text=text),), extra=extra) if view or about else None


def _acted(given: dict[str, Any], index: int) -> Step:
    action = given.get("action")
    thought = text_at(action, *_THOUGHTS)
    arguments = (
        {key: value for key, value in action.items() if value is None or value != thought}
        if isinstance(action, dict)
        else {"action": action}
    )
    return Step(
        source="agent",
        reasoning=thought or None,
        tool_calls=(ToolCall(name="act", arguments=arguments),),
        extra={"source_index": index},
    )
