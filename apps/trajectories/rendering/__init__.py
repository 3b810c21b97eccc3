"""What agents wrote as HTML: Markdown, code, diffs, JSON, terminal output. All of it is hostile until it was escaped.

Every function here takes untrusted text and returns HTML that is safe in a page: no script, no style of its own,
nothing loaded from elsewhere, no link but to http, https and mailto.
"""

from apps.trajectories.rendering.arguments import Argument, arguments_of
from apps.trajectories.rendering.safe import one_page
from apps.trajectories.rendering.text import message_html, output_html
from apps.trajectories.rendering.words import marked, marked_html

__all__ = ["Argument", "arguments_of", "marked", "marked_html", "message_html", "one_page", "output_html"]
