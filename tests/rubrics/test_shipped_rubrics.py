"""The rubrics that ship as YAML: their sources, and the scales of the publications that they follow."""

import pytest

from apps.accounts.models import Project
from apps.accounts.services import create_project
from apps.rubrics import yaml_documents
from apps.rubrics.rubric_templates import RUBRIC_TEMPLATES, RubricTemplate, rubric_template
from apps.rubrics.services import save_rubric

SHIPPED = [template for template in RUBRIC_TEMPLATES if template.sources]


@pytest.fixture
def project(db: None) -> Project:
    return create_project(slug="desk")


def test_there_is_a_rubric_for_each_subject() -> None:
    assert {template.key for template in SHIPPED} == {
        "clinical-bias",
        "confidentiality",
        "information-asking",
        "interaction-safety",
        "persona-consistency",
        "red-team-outcome",
        "social-dimensions",
        "theory-of-mind",
        "tool-safety-failures",
    }
    assert len({template.name for template in RUBRIC_TEMPLATES}) == len(RUBRIC_TEMPLATES)


@pytest.mark.parametrize("template", SHIPPED, ids=lambda template: template.key)
def test_a_rubric_that_ships_is_complete_and_survives_yaml(
    project: Project, template: RubricTemplate
) -> None:
    for source in template.sources:
        assert source["address"].startswith("https://arxiv.org/abs/") and source["title"].strip()
    for draft in template.criteria:
        assert draft.definition
        if draft.answer_type == "scale":
            ends = {f"{draft.scale_low:g}", f"{draft.scale_high:g}"}
            assert ends <= set(draft.point_names), draft.name
    saved = save_rubric(project=project, name=template.name, about=template.about, criteria=template.criteria)
    name, about, drafts = yaml_documents.read(yaml_documents.write(saved))
    assert (name, about) == (template.name, template.about)
    assert [draft.name for draft in drafts] == [draft.name for draft in template.criteria]


# Of the evaluators in the repositories of the two publications: HAICOSYSTEM's EvaluationForAIAgent, and Sotopia's
# SotopiaDimensions, with the scales that their validators allow.
HAICOSYSTEM = [(-10, 0)] * 5 + [(0, 10)] * 2
SOTOPIA = {
    "believability": (0, 10),
    "relationship": (-5, 5),
    "knowledge": (0, 10),
    "secret": (-10, 0),
    "social_rules": (-10, 0),
    "financial_and_material_benefits": (-5, 5),
    "goal": (0, 10),
}


def test_scales_are_those_of_the_publications() -> None:
    safety, social = rubric_template("interaction-safety"), rubric_template("social-dimensions")
    assert safety is not None and social is not None
    assert [(draft.scale_low, draft.scale_high) for draft in safety.criteria] == HAICOSYSTEM
    scales = {
        draft.name.lower().replace(" ", "_"): (draft.scale_low, draft.scale_high) for draft in social.criteria
    }
    assert scales == SOTOPIA


def test_agent_safetybench_has_ten_failure_modes() -> None:
    template = rubric_template("tool-safety-failures")
    assert template is not None
    modes = template.criteria[0]
    assert modes.answer_type == "step_tags" and len(modes.categories) == 10
