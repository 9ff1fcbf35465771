"""The audit lines of a ledger, written inside its critical sections, so that a log has their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from failstop.runtime.cores import ledger as core
from failstop.runtime.stops import HaltedStop

if TYPE_CHECKING:
    from failstop.runtime.chain.accounts import Account, Chain, Owner
    from failstop.runtime.limits import Limits
    from failstop.runtime.stops import Stop


class Journal:
    """Writes to the chain's sink, if it has one; whoever calls holds the lock.

    A chain whose log cannot be written is over, since what it did next would leave no trace.
    """

    def __init__(self, chain: Chain, root: Account) -> None:
        self._sink = chain.audit
        self._chain = chain
        self._root = root

    def opened(self, limits: Limits) -> None:
        """The chain begins."""
        self._write("open", context=self._root.name, limits=limits.to_mapping(), at_ns=0)

    def child(self, owner: Owner, name: str, limits: Limits | None, now: int) -> None:
        """A context is opened under another; without limits it shares what its parent has."""
        given = None if limits is None else limits.to_mapping()
        self._write("child", context=name, parent=owner.name, limits=given, at_ns=now - self._chain.origin_ns)

    def admitted(
        self, owner: Owner, label: str, call: int, asked: int, held: int, tool: bool, retry: bool, now: int
    ) -> None:
        """A dispatch is about to begin."""
        self._write(
            "admit",
            call=call,
            context=owner.name,
            call_kind=_kind(tool),
            name=label,
            asked_nano=asked,
            held_nano=held,
            retry=retry,
            at_ns=now - self._chain.origin_ns,
        )

    def settled(self, call: int, held: int, cost: int, outcome: str, cost_known: bool, error: str | None) -> None:
        """A dispatch has ended."""
        self._write(
            "settle",
            call=call,
            held_nano=held,
            cost_nano=cost,
            outcome=outcome,
            cost_known=cost_known,
            error=error,
            at_ns=self._elapsed_ns(),
        )

    def released(self, call: int, held: int, tool: bool, retry: bool) -> None:
        """An admitted dispatch never began."""
        self._write("release", call=call, held_nano=held, call_kind=_kind(tool), retry=retry)

    def charged(self, owner: Owner, label: str, cost: int) -> None:
        """Money was spent outside of any dispatch."""
        self._write("charge", context=owner.name, name=label, cost_nano=cost, at_ns=self._elapsed_ns())

    def turned(self, owner: Owner, fingerprint: str) -> None:
        """A planner takes a turn."""
        self._write("turn", context=owner.name, fingerprint=fingerprint, at_ns=self._elapsed_ns())

    def stopped(self, account: Account, stop: Stop) -> None:
        """A set of limits admits nothing any more."""
        self._write(
            "stop",
            context=account.name,
            ceiling=stop.ceiling,
            limit=stop.limit,
            used=stop.used,
            detail=stop.detail,
            at_ns=self._elapsed_ns(),
        )

    def closed(self, owner: Owner) -> None:
        """A context takes no more calls."""
        self._write("close", context=owner.name)

    def _elapsed_ns(self) -> int:
        return self._chain.now_ns() - self._chain.origin_ns

    def _write(self, kind: str, **data: object) -> None:
        if self._sink is None:
            return
        try:
            self._sink.record(kind, data)
        except BaseException as error:
            root = self._root
            root.state = core.stop(root.state, core.HALTED)
            if root.stop is None:
                root.stop = HaltedStop(detail=f"the audit log cannot be written: {error}")
            raise


def _kind(tool: bool) -> str:
    return "tool" if tool else "llm"
