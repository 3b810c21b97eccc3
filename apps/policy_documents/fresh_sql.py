"""What a new database has in addition to the tables of the models: rows of a project have numbers."""

from apps.accounts.project_numbers import numbering_trigger

FRESH_SQL = [numbering_trigger("policy_documents_policysplit")]
