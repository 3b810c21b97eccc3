"""Calling the JSON API with a key of a project."""

import json
from typing import Any

from django.test import Client

from apps.accounts.models import Project, Scope
from apps.accounts.services import create_api_key


class ApiCaller:
    """`call("GET", "/rubrics")` of the project; the last answer's status is `status`."""

    def __init__(self, project: Project, *scopes: Scope) -> None:
        self.slug, self.status = project.slug, 0
        secret = create_api_key(project=project, scopes=scopes or list(Scope), by=None)[1]
        self._client = Client(headers={"Authorization": f"Bearer {secret}"})

    def __call__(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        answer = self._client.generic(
            method,
            f"/api/v1/projects/{self.slug}{path}",
            "" if body is None else json.dumps(body),
            content_type="application/json",
            query_params=query,
        )
        self.status = answer.status_code
        return answer.json() if answer.content else None

    def all_pages(self, path: str, limit: int, **query: Any) -> list[Any]:
        page = self("GET", path, limit=limit, **query)
        items = list(page["items"])
        while page["next"]:
            assert len(page["items"]) == limit
            page = self("GET", path, limit=limit, cursor=page["next"], **query)
            items += page["items"]
        return items
