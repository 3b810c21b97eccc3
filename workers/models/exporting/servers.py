"""Which architectures of transformers other servers compute, as read in their own registries.

vLLM computes `XForSequenceClassification` and `XForTokenClassification` by its own `XForCausalLM` with the head on top
(`as_seq_cls_model`), so that a causal model it knows is enough. SGLang has a class for each classifier.
"""

VLLM, SGLANG, TEI = "0.33.0", "0.5.23", "1.8"  # versions that were read
VLLM_CAUSAL = frozenset(
    (
        *("Cohere", "Falcon", "Gemma", "Gemma2", "Gemma3", "Granite", "Llama", "Mistral", "Phi3"),
        *(
            "Qwen2",
            "Qwen3",
            "StableLm",
            "Olmo2",
            "SmolLM3",
            "Starcoder2",
            "Mixtral",
            "Qwen3Moe",
            "GPTNeoX",
            "Phi",
        ),
    )
)
VLLM_CLASSIFIERS = frozenset(
    (
        *("BertForSequenceClassification", "GPT2ForSequenceClassification"),
        *("ModernBertForSequenceClassification", "RobertaForSequenceClassification"),
        *(
            "XLMRobertaForSequenceClassification",
            "BertForTokenClassification",
            "ModernBertForTokenClassification",
        ),
        *("RobertaForTokenClassification", "XLMRobertaForTokenClassification"),
    )
)
VLLM_PROCESS = frozenset(("Qwen2ForProcessRewardModel",))
SGLANG_CLASSIFIERS = frozenset(
    (
        *(
            "LlamaForSequenceClassification",
            "Qwen2ForSequenceClassification",
            "Qwen3ForSequenceClassification",
        ),
        *("Gemma2ForSequenceClassification", "BertForSequenceClassification"),
        "XLMRobertaForSequenceClassification",
    )
)
# SGLang gives these heads a bias, which no checkpoint of transformers has, and leaves it as it was drawn.
SGLANG_RANDOM_BIAS = frozenset(("Qwen2ForSequenceClassification", "Qwen3ForSequenceClassification"))
TEI_CLASSIFIERS = frozenset(
    (
        *("BertForSequenceClassification", "RobertaForSequenceClassification"),
        *("XLMRobertaForSequenceClassification", "ModernBertForSequenceClassification"),
    )
)
_SUFFIXES = ("ForSequenceClassification", "ForTokenClassification")


def vllm_serves(architecture: str) -> bool:
    base = next((architecture.removesuffix(end) for end in _SUFFIXES if architecture.endswith(end)), None)
    return architecture in VLLM_CLASSIFIERS or base in VLLM_CAUSAL


def sglang_serves(architecture: str) -> bool:
    return architecture in SGLANG_CLASSIFIERS


def tei_serves(architecture: str) -> bool:
    return architecture in TEI_CLASSIFIERS
