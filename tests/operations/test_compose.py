"""docs/operations/compose.yaml: every container is confined, and no secret is a variable of one."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

ROOT = Path(__file__).parents[2]
OPERATIONS = ROOT / "docs" / "operations"
COMPOSE: dict[str, Any] = yaml.safe_load((OPERATIONS / "compose.yaml").read_text())
SERVICES = sorted(COMPOSE["services"])


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_confined(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["cap_drop"] == ["ALL"] and "cap_add" not in service
    assert "no-new-privileges:true" in service["security_opt"]
    assert service["read_only"] is True and not service.get("privileged")
    assert service["tmpfs"] and all("nosuid,nodev" in each and "size=" in each for each in service["tmpfs"])
    assert service["user"].split(":")[0] not in ("root", "0")
    assert service["pids_limit"] and service["mem_limit"] and service["cpus"]
    assert service["ulimits"]["nofile"]["soft"] >= 65536 and service["ulimits"]["core"] == 0
    assert service["healthcheck"].get("test") or name == "migrate"
    assert not {"pid", "ipc", "network_mode", "devices", "volumes_from"} & set(service)


@pytest.mark.parametrize("name", SERVICES)
def test_no_secret_is_a_variable_and_images_have_digests(name: str) -> None:
    service = COMPOSE["services"][name]
    for variable, value in service["environment"].items() if "environment" in service else ():
        if re.search(r"SECRET|PASSWORD|TOKEN|DATABASE_URL|BROKER_URL", variable):
            assert variable.endswith("_FILE") and value.startswith("/run/secrets/"), variable
            assert value.removeprefix("/run/secrets/") in service["secrets"]
    if "build" in service:
        assert service["build"]["args"]["PYTHON_IMAGE"].startswith("${PYTHON_IMAGE:?")
    else:
        assert re.fullmatch(r"\$\{\w+_IMAGE:\?.*image-digests\}", service["image"])
    assert set(service.get("secrets", ())) <= set(COMPOSE["secrets"])


def test_only_the_web_process_is_reached_and_from_this_machine_only() -> None:
    ports = {name: service["ports"] for name, service in COMPOSE["services"].items() if "ports" in service}
    assert list(ports) == ["web"] and all(port.startswith("127.0.0.1:") for port in ports["web"])
    assert COMPOSE["networks"]["inside"]["internal"] is True
    out = {name for name, service in COMPOSE["services"].items() if "outside" in service["networks"]}
    assert not out & {"postgres", "redis", "beat", "migrate"}


def test_only_migrations_have_the_owner_of_the_tables() -> None:
    holders = {
        name
        for name, service in COMPOSE["services"].items()
        if {"migration_database_url", "database_owner_password", "postgres_password"}
        & set(service.get("secrets", ()))
    }
    assert holders == {"migrate", "postgres"}


def test_secrets_are_made_once_and_for_the_owner_of_the_folder_alone(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    command = [str(OPERATIONS / "make-secrets"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert {path.name for path in folder.iterdir()} == set(COMPOSE["secrets"])
    assert folder.stat().st_mode & 0o777 == 0o700
    values = {path.name: path.read_text().strip() for path in folder.iterdir()}
    for name in ("postgres_password", "database_owner_password", "database_password", "secret_key"):
        assert re.fullmatch(r"[0-9a-f]{64}", values[name]) and values[name] not in done.stdout
    assert len(set(values.values())) == len(values)
    assert (
        values["database_url"]
        == f"postgresql://touchstone_app:{values['database_password']}@postgres/touchstone"
    )
    assert values["redis_conf"].split()[1] in values["broker_url"]
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 1 and values["secret_key"] == (folder / "secret_key").read_text().strip()


def test_digests_are_asked_for_by_a_script_that_reads() -> None:
    for script in ("make-secrets", "image-digests", "postgres-roles.sh"):
        subprocess.run(["sh", "-n", str(OPERATIONS / script)], check=True)
        assert os.access(OPERATIONS / script, os.X_OK)
    named = set(
        re.findall(r"(\w+_IMAGE)=", (OPERATIONS / "image-digests").read_text().split("for line in")[1])
    )
    text = (OPERATIONS / "compose.yaml").read_text()
    assert set(re.findall(r"\$\{(\w+_IMAGE):\?", text)) == named & set(re.findall(r"\w+_IMAGE", text))


def test_the_roles_are_those_that_the_application_expects(tmp_path: Path) -> None:
    """The script of the image, by PostgreSQL's own psql, against a server of ours."""
    from apps.core.database import embedded_postgres, postgres_binaries, roles

    server = embedded_postgres.start(tmp_path / "home", durable=False)
    try:
        secrets = tmp_path / "secrets"
        subprocess.run([str(OPERATIONS / "make-secrets"), str(secrets)], capture_output=True, check=True)
        script = tmp_path / "roles.sh"
        text = (OPERATIONS / "postgres-roles.sh").read_text().replace("/run/secrets", str(secrets))
        names = {role: f"compose_{role}" for role in (roles.OWNER, roles.APP)}  # the server has those already
        for role, name in names.items():
            text = text.replace(role, name)
        script.write_text(text.replace("DATABASE touchstone", "DATABASE compose"))
        place = f"{tmp_path}:{postgres_binaries.find_runner().bin}:{os.environ['PATH']}"
        superuser = server.connection.url("postgres", role=roles.SUPERUSER)
        environment = {"PATH": place, "POSTGRES_USER": roles.SUPERUSER, "PGHOST": "127.0.0.1"}
        environment |= {"PGPORT": str(server.connection.port), "PGPASSWORD": server.connection.password}
        subprocess.run(["sh", str(script)], env=environment, capture_output=True, text=True, check=True)
        rights = "rolsuper OR rolcreatedb OR rolcreaterole"
        with psycopg.connect(superuser) as db:
            found = db.execute(
                f"SELECT rolname, {rights}, rolconfig FROM pg_roles WHERE rolname = ANY(%s)",
                [list(names.values())],
            ).fetchall()
        assert {name: may for name, may, _ in found} == dict.fromkeys(names.values(), False)
        settings = {name: config for name, _, config in found}[names[roles.APP]]
        assert set(settings) == {f"{name}={value}" for name, value in roles.APP_SETTINGS.items()}
        password = (secrets / "database_password").read_text().strip()
        url = f"postgresql://{names[roles.APP]}:{password}@127.0.0.1:{server.connection.port}/compose"
        with psycopg.connect(url) as db, pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute("CREATE TABLE mine ()")
    finally:
        server.stop()
