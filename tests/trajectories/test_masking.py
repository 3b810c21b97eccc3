"""Secrets and personal data never reach the database: tokens do, the same for the same value within a trajectory."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import zstandard
from django.test import Client

from apps.accounts.models import AuditEvent, Project, Role
from apps.annotation.feedback.services import import_feedback
from apps.core.errors import DomainError
from apps.trajectories import services
from apps.trajectories.exports import export_lines
from apps.trajectories.masking import DETECTORS, TextMasker, checked_detectors
from apps.trajectories.models import Document, ImportMasking, Step, Task, Trajectory
from tests.factories import member_client
from tests.peer_modules import PEERS

ALL = tuple(DETECTORS)
TOKEN = "ghp_" + "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA3bC6"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAK=\n-----END RSA PRIVATE KEY-----"
CHAT = {
    "id": "mail to ann@example.org",
    "messages": [
        {"role": "user", "content": "I am ann@example.org, write to bob@example.org too."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "send", "arguments": '{"to": "ann@example.org", "n": 1}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": f"used {TOKEN}"},
        {"role": "assistant", "content": "Sent to ann@example.org."},
    ],
    "metadata": {"phone": "+1 (555) 123-4567"},
}


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("ann@example.org, bob@example.com, ann@example.org", "[EMAIL_1], [EMAIL_2], [EMAIL_1]"),
        ("call +49 30 901820 or (555) 123-4567", "call [PHONE_1] or [PHONE_2]"),
        ("4111 1111 1111 1111", "[CARD_1]"),
        ("4111 1111 1111 1112", "4111 1111 1111 1112"),
        ("DE89 3704 0044 0532 0130 00", "[IBAN_1]"),
        ("DE88 3704 0044 0532 0130 00", "DE88 3704 0044 0532 0130 00"),
        ("078-05-1120", "[SSN_1]"),
        ("from 203.0.113.9 to 127.0.0.1 at 999.1.1.1", "from [IP_1] to 127.0.0.1 at 999.1.1.1"),
        ("postgres://app:hunter22@db:5432/x", "postgres://app:[PASSWORD_1]@db:5432/x"),
        ('{"password": "s3cret-value"}', '{"password": "[PASSWORD_1]"}'),
        ("Authorization: Bearer abc.DEF_123", "Authorization: Bearer [TOKEN_1]"),
        (f"export GH={TOKEN}", "export GH=[API_KEY_1]"),
        (f"key:\n{PEM}\nend", "key:\n[PRIVATE_KEY_1]\nend"),
        ("data:image/png;base64,4111111111111111", "data:image/png;base64,4111111111111111"),
        ("sha256:" + "4111111111111111" * 4, "sha256:" + "4111111111111111" * 4),
        ("data:image/png;base64,AAAA ann@example.org", "data:image/png;base64,AAAA [EMAIL_1]"),
        ("sha256: of ann@example.org", "sha256: of [EMAIL_1]"),
        (
            'data: {"password": "hunter2secret","mail":"a.b@example.org"}',
            'data: {"password": "[PASSWORD_1]","mail":"[EMAIL_1]"}',
        ),
        (r"{\"password\": \"hunter2\", \"n\": 1}", r"{\"password\": \"[PASSWORD_1]\", \"n\": 1}"),
        (r"{\\\"pwd\\\":\\\"hunter2\\\"}", r"{\\\"pwd\\\":\\\"[PASSWORD_1]\\\"}"),
        (r"password=ab\cd12", "password=[PASSWORD_1]"),
        (r"{\"Authorization\": \"Bearer abc.DEF_123\"}", r"{\"Authorization\": \"Bearer [TOKEN_1]\"}"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "AWS_SECRET_ACCESS_KEY=[PASSWORD_1]"),
        ("GET /x?token=abcdef123&n=1", "GET /x?token=[PASSWORD_1]"),
        ("max_tokens=100000, token_count: 123456", "max_tokens=100000, token_count: 123456"),
        ("on 2026-01-31 at 12:30, 3,141.59 of 10", "on 2026-01-31 at 12:30, 3,141.59 of 10"),
        ("The password is easy to guess.", "The password is easy to guess."),
    ],
)
def test_known_forms_become_tokens_and_the_rest_stays(text: str, masked: str) -> None:
    assert TextMasker(ALL).mask(text) == masked


def test_secrets_of_json_objects_are_known_by_their_keys(project: Project) -> None:
    arguments = json.dumps({"db_password": "hunter2secret", "token": "abc def", "note": "hunter2secret"})
    call = {"id": "c1", "type": "function", "function": {"name": "log_in", "arguments": arguments}}
    chat = {
        "messages": [
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
        ],
        "metadata": {"apiKey": "zz9-plural-z-alpha"},
    }
    result = load(project, chat, mask=["passwords"])
    assert result.masked == {"passwords": 2}
    everything = stored(project)
    assert "zz9-plural" not in everything and '"abc def' in everything.replace("\\", "")
    assert everything.replace("\\", "").count('"db_password": "hunter2secret"') == 0


def test_only_the_chosen_detectors_look() -> None:
    masker = TextMasker(("emails",))
    assert masker.mask(f"ann@example.org {TOKEN}") == f"[EMAIL_1] {TOKEN}"
    assert masker.counts == {"emails": 1}
    with pytest.raises(DomainError, match="no detector 'names'"):
        checked_detectors(["emails", "names"])


def load(project: Project, *documents: dict[str, Any], **more: Any) -> services.ImportResult:
    stream = io.BytesIO("".join(json.dumps(each) + "\n" for each in documents).encode())
    return services.import_trajectories(project=project, stream=stream, by=None, **more)


def stored(project: Project) -> str:
    """Everything that the database has of the project's trajectories."""
    rows: list[Any] = [list(Trajectory.objects.filter(project=project).values())]
    rows.append(list(Task.objects.filter(project=project).values()))
    rows.append(list(Step.objects.filter(trajectory__project=project).values()))
    unpack = zstandard.ZstdDecompressor().decompress
    for document in Document.objects.filter(trajectory__project=project):
        rows.append(unpack(bytes(document.data)).decode())
    return json.dumps(rows, default=str)


def test_an_import_stores_tokens_and_never_the_original(project: Project) -> None:
    result = load(project, CHAT, mask=["emails", "api_keys", "phones"])
    assert result.created == 1
    assert result.masked is not None and set(result.masked) == {"emails", "api_keys", "phones"}
    assert result.as_json()["masked"] == dict(result.masked)
    everything = stored(project)
    for value in ("ann@example.org", "bob@example.org", TOKEN, "123-4567"):
        assert value not in everything
    (line,) = export_lines(project, Trajectory.objects.filter(project=project), format="openai")
    messages = json.loads(line)["messages"]
    assert messages[0]["content"] == "I am [EMAIL_1], write to [EMAIL_2] too."
    assert messages[-1]["content"] == "Sent to [EMAIL_1]."
    assert "[EMAIL_1]" in json.dumps(messages[1]) and "[API_KEY_1]" in json.dumps(messages[2])
    event = AuditEvent.objects.get(verb="trajectories.imported")
    assert event.data["masked"] == dict(result.masked)


def test_the_same_file_again_brings_nothing_and_other_people_stay_apart(project: Project) -> None:
    other = CHAT | {"id": "mail to eve@example.org"}
    assert load(project, CHAT, other, mask=["emails"]).created == 2
    again = load(project, CHAT, other, mask=["emails"])
    assert (again.created, again.duplicates) == (0, 2)


def test_without_a_choice_nothing_is_masked_or_counted(project: Project) -> None:
    result = load(project, CHAT)
    assert result.masked is None and "masked" not in result.as_json()
    assert "ann@example.org" in stored(project)


def test_what_the_project_masks_applies_to_every_way_in(project: Project) -> None:
    services.set_masking(project=project, detectors=["emails"], by=None)
    result = load(project, CHAT, mask=["phones"])
    assert result.masked is not None and set(result.masked) == {"emails", "phones"}
    record = {
        "task": {"id": "t"},
        "trajectory": {"prompt": "I am zoe@example.org", "response": "Hello"},
        "accept": True,
        "annotator": "ann",
    }
    stream = io.BytesIO(json.dumps(record).encode())
    import_feedback(project=project, stream=stream, format="ratings", by=None)
    assert "zoe@example.org" not in stored(project)
    assert AuditEvent.objects.filter(verb="masking.changed").exists()


def test_errors_do_not_quote_what_is_masked(project: Project) -> None:
    result = load(project, {"messages": [{"role": "ann@example.org", "content": "x"}]}, mask=["emails"])
    assert "ann@example.org" not in json.dumps(result.as_json())


def test_owners_choose_on_a_page(project: Project) -> None:
    owner = member_client(project, Role.OWNER)
    assert "email addresses" in owner.get("/p/desk/trajectories/masking/").content.decode()
    response = owner.post("/p/desk/trajectories/masking/", {"detectors": ["emails", "cards"]})
    assert response.status_code == 302
    assert ImportMasking.objects.get(project=project).detectors == ["emails", "cards"]
    owner.post("/p/desk/trajectories/masking/", {})
    assert ImportMasking.objects.get(project=project).detectors == []


def test_an_upload_names_what_it_masked(project: Project, researcher_client: Client) -> None:
    file = io.BytesIO(json.dumps(CHAT).encode())
    file.name = "chat.json"
    page = researcher_client.post("/p/desk/trajectories/upload/", {"file": file, "format": "auto"})
    token = page.context["confirm"].initial["token"]
    assert "Mask secrets and personal data" in page.content.decode()
    response = researcher_client.post(
        "/p/desk/trajectories/imports/", {"token": token, "mask": ["emails", "phones"]}
    )
    page = researcher_client.get(response["Location"])
    assert "Masked" in page.content.decode() and "emails" in page.content.decode()
    assert "ann@example.org" not in stored(project)


def test_keys_that_detect_secrets_finds_are_masked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(PEERS)])
    pytest.importorskip("detect_secrets", reason="detect-secrets is not installed (.ci/peers.txt)")
    from detect_secrets.core.scan import scan_line
    from detect_secrets.settings import transient_settings

    lines = [
        "aws AKIAIOSFODNN7EXAMPLQ",
        f"github {TOKEN}",
        "slack xoxb-" + "123456789012-" * 2 + "abcDEFghiJKL",
        "stripe sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
        "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
        "basic https://user:pa55word1@example.org/",
        "sendgrid SG." + "a" * 22 + "." + "b" * 43,
        "npm //registry.example.org/:_authToken=npm_" + "a" * 36,
    ]
    plugins = ("AWSKeyDetector", "GitHubTokenDetector", "SlackDetector", "StripeDetector", "JwtTokenDetector")
    plugins += ("BasicAuthDetector", "SendGridDetector", "NpmDetector")
    with transient_settings({"plugins_used": [{"name": name} for name in plugins]}):
        for line in lines:
            found = [secret.secret_value for secret in scan_line(line)]
            assert found, line
            masked = TextMasker(ALL).mask(line)
            assert not [value for value in found if value and value in masked], (line, masked)
