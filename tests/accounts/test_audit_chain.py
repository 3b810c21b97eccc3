"""The chain of the audit trail: what it finds, and that no one waits for it."""

import itertools
import json
import math
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from apps.accounts import audit_chain, audit_export, audit_signals, pseudonyms, services
from apps.accounts.audit_hash import Head, event_hash, storable, verify_documents
from apps.accounts.models import AuditEvent, AuditSeal, Project, User
from apps.core.commands import Error
from apps.core.errors import DomainError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def home(settings: Any, tmp_path: Path) -> Path:
    settings.HOME = tmp_path
    return tmp_path


@pytest.fixture
def trail(project: Project, home: Path) -> list[dict[str, Any]]:
    """Twelve events of two projects and of none, chained, as documents."""
    other = services.create_project(slug="other")
    for number in range(3):
        for where in (project, other, None):
            services.record_audit(project=where, actor=None, verb="thing.done", data={"number": number})
    audit_chain.seal()
    return list(audit_chain.documents())


def test_events_are_chained(trail: list[dict[str, Any]]) -> None:
    assert audit_chain.verify().is_whole
    assert [each["sequence"] for each in trail] == list(range(1, len(trail) + 1))
    for before, after in itertools.pairwise(trail):
        assert after["previous_hash"] == before["hash"] == event_hash(before)


def test_sealing_again_changes_nothing(trail: list[dict[str, Any]]) -> None:
    assert audit_chain.seal() == audit_chain.seal(every=True) == 0
    assert list(audit_chain.documents()) == trail


def _changed(trail: list[dict[str, Any]], place: int, **fields: Any) -> list[dict[str, Any]]:
    return [each | fields if number == place else each for number, each in enumerate(trail)]


@pytest.mark.parametrize(
    "field", ["at", "project", "project_slug", "actor", "verb", "target", "data", "hash", "previous_hash"]
)
def test_a_changed_field_is_found(trail: list[dict[str, Any]], field: str) -> None:
    verdict = verify_documents(_changed(trail, 3, **{field: "x"}))
    assert any("Event 4" in fault for fault in verdict.faults)


def test_a_changed_event_with_a_hash_that_fits_is_found_by_the_next(trail: list[dict[str, Any]]) -> None:
    forged = trail[3] | {"actor": "somebody else"}
    verdict = verify_documents(_changed(trail, 3, actor="somebody else", hash=event_hash(forged)))
    assert verdict.faults == [
        "Event 5 does not follow the one before it: one of them was changed or exchanged."
    ]


def test_deleted_moved_and_added_events_are_found(trail: list[dict[str, Any]]) -> None:
    assert not verify_documents(trail[:4] + trail[5:]).is_whole
    assert not verify_documents([*trail[:4], trail[5], trail[4], *trail[6:]]).is_whole
    assert not verify_documents([*trail, trail[-1]]).is_whole
    assert not verify_documents(trail[1:]).is_whole


def test_a_cut_end_is_found_by_an_anchor(trail: list[dict[str, Any]], home: Path) -> None:
    audit_chain.write_anchor()
    audit_chain.write_anchor()  # nothing is new
    assert (home / audit_chain.ANCHORS_FILE).stat().st_mode & 0o777 == 0o600
    anchors = audit_chain.anchors(home)
    assert list(anchors) == [len(trail)]
    assert verify_documents(trail, anchors=anchors).is_whole
    assert "Events are missing" in verify_documents(trail[:-1], anchors=anchors).faults[0]
    assert verify_documents(trail[:-1]).is_whole  # by itself it cannot know


def test_a_chain_written_anew_is_found_by_an_anchor(trail: list[dict[str, Any]]) -> None:
    forged = [trail[0] | {"actor": "somebody else"}]
    forged[0]["hash"] = event_hash(forged[0])
    for each in trail[1:]:
        each = each | {"previous_hash": forged[-1]["hash"]}
        forged.append(each | {"hash": event_hash(each)})
    assert verify_documents(forged).is_whole
    assert not verify_documents(forged, anchors={len(trail): trail[-1]["hash"]}).is_whole


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)


@given(value=ANY_JSON)
def test_what_is_hashed_is_what_is_read_back(value: Any) -> None:
    """Through a JSON text, as the database and an export keep it, numbers as PostgreSQL writes them."""
    kept = storable(value)
    assert storable(kept) == kept
    assert json.dumps(json.loads(json.dumps(kept)), sort_keys=True) == json.dumps(kept, sort_keys=True)
    assert "\\u0000" not in json.dumps(kept)


@pytest.mark.parametrize(
    "value",
    [1e22, 1e-7, 0.1, 1.0, -0.0, 2**70, math.inf, math.nan, "a\0b", "\ud800", "é", {"\0": "x"}, 5e-324],
)
def test_what_postgresql_gives_back_has_the_same_hash(project: Project, home: Path, value: Any) -> None:
    services.record_audit(project=project, actor=None, verb="thing.done", data={"value": value})
    audit_chain.seal()
    assert audit_chain.verify().faults == []


@pytest.mark.django_db(transaction=True)
def test_an_event_is_sealed_when_its_transaction_commits(home: Path) -> None:
    with transaction.atomic():
        project = services.create_project(slug="desk")
        services.record_audit(project=project, actor=None, verb="thing.done")
        assert not AuditSeal.objects.exists()
    assert AuditSeal.objects.count() == AuditEvent.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_a_long_transaction_holds_nobody_up_and_comes_later(home: Path) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def slow() -> None:
        try:
            with transaction.atomic():
                services.record_audit(project=None, actor=None, verb="slow.done")
                begun.set()
                may_end.wait(30)
        finally:
            connection.close()

    thread = threading.Thread(target=slow)
    thread.start()
    assert begun.wait(30)
    services.record_audit(project=None, actor=None, verb="quick.done")  # returns, and is sealed
    assert [each["verb"] for each in audit_chain.documents()] == ["quick.done"]
    may_end.set()
    thread.join()
    assert [each["verb"] for each in audit_chain.documents()] == ["quick.done", "slow.done"]
    assert audit_chain.verify().is_whole


@pytest.mark.django_db(transaction=True)
def test_many_at_once_make_one_chain(home: Path) -> None:
    def write() -> None:
        try:
            for number in range(10):
                services.record_audit(project=None, actor=None, verb="thing.done", data={"number": number})
        finally:
            connection.close()

    threads = [threading.Thread(target=write) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    audit_chain.seal()
    verdict = audit_chain.verify()
    assert (verdict.events, verdict.faults) == (60, [])


def test_an_event_far_behind_the_others_is_sealed_by_the_slow_look(
    project: Project, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = services.record_audit(project=project, actor=None, verb="late.done")
    for _ in range(5):
        services.record_audit(project=project, actor=None, verb="thing.done")
    monkeypatch.setattr(audit_chain, "_WINDOW", 2)
    rows = audit_chain._unsealed(True).exclude(pk=late.pk)
    monkeypatch.setattr(audit_chain, "_unsealed", lambda every: rows)
    audit_chain.seal()
    monkeypatch.undo()
    monkeypatch.setattr(audit_chain, "_WINDOW", 2)
    assert audit_chain.seal() == 0
    assert audit_chain.seal_late() == 1


def test_a_deleted_project_leaves_its_events_and_a_whole_chain(
    trail: list[dict[str, Any]], project: Project
) -> None:
    pk = project.pk
    project.delete()
    connection.check_constraints()
    told = [each for each in audit_chain.documents() if each["project"] == pk]
    assert told and {each["project_slug"] for each in told} == {"desk"}
    assert audit_chain.verify().is_whole


@pytest.mark.parametrize("table", ["accounts_auditevent", "accounts_auditseal"])
@pytest.mark.django_db(transaction=True)
def test_even_the_owner_is_refused_by_the_triggers(home: Path, table: str, settings: Any) -> None:
    services.create_project(slug="desk")
    url = f"{os.environ['DATABASE_URL'].rpartition('/')[0]}/{connection.settings_dict['NAME']}"
    column = "verb" if table.endswith("event") else "hash"
    with psycopg.connect(url) as db:
        db.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER audit_no_truncate")
        statements = [
            f"UPDATE {table} SET {column} = 'x'",
            f"DELETE FROM {table}",
            f"TRUNCATE {table} CASCADE",
        ]
        for replica in ("origin", "replica"):
            for statement in statements:
                with pytest.raises(psycopg.errors.RestrictViolation, match="append-only"), db.transaction():
                    db.execute(f"SET LOCAL session_replication_role = {replica}")
                    db.execute(statement)
        db.rollback()


@pytest.mark.django_db(transaction=True)
def test_what_a_superuser_does_behind_the_triggers_is_found(home: Path) -> None:
    project = services.create_project(slug="desk")
    for number in range(6):
        services.record_audit(project=project, actor=None, verb="thing.done", target=f"thing {number}")
    audit_chain.write_anchor()
    assert audit_chain.verify().is_whole
    url = f"{os.environ['DATABASE_URL'].rpartition('/')[0]}/{connection.settings_dict['NAME']}"
    third = "(SELECT event_id FROM accounts_auditseal WHERE sequence = 3)"
    crimes = {
        f"UPDATE accounts_auditevent SET target = 'other' WHERE id = {third}": "Event 3 was changed",
        f"UPDATE accounts_auditevent SET project_id = NULL WHERE id = {third}": "Event 3 was changed",
        "UPDATE accounts_auditseal SET project_number = 0 WHERE sequence = 3": "moved to another project",
        f"DELETE FROM accounts_auditevent WHERE id = {third}": "After event 2 comes 4",
        "DELETE FROM accounts_auditseal WHERE sequence = 7; "
        "DELETE FROM accounts_auditevent WHERE id NOT IN (SELECT event_id FROM accounts_auditseal)":
            "Events are missing",
    }  # fmt: skip
    for crime, finding in crimes.items():
        with psycopg.connect(url) as db:
            for table in ("accounts_auditevent", "accounts_auditseal"):
                db.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
            db.execute(crime)
            documents = _documents_of(db)
            verdict = verify_documents(documents, anchors=audit_chain.anchors(home))
            if "project_number" in crime:
                db.commit()
                verdict = audit_chain.verify()
            db.rollback()
        assert any(finding in fault for fault in verdict.faults), (crime, verdict.faults)
    with psycopg.connect(url) as db:
        for table in ("accounts_auditevent", "accounts_auditseal"):
            db.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER audit_append_only")


def _documents_of(db: psycopg.Connection) -> list[dict[str, Any]]:
    """The documents as another program would read them out of the tables."""
    rows = db.execute(
        "SELECT sequence, at, project_id, project_slug, actor, verb, target, data, project_sequence, "
        "project_previous_hash, previous_hash, hash FROM accounts_auditseal JOIN accounts_auditevent ON id = event_id "
        "ORDER BY sequence"
    )
    names = (
        "sequence", "at", "project", "project_slug", "actor", "verb", "target", "data", "project_sequence",
        "project_previous_hash", "previous_hash", "hash",
    )  # fmt: skip
    found = [dict(zip(names, row, strict=True)) for row in rows]
    utc = timezone.get_default_timezone()
    return [each | {"at": each["at"].astimezone(utc).isoformat(timespec="microseconds")} for each in found]


# Exports


@pytest.fixture
def exported(trail: list[dict[str, Any]], tmp_path: Path) -> Path:
    file = tmp_path / "all.jsonl"
    audit_chain.write_anchor()
    call_command("export_audit", "--all", "--out", str(file))
    return file


def test_an_export_verifies_without_database_or_django(exported: Path, tmp_path: Path) -> None:
    assert exported.stat().st_mode & 0o777 == 0o600
    ours = ("DATABASE_URL", "DJANGO_SETTINGS_MODULE", "TOUCHSTONE_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    done = subprocess.run(
        [sys.executable, "manage.py", "verify_audit", "--from-file", str(exported), "--json"],
        cwd=ROOT, env=environment | {"TOUCHSTONE_HOME": str(tmp_path / "none")}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ok"]


def test_an_export_is_an_event_in_itself(exported: Path) -> None:
    lines = [json.loads(line) for line in exported.read_text().splitlines()]
    assert lines[-2]["verb"] == "audit.exported" and lines[-2]["data"]["scope"] == "installation"
    assert lines[-1]["end"]["events"] == len(lines) - 2
    assert lines[-1]["end"]["anchors"]


DAMAGE = {
    "changed": lambda lines: [*lines[:4], lines[4].replace('"at": "2', '"at": "1'), *lines[5:]],
    "deleted": lambda lines: [*lines[:4], *lines[5:]],
    "moved": lambda lines: [*lines[:4], lines[5], lines[4], *lines[6:]],
    "cut": lambda lines: lines[:-1],
    "cut, with an end": lambda lines: [*lines[:-3], lines[-1]],
    "lengthened": lambda lines: [*lines, lines[5]],
}


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("scope", ["--all", "desk"])
def test_a_damaged_export_is_found(trail: list[dict[str, Any]], tmp_path: Path, how: str, scope: str) -> None:
    project = Project.objects.get(slug="desk")
    for _ in range(4):
        services.record_audit(project=project, actor=None, verb="thing.done")
    file = tmp_path / "some.jsonl"
    call_command("export_audit", scope, "--out", str(file))
    assert audit_export.verify_file(file).faults == []
    file.write_text("".join(DAMAGE[how](file.read_text().splitlines(keepends=True))))
    assert not audit_export.verify_file(file).is_whole
    with pytest.raises(Error, match="not as it was written"):
        call_command("verify_audit", "--from-file", str(file))


def test_a_head_written_down_elsewhere_finds_a_whole_other_export(
    exported: Path, trail: list[dict[str, Any]]
) -> None:
    good = str(Head(len(trail), trail[-1]["hash"]))
    assert audit_export.verify_file(exported, head=good).is_whole
    assert not audit_export.verify_file(exported, head=f"{len(trail)}:{'f' * 64}").is_whole
    assert not audit_export.verify_file(exported, head=f"999:{'f' * 64}").is_whole
    with pytest.raises(DomainError, match="SEQUENCE:HASH"):
        audit_export.verify_file(exported, head="latest")


def test_an_export_of_a_project_has_nothing_of_another(trail: list[dict[str, Any]], tmp_path: Path) -> None:
    file = tmp_path / "desk.jsonl"
    call_command("export_audit", "desk", "--out", str(file))
    slugs = {json.loads(line).get("project_slug", "desk") for line in file.read_text().splitlines()}
    assert slugs == {"desk"} and "other" not in file.read_text()


def test_a_file_that_is_no_export_is_refused_in_words(tmp_path: Path) -> None:
    file = tmp_path / "x"
    for text in (
        "",
        "{}\n",
        "[1]\n",
        '{"touchstone_audit": 1}\nno json\n',
        '{"touchstone_audit": 1}\n{"a": 1}\n',
    ):
        file.write_text(text)
        with pytest.raises(DomainError):
            audit_export.verify_file(file)


def test_verify_audit_says_how_far_the_chain_goes(trail: list[dict[str, Any]], capsys: Any) -> None:
    call_command("verify_audit", "--json")
    assert json.loads(capsys.readouterr().out)["head"] == str(Head(len(trail), trail[-1]["hash"]))


# People in it


def test_no_address_is_in_the_trail(project: Project, people: dict[str, User]) -> None:
    owner = people["owner"]
    services.record_audit(
        project=project, actor=owner, verb="thing.done", target="note of (rose@example.org), and more",
        data={"to": ["max@example.org"], "x@example.org": 1, "model": "desk/polite@1", "snapshot": "first@2.0"},
    )  # fmt: skip
    for row in AuditEvent.objects.values_list("actor", "target", "data"):
        assert "example.org" not in json.dumps(row)
    data = AuditEvent.objects.get(verb="thing.done").data
    assert (data["model"], data["snapshot"]) == ("desk/polite@1", "first@2.0")


def test_who_is_forgotten_stays_a_pseudonym_and_the_chain_whole(
    project: Project, people: dict[str, User], home: Path
) -> None:
    services.record_audit(project=project, actor=people["annotator"], verb="thing.done")
    audit_chain.seal()
    event = AuditEvent.objects.get(verb="thing.done")
    assert pseudonyms.meanings_in([event.actor]) == {event.actor: "annotator@example.org"}
    pseudonyms.forget_person("Annotator@example.org")
    assert pseudonyms.meanings_in([event.actor]) == {event.actor: f"a deleted person ({event.actor})"}
    assert audit_chain.verify().is_whole
    # Another account, another person.
    assert pseudonyms.person_pseudonym("annotator@example.org") != event.actor


def test_where_somebody_came_from_is_forgotten_after_a_while(owner: User, settings: Any) -> None:
    network = pseudonyms.network_pseudonym("192.0.2.1", of_person=pseudonyms.person_pseudonym(owner.email))
    assert pseudonyms.forget_networks() == 0
    settings.AUDIT_NETWORK_DAYS = 0
    assert pseudonyms.forget_networks() == 1
    assert pseudonyms.meanings_in([network]) == {network: network}


# What is recorded


def test_signing_in_and_out_and_failing_are_recorded(owner: User, client: Client) -> None:
    client.post("/login", {"username": "nobody@example.org", "password": "my-secret-typed-wrong"})
    client.post("/login", {"username": owner.email, "password": "wrong"})
    client.force_login(owner)
    client.post("/logout")
    me = pseudonyms.person_pseudonym(owner.email)
    rows = AuditEvent.objects.filter(verb__startswith="user.sign").order_by("pk")
    assert list(rows.values_list("verb", "actor")) == [
        ("user.sign-in-failed", audit_signals.UNKNOWN),
        ("user.sign-in-failed", me),
        ("user.signed-in", me),
        ("user.signed-out", me),
    ]
    told = json.dumps(list(rows.values("data", "target")))
    assert "nobody" not in told and "127.0.0.1" not in told and "network-" in told


def test_guessing_does_not_fill_the_trail(owner: User) -> None:
    for _ in range(40):
        audit_signals._failed(None, {"username": owner.email}, None)
    verbs = list(
        AuditEvent.objects.filter(verb__startswith="user.sign").values_list("verb", flat=True).order_by("pk")
    )
    assert len(verbs) == audit_signals.MOST_FAILURES + 1
    assert verbs[-1] == "user.sign-in-failed-often"


@pytest.mark.parametrize("change", ["update", "delete"])
def test_the_application_cannot_edit_it(project: Project, change: str) -> None:
    with pytest.raises(DatabaseError), transaction.atomic():
        rows = AuditEvent.objects.filter(project=project)
        rows.update(verb="x") if change == "update" else rows.delete()
    with pytest.raises(DatabaseError), transaction.atomic():
        AuditSeal.objects.create(
            sequence=1, event=AuditEvent.objects.first(), project_sequence=1, project_number=0
        )
        AuditSeal.objects.update(hash="x")
