"""Who may open a page, beyond the roles of a project."""

from apps.accounts.models import Role

ANYBODY = "anybody"  # without signing in
SIGNED_IN = "signed in"
CREATORS = "creators"  # who may create projects: here all but those who only annotate
EMPTY = "empty"  # anybody, while the installation has no account
OWN = "own"  # of one account, and not found for any other
HERS = "hers"  # the annotator whose item it is, and no one else, owners included
ROLES = [Role.ANNOTATOR, Role.REVIEWER, Role.RESEARCHER, Role.OWNER]
