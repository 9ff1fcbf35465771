"""What an agent can call: each tool says at registration what it may do, what it costs and how it is run."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from failstop.runtime.chain.charging import asked_for
from failstop.runtime.frozen import thawed
from failstop.runtime.money import MAX_CEILING
from failstop.runtime.policies.retry import RetryContainer
from failstop.runtime.risk import RiskTier, TierRule, highest_of_parts, shell_tier, tier_of
from failstop.runtime.stops import expect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from failstop.runtime.chain.charging import Cost
    from failstop.runtime.money import Amount

__all__ = ["RiskTier", "Tool", "ToolRegistry", "highest_of_parts", "shell_tier"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool; `fn`, plain or async, is called with the planner's arguments by name. Raises ConfigurationError.

    tier: a RiskTier, or a function from the arguments to one. cost, reserve, retries, isolate: as in
    ExecutionContext.call; without cost and reserve a call takes all the money that is left; say cost=0 if it is free.
    idempotent: False says that a second equal call is a second effect: it is never retried, and after a call that
    raised, an equal one waits for a person. digest_of: what an approval must cover besides the arguments, such as the
    bytes of a file that they name; read when a person is asked and again at dispatch. with_context: call
    `fn(context, **args)`, for a tool that starts sub-agents under the run's own limits.
    """

    name: str
    fn: Callable[..., Any]
    tier: RiskTier | TierRule
    cost: Cost = None
    reserve: Amount | None = None
    retries: int | RetryContainer = 0
    isolate: Literal["thread", "process"] | None = None
    idempotent: bool = True
    digest_of: Callable[[Mapping[str, Any]], Any] | None = None
    with_context: bool = False

    def __post_init__(self) -> None:
        expect(isinstance(self.name, str) and self.name != "", "name", self.name, "a text that is not empty")
        expect(callable(self.fn), "fn", self.fn, "something callable")
        expect(callable(self.tier) or isinstance(self.tier, RiskTier), "tier", self.tier, "a RiskTier or a rule")
        expect(self.isolate in {None, "thread", "process"}, "isolate", self.isolate, "None, 'thread' or 'process'")
        expect(isinstance(self.idempotent, bool), "idempotent", self.idempotent, "True or False")
        expect(_is_retries(self.retries), "retries", self.retries, "a whole number, 0 or more, or a RetryContainer")
        expect(self.idempotent or self.retries == 0, "retries", self.retries, "0 for a tool that is not idempotent")
        expect(
            not (self.with_context and self.isolate == "process"),
            *("isolate", self.isolate, "None or 'thread': a context stays in its own process"),
        )
        expect(
            not (self.asynchronous and self.isolate),
            *("isolate", self.isolate, "None for an async tool: it is cancelled at the deadline as it is"),
        )
        asked_for(self.reserve, self.cost)

    @property
    def asynchronous(self) -> bool:
        """True if `fn` is a coroutine function."""
        return inspect.iscoroutinefunction(self.fn)

    def tier_for(self, args: Mapping[str, Any]) -> RiskTier:
        """Judge a call with these arguments; what cannot be judged is IRREVERSIBLE."""
        return tier_of(self.tier, thawed(args))


class ToolRegistry:
    """The tools of an agent by name; a name is given once and for all, so what was approved cannot be replaced."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.register(tool)

    def register(self, tool: Tool) -> Tool:
        """Add a tool; raises ConfigurationError if its name is taken."""
        expect(isinstance(tool, Tool), "tool", tool, "a Tool")
        expect(self._tools.setdefault(tool.name, tool) is tool, "name", tool.name, "a name that no other tool has")
        return tool

    def get(self, name: str) -> Tool | None:
        """Give the tool, or None if there is none of that name."""
        return self._tools.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the order of registration."""
        return tuple(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(tuple(self._tools.values()))


def _is_retries(retries: object) -> bool:
    return isinstance(retries, RetryContainer) or (type(retries) is int and 0 <= retries <= MAX_CEILING)
