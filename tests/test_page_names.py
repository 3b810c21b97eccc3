"""Settings, links, options and packages that README, docs and other Markdown name are there."""

import pytest

from tests.page_names import ROOT, command_faults, link_faults, markdown_files, variable_faults

FILES = markdown_files()


@pytest.mark.parametrize("page", FILES)
def test_settings_and_variables_are_there(page: str) -> None:
    assert list(variable_faults((ROOT / page).read_text())) == []


@pytest.mark.parametrize("page", FILES)
def test_files_and_headings_that_links_lead_to_are_there(page: str) -> None:
    assert list(link_faults(page, (ROOT / page).read_text())) == []


@pytest.mark.parametrize("page", FILES)
def test_options_and_packages_in_prose_are_there(page: str) -> None:
    assert list(command_faults((ROOT / page).read_text())) == []


@pytest.mark.parametrize(
    ("markdown", "fault"),
    [
        ("Set TOUCHSTONE_NOTHING.", "no setting TOUCHSTONE_NOTHING"),
        ("| `TOUCHSTONE_REWARDS_DEVISE` | cpu |", "no setting TOUCHSTONE_REWARDS_DEVISE"),
        ("```\nTOUCHSTONE_TRUSTED_PROXY=127.0.0.1\n```\n", "no setting TOUCHSTONE_TRUSTED_PROXY"),
        ("Set `DATABASE_ADDRESS=postgresql://...`.", "variable DATABASE_ADDRESS"),
        (
            "```sh\nMLFLOW_TRACKING_ADDRESS=x m train support --dataset first\n```\n",
            "MLFLOW_TRACKING_ADDRESS",
        ),
    ],
)
def test_a_planted_variable_is_found(markdown: str, fault: str) -> None:
    assert [found for found in variable_faults(markdown) if fault in found]


@pytest.mark.parametrize(
    ("markdown", "fault"),
    [
        ("See [it](docs/nothing.md).", "docs/nothing.md, which is not there"),
        ("See [it](docs/rewards.md#nothing).", "no heading has this anchor"),
        ("# Title\n\nSee [below](#nothing).", "#nothing: no heading"),
        ("![A picture](docs/images/nothing.png)", "nothing.png, which is not there"),
    ],
)
def test_a_planted_link_is_found(markdown: str, fault: str) -> None:
    assert [found for found in link_faults("README.md", markdown) if fault in found]


@pytest.mark.parametrize(
    ("markdown", "fault"),
    [
        ("`manage.py train support --datset first` trains.", "`manage.py train` has no option --datset"),
        ("`.venv/bin/python manage.py up --prot 80`", "no option --prot"),
        ("`touchstone freeze first --wiat`", "`touchstone freeze` has no option --wiat"),
        ("`pip install touchstone-client`", "is no package"),
        ("`pip install 'torhc==2.9'`", "torhc==2.9 is no package"),
    ],
)
def test_a_planted_option_or_package_is_found(markdown: str, fault: str) -> None:
    assert [found for found in command_faults(markdown) if fault in found]


def test_what_is_right_is_no_fault() -> None:
    text = "# Title\n\n`manage.py train support --dataset first [--wait]`, [here](#title), `TOUCHSTONE_HOME`."
    assert [*variable_faults(text), *command_faults(text), *link_faults("README.md", text)] == []
