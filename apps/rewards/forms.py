"""Forms of endpoints."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.urls import reverse

from apps.accounts.models import Project
from apps.core.forms import add_widget_classes
from apps.rewards.models import Endpoint, EndpointRevision
from apps.rewards.redaction import KINDS, parse_redaction
from apps.rewards.releases import MIN_PAIRS, ReleaseRules
from apps.rewards.selectors import revisions_of
from apps.rewards.services import CANARY_SHARE, MOST_SAMPLE_DAYS, MOST_SAMPLES, ReleaseOptions
from apps.training.models import RewardModel
from apps.training.selectors import models_of
from workers.errors import RewardError
from workers.schema import parse_json
from workers.schema.decode import require_object

_RULES = ReleaseRules()


_MORE_FLAGS = (
    "Where both revisions flag 10 % of items, 5 % needs about 800 items, 2 % about 5,000, 1 % more than 20,000; where "
    "they flag 30 %, about three times as many. 0: none more may be seen."
)


def _percent(label: str, share: float, help_text: str = "") -> forms.FloatField:
    return forms.FloatField(
        label=f"{label}, in per cent",
        min_value=0,
        max_value=100,
        initial=round(100 * share, 6),
        help_text=help_text,
    )


def _revision_label(revision: EndpointRevision) -> str:
    parts = revision.spec["components"]
    return f"{revision.number}: {', '.join(part.get('model') or part.get('judge') or part['type'] for part in parts)}"


class DeployForm(forms.Form):
    model: "forms.ModelChoiceField[RewardModel]" = forms.ModelChoiceField(
        None, label="Model", empty_label=None
    )
    endpoint = forms.SlugField(
        max_length=60,
        help_text="A new name creates an endpoint. An existing endpoint gets a new revision: the model replaces its "
        "model, and its other components, transforms and policy template stay.",
    )
    stage = forms.ChoiceField(
        label="Release",
        choices=[
            ("", "Immediately"),
            ("shadow", "Shadow first: it scores requests, the active revision answers them"),
            ("canary", "Canary first: it answers 10 % of the policy runs"),
            ("standby", "Standby: it is loaded and kept warm until you promote it"),
        ],
        required=False,
        widget=forms.RadioSelect,
        initial="",
    )
    transform = forms.ChoiceField(
        label="Transform after normalising",
        choices=[
            ("", "As in the active revision; none on a new endpoint"),
            ("none", "None"),
            ("clip", "clip: min(reward - eta, 0)"),
            ("squash", "squash: into [-scale, scale]"),
        ],
        required=False,
    )
    amount = forms.FloatField(
        label="Parameter: eta of clip, scale of squash",
        required=False,
        help_text="In standard deviations of the training rewards. Leave empty for the default.",
    )

    reason = forms.CharField(
        label="Reason to deploy it all the same",
        max_length=2000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Required where a check failed. It is kept with the revision and in the audit trail.",
    )

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        models: Any = self.fields["model"]
        models.queryset = models_of(project)
        add_widget_classes(self)
        shown = {
            "hx-get": reverse("rewards:endpoint-deploy", args=[project.slug]),
            "hx-include": "#id_model, #id_endpoint",
            "hx-trigger": "change",
            "hx-target": "#evidence",
            "hx-select": "#evidence",
            "hx-swap": "outerHTML",
        }
        self.fields["model"].widget.attrs |= shown
        self.fields["endpoint"].widget.attrs |= shown

    def release_options(self) -> ReleaseOptions | None:
        stage = self.cleaned_data["stage"]
        return ReleaseOptions(stage, CANARY_SHARE) if stage else None

    def transforms(self) -> list[dict[str, Any]] | None:
        """None: those of the active revision. The service checks the amount."""
        kind, amount = self.cleaned_data["transform"], self.cleaned_data["amount"]
        if kind in ("", "none"):
            return [] if kind else None
        name = {"clip": "eta", "squash": "scale"}[kind]
        return [{"type": kind} | ({} if amount is None else {name: amount})]


class ComposeForm(forms.Form):
    """A spec, as JSON."""

    endpoint = forms.SlugField(
        max_length=60, help_text="A new name creates an endpoint; an existing endpoint gets a new revision."
    )
    spec = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 18, "spellcheck": "false"}),
        help_text="Components, transforms and policy_template, as JSON. Without policy_template, that of the active "
        "revision stays; null removes it.",
    )
    reason = forms.CharField(
        label="Reason to deploy it although a check failed",
        max_length=2000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Only for a model that is no better than chance or fails another check; kept in the audit trail.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        add_widget_classes(self)
        self.fields["spec"].widget.attrs["class"] += " mono"

    def clean_spec(self) -> dict[str, Any]:
        try:
            return require_object(parse_json(self.cleaned_data["spec"]))
        except RewardError as error:
            raise ValidationError(error.message) from None


class TryForm(forms.Form):
    """A prompt and a response, or any input as JSON."""

    prompt = forms.CharField(required=False, widget=forms.Textarea(attrs={"rows": 2}), strip=False)
    response = forms.CharField(required=False, widget=forms.Textarea(attrs={"rows": 4}), strip=False)
    item = forms.CharField(
        label="Input, as JSON",
        required=False,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "placeholder": '{"messages": [...]}'}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        add_widget_classes(self)

    def clean_item(self) -> dict[str, Any] | None:
        text = self.cleaned_data["item"].strip()
        if not text:
            return None
        try:
            return require_object(parse_json(text))
        except RewardError as error:
            raise ValidationError(error.message) from None

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if not self.errors and data["item"] is None and not data["response"]:
            self.add_error("response", "Enter a response, or an input as JSON.")
        return data

    def to_item(self) -> dict[str, Any]:
        data = self.cleaned_data
        item: dict[str, Any] = data["item"] or {"prompt": data["prompt"], "response": data["response"]}
        return item


class ReleaseForm(forms.Form):
    """Shares are in per cent."""

    revision: "forms.ModelChoiceField[EndpointRevision]" = forms.ModelChoiceField(
        None, to_field_name="number", empty_label=None
    )
    stage = forms.ChoiceField(
        label="Stage",
        choices=[
            ("shadow", "Shadow: it scores what the active revision answers; callers do not see its rewards"),
            ("canary", "Canary: it answers a share of the policy runs, groups or prompts"),
        ],
        widget=forms.RadioSelect,
        initial="shadow",
    )
    share = forms.FloatField(label="Canary share, in per cent", initial=10, required=False)
    automatic = forms.ChoiceField(
        label="Decision",
        choices=[
            ("", "Manual: you promote it or roll it back"),
            ("yes", "Automatic: the rules advance it from shadow to canary to promotion, or roll it back"),
        ],
        widget=forms.RadioSelect,
        required=False,
        initial="",
    )
    pairs = forms.IntegerField(
        min_value=MIN_PAIRS,
        initial=_RULES.pairs,
        label="Minimum items",
        help_text="Items scored by both revisions before a decision. The smaller a limit, the more items it takes to "
        "show that it is met; what is still unclear after 50 times this number, at least 10,000, is rolled back.",
    )
    failed = _percent(
        "Maximum failures",
        _RULES.failed,
        "Without failures, 1 % needs about 700 items and 0.1 % about 8,000. 0: none may be seen.",
    )
    uncertain = _percent("Maximum increase of uncertain items", _RULES.uncertain, _MORE_FLAGS)
    out_of_distribution = _percent(
        "Maximum increase of items out of distribution", _RULES.out_of_distribution, _MORE_FLAGS
    )
    length = _percent(
        "Maximum change of the correlation with length",
        _RULES.length,
        "Correlation of the reward with the logarithm of tokens (100 % is 1): how far it may be beyond the range from "
        "0 to that of the active revision, in either direction. 10 % needs about 1,000 items, 5 % about 4,000, "
        "3 % more than 10,000. 0: nothing beyond the range may be seen.",
    )
    agreement = forms.FloatField(
        label="Minimum agreement",
        min_value=-1,
        max_value=1,
        initial=_RULES.agreement,
        help_text="Correlation of its rewards with those of the active revision, from -1 to 1.",
    )

    reason = forms.CharField(
        label="Reason to release it all the same",
        max_length=2000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Required for a canary or an automatic release where a check of the model failed.",
    )

    def __init__(self, endpoint: Endpoint, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        revisions: Any = self.fields["revision"]
        revisions.queryset = revisions_of(endpoint).exclude(pk=endpoint.active_id or 0)
        revisions.label_from_instance = _revision_label
        add_widget_classes(self)

    def rule_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in ReleaseRules.__struct_fields__]

    def release_options(self) -> ReleaseOptions:
        data = self.cleaned_data
        shares = ("failed", "uncertain", "out_of_distribution", "length")
        rules = {name: data[name] / 100 for name in shares}
        rules |= {"pairs": data["pairs"], "agreement": data["agreement"]}
        return ReleaseOptions(data["stage"], (data["share"] or 0.0) / 100, rules, bool(data["automatic"]))


class SamplesForm(forms.Form):
    share = forms.FloatField(
        label="Sampled share of items, in per cent",
        min_value=0,
        max_value=100,
        help_text="0 turns sampling off and deletes all samples. All answers to one prompt are sampled together.",
    )
    days = forms.IntegerField(label="Retention, in days", min_value=1, max_value=MOST_SAMPLE_DAYS)
    most = forms.IntegerField(label="Maximum samples", min_value=1, max_value=MOST_SAMPLES)
    redacts = forms.MultipleChoiceField(
        label="Redacted before storing",
        choices=[(name, kind.label) for name, kind in KINDS.items()],
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    patterns = forms.CharField(
        label="Custom redaction patterns",
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text="One regular expression (RE2) per line.",
    )

    def __init__(self, endpoint: Endpoint, data: Any = None) -> None:
        initial = {
            "share": round(100 * endpoint.sample_share, 6),
            "days": endpoint.sample_days,
            "most": endpoint.sample_most,
            "redacts": endpoint.sample_redacts if endpoint.sample_share else list(KINDS),
            "patterns": "\n".join(endpoint.sample_patterns),
        }
        super().__init__(data, initial=initial)
        add_widget_classes(self)
        self.fields["patterns"].widget.attrs["class"] += " mono"

    def clean_patterns(self) -> list[str]:
        lines = [line.strip() for line in self.cleaned_data["patterns"].splitlines()]
        try:
            return list(parse_redaction((), [line for line in lines if line]).patterns)
        except RewardError as error:
            raise ValidationError(error.message) from None

    def settings(self) -> dict[str, Any]:
        """As `keep_samples` takes them."""
        return self.cleaned_data | {"share": self.cleaned_data["share"] / 100}


class SwitchForm(forms.Form):
    reason = forms.CharField(max_length=500, help_text="Shown to API callers.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        add_widget_classes(self)


class ReplicaForm(forms.Form):
    """A replica of a server that computes models. The key is never shown again."""

    server = forms.SlugField(
        max_length=60,
        help_text="The name that a component of an endpoint gives as `server`. A new name creates a server.",
    )
    address = forms.CharField(
        max_length=500,
        help_text="http://host:port of a vLLM or SGLang server. With dns+ in front, every address of the name is a "
        "replica.",
        widget=forms.TextInput(attrs={"placeholder": "http://gpu1.example.org:8000"}),
    )
    key = forms.CharField(
        required=False,
        max_length=2000,
        label="API key",
        help_text="Stored encrypted and never shown again. Leave empty if the server needs none.",
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        add_widget_classes(self)
