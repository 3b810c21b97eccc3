"""Escaping, and characters that would make a text look like another."""

import re

from django.utils.html import escape as django_escape
from django.utils.safestring import SafeString

MOST = 60_000  # characters up to which a text is coloured; a longer one is shown as it is
# Overrides, embeddings and isolates of direction: what follows them is read in another order than it is stored in.
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")


def shown(text: str) -> str:
    """The text with controls of direction written out, so that what is read is what is there."""
    return _BIDI.sub(lambda found: f"[U+{ord(found[0]):04X}]", text)


def escape(text: str) -> SafeString:
    return django_escape(shown(text))
