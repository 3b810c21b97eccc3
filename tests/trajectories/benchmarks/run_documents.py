"""Small runs of benchmarks and harnesses, as their files have them."""

TAU = {
    "task_id": 7,
    "reward": 1.0,
    "trial": 2,
    "info": {"task": {"instruction": "You want a refund.", "actions": []}},
    "traj": [{"role": "user", "content": "Refund!"}, {"role": "assistant", "content": "Done."}],
}


MESSAGES = [
    {"role": "system", "content": "You fix bugs."},
    {"role": "user", "content": "Fix it."},
    {"role": "assistant", "content": "I look.\n\n```bash\nls -la\n```"},
    {"role": "user", "content": "<returncode>0</returncode>\n<output>\nbug.py\n</output>"},
]
SWE = {
    "trajectory": [{"action": "ls", "observation": "bug.py", "response": "I look.", "thought": "I look."}],
    "history": [
        {"role": "system", "content": "SETTING"},
        {"role": "user", "content": "A demonstration.", "is_demo": True},
        {"role": "user", "content": "Here's the issue text:\nISSUE:\nIt breaks.\n\nINSTRUCTIONS:\nNow go."},
        {"role": "assistant", "content": "I look.\n```\nls\n```", "thought": "I look.", "action": "ls"},
    ],
    "info": {"exit_status": "submitted"},
}
SAMPLE = {
    "id": 3,
    "epoch": 1,
    "input": "What is it?",
    "target": "a cat",
    "messages": [
        {"role": "user", "content": "attachment://q"},
        {
            "role": "assistant",
            "content": [{"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": "I look."}],
            "tool_calls": [{"id": "c1", "function": "look", "arguments": {"at": "it"}}],
        },
        {"role": "tool", "content": "fur", "tool_call_id": "c1", "function": "look"},
        {"role": "assistant", "content": "A cat."},
    ],
    "scores": {"match": {"value": "C"}},
    "attachments": {"q": "What is it?"},
}
INSPECT = {"version": 2, "status": "success", "eval": {"task": "pets", "model": "m"}, "samples": [SAMPLE]}
MINT = {
    "state": {
        "history": [
            {"role": "user", "content": "Find it."},
            {"role": "assistant", "content": "<execute>look()</execute>"},
            {"role": "user", "content": "Observation: nothing"},
        ],
        "success": False,
        "terminate_reason": "max_steps",
    },
    "task": {"task_name": "house", "task_id": 0, "prompt": "Find it.", "reference": "there"},
}
WHO = {
    "is_correct": False,
    "question": "How many?",
    "question_ID": "q1",
    "ground_truth": "8",
    "history": [
        {"role": "assistant", "name": "Counter", "content": "You are to count."},
        {"role": "assistant", "name": "Counter", "content": "print(7)"},
        {"role": "user", "name": "Computer_terminal", "content": "7"},
        {"role": "user", "name": "Checker", "content": "Seven."},
    ],
    "mistake_agent": "Counter",
    "mistake_step": "1",
    "mistake_reason": "counted wrongly",
    "system_prompt": {"Counter": "You count.", "Checker": "You check."},
}


TAU2 = {
    "info": {
        "environment_info": {"domain_name": "telecom", "policy": "Be kind."},
        "agent_info": {"implementation": "llm_agent", "llm": "m"},
    },
    "tasks": [
        {"id": "7", "user_scenario": {"instructions": {"reason_for_call": "No net.", "known_info": None}}}
    ],
    "simulations": [
        {
            "id": "s1",
            "task_id": "7",
            "trial": 2,
            "termination_reason": "user_stop",
            "reward_info": {"reward": 1.0},
            "messages": [
                {"role": "assistant", "content": "Hi!", "turn_idx": 0},
                {"role": "user", "content": "No net."},
                {
                    "role": "assistant",
                    "content": "Restart.",
                    "tool_calls": [
                        {"id": "a1", "name": "look", "arguments": {"n": 1}, "requestor": "assistant"}
                    ],
                },
                {"role": "tool", "id": "a1", "content": "off", "requestor": "assistant", "error": False},
                {
                    "role": "user",
                    "content": None,
                    "tool_calls": [
                        {"id": "u1", "name": "restart", "arguments": {}, "requestor": "user"},
                        {"id": "u2", "name": "check", "arguments": {}, "requestor": "user"},
                    ],
                },
                {
                    "role": "tool",
                    "tool_messages": [
                        {"role": "tool", "id": "u1", "content": "done", "requestor": "user"},
                        {"role": "tool", "id": "u2", "content": "on", "requestor": "user"},
                    ],
                },
                {"role": "assistant", "content": "Good."},
            ],
        }
    ],
}
EPISODE = {
    "id": 4,
    "env_id": "Pendulum-v1",
    "seed": 9,
    "observations": {"angle": [[1.0], [0.5], [0.0]], "speed": [0, 1, 2]},
    "actions": [[0.1, 0.2], [0.3, 0.4]],
    "rewards": [-1.0, -0.5],
    "terminations": [False, True],
}


BROWSED = {
    "benchmark": "shop",
    "agent": "Generic",
    "model": "m",
    "goal": "Buy it.",
    "seed": 23,
    "experiment": "Generic_on_shop.8_23",
    "summary_info": {"cum_reward": 0.0},
    "steps": [
        {
            "num": 0,
            "action": "click('a51')",
            "reasoning": "I click.",
            "axtree_pruned": "page 1",
            "screenshot_path": "None",
        },
        {
            "num": 1,
            "action": "a; b",
            "reasoning": None,
            "axtree": "page 2",
            "screenshot_path": "s1.png",
            "url": "http://x/2",
        },
    ],
}
