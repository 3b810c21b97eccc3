"""The commands of machines: a token alone on standard output, runs that a machine takes, and revoking by name."""

import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.accounts.models import Project
from apps.machines import services
from apps.machines.models import JoinToken, Machine
from apps.training.models import TrainingRun
from tests.machines.test_calls import described, joined
from tests.training import cluster
from workers.launch.machine_calls import JoinRequest

pytestmark = pytest.mark.django_db


def test_a_token_is_printed_alone(project: Project, capsys: Any) -> None:
    call_command("create_join_token", "desk", "--hours", "24")
    printed = capsys.readouterr()
    secret = printed.out.strip()
    assert secret.startswith("tsj_") and "\n" not in secret
    assert "not shown again" in printed.err and secret not in printed.err
    machine, _ = services.join_machine(secret=secret, request=JoinRequest(name="box", machine=described()))
    assert machine.project == project

    call_command("create_join_token", "--all-projects", "--json")
    assert JoinToken.objects.get(prefix=json.loads(capsys.readouterr().out)["prefix"]).project is None
    for wrong in ([], ["desk", "--all-projects"]):
        with pytest.raises(CommandError, match="Name the project whose runs the machine trains"):
            call_command("create_join_token", *wrong)


def test_a_run_for_a_machine(project: Project, monkeypatch: Any) -> None:
    cluster.be_quick(monkeypatch)
    cluster.small_dataset(project)
    options = ["desk", "--dataset", "first", "--on", "machine", "--gpus", "1"]
    with pytest.raises(CommandError, match="A joined machine is not set up: join one"):
        call_command("train", *options)
    joined(project)
    with pytest.raises(CommandError, match="joined machines have at most 0"):
        call_command("train", *options)
    joined(project, gpus=1)
    call_command("train", *options)
    assert TrainingRun.objects.get().launcher == "machine"


def test_a_machine_or_a_token_is_revoked_by_its_name(project: Project, capsys: Any) -> None:
    machine, _ = joined(project)
    call_command("revoke_machine", "box")
    machine.refresh_from_db()
    assert machine.revoked_at is not None and "box" in capsys.readouterr().out
    first, second = joined(project)[0], joined(project)[0]
    with pytest.raises(CommandError, match=f"2 machines are called 'box'.*{second.prefix}"):
        call_command("revoke_machine", "box")
    call_command("revoke_machine", first.prefix)
    assert list(Machine.objects.filter(revoked_at=None)) == [second]
    token, _ = services.create_join_token(project=project, by=None)
    call_command("revoke_machine", token.prefix)
    assert not JoinToken.objects.filter(pk=token.pk, revoked_at=None).exists()
