"""Rules of policy documents: reading documents, splitting them into rules, comparing versions."""
