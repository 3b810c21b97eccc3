"""The sample world: deterministic, total over what an agent may write, and paying for quality rather than length."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.demo.agents import converse
from apps.demo.world import MAX_STEPS, TASKS, Dice, World, actions_of, hidden_reward, replay
from apps.demo.world.actions import TOOLS, Action, parse
from apps.demo.world.scoring import unsupported

REFUND = "desk-000"  # a broken wool blanket, order 1004, 59.00 EUR
KIND = "Dear Tomas, I am sorry. I have booked a refund of 59.00 EUR, which takes 5 working days."
RIGHT = ["lookup_order order=1004", "refund order=1004 amount=59.00 reason=damaged", f'reply "{KIND}"']


def reward(*actions: str, task: str = REFUND) -> float:
    return replay(task, list(actions)).reward


def test_there_are_sixty_tasks_of_eight_families() -> None:
    families = [task.family for task in TASKS.values()]
    assert len(TASKS) == 60
    assert len(set(families)) == 8
    assert min(families.count(family) for family in set(families)) >= 7
    assert all(task.instruction and task.goal.facts and task.goal.evidence for task in TASKS.values())


def test_the_right_conversation_is_worth_one() -> None:
    world = replay(REFUND, RIGHT)
    assert world.done
    assert world.reward == pytest.approx(1.0)
    assert world.score.faults == ()


def test_reward_by_hand() -> None:
    # groundwork 0.15, no reply -0.15, shifted and scaled: (0.15 - 0.15 + 0.6) / 1.6
    assert reward("lookup_order order=1004") == pytest.approx(0.6 / 1.6)
    assert reward() == pytest.approx(0.45 / 1.6)
    # goal 0.45 + groundwork 0.15 + told 0.25 + manner 0.15, rude -0.35
    rude = [*RIGHT[:2], f'reply "{KIND} Next time read the rules."']
    assert reward(*rude) == pytest.approx((1.0 - 0.35 + 0.6) / 1.6)


@pytest.mark.parametrize(
    ("worse", "fault"),
    [
        ([RIGHT[1], RIGHT[2]], None),  # acted blind
        (
            [RIGHT[0], "refund order=1005 amount=59.00 reason=damaged", RIGHT[2]],
            "unwanted refund on order 1005",
        ),
        ([RIGHT[0], "refund order=1004 amount=63.90 reason=damaged", RIGHT[2]], "broke the policy"),
        ([*RIGHT[:2], RIGHT[1], RIGHT[2]], "unwanted refund on order 1004"),
        ([RIGHT[0], RIGHT[0], *RIGHT[1:]], "repeated itself"),
        ([RIGHT[0], "lookup_order order=7", *RIGHT[1:]], "wrote an action that failed"),
        (RIGHT[:2], "did not reply"),
        ([RIGHT[0], RIGHT[2]], "stated without ground: refund"),
        (
            [*RIGHT[:2], 'reply "I am sorry. 59.00 EUR come in 5 working days and 13 hours."'],
            "stated without ground: 13",
        ),
        ([*RIGHT[:2], 'reply "Thank you for writing, everything is settled for you now."'], None),
    ],
)
def test_every_fault_costs(worse: list[str], fault: str | None) -> None:
    world = replay(REFUND, worse)
    assert world.reward < 0.99
    assert fault is None or fault in world.score.faults


def test_length_alone_changes_nothing() -> None:
    more = ["search_policy topic=refunds", "list_charges order=1004"]
    longer = (
        f'reply "{KIND} There is nothing further for you to do. Please keep this message for your records."'
    )
    assert reward(*RIGHT[:1], *more, RIGHT[1], longer) == pytest.approx(reward(*RIGHT))


def test_equal_actions_give_equal_worlds() -> None:
    first, second = World(), World()
    assert first.reset(REFUND) == second.reset(REFUND)
    for action in RIGHT:
        assert first.step(action) == second.step(action)
        assert first.reward == second.reward
    assert first.credit == second.credit


def test_reset_forgets() -> None:
    world = replay(REFUND, RIGHT)
    world.reset(REFUND)
    assert (world.done, world.credit, world.reward) == (False, [], world.baseline)


@pytest.mark.parametrize("task", list(TASKS))
def test_credit_sums_to_the_reward_over_the_baseline(task: str) -> None:
    for agent in ("desk-a", "desk-e", "desk-f"):
        world = converse(TASKS[task], agent, "credit").world
        assert sum(world.credit) == pytest.approx(world.reward - world.baseline)


def test_credit_names_the_step_that_did_it() -> None:
    world = replay(REFUND, [RIGHT[0], "search_policy topic=refunds", "cancel_order order=1004", *RIGHT[1:]])
    looked, read, failed, refunded, replied = world.credit
    assert looked > 0 and refunded > 0 and replied > 0
    assert read == 0
    assert failed < 0


@pytest.mark.parametrize(
    "line",
    [
        "",
        "   ",
        "refund",
        "refund order=1004",
        "refund order=x amount=1 reason=a",
        "refund order=1004 amount=-5 reason=a",
        "refund order=1004 amount=nan reason=a",
        "refund order=1004 amount=0.00 reason=a",
        "fly order=1004",
        "lookup_order order",
        "lookup_order order=1004 order=1004",
        "lookup_order order=99999999999999999999",
        'refund order=1004 amount=1 reason="a',
        "reply",
        'reply ""',
        "lookup_order order=1004 colour=red",
        "\x00",
        "refund(1004)",
        "find_orders email=nobody@example.org",
        "send_replacement order=٣",
        '{"name": "refund"}',
    ],
)
def test_malformed_actions_are_answered_in_words(line: str) -> None:
    world = World()
    world.reset(REFUND)
    observation, done = world.step(line)
    assert observation.startswith("error: ")
    assert not done
    assert world.state.effects == []
    assert world.credit[0] < 0


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.text(max_size=60) | st.sampled_from([f"{name} order=1004" for name in TOOLS]), max_size=20)
)
def test_nothing_an_agent_writes_raises(lines: list[str]) -> None:
    world = replay(REFUND, lines)
    assert 0.0 <= world.reward <= 1.0
    assert sum(world.credit) == pytest.approx(world.reward - world.baseline)


@given(st.text(min_size=1).filter(str.strip))
def test_a_reply_is_read_as_it_was_said(text: str) -> None:
    assert parse(Action("reply", {"text": text}).text).arguments["text"] == text.strip()


def test_a_conversation_ends() -> None:
    world = replay(REFUND, ["lookup_order order=1004"] * (MAX_STEPS + 5))
    assert world.done
    assert len(world.credit) == MAX_STEPS
    assert world.step("lookup_order order=1004") == ("error: the conversation is over.", True)


def test_every_tool_is_listed_with_its_signature() -> None:
    assert len(World.actions()) == len(TOOLS)
    assert "refund order=<order> amount=<money> reason=<text>: pays money back" in World.actions()


@pytest.mark.parametrize("task", list(TASKS))
def test_choices_can_be_written_and_hold_the_right_change(task: str) -> None:
    world = World()
    world.reset(task)
    if TASKS[task].values["hidden"]:
        world.step(f"find_orders email={TASKS[task].order.customer.email}")
    for evidence in ("lookup_order", "list_charges"):
        world.step(f"{evidence} order={TASKS[task].order.number}")
    lines = world.choices()
    assert len(lines) == len(set(lines))
    parsed = [parse(line) for line in lines]
    for wanted in TASKS[task].goal.effects:
        values = [action.arguments for action in parsed if action.name == wanted.kind]
        assert any(
            wanted.value in (*said.values(), "") and said["order"] == str(wanted.order) for said in values
        )


def test_hidden_reward_reads_chats_and_actions_alike() -> None:
    talk = converse(TASKS[REFUND], "desk-c", "chat")
    assert hidden_reward(talk.messages, REFUND) == talk.world.reward
    assert hidden_reward(actions_of(talk.messages), TASKS[REFUND]) == talk.world.reward


def test_hidden_reward_bears_odd_messages() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "refund", "arguments": "{not json"}}
    odd = [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "error"},
        {"role": "assistant", "content": [{"type": "text", "text": "Sorry about that, dear customer."}]},
    ]
    world = replay(REFUND, actions_of(odd))
    assert world.state.errors == 1
    assert world.state.reply == "Sorry about that, dear customer."


def test_numbers_need_a_source() -> None:
    world = replay(REFUND, ["lookup_order order=1004", 'reply "It cost 59,00 EUR and weighs 77 grams."'])
    assert unsupported(world.state) == ["77"]


def test_dice_are_the_same_for_ever() -> None:
    dice = Dice("seed")
    assert [dice.below(1000) for _ in range(5)] == [419, 183, 759, 127, 943]
    assert sorted(dice.shuffled("abcdef")) == list("abcdef")
