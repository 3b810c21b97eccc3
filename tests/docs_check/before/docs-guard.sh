# The endpoint `answers` with the guard of the page.
curl -sS --fail-with-body -X PUT "$URL/api/v1/projects/support/endpoints/answers" -H "Authorization: Bearer $KEY" \
  -H "Content-Type: application/json" -d '{
    "components": [
      {"name": "policy", "type": "policy_checks", "checks": [{"name": "one refund", "tools": ["refund"], "most_calls": 1}]}
    ],
    "guard": {"on_failure": "deny", "ask_below": -1.0, "ask_when_uncertain": true}}'
python - <<'END'
import os
from touchstone_client import Client
Client(os.environ["URL"], "support", os.environ["KEY"]).endpoints.wait("answers")
END
