"""What pages that need a language model tell where the project has no LLM connection."""

from apps.accounts.access import ProjectRequest
from apps.accounts.models import Project, Role
from apps.llm.selectors import list_llm_connections


def connection_context(request: ProjectRequest, project: Project) -> dict[str, bool]:
    """For `llm/_needed.html`."""
    return {
        "has_llm_connections": list_llm_connections(project).exists(),
        "may_add_connections": Role(request.membership.role).includes(Role.OWNER),
    }
