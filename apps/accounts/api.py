"""The audit trail over the JSON API."""

from django.http import StreamingHttpResponse
from ninja import Router

from apps.accounts import audit_export
from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Scope

router = Router()


@router.get("/projects/{slug}/audit", summary="Export the audit trail")
def export_audit(request: KeyRequest, slug: str, names: bool = False) -> StreamingHttpResponse:
    """JSON lines: what `manage.py export_audit` writes and `verify_audit --from-file` verifies.

    `names=true` adds whom the pseudonyms mean. The export is itself an event of the trail.
    """
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    lines = audit_export.export_lines(project=project, by=request.auth, names=names)
    return StreamingHttpResponse(lines, content_type="application/x-ndjson")
