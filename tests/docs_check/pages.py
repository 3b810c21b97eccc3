"""What pages of the documentation have examples for: their project, and words that stand for something of ours."""

FIRST = ("README.md", "docs/tutorial.md")

# Whose key a page's blocks use; `support`, which the tutorial makes, where it is not here.
PROJECTS = {
    "README.md": "sample",
    "client/README.md": "sample",
    "docs/client.md": "guide",
    "docs/rewards.md": "sample",
    "docs/trainers.md": "sample",
    "docs/reward-design.md": "sample",
    "docs/model-exports.md": "sample",
    "docs/exports.md": "sample",
}

WORDS = {
    "": {
        "http://127.0.0.1:8000": "{url}",
        "https://touchstone.example": "{url}",
        "tsk_...": "{key}",
        'key="..."': 'key="{key}"',
        "ARGS=--exit": 'ARGS="--exit {ports}"',
        "alias m=": "true m=",
    },
    "client/README.md": {'"my-project"': '"sample"'},
    "docs/model-exports.md": {'"polite"': '"sample"', '"transformers"': '"standalone"'},
    "docs/exports.md": {"desk/first": "sample/sample"},
    "docs/client.md": {
        '"support"': '"guide"',
    },
    "docs/reward-design.md": {'filter="agent=desk"': 'filter="task=desk-000"'},
    "docs/operations.md": {
        "/backups/": "backups/",
        "passphrase-file F": "passphrase-file passphrase",
        "restore FILE": "restore backups/*.backup",
        "--home NEW": "--home restored",
    },
}
