"""What a new database has in addition to the tables of the models: the audit trail can only grow, and rows of a project
have numbers."""

from apps.accounts.project_numbers import NUMBER_FUNCTION

FRESH_SQL = [
    NUMBER_FUNCTION,
    """
    CREATE FUNCTION accounts_audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit events are append-only' USING ERRCODE = 'restrict_violation';
END $$
    """,
    *(
        f"""
        CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE ON {table}
            FOR EACH ROW EXECUTE FUNCTION accounts_audit_append_only();
        CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON {table}
            EXECUTE FUNCTION accounts_audit_append_only();
        ALTER TABLE {table} ENABLE ALWAYS TRIGGER audit_append_only;
        ALTER TABLE {table} ENABLE ALWAYS TRIGGER audit_no_truncate;
        """
        for table in ("accounts_auditevent", "accounts_auditseal")
    ),
]
