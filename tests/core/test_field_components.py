"""How form fields are rendered: boxes stand under each other, with their labels, help and errors."""

import pytest
from django import forms
from django.template.loader import render_to_string

BOXES = forms.CheckboxSelectMultiple(attrs={"class": "form-check-input"})


class ExampleForm(forms.Form):
    boxes = forms.MultipleChoiceField(
        label="Boxes",
        choices=[("x", "First"), ("y", "Second")],
        widget=BOXES,
        help_text="As many as you like.",
    )
    name = forms.CharField(label="Name", help_text="A short one.", required=False)
    saved = forms.BooleanField(label="Save", help_text="For later.", required=False)


@pytest.mark.parametrize("template", ["components/_field.html", "components/_choices.html"])
def test_boxes_have_labels_help_and_errors_and_no_box_around_them(template: str) -> None:
    """Django's own list has the class of a box on its container, which is then as small as a box."""
    html = render_to_string(template, {"field": ExampleForm({})["boxes"]})
    assert html.count('<div class="form-check">') == html.count('type="checkbox"') == 2
    assert html.count("form-check-input") == 2
    assert 'aria-describedby="id_boxes_helptext"' in html
    assert 'id="id_boxes_helptext">As many as you like.' in html
    assert "This field is required." in html


def test_a_field_has_its_label_and_help() -> None:
    html = render_to_string("components/_field.html", {"field": ExampleForm()["name"]})
    assert '<label class="form-label" for="id_name">' in html and "optional" in html
    assert 'id="id_name_helptext">A short one.' in html and "fieldset" not in html


def test_a_single_box_stands_before_its_label_and_is_not_called_optional() -> None:
    html = render_to_string("components/_field.html", {"field": ExampleForm({})["saved"]})
    assert html.index('type="checkbox"') < html.index("Save</label>")
    assert 'aria-describedby="id_saved_helptext"' in html and 'id="id_saved_helptext">For later.' in html
    assert "optional" not in html
