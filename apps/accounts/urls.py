"""Sign-in, home, and an owner's pages."""

from django.contrib.auth import views as auth
from django.urls import path

from apps.accounts.views import (
    account,
    account_links,
    audit,
    health,
    home,
    invitations,
    keys,
    leaving,
    members,
    sessions,
    sign_in,
)

app_name = "accounts"
urlpatterns = [
    path("", home.home, name="home"),
    path("projects/new", home.project_create, name="project-create"),
    path("start/<str:token>", account_links.first_account, name="first-account"),
    path("projects/switch", home.project_switch, name="project-switch"),
    path("login", sign_in.log_in, name="login"),
    path("logout", auth.LogoutView.as_view(), name="logout"),
    path("password", sign_in.password_change, name="password-change"),
    path("password/changed", sign_in.password_changed, name="password-changed"),
    path("password/reset", sign_in.password_reset, name="password-reset"),
    path("link/<str:token>", account_links.account_link, name="account-link"),
    path("account/sessions", sessions.session_list, name="session-list"),
    path("account/sessions/end", sessions.session_end_all, name="session-end-all"),
    path("account/sessions/<str:mark>/end", sessions.session_end, name="session-end"),
    path("account/delete", leaving.account_delete, name="account-delete"),
    path("account/verify", account.verify_ask, name="verify-ask"),
    path("invitations/<int:pk>/accept", account.invitation_accept, name="invitation-accept"),
    # `project-home`, which all apps link to, shows what all apps know: apps.config.urls adds it here.
    path("p/<slug:slug>/as-annotator", home.see_as_annotator, name="see-as-annotator"),
    path("p/<slug:slug>/people", members.member_list, name="member-list"),
    path("p/<slug:slug>/people/models-shown", members.models_shown, name="models-shown"),
    path("p/<slug:slug>/people/add", members.member_add, name="member-add"),
    path("p/<slug:slug>/people/invite", invitations.invitation_create, name="invitation-create"),
    path(
        "p/<slug:slug>/people/invitations/<int:pk>/revoke",
        invitations.invitation_revoke,
        name="invitation-revoke",
    ),
    path("join/<str:token>", invitations.join, name="join"),
    path("p/<slug:slug>/people/<int:pk>/change", members.member_change, name="member-change"),
    path("p/<slug:slug>/people/<int:pk>/password-link", members.member_link, name="member-link"),
    path(
        "p/<slug:slug>/people/<int:pk>/reset-two-factor",
        members.member_factor_reset,
        name="member-factor-reset",
    ),
    path("p/<slug:slug>/people/sign-in-rules", members.sign_in_rules, name="sign-in-rules"),
    path("p/<slug:slug>/people/<int:pk>/remove", members.member_remove, name="member-remove"),
    path("p/<slug:slug>/keys", keys.key_list, name="key-list"),
    path("p/<slug:slug>/keys/create", keys.key_create, name="key-create"),
    path("p/<slug:slug>/keys/<int:pk>/revoke", keys.key_revoke, name="key-revoke"),
    path("p/<slug:slug>/keys/<int:pk>/limits", keys.key_limits, name="key-limits"),
    path(
        "p/<slug:slug>/keys/accounts/<int:pk>/close", keys.service_account_close, name="service-account-close"
    ),
    path("p/<slug:slug>/audit", audit.audit_list, name="audit-list"),
    path("p/<slug:slug>/audit/export", audit.audit_export_file, name="audit-export"),
    path("p/<slug:slug>/health", health.health_detail, name="health-detail"),
]
