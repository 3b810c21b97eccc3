"""Keys and limits of requests: read by the parsers, and by the OpenAPI document, which needs no more of them."""

SCORE_KEYS = ("inputs", "steps", "criteria", "uncertainty", "reasons", "version", "run", "policy_version")
ADVANTAGES_KEYS = ("groups", "estimator", "options", "version", "run", "policy_version")
SCORED_KEYS = ("reward", "steps", "states", "stratum", "flags")  # of a roll-out that was scored already
ALLOW_UNCALIBRATED = "uncalibrated_steps"
OPTIONS = ("scale", "eps", "omega", "gamma", "alpha", ALLOW_UNCALIBRATED)  # of advantages
MOST_CRITERIA, LONGEST_CRITERION = 32, 4000
QUERY_PARAMETERS = ("version",)  # of the calls under /api/v1/rewards; others are refused
