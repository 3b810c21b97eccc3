"""How a trainer calls an endpoint: the lines to copy, for the page of the endpoint and for `quickstart`."""

from dataclasses import dataclass

from django.conf import settings

from apps.core.distributions import client_wheel_name

_EXAMPLE = '{"inputs": [{"prompt": "Where is my parcel?", "response": "It comes today."}]}'


@dataclass(frozen=True, slots=True)
class TrainerSnippet:
    """name: what the option `--trainer` calls it."""

    name: str
    title: str
    text: str


def client_install() -> str:
    """Of the client that this server gives out; at the address of the pages, which serve it."""
    return f"pip install {settings.PUBLIC_URL}/client/{client_wheel_name()}"


def trainer_snippets(endpoint: str, key: str) -> list[TrainerSnippet]:
    """key: an API key with the scope `reward`, or what stands for one."""
    url = settings.REWARDS_URL or settings.PUBLIC_URL
    install = f"# {client_install()}"
    compat = f"{url}/compat"
    bearer = f'-H "Authorization: Bearer {key}" -H "Content-Type: application/json"'
    return [
        TrainerSnippet(
            "curl",
            "curl",
            f"curl -s {url}/api/v1/rewards/{endpoint}/score \\\n  {bearer} \\\n  -d '{_EXAMPLE}'",
        ),
        TrainerSnippet(
            "python",
            "Python",
            f"{install}\nfrom touchstone_client import RewardClient\n\n"
            f'with RewardClient("{url}", "{endpoint}", "{key}") as client:\n'
            '    print(client.score([{"prompt": "Where is my parcel?", "response": "It comes today."}]).rewards)',
        ),
        TrainerSnippet(
            "trl",
            "TRL",
            f"{install}\nfrom touchstone_client import trl_reward\n\n"
            f'GRPOTrainer(..., reward_funcs=[trl_reward("{url}", "{endpoint}", "{key}")])',
        ),
        TrainerSnippet(
            "openrlhf", "OpenRLHF", f'--remote_rm_url "{compat}/openrlhf/{endpoint}/get_reward?key={key}"'
        ),
        TrainerSnippet(
            "verl",
            "verl (custom_reward_function)",
            f"{install}\nfrom touchstone_client import verl_compute_score\n\n"
            f'compute_score = verl_compute_score("{url}", "{endpoint}", "{key}")',
        ),
        TrainerSnippet(
            "vllm",
            "vLLM's protocol",
            f"curl -s {compat}/vllm/classify {bearer} \\\n"
            f'  -d \'{{"model": "{endpoint}", "input": "Where is my parcel? It comes today."}}\'',
        ),
        TrainerSnippet(
            "others",
            "Other protocols: SGLang, TEI, NeMo-Gym, slime, LLaMA-Factory",
            f'{compat}/sglang/classify                          {{"model": "{endpoint}", "text": [...]}}\n'
            f'{compat}/tei/{endpoint}/predict?key={key}          {{"inputs": [[...], ...]}}\n'
            f'{compat}/nemo-gym/{endpoint}/verify?key={key}      {{"responses_create_params", "response"}}\n'
            f'{compat}/slime/{endpoint}?key={key}                {{"prompt", "response", "label"}}\n'
            f'{compat}/llamafactory/{endpoint}?key={key}         {{"messages": [...]}}',
        ),
    ]


TRAINERS = ("curl", "python", "trl", "openrlhf", "verl", "vllm", "others")
