"""What a user chooses about a table."""

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from apps.core.errors import DomainError
from apps.core.tables import displays
from apps.core.tables.data_table import DataTable


@require_POST
@login_required
def table_display(request: HttpRequest, name: str) -> HttpResponse:
    """Remember columns or rows per page of a table, and return to it."""
    if name not in DataTable.names:
        raise Http404("There is no such table.")
    if "page_size" in request.POST:
        size = request.POST["page_size"]
        if size not in map(str, displays.PAGE_SIZES):
            raise DomainError(f"page_size is {size!r}; it must be one of {displays.PAGE_SIZES}.")
        displays.save_page_size(user=request.user, table=name, page_size=int(size))
    elif "reset" in request.POST:
        displays.reset_columns(user=request.user, table=name)
    else:
        offered, shown = request.POST.getlist("offered"), request.POST.getlist("column")
        if any(len(column) > 200 for column in offered):
            raise DomainError("A column's name has at most 200 characters.")
        displays.save_columns(user=request.user, table=name, offered=offered, shown=shown)
    back = request.POST.get("next", "")
    return redirect(back if url_has_allowed_host_and_scheme(back, {request.get_host()}) else "/")
