"""Sign-in, home, and an owner's pages."""

from django.contrib.auth import views as auth
from django.urls import path, reverse_lazy

from apps.accounts.forms import LoginForm, PasswordForm
from apps.accounts.views import audit, health, home, invitations, keys, members

app_name = "accounts"
urlpatterns = [
    path("", home.home, name="home"),
    path(
        "login",
        auth.LoginView.as_view(
            template_name="accounts/login.html",
            authentication_form=LoginForm,
            redirect_authenticated_user=True,
        ),
        name="login",
    ),
    path("logout", auth.LogoutView.as_view(), name="logout"),
    path(
        "password",
        auth.PasswordChangeView.as_view(
            template_name="accounts/password_change.html",
            form_class=PasswordForm,
            success_url=reverse_lazy("accounts:password-changed"),
        ),
        name="password-change",
    ),
    path(
        "password/changed",
        auth.PasswordChangeDoneView.as_view(template_name="accounts/password_changed.html"),
        name="password-changed",
    ),
    path("p/<slug:slug>/", home.project_home, name="project-home"),
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
    path("p/<slug:slug>/people/<int:pk>/remove", members.member_remove, name="member-remove"),
    path("p/<slug:slug>/keys", keys.key_list, name="key-list"),
    path("p/<slug:slug>/keys/create", keys.key_create, name="key-create"),
    path("p/<slug:slug>/keys/<int:pk>/revoke", keys.key_revoke, name="key-revoke"),
    path("p/<slug:slug>/keys/<int:pk>/limits", keys.key_limits, name="key-limits"),
    path(
        "p/<slug:slug>/keys/accounts/<int:pk>/close", keys.service_account_close, name="service-account-close"
    ),
    path("p/<slug:slug>/audit", audit.audit_list, name="audit-list"),
    path("p/<slug:slug>/health", health.health_detail, name="health-detail"),
]
