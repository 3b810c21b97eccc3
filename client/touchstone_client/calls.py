"""One description of each call for both clients: what to send, and how its reply is read.

A class of calls is written once, with methods that return a `Request`, a `Pages`, a `Lines` or a `Flow`, and is used
with either driver: `Runs[SyncDriver].get(3)` returns a run, `Runs[AsyncDriver].get(3)` one to await.
"""

import asyncio
import inspect
import time
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import wraps
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, get_args, overload
from urllib.parse import quote

from touchstone_client.listings import AsyncListing, Lines, Listing, Pages, query_params
from touchstone_client.transport import AsyncCaller, Body, Caller

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """json: the body as a value; body: as bytes. params: those that are None are left out."""

    method: str
    path: str
    read: Callable[[Any], T]
    params: Mapping[str, Any] = field(default_factory=dict)
    json: Any = None
    body: Body | None = None

    def options(self) -> dict[str, Any]:
        """Of `Caller.call`."""
        found: dict[str, Any] = {"params": query_params(self.params)}
        return found | given(json=self.json, body=self.body)


@dataclass(frozen=True, slots=True)
class Pause:
    """Seconds to wait before the next request of a flow."""

    seconds: float


Flow = Generator[Request[Any] | Pause, Any, T]


def send(request: Request[T]) -> Flow[T]:
    """One request of a flow, and its reply as it was read."""
    reply: T = yield request
    return reply


class NotGiven(Enum):
    """What leaves a field as it is, where None clears it."""

    NOT_GIVEN = auto()


NOT_GIVEN = NotGiven.NOT_GIVEN


def changed(**fields: Any) -> dict[str, Any]:
    """The fields of a body that are given, None included."""
    return {name: value for name, value in fields.items() if value is not NOT_GIVEN}


def read_nothing(reply: Any) -> None:
    """Of calls that answer nothing."""
    return


def given(**fields: Any) -> dict[str, Any]:
    """The fields of a body that are set; what is None keeps the server's default."""
    return {name: value for name, value in fields.items() if value is not None}


def api_path(*parts: object) -> str:
    return "/api/v1/" + "/".join(quote(str(part), safe="@") for part in parts)


class SyncDriver:
    def __init__(self, caller: Caller) -> None:
        self.caller = caller

    def run(self, flow: Flow[T]) -> T:
        try:
            step = next(flow)
            while True:
                try:
                    reply = self._do(step)
                except BaseException as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(reply)
        except StopIteration as end:
            found: T = end.value
            return found

    def _do(self, step: Request[Any] | Pause) -> Any:
        if isinstance(step, Pause):
            return time.sleep(step.seconds)
        return step.read(self.caller.call(step.method, step.path, **step.options()))

    def listing(self, source: Pages[T] | Lines[T]) -> Listing[T]:
        return Listing(self.caller, source)


class AsyncDriver:
    def __init__(self, caller: AsyncCaller) -> None:
        self.caller = caller

    async def run(self, flow: Flow[T]) -> T:
        try:
            step = next(flow)
            while True:
                try:
                    reply = await self._do(step)
                except BaseException as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(reply)
        except StopIteration as end:
            found: T = end.value
            return found

    async def _do(self, step: Request[Any] | Pause) -> Any:
        if isinstance(step, Pause):
            return await asyncio.sleep(step.seconds)
        return step.read(await self.caller.call(step.method, step.path, **step.options()))

    def listing(self, source: Pages[T] | Lines[T]) -> AsyncListing[T]:
        return AsyncListing(self.caller, source)


DriverT = TypeVar("DriverT", bound=SyncDriver | AsyncDriver)


class Calls(Generic[DriverT]):
    """Calls of one kind of object, in one project."""

    def __init__(self, project: str, driver: DriverT) -> None:
        self._project, self._driver = project, driver

    def __repr__(self) -> str:
        names = ", ".join(sorted(operation_names(type(self))))
        return f"<{type(self).__name__} of {self._project}: {names}>"

    def _path(self, *parts: object) -> str:
        """Below the project."""
        return api_path("projects", self._project, *parts)


def operation_names(kind: type) -> Iterator[str]:
    """Names of the calls of a class."""
    return (
        name
        for base in kind.__mro__
        for name, value in vars(base).items()
        if isinstance(value, Operation | ListOperation)
    )


class Operation(Generic[P, T]):
    """A call that returns a value, or a coroutine of one."""

    def __init__(self, function: Callable[..., Request[T] | Flow[T]]) -> None:
        def start(*arguments: Any, **options: Any) -> Flow[T]:
            found = function(*arguments, **options)
            return send(found) if isinstance(found, Request) else found

        self.function = function
        self._call = _with_signature(
            function, lambda calls, *a, **k: calls._driver.run(start(calls, *a, **k))
        )
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, calls: None, owner: type) -> Self: ...
    @overload
    def __get__(self, calls: Calls[SyncDriver], owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, calls: Calls[AsyncDriver], owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, calls: Any, owner: type) -> Any:
        return self if calls is None else MethodType(self._call, calls)


class ListOperation(Generic[P, T]):
    """A call that returns a listing, which asks for its entries when they are iterated."""

    def __init__(self, function: Callable[..., Pages[T] | Lines[T]]) -> None:
        self.function = function
        self._call = _with_signature(
            function, lambda calls, *a, **k: calls._driver.listing(function(calls, *a, **k))
        )
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, calls: None, owner: type) -> Self: ...
    @overload
    def __get__(self, calls: Calls[SyncDriver], owner: type) -> Callable[P, Listing[T]]: ...
    @overload
    def __get__(self, calls: Calls[AsyncDriver], owner: type) -> Callable[P, AsyncListing[T]]: ...
    def __get__(self, calls: Any, owner: type) -> Any:
        return self if calls is None else MethodType(self._call, calls)


def operation(function: Callable[Concatenate[Any, P], Request[T]]) -> Operation[P, T]:
    """A method that returns its request."""
    return Operation(function)


def flow_operation(function: Callable[Concatenate[Any, P], Flow[T]]) -> Operation[P, T]:
    """A method that makes several requests, one after the other: it yields them and gets their replies."""
    return Operation(function)


def list_operation(function: Callable[Concatenate[Any, P], Pages[T] | Lines[T]]) -> ListOperation[P, T]:
    """A method that returns where its entries come from."""
    return ListOperation(function)


def _with_signature(function: Callable[..., Any], call: Callable[..., Any]) -> Callable[..., Any]:
    """For `help()`: what the caller gets, not the request."""
    found = inspect.signature(function)
    returned = get_args(found.return_annotation)
    wrapped = wraps(function)(call)
    wrapped.__signature__ = found.replace(  # type: ignore[attr-defined]
        return_annotation=returned[-1] if returned else inspect.Signature.empty
    )
    return wrapped
