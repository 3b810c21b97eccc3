"""WebArena's trajectories, as JSON or as a page (`webarena_page`): {"task_id", "intent", "trajectory": [{"url",
"axtree", "screenshot_path"}, {"action", "metadata"}, ...]}: what the browser shows and what the agent does, in turn.
"""

from typing import Any

from apps.trajectories.formats.benchmarks.browser import called, seen
from apps.trajectories.formats.computer_use.screens import call_of, in_turn, picture_source
from apps.trajectories.formats.fields import read_id
from apps.trajectories.formats.stated import model_name, stated_success
from workers.schema import ObservationResult, Part, Step, Task, ToolCall, Trajectory, clean
from workers.schema.decode import finite, optional_str, require_list, require_object
from workers.schema.messages import build_trajectory
from workers.schema.patterns import TextPattern

SIGN = (
    "an object with `intent` and a `trajectory` of `action`s, or `url` and `axtree`; a page `render_*.html`"
)
READ = ("/task_id", "/success", "/reward", "/score", "/trajectory/*/action")
_TREES = ("axtree", "accessibility_tree", "text", "observation")
_PICTURES = ("screenshot_path", "screenshot", "image_path")
_THOUGHTS = ("cot", "thought", "reasoning", "raw_prediction")
_WRITTEN = TextPattern(r"(?s)([a-z_]+)((?: ?\[.*\])?)")  # `type [164] [restaurants near CMU] [1]`
_NAMES = (
    *("click", "hover", "type", "press", "scroll", "new_tab", "tab_focus", "page_focus", "close_tab", "goto"),
    *("go_back", "go_forward", "stop", "select", "clear", "upload", "check", "none"),
)
_KNOWN = ("task_id", "intent", "trajectory", "success", "reward", "score")


def sniff(document: Any) -> bool:
    trajectory = document.get("trajectory") if isinstance(document, dict) else None
    if not isinstance(trajectory, list) or not trajectory or not isinstance(document.get("intent"), str):
        return False
    first = trajectory[0]
    return isinstance(first, dict) and ("action" in first or "axtree" in first or "url" in first)


def read(document: Any) -> Trajectory:
    document, _ = clean(require_object(document))
    goal = optional_str(document.get("intent"), pointer="/intent") or ""
    turns: list[tuple[ObservationResult | None, Step | None]] = []
    for index, given in enumerate(require_list(document.get("trajectory"), pointer="/trajectory")):
        given = require_object(given, pointer=f"/trajectory/{index}")
        view = _view(given)
        turns.append((view, _acted(given, index) if "action" in given else None))
    reward = finite(document.get("reward", document.get("score")), pointer="/reward")
    success = stated_success(document)
    return build_trajectory(
        in_turn(goal, turns),
        Task(id=read_id(document.get("task_id"), pointer="/task_id") or "", instruction=goal),
        pointer="/trajectory",
        agent=model_name(document) or str(document.get("source") or ""),
        reward=reward,
        success=success if success is not None or reward is None else reward >= 1,
        metadata={key: value for key, value in document.items() if key not in _KNOWN},
    )


def _view(given: dict[str, Any]) -> ObservationResult | None:
    tree = next((given[key] for key in _TREES if isinstance(given.get(key), str) and given[key]), "")
    picture = next((source for key in _PICTURES if (source := picture_source(given.get(key)))), "")
    about = {key: given[key] for key in ("url", "open_pages_urls", "html") if given.get(key)}
    return seen(tree, picture, about) if tree or picture or about else None


def _acted(given: dict[str, Any], index: int) -> Step:
    about = given.get("metadata")
    about = about if isinstance(about, dict) else {}
    thought = next((about[key] for key in _THOUGHTS if isinstance(about.get(key), str) and about[key]), "")
    thought = thought or next((given[key] for key in _THOUGHTS if isinstance(given.get(key), str)), "")
    call = _call(given["action"])
    rest = {
        key: value for key, value in about.items() if value != thought and value not in (None, "", [], {})
    }
    return Step(
        source="agent",
        message=(Part(text=thought),) if thought else (),
        tool_calls=(call,) if call else (),
        extra={"source_index": index} | ({"metadata": rest} if rest else {}),
    )


def _call(action: Any) -> ToolCall | None:
    """WebArena's own actions have a field for every kind of them, most of which are empty."""
    if isinstance(action, dict) and isinstance(action.get("action_name"), str):
        rest = {k: v for k, v in action.items() if k != "action_name" and v not in (None, "", [], {}, 0)}
        return ToolCall(name=action["action_name"], arguments=rest)
    if not isinstance(action, str) or not action.strip():
        return call_of(action)
    written = _WRITTEN.fullmatch(action.strip())
    if written is not None and written[1] in _NAMES:
        return ToolCall(name=written[1], arguments=written[2].strip() or {})
    return called(action)
