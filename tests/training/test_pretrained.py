"""What a recipe begins with is named, and is the operator's or the project's own."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import Project, User
from apps.core.errors import DomainError
from apps.core.jobs.job_queue import JobState, claim_next
from apps.core.storage.artifacts import store_content
from apps.datasets.models import DatasetVersion
from apps.training import runner, services
from apps.training.estimate import estimate
from apps.training.models import Recipe, RewardModel, TrainingRun
from apps.training.pretrained import with_names
from apps.training.selectors import run_folder
from apps.training.transfer import import_model
from tests.core.test_model_folders import model_in
from tests.training import fake_child as child
from tests.training.model_hub import COMMIT, ModelHub
from tests.training.test_api import bearer, post
from tests.workers.schema.test_encoder_folder import POOLED, encoder_in
from workers.schema.encoder_folder import read_encoder_folder

pytestmark = [pytest.mark.usefixtures("fake_child")]


@pytest.fixture
def listed(settings: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = encoder_in(
        tmp_path_factory.mktemp("models") / "tiny", rows=13_000_000, max_position_embeddings=96
    )
    settings.MODEL_DIRS = {"tiny": str(folder)}
    return folder


def registered(project: Project, name: str, **backbone: Any) -> RewardModel:
    artifact = f"models/{project.slug}-{name}"
    for file in ("config.json", "tokenizer.json", "model.safetensors"):
        store_content(b"{}", f"{artifact}/{file}")
    manifest = {"backbone": {"kind": "decoder"} | backbone}
    return RewardModel.objects.create(
        project=project, name=name, version=1, artifact=artifact, manifest=manifest
    )


@pytest.fixture
def theirs(db: None) -> RewardModel:
    """The same name, in another project."""
    return registered(Project.objects.create(slug="elsewhere", name="Elsewhere"), "base")


def start(dataset_version: DatasetVersion, **values: Any) -> TrainingRun:
    recipe = {"label_smoothing": child.COMPLETE} | values
    return services.start_run(
        project=dataset_version.project, dataset_version=dataset_version, recipe=recipe, by=None
    )


def with_decoder(name: str) -> dict[str, Any]:
    return {"backbone": "decoder", "decoder": name}


@pytest.mark.parametrize(
    ("key", "values"),
    [("decoder", {"backbone": "decoder", "decoder": "tiny"}), ("encoder", {"encoder": "tiny"})],
)
def test_a_listed_name_becomes_a_path_for_the_child_alone(
    key: str, values: dict[str, Any], dataset_version: DatasetVersion, listed: Path
) -> None:
    run = start(dataset_version, **values)
    assert run.recipe[key] == "tiny"
    claimed = claim_next(TrainingRun)
    assert claimed is not None
    runner.execute(claimed)
    claimed.refresh_from_db()
    assert claimed.state == JobState.SUCCEEDED, claimed.error
    config = json.loads((run_folder(run) / "config.json").read_text())
    assert config["recipe"][key] == str(listed)
    assert claimed.recipe[key] == "tiny"


def test_defaults_follow_from_the_encoder_that_is_named(
    dataset_version: DatasetVersion, listed: Path
) -> None:
    """Of 104 million parameters, and at most 96 tokens; what is given stays."""
    run = start(dataset_version, encoder="tiny", unfrozen=True)
    found = {key: run.recipe[key] for key in ("encoder_learning_rate", "chunk_tokens", "epochs")}
    assert found == {"encoder_learning_rate": 2e-5, "chunk_tokens": 94, "epochs": 3}
    run = start(dataset_version, encoder="tiny", unfrozen=True, encoder_learning_rate=1e-4, chunk_tokens=32)
    assert (run.recipe["encoder_learning_rate"], run.recipe["chunk_tokens"]) == (1e-4, 32)
    found = estimate(dataset_version, run.recipe)
    assert found.encoder is not None and found.encoder.memory > 16 * 104e6


def test_the_form_lists_what_was_recognised(
    dataset_version: DatasetVersion, client: Client, researcher: User, listed: Path, settings: Any
) -> None:
    """An encoder with its key; a decoder; and why a folder cannot be used, by its name and without its path."""
    odd = encoder_in(listed.parent / "odd", model_type="t5")
    decoder = encoder_in(
        listed.parent / "qwen", model_type="qwen2", vocab_size=100, architectures=["Qwen2ForCausalLM"]
    )
    settings.MODEL_DIRS |= {"old": str(odd), "qwen-small": str(decoder), "gone": str(listed.parent / "gone")}
    client.force_login(researcher)
    page = client.get(reverse("training:run-create", args=["desk"])).text
    assert "<code>encoder = &quot;tiny&quot;</code>" in page or '<code>encoder = "tiny"</code>' in page
    assert "BertModel, 104 M parameters: mean pooling, 8 numbers, at most 96 tokens." in page
    assert '<code>decoder = "qwen-small"</code>' in page and "Qwen2ForCausalLM" in page
    assert "has the model type &#x27;t5&#x27;" in page and "is not on this machine" in page
    assert str(listed.parent) not in page
    answer = post(
        client, bearer(dataset_version.project, "train"), dataset="first", recipe={"encoder": "old"}
    )
    assert (answer.status_code, answer.json()["pointer"]) == (400, "/encoder")
    assert "The encoder folder 'old' has the model type 't5'" in answer.json()["detail"]


def test_an_encoder_of_the_hub_is_downloaded_for_its_run(
    dataset_version: DatasetVersion, hub: ModelHub, settings: Any
) -> None:
    """At its commit alone: modules, weights and tokenizer, no code; removed once the run has ended."""
    folder = encoder_in(Path(settings.HOME) / "made", modules=POOLED)
    hub.files |= {
        str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
    name = f"hf://org/rm@{COMMIT}"
    run = start(dataset_version, encoder=name)
    assert run.recipe["encoder"] == name
    for attempt in range(2):
        runner.prepare(run, run_folder(run))
        config = json.loads((run_folder(run) / "config.json").read_text())
        found = Path(config["recipe"]["encoder"])
        assert read_encoder_folder(found).reading.pooling == ("mean",)
        assert len(hub.fetched) == 6, f"attempt {attempt} downloads nothing again"
    assert not {"modeling_rm.py", "pytorch_model.bin"} & set(hub.fetched)
    assert not (found / "onnx").exists()
    claimed = claim_next(TrainingRun)
    assert claimed is not None
    runner.execute(claimed)
    claimed.refresh_from_db()
    assert claimed.state == JobState.SUCCEEDED, claimed.error
    assert not found.exists()


@pytest.mark.parametrize("name", ["hf://org/rm", "hf://org/rm@main", "hf://org/rm@v2"])
def test_an_encoder_of_the_hub_is_pinned(dataset_version: DatasetVersion, name: str) -> None:
    with pytest.raises(DomainError, match="is not pinned to a commit; write hf://org/rm@COMMIT") as error:
        start(dataset_version, encoder=name)
    assert error.value.pointer == "/encoder"
    with pytest.raises(DomainError, match="is not an available decoder"):
        start(dataset_version, **with_decoder(f"hf://org/rm@{COMMIT}"))


def test_a_model_of_the_project_is_named_with_its_version(
    dataset_version: DatasetVersion, tmp_path: Path
) -> None:
    model = registered(dataset_version.project, "base")
    run = start(dataset_version, **with_decoder("desk/base"))
    assert run.recipe["decoder"] == str(model) == "desk/base@1"
    runner.prepare(run, run_folder(run))
    config = json.loads((run_folder(run) / "config.json").read_text())
    assert config["recipe"]["decoder"] == str(tmp_path / "artifacts" / model.artifact)


def refusals(listed: Path, theirs: RewardModel, home: Path) -> list[str]:
    artifacts = home / "artifacts"
    return [
        str(artifacts / theirs.artifact),  # trained and succeeded before
        str(artifacts / "nothing"),
        str(listed),  # listed, but not by its name
        f"{listed}/../tiny",
        "elsewhere/base@1",
        "elsewhere/base",
        "elsewhere/nothing@1",
        "base@1",
        "base",
        "../artifacts/models/elsewhere-base",
        "tiny/../../x",
        "/etc",
        "/nonexistent",
        "~/x",
    ]


@pytest.mark.parametrize("key", ["decoder", "encoder"])
def test_whatever_else_is_named_is_answered_alike(
    dataset_version: DatasetVersion, listed: Path, theirs: RewardModel, tmp_path: Path, key: str
) -> None:
    for name in refusals(listed, theirs, tmp_path):
        values = with_decoder(name) if key == "decoder" else {"encoder": name}
        for recipe in (values, "\n".join(f"{each} = {json.dumps(value)}" for each, value in values.items())):
            with pytest.raises(DomainError) as error:
                services.start_run(
                    project=dataset_version.project, dataset_version=dataset_version, recipe=recipe, by=None
                )
            fix = (
                " Paths are not accepted: ask the operator to list the folder."
                if name.startswith("/")
                else ""
            )
            assert error.value.pointer == f"/{key}"
            assert error.value.message == (
                f"{key} = {name!r} is not an available {key}: TOUCHSTONE_MODEL_DIRS lists tiny; "
                f"this project has no such model.{fix}"
            )
        with pytest.raises(DomainError):
            services.save_recipe(project=dataset_version.project, name="ours", toml=recipe, by=None)
    assert not TrainingRun.objects.exists() and not Recipe.objects.exists()


def test_over_http_and_in_the_browser(
    dataset_version: DatasetVersion,
    client: Client,
    researcher: User,
    listed: Path,
    theirs: RewardModel,
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "artifacts" / theirs.artifact)
    answer = post(
        client, bearer(dataset_version.project, "train"), dataset="first", recipe=with_decoder(path)
    )
    assert (answer.status_code, answer.json()["pointer"]) == (400, "/decoder")
    assert "TOUCHSTONE_MODEL_DIRS lists tiny" in answer.json()["detail"]
    client.force_login(researcher)
    toml = f'backbone = "decoder"\ndecoder = "{path}"\n'
    form = {"dataset": dataset_version.pk, "recipe": "own", "toml": toml, "seed": 0}
    page = client.post(reverse("training:run-create", args=["desk"]), form)
    assert page.status_code == 422 and "TOUCHSTONE_MODEL_DIRS lists tiny" in page.text
    assert not TrainingRun.objects.exists()


def test_a_model_has_to_have_what_is_begun_with(dataset_version: DatasetVersion) -> None:
    registered(dataset_version.project, "steps", kind="step-encoder", encoder="embedded")
    registered(dataset_version.project, "base")
    with pytest.raises(DomainError, match=r"models of this project are desk/base@1\."):
        start(dataset_version, **with_decoder("desk/steps@1"))
    with pytest.raises(DomainError, match="this project has no such model"):
        start(dataset_version, encoder="desk/steps@1")
    with pytest.raises(DomainError, match="this project has no such model"):
        start(dataset_version, **with_decoder("desk/base@1"), objective="generative")
    implicit = with_decoder("desk/policy@1") | {"objective": "implicit_process"}
    with pytest.raises(DomainError, match="this project has no such model"):
        start(dataset_version, **implicit | {"decoder": "desk/base@1"})
    registered(dataset_version.project, "policy", kind="implicit-process")
    assert start(dataset_version, **implicit).recipe["decoder"] == "desk/policy@1"
    with pytest.raises(DomainError, match="is not an available decoder"):
        start(dataset_version, **with_decoder("desk/policy@1"))
    registered(dataset_version.project, "clip", kind="goal-likeness")
    assert start(dataset_version, **with_decoder("desk/clip@1")).recipe["decoder"] == "desk/clip@1"
    registered(dataset_version.project, "own", kind="step-encoder", encoder="own")
    assert start(dataset_version, encoder="own@1").recipe["encoder"] == "desk/own@1"


def test_recipes_of_before_with_a_path(dataset_version: DatasetVersion, listed: Path, tmp_path: Path) -> None:
    """Taken where exactly that path is listed, else refused with what to do."""
    project = dataset_version.project
    for name, path in (("good", str(listed)), ("bad", str(tmp_path))):
        toml = f'backbone = "decoder"\ndecoder = "{path}"\n'
        Recipe.objects.create(project=project, name=name, toml=toml)
    run = services.start_run(project=project, dataset_version=dataset_version, recipe="good", by=None)
    assert run.recipe["decoder"] == "tiny"
    assert with_names({"decoder": str(listed)}) == {"decoder": "tiny"}
    with pytest.raises(DomainError, match="ask the operator to list"):
        services.start_run(project=project, dataset_version=dataset_version, recipe="bad", by=None)


def test_a_run_that_was_queued_before(dataset_version: DatasetVersion, listed: Path, tmp_path: Path) -> None:
    start(dataset_version)
    TrainingRun.objects.update(
        recipe=TrainingRun.objects.get().recipe | with_decoder(str(tmp_path / "artifacts"))
    )
    run = claim_next(TrainingRun)
    assert run is not None
    runner.execute(run)
    run.refresh_from_db()
    assert run.state == JobState.FAILED
    assert "have the operator add it to TOUCHSTONE_MODEL_DIRS" in run.error


def test_a_model_that_was_deleted_meanwhile(dataset_version: DatasetVersion) -> None:
    model = registered(dataset_version.project, "base")
    start(dataset_version, **with_decoder("base@1"))
    services.delete_model(model=model, by=None)
    run = claim_next(TrainingRun)
    assert run is not None
    runner.execute(run)
    run.refresh_from_db()
    assert run.state == JobState.FAILED and "is not an available decoder" in run.error


def test_an_imported_model_points_at_no_other_folder(project: Project, tmp_path: Path) -> None:
    folder = model_in(tmp_path / "given")
    manifest = {"schema_version": 1, "objective": "bradley_terry", "backbone": {"kind": "decoder"}}
    (folder / "touchstone.json").write_text(json.dumps(manifest))
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "/etc"}')
    with pytest.raises(DomainError, match=r"adapter_config\.json may not be part of a model"):
        import_model(project=project, folder=folder, name="given", by=None)
