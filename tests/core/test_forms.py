"""Errors of services on the fields of a form."""

import pytest
from django import forms

from apps.core.errors import DomainError
from apps.core.forms import add_domain_error


class OrderForm(forms.Form):
    name = forms.CharField(required=False)
    expires = forms.CharField(required=False)


@pytest.mark.parametrize(
    ("pointer", "field", "where"),
    [
        ("/name", None, "name"),
        ("/unknown", None, "__all__"),
        ("/name/0/text", None, "__all__"),
        (None, None, "__all__"),
        ("", None, "__all__"),
        ("/expires_at", "expires", "expires"),
    ],
)
def test_an_error_stands_where_its_pointer_says_or_over_the_form(pointer, field, where) -> None:
    form = OrderForm({})
    assert form.is_valid()
    add_domain_error(form, DomainError("It is taken.", pointer=pointer), field=field, more=" Choose another.")
    assert form.errors == {where: ["It is taken. Choose another."]}
