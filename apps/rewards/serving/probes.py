"""What clients of other servers ask before they send anything: /health, /v1/models and /info."""

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from apps.rewards.serving.access import Caller
from apps.rewards.serving.deployments import Deployment
from apps.rewards.serving.state import ServiceState

Json = dict[str, Any]


async def health(request: Request) -> Response:
    """200 once the service answers, 503 while it starts; no key is needed, as with the servers it stands in for."""
    state: ServiceState = request.app.state.service
    return JSONResponse({}, 200 if state.is_ready else 503)


async def models(request: Request) -> Response:
    """OpenAI's list of models: the endpoints of the key's project that are served."""
    served = await _served(request)
    data = [
        {"id": deployment.info.name, "object": "model", "created": 0, "owned_by": deployment.info.project}
        for deployment in served
    ]
    return JSONResponse({"object": "list", "data": data})


async def info(request: Request) -> Response:
    """Text Embeddings Inference's description of a server: of the endpoint that the path or `?model=` names, else the
    first of the key's project."""
    name = request.path_params.get("endpoint") or request.query_params.get("model")
    if name is None:
        served = await _served(request)
        return JSONResponse({"models": [_described(deployment) for deployment in served]})
    state: ServiceState = request.app.state.service
    caller = await _admitted(request)
    return JSONResponse(_described(await state.access.deployment(caller, name)))


def _described(deployment: Deployment) -> Json:
    label = {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
    version = deployment.version
    return {
        "model_id": deployment.info.name,
        "model_sha": None if version is None else str(version.number),
        "model_type": {"classifier": label},
        "version": "1",
    }


async def _admitted(request: Request) -> Caller:
    state: ServiceState = request.app.state.service
    return await state.access.admit(request, query_key=True)


async def _served(request: Request) -> list[Deployment]:
    state: ServiceState = request.app.state.service
    caller = await _admitted(request)
    return [
        deployment
        for (project, _), deployment in sorted(state.deployments.by_key.items())
        if project == caller.project and deployment.version is not None
    ]


_BASES = ("/compat", "/compat/vllm", "/compat/sglang", "/compat/tei")
PROBES = {
    **{f"{base}{path}": handler for base in _BASES for path, handler in (
        ("/health", health), ("/v1/models", models), ("/info", info),
    )},
    "/compat/tei/{endpoint}/health": health,
    "/compat/tei/{endpoint}/info": info,
}  # fmt: skip
