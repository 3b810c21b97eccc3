"""Every path of the reward service: the public ones, which web proxies, and the internal ones.

One table for the service, which registers exactly these, and for the web process, which proxies exactly the public
ones.
"""

from apps.core.http.proxy import PublicRoute

_GET, _POST = ("GET",), ("POST",)
_ENDPOINT = "/api/v1/rewards/{endpoint}"

OPENAPI = PublicRoute("/api/v1/rewards/openapi.json", _GET)
API = (
    *(
        PublicRoute(f"{_ENDPOINT}/{call}", _POST)
        for call in ("score", "compare", "rank", "critique", "advantages", "guard")
    ),
    OPENAPI,
    PublicRoute(f"{_ENDPOINT}/", _GET),
    PublicRoute(_ENDPOINT, _GET),
)
_VLLM = ("classify", "pooling", "v1/embeddings", "score", "v1/score", "rerank", "v1/rerank", "v2/rerank")
COMPAT = (
    PublicRoute("/compat/openrlhf/{endpoint}/get_reward", _POST),
    *(PublicRoute(f"/compat/vllm/{call}", _POST) for call in _VLLM),
    PublicRoute("/compat/sglang/classify", ("POST", "PUT")),
    *(PublicRoute(f"/compat/tei/{call}", _POST) for call in ("predict", "rerank")),
    *(PublicRoute(f"/compat/tei/{{endpoint}}/{call}", _POST) for call in ("predict", "rerank")),
    PublicRoute("/compat/nemo-gym/{endpoint}/verify", _POST),
    PublicRoute("/compat/slime/{endpoint}", _POST),
    PublicRoute("/compat/llamafactory/{endpoint}", _POST),
    PublicRoute("/compat/openai/v1/moderations", _POST),
)
_PROBED = ("/compat", "/compat/vllm", "/compat/sglang", "/compat/tei")
PROBES = (
    *(PublicRoute(f"{base}/{call}", _GET) for base in _PROBED for call in ("health", "v1/models", "info")),
    *(PublicRoute(f"/compat/tei/{{endpoint}}/{call}", _GET) for call in ("health", "info")),
)
PUBLIC = (*API, *COMPAT, *PROBES)

# At the service's own port only, and never proxied.
DRY_RUN, SERVERS, EMBED = "/internal/dry-run", "/internal/servers", "/internal/embed"
HEALTH, READY, METRICS = "/healthz", "/readyz", "/metrics"
