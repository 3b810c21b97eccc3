"""Widgets as the pages' styles expect them."""

from django import forms

from apps.core.errors import DomainError


def add_widget_classes(form: forms.BaseForm) -> None:
    """Give every widget its class, and mark those whose field has an error. Validates a form that is bound."""
    for name, field in form.fields.items():
        widget = field.widget
        if isinstance(widget, forms.CheckboxInput | forms.CheckboxSelectMultiple | forms.RadioSelect):
            css = "form-check-input"
        else:
            css = "form-select" if isinstance(widget, forms.Select) else "form-control"
        widget.attrs["class"] = f"{css} is-invalid" if form.is_bound and form.errors.get(name) else css


def add_domain_error(
    form: forms.BaseForm, error: DomainError, *, field: str | None = None, more: str = ""
) -> None:
    """Put what a service refused to where the mistake is: to the field that its pointer names, to the whole form where
    it names none of its fields. field: in place of the pointer. more: put after the message."""
    name = (error.pointer or "").removeprefix("/") if field is None else field
    form.add_error(name if name in form.fields else None, error.message + more)
