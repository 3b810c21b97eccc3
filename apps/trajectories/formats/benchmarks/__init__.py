"""Runs as benchmarks and their harnesses log them."""

from apps.trajectories.formats.benchmarks import (
    agent_reward_bench,
    agentrx,
    autolibra,
    gymnasium,
    inspect,
    mini_swe_agent,
    mint,
    swe_agent,
    tape,
    tau2,
    tau_bench,
    who_and_when,
)

FORMATS = (
    ("agentrx", "AgentRx's tau-bench runs", agentrx),
    ("tau-bench", "tau-bench results", tau_bench),
    ("tau2", "tau2-bench results", tau2),
    ("swe-agent", "SWE-agent .traj", swe_agent),
    ("mini-swe-agent", "mini-swe-agent .traj.json", mini_swe_agent),
    ("inspect", "Inspect logs", inspect),
    ("mint", "MINT", mint),
    ("who-and-when", "Who&When failure logs", who_and_when),
    ("gymnasium", "Gymnasium and Minari episodes", gymnasium),
    ("autolibra", "AutoLibra's folder of instances, as an archive", autolibra),
    ("tape", "BrowserGym tapes of AgentLab and TapeAgents", tape),
    ("agent-reward-bench", "AgentRewardBench", agent_reward_bench),
)
