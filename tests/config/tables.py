"""Every URL of the installation, and who may ask it, from one place; a new one is added to the file of its kind."""

from tests.config.audiences import ANYBODY, CREATORS, EMPTY, HERS, OWN, ROLES, SIGNED_IN
from tests.config.bodies import BODIES, NOTHING, RESULT, body_for
from tests.config.calls import CALLS
from tests.config.pages import PAGES
from tests.config.service_routes import (
    NOTHING_THERE,
    RECEIVES,
    REWARDS,
    REWARDS_FOR_ANYBODY,
    WEB_FOR_ANYBODY,
    WEB_PASSED_ON,
)

__all__ = [
    "ANYBODY",
    "BODIES",
    "CALLS",
    "CREATORS",
    "EMPTY",
    "HERS",
    "NOTHING",
    "NOTHING_THERE",
    "OWN",
    "PAGES",
    "RECEIVES",
    "RESULT",
    "REWARDS",
    "REWARDS_FOR_ANYBODY",
    "ROLES",
    "SIGNED_IN",
    "WEB_FOR_ANYBODY",
    "WEB_PASSED_ON",
    "body_for",
]
