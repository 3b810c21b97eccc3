"""The address of a chat tool is a secret: it is encrypted, and only its host stays readable."""

from django.db import migrations, models

from apps.core.storage.encryption import decrypted, encrypted
from apps.webhooks.models import marked_host


def encrypt_addresses(apps, schema_editor):
    rows = apps.get_model("webhooks", "Webhook").objects.filter(format="slack", address="")
    for webhook in rows.order_by("pk").iterator(chunk_size=500):
        webhook.address, webhook.url = encrypted(webhook.url), marked_host(webhook.url)
        webhook.secret = ""  # nothing was signed by it
        webhook.save(update_fields=["address", "url", "secret"])


def decrypt_addresses(apps, schema_editor):
    rows = apps.get_model("webhooks", "Webhook").objects.exclude(address="")
    for webhook in rows.order_by("pk").iterator(chunk_size=500):
        webhook.url = decrypted(webhook.address)
        webhook.save(update_fields=["url"])


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0003_message_format")]

    operations = [
        migrations.AddField("webhook", "address", models.TextField(default="")),
        migrations.RunPython(encrypt_addresses, decrypt_addresses),
    ]
