"""WebArena's render_*.html, as its `RenderHelper` (browser_env/helper_functions.py) writes it: nothing is escaped."""

from tests.trajectories.computer_use.documents import PNG
from tests.trajectories.logs import ReadLog, sources
from tests.trajectories.reading import media, read_bytes

_HEAD = """
<!DOCTYPE html>
<head>
    <style>
        pre {
            white-space: pre-wrap;
        }
    </style>
</head>
<html>
    <body>
     <pre>sites: ['map']
task_id: 7
intent: Find the <b>shop</b>
eval: {'eval_types': ['string_match']}
</pre>
"""


def _step(address: str, tree: str, thought: str, action: str, before: str = "None") -> str:
    return (
        f"<h2>New Page</h2>\n<h3 class='url'><a href={address}>URL: {address}</a></h3>\n"
        f"<div class='state_obv'><pre>{tree}</pre><div>\n"
        f"<img src='data:image/png;base64,{PNG}' style='width:50vw; height:auto;'/>\n"
        f"<div class='prev_action' style='background-color:pink'>{before}</div>\n"
        f"<div class='predict_action'><div class='raw_parsed_prediction' style='background-color:grey'><pre>{thought}"
        f"</pre></div><div class='action_object' style='background-color:grey'><pre>{{'action_type': 6}}</pre></div>"
        f"<div class='parsed_action' style='background-color:yellow'><pre>{action}</pre></div></div>\n"
    )


PAGE = (
    _HEAD
    + _step(
        "http://m/",
        "[1] textbox 'a < b'",
        "I type. ```type [1] [shop]```",
        "type [1] [shop] where [1] is textbox",
    )
    + _step("http://m/2", "[2] link", "Found it.", "stop [Main St]", "type")
    + "</body>\n</html>\n"
)


def test_a_page_has_what_was_seen_and_done() -> None:
    read = ReadLog(PAGE.encode())
    found = read.only
    assert read.format == "webarena" and (found.task.id, found.task.instruction) == (
        "7",
        "Find the <b>shop</b>",
    )
    calls = [call for step in found.steps for call in step.tool_calls]
    assert [(call.name, call.arguments) for call in calls] == [("type", "[1] [shop]"), ("stop", "[Main St]")]
    assert [step.text for step in found.steps if step.source == "agent"] == [
        "I type. ```type [1] [shop]```",
        "Found it.",
    ]
    assert sources(found).count("a") == 2 and len(media(found)) == 2
    assert "[1] textbox 'a < b'" in str(found.steps) and found.metadata["config"]["sites"] == "['map']"


def test_another_page_is_refused_in_words() -> None:
    _, refused, _ = read_bytes(b"<!DOCTYPE html><html><body>Hello</body></html>")
    assert len(refused) == 1 and "HTML page, which is not read" in refused[0].message
