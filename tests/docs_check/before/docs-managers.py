from datetime import UTC, datetime

from standardwebhooks.webhooks import Webhook

secret = "whsec_" + "dG91Y2hzdG9uZS1kb2NzLWNoZWNrLXNlY3JldA=="
body = '{"type": "run.succeeded"}'
now = datetime.now(UTC)
headers = {
    "webhook-id": "1",
    "webhook-timestamp": str(int(now.timestamp())),
    "webhook-signature": Webhook(secret).sign("1", now, body),
}
