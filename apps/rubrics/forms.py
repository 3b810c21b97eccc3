"""The editor: the rubric's name, and a row of fields for each criterion."""

from collections.abc import Mapping
from typing import Any

from django import forms

from apps.core.number_parsing import whole_number
from apps.rubrics.models import Criterion
from apps.rubrics.services import CriterionDraft
from apps.rubrics.yaml_documents import plain

_TEXT = {"class": "form-control"}


class RubricForm(forms.Form):
    name = forms.CharField(max_length=200, widget=forms.TextInput(attrs=_TEXT))
    about = forms.CharField(required=False, widget=forms.Textarea(attrs=_TEXT | {"rows": 2}), label="Purpose")


class CriterionForm(forms.Form):
    name = forms.CharField(max_length=200, widget=forms.TextInput(attrs=_TEXT))
    definition = forms.CharField(required=False, widget=forms.Textarea(attrs=_TEXT | {"rows": 2}))
    answer_type = forms.ChoiceField(
        label="Type of answers",
        choices=Criterion.AnswerType.choices,
        initial=Criterion.AnswerType.SCALE,
        required=False,
        widget=forms.Select(attrs={"class": "form-select"}),
        help_text="Tags on agent steps are for failure taxonomies: which kind of failure is in which step.",
    )
    categories = forms.CharField(
        required=False,
        widget=forms.Textarea(
            attrs=_TEXT | {"rows": 3, "placeholder": "wrong tool: calls a tool that cannot help"}
        ),
        help_text="One on each line; a definition after a colon. Empty for a scale.",
    )
    scale_low = forms.FloatField(label="Lowest score", initial=1, widget=forms.NumberInput(attrs=_TEXT))
    scale_high = forms.FloatField(label="Highest score", initial=5, widget=forms.NumberInput(attrs=_TEXT))
    points = forms.CharField(
        required=False,
        label="Names of scores",
        widget=forms.Textarea(attrs=_TEXT | {"rows": 2, "placeholder": "1 = Never asks\n5 = Always asks"}),
        help_text="One score a line; annotators see the name on the button.",
    )
    good_example = forms.CharField(
        required=False, label="Good example", widget=forms.Textarea(attrs=_TEXT | {"rows": 1})
    )
    bad_example = forms.CharField(
        required=False, label="Bad example", widget=forms.Textarea(attrs=_TEXT | {"rows": 1})
    )
    weight = forms.FloatField(initial=1, widget=forms.NumberInput(attrs=_TEXT | {"step": "any"}))
    rank = forms.IntegerField(
        initial=1, min_value=1, help_text="1 is the most important.", widget=forms.NumberInput(attrs=_TEXT)
    )

    def has_changed(self) -> bool:
        """Whether anything is written: a type and a scale alone are no criterion."""
        words = ("name", "definition", "categories", "points", "good_example", "bad_example")
        return super().has_changed() and any(self[name].value() for name in words)

    def clean_points(self) -> dict[str, str]:
        names: dict[str, str] = {}
        for line in self.cleaned_data["points"].splitlines():
            point, equals, name = (part.strip() for part in line.partition("="))
            if not line.strip():
                continue
            if not equals or not name:
                raise forms.ValidationError(
                    f"Write “{line.strip()}” as a score and its name, such as 1 = Never asks."
                )
            names[point] = name
        return names

    def draft(self) -> CriterionDraft:
        own = ("points", "categories", "answer_type")
        values = {name: self.cleaned_data[name] for name in CriterionForm.base_fields if name not in own}
        return CriterionDraft(
            answer_type=self.cleaned_data["answer_type"] or Criterion.AnswerType.SCALE,
            categories=category_lines(self.cleaned_data["categories"]),
            point_names=self.cleaned_data["points"],
            **values,
        )

    def written(self) -> dict[str, Any]:
        """The values of the fields as they were sent, valid or not."""
        return {name: self[name].value() for name in CriterionForm.base_fields}


def category_lines(text: str) -> list[dict[str, str]]:
    """Categories from lines of `name` or `name: definition`."""
    pairs = (line.partition(":") for line in text.splitlines() if line.strip())
    return [{"name": name.strip(), "definition": definition.strip()} for name, _, definition in pairs]


def form_values(draft: CriterionDraft) -> dict[str, Any]:
    """A criterion as the initial values of its form."""
    lines = [
        f"{each['name']}: {each['definition']}" if each["definition"] else each["name"]
        for each in draft.categories
    ]
    values = {name: plain(getattr(draft, name)) for name in CriterionForm.base_fields if name != "points"}
    points = "\n".join(f"{point} = {name}" for point, name in draft.point_names.items())
    return values | {"categories": "\n".join(lines), "points": points}


class _Criteria(forms.BaseFormSet):
    def drafts(self) -> list[CriterionDraft]:
        """In the order of the page, without empty ones."""
        known = self.initial_form_count()
        kept = [form for place, form in enumerate(self.forms) if place < known or form.has_changed()]
        return [form.draft() for form in kept]

    def written(self) -> list[dict[str, Any]]:
        """The criteria as they were sent, valid or not, without those that have no name and no definition."""
        rows = [form.written() for form in self.forms]
        return [row if row["name"] or row["definition"] else {} for row in rows]


def criteria_forms(
    data: Any = None, rows: list[dict[str, Any]] | None = None, *, extra: int = 1
) -> _Criteria:
    made = forms.formset_factory(CriterionForm, formset=_Criteria, extra=extra, max_num=30)
    return made(data, initial=rows or [], prefix="criteria")  # type: ignore[return-value]


def rearranged(rows: list[dict[str, Any]], action: Mapping[str, str]) -> tuple[list[dict[str, Any]], int]:
    """The criteria after `add`, `remove`, `up` or `down` (the place of one), and how many empty ones follow."""
    order = list(rows)
    for name in ("remove", "up", "down"):
        place = action.get(name, "")
        if (number := whole_number(place)) is None or number >= len(order):
            continue
        row = order.pop(int(place))
        if name != "remove":
            order.insert(max(0, int(place) + (-1 if name == "up" else 1)), row)
    order = [row for row in order if row]
    return order, int("add" in action or not order)


class YamlForm(forms.Form):
    text = forms.CharField(
        label="YAML",
        widget=forms.Textarea(
            attrs=_TEXT | {"rows": 10, "class": "form-control mono", "spellcheck": "false"}
        ),
        help_text=(
            "Keys: name, about, criteria. Keys of a criterion: name, definition, scale with points or answers with "
            "categories, good, bad, weight, rank."
        ),
    )
