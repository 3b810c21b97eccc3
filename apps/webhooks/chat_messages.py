"""Events as messages of Slack's incoming webhooks, which Mattermost, Rocket.Chat and Discord (`/slack`) read too.

https://api.slack.com/messaging/webhooks: `text` for notifications, `blocks` for the channel.
"""

from collections.abc import Callable
from typing import Any

LONGEST_TEXT = 2900  # of a section: Slack refuses more than 3,000 characters


def slack_message(event: str, data: dict[str, Any]) -> dict[str, Any]:
    """The payload for one event. data: of the delivery."""
    sentence = _SENTENCES.get(event, _test)(data)
    text = f"{_escaped(data.get('project', ''))}: {_escaped(sentence)}"[:LONGEST_TEXT]
    blocks: list[dict[str, Any]] = [{"type": "section", "text": {"type": "mrkdwn", "text": text}}]
    if data.get("url"):
        open_page = {"type": "plain_text", "text": "Open"}
        blocks.append(
            {"type": "actions", "elements": [{"type": "button", "text": open_page, "url": data["url"]}]}
        )
    return {"text": text, "blocks": blocks}


def _escaped(text: Any) -> str:
    """So that no name can mention a channel or hide a link."""
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _run(data: dict[str, Any]) -> str:
    model = f" and made {data['model']}" if data.get("model") else ""
    return f"Training run {data['run']} on {data['dataset']} {data['state']}{model}."


def _campaign(data: dict[str, Any]) -> str:
    return (
        f"The campaign {data['name']} is complete: {data['judgements']} annotations of {data['items']} items."
    )


def _alert(data: dict[str, Any]) -> str:
    return str(data["detail"])


def _job(data: dict[str, Any]) -> str:
    return f"{data['job']} {data['state']}."


def _assigned(data: dict[str, Any]) -> str:
    items = f"{data['items']} item{'' if data['items'] == 1 else 's'}"
    return f"{items} of {data['campaign']} assigned to {data['annotator']}."


def _test(data: dict[str, Any]) -> str:
    return str(data.get("detail", "An event."))


_SENTENCES: dict[str, Callable[[dict[str, Any]], str]] = {
    "run.finished": _run,
    "campaign.done": _campaign,
    "alert.raised": _alert,
    "job.finished": _job,
    "items.assigned": _assigned,
}
