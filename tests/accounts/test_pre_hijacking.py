"""Accounts made under someone else's address: the attacks of Sudhodanan & Paverd, "Pre-hijacked accounts" (2022)."""

import re
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from allauth.socialaccount.models import SocialAccount
from django.core import mail
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.accounts.account_links import Purpose, mail_link, send_due_links, show_link
from apps.accounts.invitations import invite
from apps.accounts.models import AuditEvent, Membership, Project, Role, User
from apps.accounts.services import create_api_key, create_project, create_user, remove_member, set_member
from tests.accounts.test_sign_on import CALLBACK, Provider, provider, sign_on, who

__all__ = ["provider"]

VICTIM = "victim@corp.example"
ATTACKERS = "the attacker's own password"
OWN = "correct horse battery staple"


@pytest.fixture
def owner(db: None) -> User:
    return create_user(email="olga@beta.example", password=OWN)[0]


@pytest.fixture
def beta(owner: User) -> Project:
    return create_project(slug="beta", owner=owner)


@pytest.fixture
def alpha(db: None) -> Project:
    return create_project(slug="alpha", owner=create_user(email="anna@alpha.example", password=OWN)[0])


@pytest.fixture
def attacker(beta: Project, owner: User) -> Client:
    """Registered by beta's open link, under the victim's address."""
    _, token = invite(project=beta, role=Role.RESEARCHER, by=owner, most_uses=5)
    client = Client()
    answer = client.post(f"/join/{token}", {"email": VICTIM, "password": ATTACKERS})
    assert answer.status_code == 302 and who(client) == VICTIM
    return client


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def log_in(email: str, password: str) -> Client | None:
    client = Client()
    answer = client.post(reverse("accounts:login"), {"username": email, "password": password})
    return client if answer.status_code == 302 else None


def add(project: Project, email: str, role: str = "owner") -> Any:
    owner = Membership.objects.filter(project=project, role=Role.OWNER).order_by("pk")[0].user
    return browser(owner).post(f"/p/{project.slug}/people/add", {"email": email, "role": role})


def victim() -> User:
    return User.objects.get(email=VICTIM)


@pytest.fixture
def claims(provider: Provider) -> Provider:
    provider.claims |= {"sub": "the-victim", "email": VICTIM, "name": "Victim"}
    return provider


def test_classic_federated_merge(attacker: Client, claims: Provider, alpha: Project) -> None:
    hers = Client()
    sign_on(hers, claims)
    assert who(hers) == VICTIM
    assert victim().email_verified_at is not None and not victim().has_usable_password()
    assert add(alpha, VICTIM).status_code == 302  # as she is known by single sign-on
    assert hers.get("/p/alpha/keys").status_code == 200
    assert log_in(VICTIM, ATTACKERS) is None
    event = AuditEvent.objects.get(verb="account.taken-over")
    assert event.data["password"] is True and event.data["sessions"] == 1


def test_unexpired_session(attacker: Client, claims: Provider, alpha: Project) -> None:
    assert attacker.get("/p/beta/").status_code == 200
    sign_on(Client(), claims)
    add(alpha, VICTIM)
    assert attacker.get("/p/alpha/keys")["Location"].startswith("/login")


def test_trojan_identifiers(attacker: Client, claims: Provider, beta: Project, owner: User) -> None:
    """A key, a second factor and another sign-on that the attacker left in the account."""
    user = victim()
    key, _ = create_api_key(project=beta, scopes=["ingest"], owner=user, by=user)
    TOTP.activate(user, generate_totp_secret())
    SocialAccount.objects.create(user=user, provider="sso", uid="the-attacker", extra_data={})
    token = show_link(user=user, purpose=Purpose.PASSWORD, by=owner, project=beta)[1]
    sign_on(Client(), claims)
    key.refresh_from_db()
    assert key.revoked_at is not None
    assert not Authenticator.objects.filter(user=user).exists()
    assert list(SocialAccount.objects.values_list("uid", flat=True)) == ["the-victim"]
    assert Client().post(f"/link/{token}", {"password": ATTACKERS}).status_code == 404
    claims.claims |= {"sub": "the-attacker", "email": "attacker@corp.example"}
    back = Client()
    sign_on(back, claims)
    assert who(back) == "attacker@corp.example"


def test_no_other_identity_is_tied_to_a_session(attacker: Client, claims: Provider) -> None:
    claims.claims |= {"sub": "the-attacker", "email": "attacker@corp.example"}
    there = attacker.get("/oidc/sso/login/", {"process": "connect"})
    attacker.get(CALLBACK, claims.agree(there["Location"]))
    assert SocialAccount.objects.get().user.email == "attacker@corp.example"


def test_non_verifying_provider(attacker: Client, claims: Provider) -> None:
    claims.claims["email_verified"] = False
    hers = Client()
    assert sign_on(hers, claims).status_code == 403
    assert who(hers) is None and victim().has_usable_password()


def test_a_linked_account_that_an_owner_took_comes_back(claims: Provider, beta: Project, owner: User) -> None:
    """The owner's link made it unverified; the provider's next claim gives it back, whole."""
    hers = Client()
    sign_on(hers, claims)
    User.objects.filter(email=VICTIM).update(password="x")
    user = victim()
    user.set_password(OWN)
    user.save()
    set_member(project=beta, user=user, role=Role.ANNOTATOR, by=owner)
    member = Membership.objects.get(user=user)
    link = browser(owner).post(f"/p/beta/people/{member.pk}/password-link").context["link"]
    taken = Client()
    assert taken.post(link, {"password": ATTACKERS}).status_code == 302
    assert who(taken) == VICTIM and victim().email_verified_at is None
    again = Client()
    sign_on(again, claims)
    assert who(again) == VICTIM and victim().email_verified_at is not None
    assert who(taken) is None or taken.get("/p/beta/").status_code == 302
    assert log_in(VICTIM, ATTACKERS) is None
    assert SocialAccount.objects.get().uid == "the-victim"


def test_an_owner_of_one_project_is_nobody_in_another(beta: Project, alpha: Project) -> None:
    """misc.py: beta's owner makes an account, and alpha's adds its address later."""
    made = add(beta, VICTIM, "annotator").context["link"]
    taken = Client()
    assert taken.post(made, {"password": ATTACKERS})["Location"] == "/"
    answer = add(alpha, VICTIM)
    assert "has an account with an unverified address" in answer.content.decode()
    assert taken.get("/p/alpha/").status_code == 404
    (invitation,) = taken.get("/?all=1").context["invitations"]
    assert taken.post(f"/invitations/{invitation.pk}/accept").status_code == 403


def test_an_owner_gets_no_link_for_who_is_elsewhere_too(beta: Project, alpha: Project, owner: User) -> None:
    user, _ = create_user(email=VICTIM, password=OWN, is_verified=True)
    mine = set_member(project=beta, user=user, role=Role.ANNOTATOR, by=owner)
    page = browser(owner).post(f"/p/beta/people/{mine.pk}/password-link")
    assert page.status_code == 200
    early = page.context["link"]  # while they were in beta alone
    theirs = set_member(project=alpha, user=user, role=Role.OWNER, by=None)
    assert Client().post(early, {"password": ATTACKERS}).status_code == 403
    refused = browser(owner).post(f"/p/beta/people/{mine.pk}/password-link")
    assert (refused.status_code, "also in another project" in refused.content.decode()) == (403, True)
    listed = browser(owner).get("/p/beta/people").content.decode()
    assert f"/people/{mine.pk}/password-link" not in listed
    assert log_in(VICTIM, OWN) is not None
    remove_member(membership=theirs, by=None)
    assert Client().post(early, {"password": ATTACKERS}).status_code == 302


# With mail: nothing is made before the letter was read.


@pytest.fixture
def mailing(settings: Any) -> None:
    settings.MAIL = {"EMAIL_HOST": "localhost"}


def letter() -> str:
    """The link of the one letter that waits, and nothing after it."""
    assert send_due_links() == 1
    found = re.search(r"http://127\.0\.0\.1:8000(/link/tsl_[\w-]+)", mail.outbox[-1].body)
    assert found is not None
    return found[1]


def test_an_open_invitation_registers_nobody_elses_address(mailing: None, beta: Project, owner: User) -> None:
    _, token = invite(project=beta, role=Role.ANNOTATOR, by=owner, most_uses=5)
    attacker = Client()
    page = attacker.post(f"/join/{token}", {"email": VICTIM, "password": ATTACKERS})
    assert page.status_code == 200 and who(attacker) is None
    assert not User.objects.filter(email=VICTIM).exists()
    path = letter()
    assert mail.outbox[0].to == [VICTIM]
    hers = Client()
    assert hers.get(path).status_code == 200  # programs that look at mail use nothing up
    assert hers.post(path, {"password": OWN, "name": "Vera"}).status_code == 302
    assert victim().email_verified_at is not None and victim().check_password(OWN)
    assert Membership.objects.filter(user=victim(), project=beta).exists()
    assert Client().post(path, {"password": ATTACKERS}).status_code == 404


def test_registering_a_known_address_reads_the_same(mailing: None, beta: Project, owner: User) -> None:
    _, token = invite(project=beta, role=Role.ANNOTATOR, by=owner, most_uses=5)
    pages = [
        Client().post(f"/join/{token}", {"email": email}).content.decode().replace(email, "ADDRESS")
        for email in (VICTIM, owner.email)
    ]
    strip = re.compile(r'csrf[^>]*|X-CSRFToken": "[^"]*')
    assert strip.sub("", pages[0]) == strip.sub("", pages[1])
    assert send_due_links() == 2
    assert "You have an account with this address already" in mail.outbox[1].body
    assert "/link/" not in mail.outbox[1].body


def test_a_letter_read_by_its_owner_verifies_nobody_elses_account(attacker: Client, mailing: None) -> None:
    assert attacker.post(reverse("accounts:verify-ask")).status_code == 302
    path = letter()
    hers = Client()
    assert hers.get(path)["Location"].startswith("/login")
    assert hers.post(path)["Location"].startswith("/login")
    other = browser(create_user(email="other@corp.example", password=OWN)[0])
    assert other.post(path).status_code == 403
    assert victim().email_verified_at is None


def test_a_reset_by_mail_gives_the_account_to_its_owner(
    attacker: Client, mailing: None, beta: Project
) -> None:
    key, _ = create_api_key(project=beta, scopes=["ingest"], owner=victim(), by=victim())
    TOTP.activate(victim(), generate_totp_secret())
    assert Client().post(reverse("accounts:password-reset"), {"email": VICTIM.upper()}).status_code == 200
    path = letter()
    hers = Client()
    assert hers.post(path, {"password": OWN})["Location"] == "/"
    assert who(hers) == VICTIM and victim().email_verified_at is not None
    key.refresh_from_db()
    assert key.revoked_at is not None
    assert attacker.get("/p/beta/").status_code == 302
    assert log_in(VICTIM, ATTACKERS) is None and log_in(VICTIM, OWN) is not None


def test_a_reset_tells_nobody_who_has_an_account(mailing: None, owner: User, claims: Provider) -> None:
    sign_on(Client(), claims)  # signs on only: a password would outlive the account there
    pages = []
    for email in (owner.email, VICTIM, "nobody@corp.example"):
        answer = Client(REMOTE_ADDR="192.0.2.1").post(reverse("accounts:password-reset"), {"email": email})
        text = re.sub(r'X-CSRFToken": "[^"]*', "", answer.content.decode())
        pages.append((answer.status_code, text.replace(email, "ADDRESS")))
    assert pages[0] == pages[1] == pages[2]
    assert send_due_links() == 1
    assert [message.to for message in mail.outbox] == [[owner.email]]


def test_letters_to_one_address_are_few(mailing: None, owner: User) -> None:
    url = reverse("accounts:password-reset")
    statuses = [Client().post(url, {"email": owner.email}).status_code for _ in range(5)]
    assert statuses == [200, 200, 200, 200, 429]


def test_without_mail_the_page_says_whom_to_ask(db: None) -> None:
    page = Client().get(reverse("accounts:password-reset")).content.decode()
    assert "Ask a project owner for a password reset link" in page and "<form" not in page.split("<main")[1]


def test_a_letter_that_fails_is_sent_again_with_another_token(
    mailing: None, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = mail_link(email=owner.email, purpose=Purpose.PASSWORD)
    before = link.hash

    def away(self: Any) -> None:
        raise ConnectionRefusedError("not now")

    with monkeypatch.context() as patch:
        patch.setattr("django.core.mail.EmailMessage.send", away)
        assert send_due_links() == 0
    link.refresh_from_db()
    assert link.hash != before and link.send_at is not None and link.send_at > timezone.now()
    type(link).objects.update(send_at=timezone.now())
    assert Client().get(letter()).status_code == 200


def test_the_operators_link(owner: User, capsys: pytest.CaptureFixture[str]) -> None:
    from django.core.management import call_command

    call_command("create_password_link", owner.email)
    path = re.search(r"/link/tsl_[\w-]+", capsys.readouterr().out)
    assert path is not None
    client = Client()
    same = client.post(path[0], {"password": OWN})
    assert (same.status_code, "the password you have" in same.content.decode()) == (409, True)
    assert client.post(path[0], {"password": "short"}).status_code == 400
    assert client.post(path[0], {"password": "another long secret"}).status_code == 302
    owner.refresh_from_db()
    assert owner.email_verified_at is None
