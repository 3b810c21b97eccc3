"""Secrets under the installation's key come along with an encrypted backup, or their loss is said."""

import base64
import json
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils.crypto import salted_hmac

from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.core.storage import encryption, secret_transfer
from apps.core.storage.encryption import LOST, EncryptedField, decrypted, encrypted
from apps.llm import services as llm
from apps.llm.calls import call
from apps.llm.models import LLMConnection, SpendingPurpose
from apps.webhooks import services as webhooks
from apps.webhooks.models import Delivery, Webhook, WebhookEvent

pytestmark = pytest.mark.django_db
KEY = "sk-of-somebody-0123456789"


@pytest.fixture
def model(project: Project, settings: Any) -> LLMConnection:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    spec = llm.LLMConnectionSpec(name="judge", base_url="http://127.0.0.1:9/v1", model="tiny")
    return llm.create_llm_connection(project=project, spec=spec, key=KEY, by=None)


@pytest.fixture
def hook(project: Project, model: LLMConnection) -> tuple[Webhook, str]:
    return webhooks.add_webhook(
        project=project, url="http://127.0.0.1:9/", events=WebhookEvent.values, by=None
    )


def test_they_are_kept_again_under_another_key(
    model: LLMConnection, hook: tuple[Webhook, str], settings: Any
) -> None:
    carried, left_out = secret_transfer.read()
    carried = json.loads(json.dumps(carried))  # as a backup holds them
    assert {value["secret"] for value in carried} == {KEY, hook[1]} and left_out == []
    settings.SECRET_KEY = "another installation's"
    assert secret_transfer.write(carried) == (2, [])
    model.refresh_from_db()
    assert decrypted(model.key) == KEY and webhooks.secret_of(Webhook.objects.get()) == hook[1]


def test_without_them_it_is_said_and_marked_and_calls_say_so(
    model: LLMConnection, hook: tuple[Webhook, str], settings: Any
) -> None:
    settings.SECRET_KEY = "another installation's"
    carried, again = secret_transfer.write([])
    assert carried == 0 and again == [
        "the key of the LLM connection judge of " + model.project.slug,
        f"the secret of the webhook of {model.project.slug} to 127.0.0.1:9: create a new one",
    ]
    model.refresh_from_db()
    assert model.key == LOST and model.is_key_lost and Webhook.objects.get().is_secret_lost
    with pytest.raises(DomainError, match=r"judge cannot be used.*did not come along.*Enter it again"):
        call(model, b'{"messages": []}', purpose=SpendingPurpose.TEST)
    webhooks.send_test(webhook=hook[0])
    assert webhooks.deliver_due() == 0
    assert "Create a new secret on the page Webhooks" in Delivery.objects.get().answer


def test_a_backup_from_before_a_rename_is_read(model: LLMConnection, settings: Any) -> None:
    carried, _ = secret_transfer.read()
    assert [secret["model"] for secret in carried] == ["llm.LLMConnection"]
    carried[0]["model"] = "judges.LanguageModel"
    settings.SECRET_KEY = "another installation"
    assert secret_transfer.write(carried) == (1, [])
    model.refresh_from_db()
    assert decrypted(model.key) == KEY


def test_under_the_same_key_they_stay(model: LLMConnection, hook: tuple[Webhook, str]) -> None:
    """Who gives a new home the old TOUCHSTONE_SECRET_KEY needs no passphrase."""
    before = model.key
    assert secret_transfer.write([]) == (0, [])
    model.refresh_from_db()
    assert model.key == before


def test_what_was_lost_is_entered_again(
    model: LLMConnection, hook: tuple[Webhook, str], settings: Any
) -> None:
    settings.SECRET_KEY = "another installation's"
    secret_transfer.write([])
    spec = llm.LLMConnectionSpec(name="judge", base_url="http://127.0.0.1:9/v1", model="tiny")
    llm.update_llm_connection(llm_connection=model, spec=spec, key="sk-new", by=None)
    model.refresh_from_db()
    assert decrypted(model.key) == "sk-new"
    webhook = Webhook.objects.get()
    assert webhooks.new_secret(webhook=webhook, by=None) == webhooks.secret_of(Webhook.objects.get())


def test_texts_within_json_are_carried(
    project: Project, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As django-allauth keeps second factors."""
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    webhook, _ = webhooks.add_webhook(
        project=project, url="http://127.0.0.1:9/", events=WebhookEvent.values, by=None
    )
    data = {"secret": encrypted("totp"), "codes": [encrypted("one"), encrypted("two")], "used": 1, "seed": ""}
    delivery = Delivery.objects.create(webhook=webhook, type="test", data=data)
    field = EncryptedField(
        "webhooks.Delivery", "data", lambda row: f"of {row.pk}", ("secret", "codes", "seed")
    )
    monkeypatch.setattr(encryption, "_FIELDS", [field])
    carried, _ = secret_transfer.read()
    assert [value["secret"] for value in carried] == ["totp", "one", "two"]
    settings.SECRET_KEY = "another installation's"
    assert secret_transfer.write([value for value in carried if value["secret"] != "two"]) == (
        2,
        [f"of {delivery.pk}"],
    )
    delivery.refresh_from_db()
    assert decrypted(delivery.data["secret"]) == "totp" and decrypted(delivery.data["codes"][0]) == "one"
    assert delivery.data["codes"][1] == LOST and delivery.data["used"] == 1


def test_secrets_of_webhooks_from_before_stay_what_receivers_have(settings: Any) -> None:
    """They were derived from the installation's key; of a backup no one knows by which."""
    migration = import_module("apps.webhooks.migrations.0002_secret")
    settings.SECRET_KEY = "the key"
    row = SimpleNamespace(project_id=7, salt="abc", secret="", save=lambda **fields: None)
    old = SimpleNamespace(get_model=lambda *name: SimpleNamespace(objects=SimpleNamespace(all=lambda: [row])))
    migration.keep_what_was_derived(old, None)
    digest = salted_hmac("apps.webhooks.secret", "7:abc", algorithm="sha256").digest()
    assert decrypted(row.secret) == "whsec_" + base64.b64encode(digest).decode()
    with encryption.restoring():
        migration.keep_what_was_derived(old, None)
    assert row.secret == LOST


def test_every_field_that_holds_a_token_is_registered() -> None:
    """Who encrypts says where it is kept, so that a backup carries it."""
    registered = {f"{each.model}.{each.field}" for each in encryption._FIELDS}
    assert {"llm.LLMConnection.key", "webhooks.Webhook.secret"} <= registered
