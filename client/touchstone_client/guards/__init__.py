"""An endpoint's guard in front of the tools of an agent: `openai_agents`, `langgraph` and `mcp_proxy`.

Each module needs the package it is for (extras `openai-agents`, `langgraph`, `mcp`). What holds while the service
cannot decide is the endpoint's `on_failure`, or that of the call; a request that the service refuses raises.
"""
