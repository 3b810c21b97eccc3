"""Forms of key nodes: one that proposes a pattern from a step, and one for every field."""

from typing import Any

import yaml
from django import forms

from apps.core.errors import DomainError
from apps.core.forms import add_widget_classes
from apps.key_nodes.proposals import StepProposal, quoted_expression
from workers.schema.key_nodes import LONGEST_EXPECTED, KeyNode, node_values

_NAME = 100
_CODE = {"rows": 3, "spellcheck": "false", "class": "mono"}


class StepNodeForm(forms.Form):
    """pattern: `call-0` (the first call), `url` or `text`. arguments: `0.1`, the second argument of the first call."""

    name = forms.CharField(required=False, max_length=_NAME)
    pattern = forms.CharField(max_length=20)
    arguments = forms.MultipleChoiceField(required=False)
    address = forms.CharField(required=False, max_length=1000)
    quote = forms.CharField(required=False, max_length=1000)
    expected = forms.CharField(required=False, max_length=LONGEST_EXPECTED)

    def __init__(self, data: Any, proposal: StepProposal, taken: set[str]) -> None:
        super().__init__(data)
        self.proposal, self.taken = proposal, taken
        arguments = self.fields["arguments"]
        assert isinstance(arguments, forms.MultipleChoiceField)
        arguments.choices = [
            (f"{call}.{place}", "")
            for call, each in enumerate(proposal.calls)
            for place in range(len(each.arguments))
        ]

    def node(self) -> dict[str, Any]:
        """As JSON. Raises DomainError."""
        data = self.cleaned_data
        if data["pattern"] == "url":
            node, name = self._by_address(data["address"].strip())
        elif data["pattern"] == "text":
            node, name = self._by_quote(data["quote"].strip())
        else:
            node, name = self._by_call(data["pattern"])
        if expected := data["expected"].strip():
            node["expected"] = expected
        return {"name": data["name"].strip() or self._free_name(name), **node}

    def _by_call(self, pattern: str) -> tuple[dict[str, Any], str]:
        number = pattern.removeprefix("call-")
        if not (number.isdecimal() and len(number) < 4 and int(number) < len(self.proposal.calls)):
            raise DomainError("Choose a call, an address or a text.", pointer="/pattern")
        call = self.proposal.calls[int(number)]
        chosen = [
            each
            for place, each in enumerate(call.arguments)
            if f"{number}.{place}" in self.cleaned_data["arguments"]
        ]
        node: dict[str, Any] = {"tools": [call.name], "when": [each.test for each in chosen]}
        return node, " ".join([call.name, *(each.text for each in chosen[:1])])

    def _by_address(self, address: str) -> tuple[dict[str, Any], str]:
        if not address:
            raise DomainError("Enter a part of the address.", pointer="/address")
        return {"url": quoted_expression(address)}, f"at {address}"

    def _by_quote(self, quote: str) -> tuple[dict[str, Any], str]:
        if not quote:
            raise DomainError("Enter a text of the step.", pointer="/quote")
        words = " ".join(quote.split())
        within = "said" if words in " ".join(self.proposal.said.split()) else "seen"
        return {"text": quoted_expression(quote), "within": within}, words

    def _free_name(self, name: str) -> str:
        name = " ".join(name.split())
        name = name if len(name) <= _NAME - 10 else f"{name[: _NAME - 10]}…"
        number = 1
        while (f"{name} ({number})" if number > 1 else name) in self.taken:
            number += 1
        return f"{name} ({number})" if number > 1 else name


class KeyNodeForm(forms.Form):
    """Every field of a node."""

    name = forms.CharField(max_length=_NAME)
    tools = forms.CharField(
        required=False,
        max_length=5000,
        label="Tool calls",
        help_text="Names of tools, with commas between; a * at the end stands for any ending.",
    )
    when = forms.CharField(
        required=False,
        label="Tests of their arguments",
        widget=forms.Textarea(attrs=_CODE),
        help_text="A YAML list, as in policy checks: - {path: order.id, one_of: [7]}, also at_least, at_most, none_of, "
        "matches and hosts.",
    )
    url = forms.CharField(
        required=False, max_length=2000, label="Address (RE2)", help_text="Found in the address of a page."
    )
    text = forms.CharField(
        required=False, max_length=2000, label="Text (RE2)", help_text="Found in the text of a step."
    )
    within = forms.ChoiceField(
        choices=[("seen", "Observations"), ("said", "What the agent wrote and called"), ("both", "Both")],
        required=False,
        label="Text is looked for in",
    )
    expected = forms.CharField(
        required=False,
        strip=False,
        max_length=LONGEST_EXPECTED,
        label="Expected observation",
        widget=forms.Textarea(attrs={**_CODE, "rows": 5}),
        help_text="Compared with what the step observed; it does not decide whether the node is reached.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        add_widget_classes(self)

    def clean_when(self) -> list[Any]:
        text = self.cleaned_data["when"]
        if len(text) > 20_000:
            raise forms.ValidationError("The tests have more than 20,000 characters.")
        if "&" in text and "*" in text:
            raise forms.ValidationError("Anchors and aliases of YAML are not read; write the values out.")
        try:
            found = yaml.safe_load(text) if text.strip() else []
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise forms.ValidationError(f"This is no YAML: {getattr(error, 'problem', error)}.") from None
        if not isinstance(found, list):
            raise forms.ValidationError("Tests are a list: each begins with `- path: ...`.")
        return found

    def node(self) -> dict[str, Any]:
        """As JSON; a service checks it."""
        data = self.cleaned_data
        node: dict[str, Any] = {"name": data["name"]}
        if tools := [name.strip() for name in data["tools"].split(",") if name.strip()]:
            node["tools"] = tools
        for key in ("when", "url", "text"):
            if data[key]:
                node[key] = data[key]
        if data["text"]:
            node["within"] = data["within"] or "seen"
        if data["expected"].strip():
            node["expected"] = data["expected"].replace("\r\n", "\n")
        return node


def node_initial(node: KeyNode) -> dict[str, Any]:
    values = node_values(node)
    tests = values.pop("when", [])
    return values | {
        "tools": ", ".join(node.tools),
        "when": yaml.safe_dump(tests, sort_keys=False, allow_unicode=True) if tests else "",
    }
