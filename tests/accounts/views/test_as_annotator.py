"""A researcher looks at her project as its annotators do, and back."""

from django.test import Client

from apps.accounts.models import Membership, Project
from apps.annotation.models import Campaign
from tests.factories import make_member


def test_there_and_back(project: Project, client: Client) -> None:
    Campaign.objects.create(project=project, name="Compare", feedback_types=["pairwise"])
    elsewhere = Project.objects.create(slug="elsewhere")
    researcher = make_member(project, "rose@example.org", "researcher")
    Membership.objects.create(project=elsewhere, user=researcher, role="researcher")
    client.force_login(researcher)
    assert "See as annotator" in client.get("/p/desk/").content.decode()
    client.post("/p/desk/as-annotator")
    page = client.get("/p/desk/campaigns/").content.decode()
    assert "You see this project as an annotator does" in page
    assert "My campaigns" in page
    assert "Trajectories" not in page
    refused = client.get("/p/desk/datasets/")
    assert refused.status_code == 403
    assert "this is not for annotators" in refused.content.decode()
    assert "Back to my role" in refused.content.decode()
    assert client.post("/p/desk/campaigns/new/").status_code == 403
    assert client.get("/p/elsewhere/datasets/").status_code == 200
    assert Membership.objects.get(project=project, user=researcher).role == "researcher"
    client.post("/p/desk/as-annotator", {"back": "1"})
    assert client.get("/p/desk/datasets/").status_code == 200
    assert "as an annotator does" not in client.get("/p/desk/").content.decode()


def test_nobody_becomes_more_by_it(project: Project, client: Client) -> None:
    client.force_login(make_member(project, "ann@example.org", "annotator"))
    assert client.post("/p/desk/as-annotator").status_code == 403
    assert "See as annotator" not in client.get("/p/desk/").content.decode()
    client.force_login(make_member(project, "remi@example.org", "reviewer"))
    assert client.post("/p/desk/as-annotator", {"back": "1"}).status_code == 403
