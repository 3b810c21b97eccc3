"""`{% load markdown_text %}`: `{{ text|markdown }}` as agents' messages are rendered: no HTML, no images, sanitised."""

from django import template
from django.utils.safestring import SafeString

from apps.trajectories.rendering.markdown import markdown_html

register = template.Library()


@register.filter
def markdown(text: str) -> SafeString:
    return markdown_html(text)
