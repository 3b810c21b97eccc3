"""Chat templates of others, rendered as `apply_chat_template` renders them, with a bound on what that costs.

The sandbox of transformers keeps a template from running code, and not from running for hours or filling the memory.
Here every turn of a loop, every call of a macro and every text that is made is counted against a budget that grows
with the conversation; operators and methods that would make a huge text in one go are refused before they do. What a
template within its budget gives is what transformers gives.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any

from jinja2 import Template, TemplateError, nodes
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from workers.schema.patterns import TextPattern

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

MOST_CHARACTERS = 2**20  # of a template
_WORK, _WORK_EACH = (
    1_000_000,
    50,
)  # units: turns of loops and calls, and pieces of text; for a character of the input
_TEXT, _TEXT_EACH = 2**20, 16  # characters of a text
_PIECE = 64  # characters that cost a unit
_MOST_BITS = 10_000  # of a whole number
_MOST_INDENT = 100
_WIDE = TextPattern(
    r"\d{5,}|\*|\{[^{}]*\{"
)  # in a format: a width of many digits, or one that is an argument
_WIDENS = {"center", "ljust", "rjust", "zfill", "expandtabs", "wordwrap", "batch", "slice", "truncate"}
_SHOWS = {"string", "tojson", "join", "pprint", "format", "format_map", "xmlattr", "urlencode", "str"}


class TemplateTooCostly(TemplateError):
    """A template that does or writes more than its conversation can need."""


class _Budget:
    """size: characters of the conversation."""

    def __init__(self, size: int) -> None:
        self.left = _WORK + _WORK_EACH * size
        self.largest = _TEXT + _TEXT_EACH * size

    def spend(self, units: int) -> None:
        self.left -= units
        if self.left < 0:
            raise TemplateTooCostly("it takes too many steps for a conversation of this size")

    def make(self, characters: int) -> None:
        if characters > self.largest:
            raise TemplateTooCostly("it writes too much text for a conversation of this size")
        self.spend(1 + characters // _PIECE)


class _Rendering(threading.local):
    budget: _Budget | None = None


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """Counts for the rendering that goes on in the thread; while a template is compiled, for none."""

    intercepted_binops = frozenset(("+", "*", "**", "%"))

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.finalize = self._weighed
        self.rendering = _Rendering()

    @property
    def budget(self) -> _Budget:
        return self.rendering.budget or _Budget(0)

    @property
    def tick(self) -> str:
        """Nothing to show; costs a unit."""
        self.budget.spend(1)
        return ""

    @property
    def ticks(self) -> bool:
        self.budget.spend(1)
        return True

    def joined(self, *parts: Any) -> str:
        """parts ~ parts."""
        return self.made("".join(str(self._weighed(part)) for part in parts))

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        method = getattr(__obj, "__wrapped__", __obj)  # the sandbox wraps str.format
        name, owner = getattr(method, "__name__", ""), getattr(method, "__self__", None)
        if isinstance(owner, str):
            __self.check(name, owner, *args, **kwargs)
        return __self.made(super().call(__context, __obj, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator in ("*", "**"):
            self._check_product(operator, left, right)
        if operator == "%" and isinstance(left, str):
            self.check("format", left, right)
        return self.made(super().call_binop(context, operator, left, right))

    def check(self, name: str, subject: Any, *args: Any, **kwargs: Any) -> None:
        """Before a filter or a method of a text is called: what it would make."""
        given = [*args, *kwargs.values()]
        self.budget.spend(1 + (len(subject) // _PIECE if hasattr(subject, "__len__") else 0))
        if name in _SHOWS:
            for each in (subject, *given):
                self._weighed(each)
        numbers = [each for each in given if isinstance(each, int)]
        texts = [each for each in given if isinstance(each, str)]
        text = subject if isinstance(subject, str) else ""
        if name in _WIDENS:
            self.budget.make(max([0, *numbers]) * (text.count("\t") + 1 if name == "expandtabs" else 1))
        elif name == "indent":
            self.budget.make(max([0, *numbers, *map(len, texts)]) * (text.count("\n") + 1))
        elif name == "tojson":
            if max([0, *numbers, *map(len, texts)]) > _MOST_INDENT:
                raise TemplateTooCostly("it indents JSON too far")
        elif name == "replace" and len(texts) >= 2:
            self.budget.make(len(text) + text.count(texts[0]) * len(texts[1]))
        elif name == "join":
            # The separator: of a filter its argument, of a method its owner.
            items, separator = (args[0], text) if text and args else (subject, texts[0] if texts else "")
            self.budget.make(len(separator) * (len(items) if hasattr(items, "__len__") else 0))
        elif name in ("format", "format_map") and _WIDE.search(text):
            raise TemplateTooCostly("a width in one of its formats is large or comes from elsewhere")

    def _check_product(self, operator: str, left: Any, right: Any) -> None:
        if isinstance(left, int) and isinstance(right, int):
            size = left.bit_length() + right.bit_length() if operator == "*" else left.bit_length() * right
            if size > _MOST_BITS:
                raise TemplateTooCostly("one of its numbers is too large")
            return
        for items, count in ((left, right), (right, left)):
            if hasattr(items, "__len__") and isinstance(count, int):
                self.budget.make(len(items) * max(0, count))

    def made(self, value: Any) -> Any:
        if isinstance(value, str):
            self.budget.make(len(value))
        elif isinstance(value, list | tuple | dict | range):
            self.budget.spend(1 + len(value) // _PIECE)
        return value

    def _weighed(self, value: Any) -> Any:
        """The value, whose text is not too long."""
        if isinstance(value, str):
            self.budget.make(len(value))
        elif isinstance(value, list | tuple | dict):
            budget, characters, waiting = self.budget, 0, [value]
            while waiting:
                each = waiting.pop()
                characters += 2 + (len(each) if isinstance(each, str) else 0)
                if characters > budget.largest:
                    budget.make(characters)
                if isinstance(each, Mapping):
                    waiting += [*each.keys(), *each.values()]
                elif isinstance(each, list | tuple):
                    waiting += each
            budget.make(characters)
        return value


def render_chat(tokenizer: "PreTrainedTokenizerBase", template: str, messages: list[dict[str, Any]]) -> str:
    """The text of the messages, as `tokenizer.apply_chat_template` makes it. Raises TemplateError, and nothing else,
    whatever goes wrong in the template."""
    if not messages:
        raise TemplateError("there is no message to show")
    if len(template) > MOST_CHARACTERS:
        raise TemplateTooCostly(f"it has {len(template)} characters; at most {MOST_CHARACTERS} are read")
    rendering = _environment().rendering
    outer = rendering.budget
    try:
        compiled = _compiled(template)
        budget = rendering.budget = _Budget(_size(messages))
        pieces, characters = list[str](), 0
        for piece in compiled.generate(
            **tokenizer.special_tokens_map,
            messages=_with_reasoning(messages),
            tools=None,
            documents=None,
            add_generation_prompt=False,
        ):
            pieces.append(piece)
            characters += len(piece)
            if characters > budget.largest:
                budget.make(characters)
        return "".join(pieces)
    except TemplateError:
        raise
    except Exception as error:
        raise TemplateError(f"{type(error).__name__}: {error}"[:500]) from error
    finally:
        rendering.budget = outer


@lru_cache(maxsize=1)
def _environment() -> BoundedEnvironment:
    """With the filters, functions and extensions that transformers gives templates."""
    from transformers.utils.chat_template_utils import _compile_jinja_template

    like = _compile_jinja_template("").environment
    found = BoundedEnvironment(
        trim_blocks=like.trim_blocks,
        lstrip_blocks=like.lstrip_blocks,
        extensions=[type(extension) for extension in like.extensions.values()],
    )
    found.filters.update({name: _counted(found, name, way) for name, way in like.filters.items()})
    found.globals.update(like.globals)
    found.globals.pop("lipsum", None)  # random text
    plain = like.globals["range"]

    def bounded_range(*args: int) -> range:
        numbers: range = plain(*args)
        found.budget.spend(len(numbers))
        return numbers

    found.globals["range"] = bounded_range
    return found


def _counted(environment: BoundedEnvironment, name: str, way: Callable[..., Any]) -> Callable[..., Any]:
    """The filter, its arguments and its result counted."""
    skipped = 1 if hasattr(way, "jinja_pass_arg") else 0

    @wraps(way)
    def counted(*args: Any, **kwargs: Any) -> Any:
        environment.check(name, *args[skipped:], **kwargs)
        return environment.made(way(*args, **kwargs))

    return counted


@lru_cache(maxsize=64)
def _compiled(template: str) -> Template:
    environment = _environment()
    tree = environment.parse(template)
    for concat in list(tree.find_all(nodes.Concat)):
        _replace(tree, concat)
    blocks: list[nodes.For | nodes.Macro | nodes.CallBlock] = [
        *tree.find_all(nodes.For),
        *tree.find_all(nodes.Macro),
        *tree.find_all(nodes.CallBlock),
    ]
    for node in blocks:
        written = sum(len(data.data) for data in node.find_all(nodes.TemplateData))
        tick = nodes.EnvironmentAttribute("tick")
        node.body.insert(0, nodes.Output([tick] * (1 + written // _PIECE)))
        if isinstance(node, nodes.For) and node.test is not None:
            node.test = nodes.And(nodes.EnvironmentAttribute("ticks"), node.test)
    tree.set_environment(environment)
    code = environment.compile(tree)
    return Template.from_code(environment, code, environment.make_globals(None))


def _replace(tree: nodes.Node, concat: nodes.Concat) -> None:
    """Put a call of `joined` in place of a ~ b."""
    call = nodes.Call(
        nodes.EnvironmentAttribute("joined"), concat.nodes, [], None, None, lineno=concat.lineno
    )
    for parent in [tree, *tree.find_all(nodes.Node)]:
        for field, value in parent.iter_fields():
            if value is concat:
                setattr(parent, field, call)
            elif isinstance(value, list):
                value[:] = [call if each is concat else each for each in value]


def _with_reasoning(messages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """As transformers gives messages to templates: reasoning under the names that templates know it by."""
    found = []
    for message in messages:
        reasoning = message.get("reasoning_content")
        named = {"thinking": reasoning} if reasoning is not None else {}
        found.append(named | message)
    return found


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(_size(each) for pair in value.items() for each in pair)
    return sum(map(_size, value)) if isinstance(value, list) else 1
