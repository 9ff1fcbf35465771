"""Decides for each call that a planner asks for: make it, refuse it, or ask a person first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from failstop.runtime.agent.approval import REFUSALS, ApprovalRequest, Grant
from failstop.runtime.agent.planner import Observation, Seen, ToolCall
from failstop.runtime.audit import canonical
from failstop.runtime.cores.grant import GRANTED
from failstop.runtime.frozen import frozen, thawed, unfreezable
from failstop.runtime.limits import UNLIMITED
from failstop.runtime.stops import Stop

if TYPE_CHECKING:
    from collections.abc import Callable

    from failstop.runtime.agent.tools import Tool, ToolRegistry
    from failstop.runtime.risk import RiskTier


_IN_DOUBT = "an equal call raised, and nobody knows whether its effect happened"


@dataclass(slots=True)
class Held:
    """One call on its way: nobody but the run has a reference to `args`.

    With a `refusal` it is not made; with a `grant` only as far as the grant allows. began: its tool was really called.
    """

    call_id: str
    name: str
    args: dict[str, Any]
    tool: Tool | None = None
    grant: Grant | None = None
    refusal: Observation | None = None
    began: bool = False

    def refuse(self, seen: Seen, error: str) -> None:
        """Make the refusal what the planner will see of this call."""
        self.refusal = Observation(self.call_id, self.name, seen, error=error)


class Gate:
    """The gate of one run; grant_ns: how long a person's answer is waited for and good for, or UNLIMITED.

    elapsed_ns: reads the nanoseconds since the run's start. in_doubt: the calls whose effect nobody knows, of the
    whole chain, since a sub-agent can repeat what another began.
    """

    def __init__(
        self,
        run: str,
        tools: ToolRegistry,
        autonomous: RiskTier,
        elapsed_ns: Callable[[], int],
        grant_ns: int,
        in_doubt: set[str],
    ) -> None:
        self._run = run
        self._tools = tools
        self._autonomous = autonomous
        self._elapsed_ns = elapsed_ns
        self._grant_ns = grant_ns
        self._in_doubt = in_doubt

    def examine(self, call_id: str, call: ToolCall) -> Held:
        """Take a call in, refuse what cannot be called, and open a grant for what needs a person."""
        held = Held(call_id, call.tool, frozen(call.args), self._tools.get(call.tool))
        if held.tool is None:
            known = ", ".join(self._tools.names) or "none"
            held.refuse(Seen.UNKNOWN_TOOL, f"there is no tool {call.tool!r}; the tools are: {known}")
        elif not all(isinstance(name, str) for name in held.args):
            held.refuse(Seen.REFUSED, "the names of arguments must be texts")
        else:
            self._ask_if_needed(held, held.tool)
        return held

    def lets_through(self, held: Held) -> bool:
        """Spend the grant of a call about to be dispatched; one that is not what was approved, or late, is refused."""
        if held.grant is not None:
            verdict = held.grant.use(self._digest(held, cast("Tool", held.tool)))
            if verdict != GRANTED:
                held.refuse(Seen.REFUSED, REFUSALS[verdict])
        elif self._in_doubt_now(held):
            held.refuse(Seen.REFUSED, _IN_DOUBT)
        return held.refusal is None

    def note(self, held: Held, observation: Observation) -> None:
        """Remember if the effect of a call is in doubt, so that an equal one is not made blindly (field case 38)."""
        if observation.unknown:
            self._in_doubt.add(canonical.fingerprint(held.name, held.args))
        elif observation.ok and self._in_doubt:
            self._in_doubt.discard(canonical.fingerprint(held.name, held.args))

    def _ask_if_needed(self, held: Held, tool: Tool) -> None:
        tier = tool.tier_for(held.args)
        in_doubt = self._in_doubt_now(held)
        reason = _IN_DOUBT if in_doubt else self._reason_to_ask(tier)
        if not reason:
            return
        if opaque := unfreezable(held.args):
            held.refuse(Seen.REFUSED, f"an argument holds a {opaque}; only plain data can be approved")
            return
        digest = self._digest(held, tool)
        if not digest:
            held.refuse(Seen.REFUSED, "what an approval of this call must cover cannot be read")
            return
        expires_ns = UNLIMITED if self._grant_ns == UNLIMITED else self._elapsed_ns() + self._grant_ns
        request = ApprovalRequest(
            id=f"{self._run}:{held.call_id}",
            run=self._run,
            tool=tool.name,
            tier=tier,
            args=frozen(held.args),
            digest=digest,
            reason=reason,
            expires_ns=expires_ns,
            in_doubt=in_doubt,
        )
        held.grant = Grant(request, self._elapsed_ns)

    def _reason_to_ask(self, tier: RiskTier) -> str:
        if tier > self._autonomous:
            return f"{tier.name} is above what the run may do alone, {self._autonomous.name}"
        return ""

    def _in_doubt_now(self, held: Held) -> bool:
        return bool(self._in_doubt) and canonical.fingerprint(held.name, held.args) in self._in_doubt

    def _digest(self, held: Held, tool: Tool) -> str:
        """Bind run, tool, arguments and what the tool adds to them; the empty text if that cannot be read."""
        try:
            covered = None if tool.digest_of is None else tool.digest_of(thawed(held.args))
        except (Exception, Stop):  # noqa: BLE001 - whatever broke, what cannot be read now was not seen by a person
            return ""
        return canonical.digest({"run": self._run, "tool": tool.name, "args": held.args, "covered": covered})
