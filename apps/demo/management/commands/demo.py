import json
import time
from typing import Any

from django.core.management.base import CommandParser

from apps.core.commands import TouchstoneCommand
from apps.core.management.commands.up import add_address_arguments
from apps.core.processes import supervisor
from apps.demo import loop
from apps.demo.scoring import DemoScores, ScoredPair, score_comparisons
from apps.training.baselines import baseline_name
from apps.training.models import TrainingRun


class Command(TouchstoneCommand):
    help = "Run the whole loop once on the sample project, then stay up: load, freeze, train, deploy, score."
    needs_database = False

    def add_arguments(self, parser: CommandParser) -> None:
        add_address_arguments(parser)
        parser.add_argument(
            "--exit", action="store_true", help="stop after the loop; status 0 only if all of it worked"
        )

    def run(self, *, host: str, port: int, rewards_port: int, exit: bool) -> dict[str, Any]:
        began = time.monotonic()
        self.say("Starting everything on this machine (logs are in the home folder) ...")
        try:
            with supervisor.running(host=host, port=port, rewards_port=rewards_port, out=None) as stack:
                done = self._loop(stack)
                self.say(f"\nThe whole loop took {time.monotonic() - began:.0f} s.")
                if not exit:
                    self._invite(stack, done)
                    stack.wait()
        except KeyboardInterrupt:
            self.say("stopped")
            return {"stopped": True}
        return {name: value for name, value in done.items() if name not in ("logins", "key", "body")}

    def _loop(self, stack: supervisor.Stack) -> dict[str, Any]:
        project, owner, annotator = loop.make_project()
        by = owner.user
        loaded = loop.load_sample(project, by)
        self.say(
            f"Loaded {loaded.trajectories} trajectories and {loaded.judgements} judgements, all simulated "
            f"({loaded.new} new)."
        )
        loop.make_campaign(project, by)
        dataset_version = loop.freeze(project, by, again=loaded.new > 0)
        self.say(
            f"Frozen: {dataset_version}, {dataset_version.usable_pairs} usable pairs, "
            f"{dataset_version.tasks['test']} tasks held out."
        )
        model = loop.trained(dataset_version)
        if model is None:
            model = self._train(stack, dataset_version, by)
        else:
            self.say(f"Trained on it before: {model}.")
        revision = loop.put_on_endpoint(model, by)
        self.say(f"Deployed {model} on the endpoint {revision.endpoint.name}, revision {revision.number}.")
        key = loop.make_key(project, by)
        preferences = loop.held_out_preferences(dataset_version)
        scored = score_comparisons(stack.url, key, revision, preferences, check=stack.check)
        self._show_scored(scored)
        accuracies = loop.accuracies(model, preferences)
        self._show_accuracies(accuracies)
        return {
            "url": stack.url, "dataset": str(dataset_version), "model": str(model), "endpoint": revision.endpoint.name,
            "revision": revision.number, "reward": scored.right.higher.result.reward, "accuracy": accuracies,
            "logins": (owner, annotator), "key": key, "body": scored.body,
        }  # fmt: skip

    def _train(
        self, stack: supervisor.Stack, dataset_version: loop.DatasetVersion, by: loop.User
    ) -> loop.RewardModel:
        self.say(f"Training on it, by the worker, the best of {', '.join(loop.RECIPE['search'])} ...")
        with self.progress(None, "training") as progress:

            def tell(run: TrainingRun) -> None:
                done = run.progress.get("done") or 0
                progress.update(
                    int(done), total=run.progress.get("total"), note=run.progress.get("note") or run.state
                )

            return loop.train(dataset_version, by, check=stack.check, tell=tell)

    def _show_scored(self, scored: DemoScores) -> None:
        self.say(f"\nScored {scored.count} held-out trajectories through HTTP.")
        self._show_pair("The model is right about this pair", scored.right)
        if scored.wrong is not None:
            self._show_pair("and wrong about this one", scored.wrong)

    def _show_pair(self, what: str, pair: ScoredPair) -> None:
        self.say(f"{what}:")
        for each in (pair.higher, pair.lower):
            result = each.result
            spread = f" (std {result.std:.2f})" if result.std is not None else ""
            self.say(f"  {each.name}: reward {result.reward:+.2f}{spread}, hidden reward {each.hidden:.2f}")
            for action, reward in zip(each.actions, result.steps or (), strict=True):
                self.say(f"    {reward:+.3f}  {action[:96]}")

    def _show_accuracies(self, found: dict[str, Any]) -> None:
        low, high = found["interval"]
        self.say(f"\nOn {found['n']} held-out comparisons (by simulated annotators):")
        self.say(f"  the trained model            {found['model']:6.1%}   [{low:.1%}, {high:.1%}]")
        self.say(f"  the hidden reward itself     {found['hidden']:6.1%}")
        annotators = found["annotators"]
        if annotators is not None and "model" in annotators:  # not in reports of earlier versions
            self.say(f"  on {annotators['n']} choices, with the majority of the other annotators agree:")
            self.say(f"    the trained model          {annotators['model']:6.1%}")
            self.say(f"    a single annotator         {annotators['leave_one_out']:6.1%}")
        for name, rule in found["baselines"].items():
            low, high = (100 * bound for bound in rule["interval"])
            wins = baseline_name(name)
            beaten = f"the model is {100 * rule['difference']:+.1f} points [{low:+.1f}, {high:+.1f}]"
            self.say(f"  {wins:28} {rule['accuracy']:6.1%}   {beaten}")
        self.say(f"Verdict on the model: {found['verdict']}.")

    def _invite(self, stack: supervisor.Stack, done: dict[str, Any]) -> None:
        self.say(f"\nTouchstone is up at {stack.url}  (Ctrl-C stops it)")
        for login in done["logins"]:
            self.say(f"  {login.user.email:26} password {login.password or '(the one you set)'}")
        body = json.dumps(done["body"]).replace("'", "'\\''")
        self.say(
            f"\ncurl -s {stack.url}/api/v1/rewards/{done['endpoint']}/score \\\n"
            f"  -H 'Authorization: Bearer {done['key']}' -H 'Content-Type: application/json' \\\n  -d '{body}'\n"
        )
