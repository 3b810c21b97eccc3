"""Chat messages: what Slack's own client sends for the same words, without a signature."""

import json
import sys
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.apps import apps

from apps.accounts.models import Project, Role
from apps.core.errors import Conflict
from apps.webhooks import services
from apps.webhooks.chat_messages import slack_message
from apps.webhooks.models import Webhook, WebhookEvent
from tests.api_calls import ApiCaller
from tests.factories import member_client
from tests.peer_modules import PEERS
from tests.webhooks.test_webhooks import Receiver, receiver, tell

__all__ = ["receiver"]

URL = "https://rewards.example.org/p/desk/training/runs/3/"
EVENTS: dict[str, dict[str, Any]] = {
    "run.finished": {"run": 3, "state": "succeeded", "dataset": "desk/Support@1", "model": "desk/polite@2"},
    "campaign.done": {"name": "Which", "items": 30, "judgements": 60},
    "alert.raised": {"alert": "gold.low", "detail": "Ann is paused."},
    "job.finished": {"job": "The export of Support@1", "state": "failed", "error": "Disk full."},
    "items.assigned": {"campaign": "Which", "annotator": "ann", "items": 1},
    "test": {"detail": "Sent by hand."},
}


@pytest.fixture
def slack_sdk(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(sys, "path", [*sys.path, str(PEERS)])
    return pytest.importorskip("slack_sdk", reason="Slack's client is not installed (.ci/peers.txt)")


@pytest.mark.parametrize("event", EVENTS)
def test_every_event_is_a_message_that_slack_takes(event: str, slack_sdk: Any) -> None:
    from slack_sdk.models.blocks import ActionsBlock, Block, SectionBlock

    message = slack_message(event, {"project": "desk", "url": URL} | EVENTS[event])
    section, actions = Block.parse_all(message["blocks"])
    assert isinstance(section, SectionBlock) and isinstance(actions, ActionsBlock)
    for block in (section, actions):
        block.validate_json()
    assert [section.to_dict(), actions.to_dict()] == message["blocks"]
    assert set(EVENTS) >= set(WebhookEvent.values)


def test_the_body_is_the_one_that_slacks_client_sends(
    project: Project, receiver: Receiver, slack_sdk: Any
) -> None:
    from slack_sdk.webhook import WebhookClient

    services.add_webhook(
        project=project, url=receiver.url, events=["alert.raised"], by=None, message_format="slack"
    )
    tell(project)
    services.deliver_due()
    message = slack_message("alert.raised", {"project": "desk", "detail": "Look.", "url": ours_url(receiver)})
    WebhookClient(receiver.url).send(text=message["text"], blocks=message["blocks"])
    (ours_headers, ours), (theirs_headers, theirs) = receiver.heard
    assert json.loads(ours) == json.loads(theirs)
    assert ours_headers["content-type"].partition(";")[0] == theirs_headers["content-type"].partition(";")[0]
    assert not [name for name in ours_headers if name.startswith("webhook-")]


def ours_url(receiver: Receiver) -> str:
    url: str = json.loads(receiver.heard[0][1])["blocks"][1]["elements"][0]["url"]
    return url


def test_the_address_of_a_chat_tool_is_kept_encrypted_and_not_shown_again(
    project: Project, receiver: Receiver
) -> None:
    url = f"{receiver.url}/T0/B0/s3cretpart"
    webhook, secret = services.add_webhook(
        project=project, url=url, events=["alert.raised"], by=None, message_format="slack"
    )
    assert secret == ""
    with pytest.raises(Conflict, match="already receives"):
        services.add_webhook(
            project=project, url=url, events=["alert.raised"], by=None, message_format="slack"
        )
    with pytest.raises(Conflict, match="not signed"):
        services.new_secret(webhook=webhook, by=None)
    assert "s3cret" not in str(Webhook.objects.values().get())
    client = member_client(project, Role.OWNER)
    page = client.get(f"/p/{project.slug}/webhooks/").content.decode()
    assert "s3cret" not in page and f"{urlsplit(url).netloc}/…" in page
    listed = ApiCaller(project)("GET", "/webhooks")["items"]
    assert [each["url"] for each in listed] == [f"http://{urlsplit(url).netloc}/…"]
    tell(project)
    services.deliver_due()
    assert len(receiver.heard) == 1


def test_addresses_of_before_are_encrypted_by_the_migration(project: Project) -> None:
    migration = import_module("apps.webhooks.migrations.0004_chat_addresses")
    url = "https://hooks.example.org/services/T0/B0/s3cretpart"
    old = Webhook.objects.create(project=project, url=url, events=[], format="slack", secret="")
    signed = Webhook.objects.create(project=project, url=f"{url}/2", events=[], secret="")
    migration.encrypt_addresses(apps, None)
    old.refresh_from_db()
    signed.refresh_from_db()
    assert "s3cret" not in old.url + old.address and services.address_of(old) == url
    assert old.host == "hooks.example.org" and (signed.url, signed.address) == (f"{url}/2", "")
    migration.decrypt_addresses(apps, None)
    old.refresh_from_db()
    assert old.url == url


def test_names_cannot_mention_a_channel_or_hide_a_link() -> None:
    message = slack_message("alert.raised", {"project": "desk", "detail": "<!channel> & <https://x|y>"})
    assert message["text"] == "desk: &lt;!channel&gt; &amp; &lt;https://x|y&gt;"
    assert len(message["blocks"]) == 1


def test_errors_of_jobs_stay_here() -> None:
    assert "Disk full" not in json.dumps(slack_message("job.finished", EVENTS["job.finished"]))
