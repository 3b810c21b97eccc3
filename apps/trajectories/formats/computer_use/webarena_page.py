"""WebArena's `render_*.html`, and VisualWebArena's: a run as a page for people, read back into its observations and
actions, which the format `webarena` reads.

As browser_env/helper_functions.py (`RenderHelper`) writes it: the configuration of the task as lines `key: value`, then
of each step the address, the observation, a screenshot, the action before, and what was predicted. Nothing is escaped.
"""

from typing import Any

from apps.trajectories.formats.text_kind import TextKind

_STEP, _LOOKED = "<h2>New Page</h2>", 200_000
_TREE = ("<div class='state_obv'><pre>", "</pre><div>", "</pre></div>", "</pre>")
_OF_ACTION = {
    "raw_prediction": "raw_parsed_prediction",
    "action_object": "action_object",
    "parsed_action": "parsed_action",
}
_EXPLAINED = " where ["  # what stands behind an action: which element its number names
_KEYS = ("sites", "task_id", "intent", "start_url", "require_login", "storage_state", "geolocation", "eval")


def _begins(head: str) -> bool:
    page = head[:_LOOKED]
    return _STEP in page and "class='state_obv'" in page


def _read(lines: list[str]) -> Any:
    head, *steps = "".join(lines).split(_STEP)
    config = _config(_between(head, "<pre>", "</pre>"))
    trajectory: list[dict[str, Any]] = []
    for step in steps:
        view = {"url": _between(step, "URL: ", "</a>"), "axtree": _between(step, *_TREE)}
        if picture := _between(step, "<img src='", "'"):
            view["screenshot"] = picture
        trajectory += [{key: value for key, value in view.items() if value}, _action(step)]
    known = {"task_id": config.pop("task_id", ""), "intent": config.pop("intent", "")}
    return known | {"trajectory": [each for each in trajectory if each], "config": config}


def _action(step: str) -> dict[str, Any]:
    page = step[step.find("class='predict_action'") :] if "class='predict_action'" in step else ""
    about = {key: _pre(page, name) for key, name in _OF_ACTION.items()}
    about["prev_action"] = _between(step, "<div class='prev_action' style='background-color:pink'>", "</div>")
    parsed = about["parsed_action"]
    action = parsed.partition(_EXPLAINED)[0] or _between(page, "class='predict_action'>", "</div>")
    if not action and not about["raw_prediction"]:
        return {}
    return {"action": action, "metadata": {key: value for key, value in about.items() if value}}


def _pre(page: str, name: str) -> str:
    return _between(page, f"<div class='{name}' style='", "</pre>").partition("<pre>")[2]


def _between(text: str, start: str, *ends: str) -> str:
    """What stands behind `start`, up to the first of the ends that is there."""
    _, found, rest = text.partition(start)
    end = next((end for end in ends if end in rest), "")
    return (rest.partition(end)[0] if end else rest) if found else ""


def _config(text: str) -> dict[str, str]:
    """The lines `key: value`; others go on with the value before."""
    found: dict[str, str] = {}
    last = ""
    for line in text.strip().splitlines():
        key, colon, value = line.partition(": ")
        if colon and (key in _KEYS or key.replace("_", "").isalnum()):
            last = key
            found[key] = value
        elif last:
            found[last] += f"\n{line}"
    return found


PAGE = TextKind("a page of WebArena", _begins, lambda line: False, _read)
