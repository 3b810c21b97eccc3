"""Pages are sent compressed: most of their HTML is the same in every row."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware


class CompressPagesMiddleware(GZipMiddleware):
    """HTML alone: files are compressed already, and what is streamed stays as it is.

    Against BREACH, which guesses a secret by the length of many answers: Django adds a random number of bytes and
    gives the CSRF token another mask in each answer, and keys and secrets are shown in a single answer.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        is_page = response.get("Content-Type", "").startswith("text/html")
        if response.streaming or not is_page:
            return response
        return super().process_response(request, response)
