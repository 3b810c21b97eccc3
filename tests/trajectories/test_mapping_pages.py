"""Uploads whose fields are chosen in the browser, mappings under a name, and several files at once."""

import io
import json
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.urls import reverse

from apps.core.errors import DomainError
from apps.trajectories import saved, services, uploads
from apps.trajectories.formats.mapping import FieldMapping
from apps.trajectories.models import Import, SavedMapping, Trajectory
from tests.trajectories.conftest import lines, record

pytestmark = pytest.mark.django_db(transaction=True)
ROW = {"q": "2+2?", "a": "4", "grade": "0.5", "meta": {"n": 3}}
CHOSEN = {"path_prompt": "$.q", "path_response": "$.a", "path_reward": "$.grade", "path_task": "$.meta.n"}


def upload(client, project, *files, names=None, format="auto"):
    data = {"file": list(files), "format": format} | ({"names": json.dumps(names)} if names else {})
    return client.post(reverse("trajectories:trajectory-upload", args=[project.slug]), data)


def file(name, *documents):
    return SimpleUploadedFile(name, lines(*documents))


def test_fields_of_an_unknown_file_are_chosen_and_the_mapping_is_saved(client, project, researcher):
    client.force_login(researcher)
    page = upload(client, project, file("odd.jsonl", ROW, ROW | {"meta": {"n": 4}}))
    form = page.context["mapping_form"]
    assert "None of 2 records" in page.content.decode()
    assert ("$.meta.n", "$.meta.n: 3") in form.fields["path_task"].choices

    address = reverse("trajectories:upload-map", args=[project.slug])
    wrong = client.post(address, {"token": form.initial["token"], "path_task": "$.meta.n"})
    assert wrong.status_code == 422 and "A mapping needs" in wrong.content.decode()

    page = client.post(address, {"token": form.initial["token"], "name": "grades", **CHOSEN})
    assert [trajectory.reward for trajectory, _ in page.context["shown"]] == [0.5, 0.5]
    token = page.context["confirm"].initial["token"]
    client.post(reverse("trajectories:import-start", args=[project.slug]), {"token": token})
    job = Import.objects.get()
    assert (job.state, job.created, job.format) == ("succeeded", 2, "mapping")
    assert set(Trajectory.objects.values_list("task__external_id", "source_format")) == {
        ("3", "mapping"),
        ("4", "mapping"),
    }
    mapping = SavedMapping.objects.get()
    assert (mapping.name, mapping.paths["reward"]) == ("grades", "$.grade")

    page = upload(client, project, file("next.jsonl", ROW), format="mapping:grades")
    assert page.context["confirm"] is not None and page.context.get("mapping_form") is None


def test_a_mapping_of_another_project_is_not_found(project):
    with pytest.raises(DomainError, match="no saved mapping 'grades' in this project"):
        services.import_trajectories(
            project=project, stream=io.BytesIO(lines(ROW)), format="mapping:grades", by=None
        )


def test_a_token_of_another_upload_is_refused(client, project, researcher):
    client.force_login(researcher)
    answer = client.post(reverse("trajectories:upload-map", args=[project.slug]), {"token": "x", **CHOSEN})
    assert answer.status_code == 400 and "expired or belongs to another project" in answer.content.decode()


def test_several_files_are_one_import_under_the_paths_of_their_folder(client, project, researcher):
    client.force_login(researcher)
    files = file("a.jsonl", record(1)), file("a.jsonl", record(2)), file("b.json", ROW)
    page = upload(client, project, *files, names=["runs/x/a.jsonl", "runs/y/a.jsonl", "../../b.json"])
    found = page.context["found"]
    assert found.count == 3 and found.error_count == 1
    assert found.errors[0]["pointer"] == "/b.json"
    assert len(found.first) == 2


def test_files_without_a_path_have_names_of_their_own(project):
    packed = uploads.pack_files(
        project, [file("a.json", ROW), file("a.json", ROW)], ["../a.json", "x/b.json"]
    )
    with zipfile.ZipFile(packed.file) as archive:
        assert archive.namelist() == ["a.json", "2/a.json"]


def test_the_command_reads_a_mapping_from_a_file(project, tmp_path):
    (tmp_path / "rows.csv").write_text("q,a,grade\n2+2?,4,1\n3+3?,6,0\n")
    mapping = tmp_path / "mapping.toml"
    mapping.write_text('[fields]\nprompt = "$.q"\nresponse = "$.a"\nreward = "$.grade"\n')
    call_command("import_trajectories", project.slug, str(tmp_path / "rows.csv"), map=str(mapping))
    assert sorted(Trajectory.objects.values_list("outcome_reward", flat=True)) == [0.0, 1.0]
    mapping.write_text('[fields]\nprompt = "q"\n')
    with pytest.raises(Exception, match="begins with"):
        call_command("import_trajectories", project.slug, str(tmp_path / "rows.csv"), map=str(mapping))


def test_a_mapping_of_a_name_is_replaced(project, researcher):
    for path in ("$.a", "$.b"):
        saved.save_mapping(
            project=project, name="same", mapping=FieldMapping({"response": path}), by=researcher
        )
    assert SavedMapping.objects.get().paths == {"response": "$.b"}
