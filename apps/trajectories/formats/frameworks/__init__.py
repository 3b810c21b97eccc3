"""Runs as agent frameworks write them."""

from typing import Any

from apps.trajectories.formats.frameworks import (
    adk,
    adk_events,
    adk_tests,
    agno,
    agno_events,
    autogen,
    autogen_events,
    crewai,
    dspy,
    langchain,
    langgraph_stream,
    letta,
    managed_agents,
    message_log,
    nemo_gym,
    openai_agents,
    openai_items,
    openai_trace,
    pydantic_ai,
    smolagents,
)

FORMATS: tuple[tuple[str, str, Any], ...] = (
    ("nemo-gym", "NeMo Gym rollouts", nemo_gym),
    ("adk", "ADK sessions, eval sets and their results", adk),
    ("adk-events", "ADK events", adk_events),
    ("adk-tests", "tests of ADK before it had eval sets", adk_tests),
    ("agno", "runs and sessions of Agno", agno),
    ("agno-events", "events of runs of Agno", agno_events),
    ("openai-agents", "states of runs of the OpenAI Agents SDK", openai_agents),
    ("openai-trace", "traces of the OpenAI Agents SDK", openai_trace),
    ("pydantic-ai", "PydanticAI messages", pydantic_ai),
    ("autogen", "AutoGen results, states and recorded calls", autogen),
    ("autogen-events", "AutoGen messages and events, Magentic-One logs", autogen_events),
    ("smolagents", "smolagents steps", smolagents),
    ("langgraph-stream", "streams of LangGraph's server", langgraph_stream),
    ("langchain", "LangChain messages, LangGraph states", langchain),
    ("letta", "Letta messages and agent files", letta),
    ("crewai", "CrewAI outputs and logs of tasks", crewai),
    ("dspy", "DSPy histories and ReAct trajectories", dspy),
    ("managed-agents", "sessions of Anthropic's managed agents", managed_agents),
    ("message-log", "messages of CAMEL, AgentScope, Haystack, Semantic Kernel and Letta", message_log),
    ("openai-items", "items of the Responses API, as the Agents SDK keeps them", openai_items),
)
