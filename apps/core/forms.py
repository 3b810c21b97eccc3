"""Widgets as the pages' styles expect them."""

from django import forms


def add_widget_classes(form: forms.BaseForm) -> None:
    """Give every widget its class, and mark those whose field has an error. Validates a form that is bound."""
    for name, field in form.fields.items():
        widget = field.widget
        if isinstance(widget, forms.CheckboxInput | forms.CheckboxSelectMultiple | forms.RadioSelect):
            css = "form-check-input"
        else:
            css = "form-select" if isinstance(widget, forms.Select) else "form-control"
        widget.attrs["class"] = f"{css} is-invalid" if form.is_bound and form.errors.get(name) else css
