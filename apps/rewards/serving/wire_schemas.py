"""Requests and replies of the trainers' protocols (wire/), for the OpenAPI document, which the web process shows too:
it loads none of what scoring needs. tests/rewards/test_wire_schemas.py holds them against the parsers and the replies.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from annotated_types import MinLen
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from workers.schema.jsonschemas import MESSAGE

Json = dict[str, Any]
Message = Annotated[Json, WithJsonSchema(MESSAGE)]
Text = str | Annotated[list[Message], MinLen(1)]
Texts = str | Annotated[list[str], MinLen(1)]
TokenIds = Annotated[list[int], MinLen(1)]
Flags = Annotated[list[str] | None, Field(default=None, description="left out where there are none")]


class PeerRequest(BaseModel):
    """Of a trainer's client. Keys that are not described are ignored: clients send settings meant for other servers."""

    model_config = ConfigDict(extra="allow")

    run: str | int | None = Field(None, description="the policy run; or the header X-Touchstone-Run")
    policy_version: str | int | None = Field(None, description="or the header X-Touchstone-Policy")
    version: int | None = Field(
        None, description="the endpoint's version that must answer; or X-Touchstone-Version"
    )
    reference: Any = Field(None, description="a reference answer, for all inputs; or a list of one for each")
    goal: Any = Field(None, description="for models that read goals; for all inputs, or one for each")
    principle: Any = Field(None, description="for models that read principles, as `goal`")
    persona: Any = Field(None, description="for models that read personas, as `goal`")


class PeerReply(BaseModel):
    model_config = ConfigDict(extra="forbid")


class OpenRlhfRequest(PeerRequest):
    query: Texts = Field(description="prompts with their responses")
    prompts: str | list[str] = Field([], description="one for each query; an empty prompt scores it as text")
    labels: Any = Field(
        None,
        description="one for each query: reference answers, or objects with keys such as `reference` and `goal`",
    )


class OpenRlhfReply(PeerReply):
    rewards: list[float]
    scores: list[float] = Field(description="logistic of the rewards")
    extra_logs: dict[str, list[float]]


class VllmRequest(PeerRequest):
    model: Annotated[str, MinLen(1)] = Field(description="the endpoint; of a path, its last part")
    use_activation: bool | None = Field(None, description="true for the logistic of the rewards")
    activation: bool | None = Field(None, description="older name of use_activation")
    encoding_format: str = "float"


class VllmInputRequest(VllmRequest):
    """`input` or `messages`."""

    input: Texts | TokenIds | list[TokenIds] | None = None
    messages: list[Message] | None = None
    tools: list[Annotated[Json, Field(description="a tool's definition")]] | None = None


class TextObject(BaseModel):
    model_config = ConfigDict(extra="allow")

    text: str


Side = str | TextObject | Annotated[list[str | TextObject], MinLen(1)]


class VllmPairsRequest(VllmRequest):
    """Two sides: text_1 and text_2, queries and documents, queries and items, or data_1 and data_2."""

    text_1: Side | None = None
    text_2: Side | None = None
    queries: Side | None = None
    documents: Side | None = None
    items: Side | None = None
    data_1: Side | None = None
    data_2: Side | None = None


class VllmRerankRequest(VllmRequest):
    query: str
    documents: Side
    top_n: int = Field(0, ge=0, description="0 for all")


class VllmUsage(PeerReply):
    prompt_tokens: int
    total_tokens: int
    completion_tokens: int


class VllmReply(PeerReply):
    id: str
    object: str
    created: int
    model: str
    usage: VllmUsage


class VllmClass(PeerReply):
    index: int
    label: str
    probs: list[float] = Field(description="the reward")
    num_classes: int
    flags: Flags


class VllmClassifyReply(VllmReply):
    data: list[VllmClass]


class VllmPool(PeerReply):
    index: int
    object: str
    data: list[list[float]] = Field(description="a row for the item, or for each agent step")
    flags: Flags


class VllmPoolingReply(VllmReply):
    data: list[VllmPool]


class VllmEmbedding(PeerReply):
    object: str
    index: int
    embedding: list[float] | str = Field(
        description="the reward; base64 of little-endian float32 where asked for"
    )
    flags: Flags


class VllmEmbeddingsReply(VllmReply):
    data: list[VllmEmbedding]


class VllmScore(PeerReply):
    index: int
    object: str
    score: float
    flags: Flags


class VllmScoreReply(VllmReply):
    data: list[VllmScore]


class VllmRerankUsage(PeerReply):
    prompt_tokens: int
    total_tokens: int


class VllmDocument(PeerReply):
    text: str


class VllmRank(PeerReply):
    index: int
    document: VllmDocument
    relevance_score: float
    flags: Flags


class VllmRerankReply(PeerReply):
    id: str
    model: str
    usage: VllmRerankUsage
    results: list[VllmRank] = Field(description="best first")


class SglangRequest(PeerRequest):
    """`text` or `input_ids`. A list of two texts within the list is a prompt and its response."""

    model: Annotated[str, MinLen(1)] = Field(description="the endpoint")
    text: str | Annotated[list[str | list[str]], MinLen(1)] | None = None
    input_ids: TokenIds | list[TokenIds] | None = None


class SglangMeta(PeerReply):
    id: str
    finish_reason: None
    prompt_tokens: int
    cached_tokens: int
    e2e_latency: float
    flags: Flags


class SglangResult(PeerReply):
    embedding: list[float] = Field(description="the reward")
    meta_info: SglangMeta


class TeiRequest(PeerRequest):
    model: str | None = Field(None, description="the endpoint, where the address does not name it")
    truncate: bool | None = Field(None, description="false: what is too long is refused")
    raw_scores: bool | None = Field(None, description="false: the logistic of the rewards")


class TeiPredictRequest(TeiRequest):
    inputs: str | Annotated[list[str | list[str]], MinLen(1)] = Field(
        description='a text, a pair ["prompt", "response"], or a batch of lists of these'
    )


class TeiRerankRequest(TeiRequest):
    query: str
    texts: Annotated[list[str], MinLen(1)]
    return_text: bool | None = None


class TeiPrediction(PeerReply):
    score: float
    label: str
    flags: Flags


class TeiRank(PeerReply):
    index: int
    score: float
    text: str | None = Field(None, description="left out where it was not asked for")
    flags: Flags


class NemoGymRequest(PeerRequest):
    """The row of the data set, and the response."""

    verifier_metadata: Any = Field(None, description="an object may have `reference`, `goal` and so on")
    expected_answer: Any = Field(None, description="the reference answer of a row without `reference`")
    responses_create_params: Json = Field(
        description="of OpenAI's Responses API: `input`, `instructions`, `tools`"
    )
    response: Json = Field(description="of OpenAI's Responses API: `output`")


class NemoGymReply(NemoGymRequest):
    """What was sent, and the reward."""

    reward: float
    reward_components: dict[str, float] = Field(description="their sum is the reward")


class SlimeRequest(PeerRequest):
    prompt: Text
    response: Text
    label: Any = Field(
        None, description="a reference answer, or an object with keys such as `reference` and `goal`"
    )


class LlamaFactoryRequest(PeerRequest):
    messages: Texts = Field(description="conversations as texts")


class LlamaFactoryReply(PeerReply):
    scores: list[float]


@dataclass(frozen=True, slots=True)
class WireSchema:
    """name: the operation's id. request, reply: types that pydantic describes."""

    name: str
    summary: str
    request: Any
    reply: Any


def _vllm() -> dict[str, WireSchema]:
    pairs, rerank = ("score", "v1/score"), ("rerank", "v1/rerank", "v2/rerank")
    found = {
        "classify": WireSchema("vllm_classify", "vLLM: classify", VllmInputRequest, VllmClassifyReply),
        "pooling": WireSchema("vllm_pooling", "vLLM: pooling", VllmInputRequest, VllmPoolingReply),
        "v1/embeddings": WireSchema(
            "vllm_embeddings", "OpenAI: embeddings", VllmInputRequest, VllmEmbeddingsReply
        ),
    }
    for path in pairs:
        found[path] = WireSchema(_name("vllm", path), "vLLM: score", VllmPairsRequest, VllmScoreReply)
    for path in rerank:
        found[path] = WireSchema(_name("vllm", path), "vLLM: rerank", VllmRerankRequest, VllmRerankReply)
    return {f"/compat/vllm/{path}": schema for path, schema in found.items()}


def _tei() -> dict[str, WireSchema]:
    calls = {
        "predict": (TeiPredictRequest, list[TeiPrediction] | list[list[TeiPrediction]]),
        "rerank": (TeiRerankRequest, list[TeiRank]),
    }
    return {
        f"/compat/tei{place}/{call}": WireSchema(
            f"tei_{call}" if place else f"tei_{call}_by_model",
            f"Text Embeddings Inference: {call}",
            request,
            reply,
        )
        for place in ("/{endpoint}", "")
        for call, (request, reply) in calls.items()
    }


def _name(server: str, path: str) -> str:
    return f"{server}_{path.replace('/', '_')}"


class ModerationText(BaseModel):
    model_config = ConfigDict(extra="allow")

    type: Literal["text"]
    text: str


class ModerationRequest(PeerRequest):
    model: Annotated[str, MinLen(1)] = Field(description="the endpoint; of a path, its last part")
    input: str | Annotated[list[str | ModerationText], MinLen(1)] = Field(
        description="what the agent would say"
    )


class ModerationResult(PeerReply):
    flagged: bool = Field(description="whether the guard does not allow it")
    categories: dict[str, bool] = Field(description="by policy check, and `reward`")
    category_scores: dict[str, float]
    category_applied_input_types: dict[str, list[str]]
    decision: Literal["allow", "deny", "ask"]
    reason: str


class ModerationReply(PeerReply):
    id: str
    model: str
    results: list[ModerationResult]


WIRE_SCHEMAS: dict[str, WireSchema] = {
    "/compat/openrlhf/{endpoint}/get_reward": WireSchema(
        "openrlhf_get_reward", "OpenRLHF: rewards of queries", OpenRlhfRequest, OpenRlhfReply
    ),
    **_vllm(),
    "/compat/sglang/classify": WireSchema(
        "sglang_classify", "SGLang: rewards of texts", SglangRequest, SglangResult | list[SglangResult]
    ),
    **_tei(),
    "/compat/nemo-gym/{endpoint}/verify": WireSchema(
        "nemo_gym_verify", "NeMo-Gym: the reward of a response", NemoGymRequest, NemoGymReply
    ),
    "/compat/slime/{endpoint}": WireSchema(
        "slime_reward", "slime: the reward of a response", SlimeRequest, float
    ),
    "/compat/llamafactory/{endpoint}": WireSchema(
        "llama_factory_scores", "LLaMA-Factory: rewards of texts", LlamaFactoryRequest, LlamaFactoryReply
    ),
    "/compat/openai/v1/moderations": WireSchema(
        "openai_moderations", "OpenAI: moderations by an endpoint's guard", ModerationRequest, ModerationReply
    ),
}
