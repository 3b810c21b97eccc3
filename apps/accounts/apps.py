from django.apps import AppConfig, apps

FORGET_EVERY_SECONDS = 3600.0
MAIL_EVERY_SECONDS = 3.0
SEAL_EVERY_SECONDS = 10.0
LATE_EVERY_SECONDS = 3600.0
ANCHOR_EVERY_SECONDS = 300.0


class AccountsConfig(AppConfig):
    name = "apps.accounts"
    label = "accounts"

    def ready(self) -> None:
        from apps.accounts import audit_signals, second_factor
        from apps.core.processes import start_notices

        audit_signals.connect()
        second_factor.connect()
        start_notices.register(_first_account_notice)

    def register(self) -> None:
        from apps.accounts import audit_chain, pseudonyms
        from apps.accounts.account_links import forget_old_links, send_due_links
        from apps.accounts.idempotency import forget_old_answers
        from apps.accounts.login_guard import forget_old_counters
        from apps.accounts.sessions import forget_ended_sessions
        from apps.core.jobs import periodic
        from apps.core.storage import encryption

        periodic.register("seal the audit trail", SEAL_EVERY_SECONDS, audit_chain.seal)
        periodic.register("seal what was late", LATE_EVERY_SECONDS, audit_chain.seal_late)
        periodic.register("anchor the audit trail", ANCHOR_EVERY_SECONDS, audit_chain.write_anchor)
        periodic.register("forget networks", FORGET_EVERY_SECONDS, pseudonyms.forget_networks)
        if apps.is_installed("allauth.mfa"):
            encryption.register(
                encryption.EncryptedField(
                    "mfa.Authenticator",
                    "data",
                    lambda row: f"the second factor ({row.type}) of {row.user}",
                    keys=("secret", "seed", "migrated_codes"),
                )
            )
        periodic.register("forget old answers", FORGET_EVERY_SECONDS, forget_old_answers)
        periodic.register("forget old links", FORGET_EVERY_SECONDS, forget_old_links)
        periodic.register("forget old failures", FORGET_EVERY_SECONDS, forget_old_counters)
        periodic.register("forget ended sessions", FORGET_EVERY_SECONDS, forget_ended_sessions)
        periodic.register("mail links", MAIL_EVERY_SECONDS, send_due_links)


def _first_account_notice(url: str) -> str:
    from apps.accounts.new_projects import first_account_notice

    return first_account_notice(url)
