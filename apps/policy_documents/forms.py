"""Forms of policy documents and their rules."""

from typing import Any

from django import forms

from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.core.forms import add_domain_error, add_widget_classes
from apps.llm.models import LLMConnection
from apps.llm.selectors import list_llm_connections
from apps.policy_documents.models import PolicyRule
from apps.policy_documents.reading import read_upload
from workers.errors import RewardError
from workers.policy_rules.documents import PACKED_ENDINGS, TEXT_ENDINGS
from workers.schema.policy_checks import check_values, checks_text, convert_check, parse_checks


class DocumentForm(forms.Form):
    """A file or a text; `text_of` is what was read."""

    name = forms.CharField(
        max_length=200, help_text="A name that the project has already adds a version to that document."
    )
    file = forms.FileField(
        required=False,
        help_text="Markdown, HTML, plain text, PDF or DOCX.",
        widget=forms.FileInput(attrs={"accept": ",".join((*TEXT_ENDINGS, *PACKED_ENDINGS))}),
    )
    text = forms.CharField(
        required=False,
        strip=False,
        label="Or its text",
        widget=forms.Textarea(attrs={"rows": 10, "spellcheck": "false"}),
        help_text="Headings with #, list items with -, one rule in each sentence.",
    )
    llm_connection = forms.ModelChoiceField(
        LLMConnection.objects.none(),
        required=False,
        label="Rules listed by",
        empty_label="The structure of the document",
        help_text="A language model rewords rules so that each is understood alone; its quotes are checked.",
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        connections = self.fields["llm_connection"]
        assert isinstance(connections, forms.ModelChoiceField)
        connections.queryset = list_llm_connections(project)
        add_widget_classes(self)

    def clean(self) -> dict[str, Any]:
        data = super().clean() or self.cleaned_data
        file, text = data.get("file"), data.get("text", "")
        if bool(file) == bool(text.strip()):
            self.add_error("file" if file else "text", "Choose a file or enter a text, one of the two.")
        elif file:
            try:
                data["text"] = read_upload(file.name, file.read())
            except DomainError as error:
                add_domain_error(self, error)
        return data


class RuleForm(forms.Form):
    statement = forms.CharField(widget=forms.Textarea(attrs={"rows": 3}))
    category = forms.ChoiceField(choices=PolicyRule.Category.choices)
    severity = forms.ChoiceField(choices=PolicyRule.Severity.choices)
    scope = forms.CharField(required=False, max_length=300)
    preconditions = forms.CharField(
        required=False, widget=forms.Textarea(attrs={"rows": 2}), help_text="One on each line."
    )

    checks = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false"}),
        help_text="What the rule demands of tool calls, as YAML; see the page Policy documents of the documentation.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        add_widget_classes(self)

    def clean_checks(self) -> list[dict[str, Any]]:
        text = self.cleaned_data["checks"]
        try:
            return [check_values(check) for check in parse_checks(text)] if text.strip() else []
        except RewardError as error:
            raise forms.ValidationError(error.message) from None

    def clean_preconditions(self) -> list[str]:
        lines = self.cleaned_data["preconditions"].splitlines()
        return [line.strip() for line in lines if line.strip()]


def rule_values(rule: PolicyRule) -> dict[str, Any]:
    """What the form of a rule begins with."""
    names = ("statement", "category", "severity", "scope")
    return {name: getattr(rule, name) for name in names} | {
        "preconditions": "\n".join(rule.preconditions),
        "checks": checks_text([convert_check(row, place) for place, row in enumerate(rule.checks)]),
    }
