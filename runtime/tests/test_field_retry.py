"""Effects in doubt, however they are asked for again: kinds of failure that properties/FIELD_CASES.md numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from failstop.runtime.agent.outcome import Outcome
from failstop.runtime.agent.planner import Action, ToolCall
from failstop.runtime.agent.tools import Tool
from failstop.runtime.risk import RiskTier
from failstop.runtime.tests.scripted import Scripted, World

if TYPE_CHECKING:
    from failstop.runtime.chain.context import ExecutionContext

SAME_AGAIN = [{"n": 5, "to": "ann"}, {"to": "ann", "n": 5}, '{ "to" : "ann",\n"n": 5 }', '{"n":5,"to":"ann"}']


@pytest.mark.parametrize("again", SAME_AGAIN, ids=["same", "other order", "spaced text", "tight text"])
@pytest.mark.parametrize("parallel", [False, True])
def test_a_call_in_doubt_is_known_again_however_it_is_spelled(again: Any, parallel: bool) -> None:
    """Other order, other white space, other step, new id: the effect is not made a second time (field case 38)."""
    world = World()

    def commits_and_fails(to: str, n: int) -> None:
        raise OSError(f"reply of {to}, {n} lost")

    world.add("post", does=commits_and_fails, tier=RiskTier.WRITE, idempotent=False)
    first = Action(calls=(ToolCall("post", {"to": "ann", "n": 5}),))
    second = Action(calls=(ToolCall("look"), ToolCall("post", cast("dict[str, Any]", again))), parallel=parallel)
    result = world.loop().run(Scripted(first, Action.use("look"), second), "goal")
    assert result.outcome is Outcome.NEEDS_APPROVAL
    assert [request.in_doubt for request in result.pending] == [True]
    assert world.names.count("post") == 1


def test_a_call_in_doubt_is_known_to_every_run_of_its_chain() -> None:
    """A sub-agent's effect in doubt, asked for by another sub-agent and by its parent (field case 38)."""
    world = World()

    def commits_and_fails() -> None:
        raise OSError("reply lost")

    def delegate(context: ExecutionContext) -> str:
        return str(world.loop().run(Scripted(Action.use("post")), "inner", parent=context).outcome)

    world.add("post", does=commits_and_fails, tier=RiskTier.WRITE, idempotent=False)
    world.tools.register(Tool(name="delegate", fn=delegate, tier=RiskTier.READ, cost=0, with_context=True))
    result = world.loop().run(Scripted(Action.use("delegate"), Action.use("delegate"), Action.use("post")), "goal")
    assert [seen.value for turn in result.trace for seen in turn.observations] == ["completed", "needs_approval"]
    assert [request.in_doubt for request in result.pending] == [True]
    assert world.names.count("post") == 1
