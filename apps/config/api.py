"""The JSON API: one NinjaAPI from the apps' routers."""

from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.openapi.docs import DocsBase

from apps.accounts.api import router as accounts
from apps.accounts.auth import KeyAuth
from apps.accounts.idempotency import idempotent
from apps.annotation.api import router as items
from apps.annotation.feedback.api import router as feedback
from apps.config.docs import render_docs
from apps.core.http.api import install_problem_handlers
from apps.datasets.api import router as datasets
from apps.rewards.api import router as endpoints
from apps.training.api import router as training
from apps.trajectories.api import router as trajectories
from apps.webhooks.api import router as webhooks


class Docs(DocsBase):
    def render_page(self, request: HttpRequest, api: NinjaAPI, **kwargs: object) -> HttpResponse:
        return render_docs(request, api.get_openapi_schema())


api = NinjaAPI(
    title="Touchstone",
    version="1",
    description="Trajectories in, judgements and rewards out.",
    auth=KeyAuth(),
    docs=Docs(),
    docs_url="/docs",
    openapi_url="/openapi.json",
    urls_namespace="api",
)
install_problem_handlers(api)
api.add_decorator(idempotent, mode="view")
api.add_router("", accounts, tags=["accounts"])
api.add_router("", trajectories, tags=["trajectories"])
api.add_router("", items, tags=["items"])
api.add_router("", feedback, tags=["feedback"])
api.add_router("", datasets, tags=["datasets"])
api.add_router("", training, tags=["training"])
api.add_router("", endpoints, tags=["endpoints"])
api.add_router("", webhooks, tags=["webhooks"])
