"""The record of the calls of one chain: who called what, when, at what cost; bounded, however long the chain runs."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple, TypeAlias

from failstop.runtime.chain import frames
from failstop.runtime.stops import ConfigurationError

Record: TypeAlias = tuple[Any, ...]
"""(number, frame, thread or OWN_FRAME, context, kind, name or callable's name, start, end, cost, status, tokens...)."""

OWN_FRAME = 0
"""In place of a thread: the call ran where other calls interleave, so only its frame tells where it belongs."""


class Node(NamedTuple):
    """One ended call; `parent` is the number of the call it was made from, or 0.

    Times are monotonic nanoseconds, the cost nano-dollars; `status` is ok, error or abandoned.
    """

    number: int
    parent: int
    context: str
    kind: str
    name: str
    start_ns: int
    end_ns: int
    cost_nano: int
    status: str
    tokens_in: int = 0
    tokens_out: int = 0


class ExecutionGraph:
    """The last `max_nodes` ended calls of a chain and its children; earlier ones are dropped, never the newest.

    Recording is one append to a bounded deque, which is atomic: the call path takes no lock for it. Which call
    another was made from is worked out when somebody asks: plain calls nest on their thread, so one that began later
    and ended earlier on the same thread was made from inside; others carry the frame they were made in.
    """

    def __init__(self, chain: object, max_nodes: int = 10_000) -> None:
        if isinstance(max_nodes, bool) or not isinstance(max_nodes, int) or max_nodes < 1:
            raise ConfigurationError("max_nodes", max_nodes, "a whole number, 1 or more")
        self._chain = chain
        self._records: deque[Record] = deque(maxlen=max_nodes)
        self.record = self._records.append
        """Keep one ended call."""

    def __len__(self) -> int:
        return len(self._records)

    def nodes(self) -> list[Node]:
        """Give the calls kept, in the order in which they ended."""
        records = list(self._records)
        parents = self._parents(records)
        return [
            Node(number, parents[number], context, kind, name, start_ns, end_ns, cost_nano, status, *tokens)
            for number, _, _, context, kind, name, start_ns, end_ns, cost_nano, status, *tokens in records
        ]

    def tree(self) -> dict[int, list[Node]]:
        """Group the calls kept by the number of the call they were made from; 0 holds those made at the top."""
        nodes = self.nodes()
        kept = {node.number for node in nodes}
        children: dict[int, list[Node]] = {}
        for node in sorted(nodes):
            children.setdefault(node.parent if node.parent in kept else 0, []).append(node)
        return children

    def repeated(self) -> tuple[str, str, int]:
        """Tell how often the newest (kind, name) came in a row: a hint of a loop long before a ceiling; ("", "", 0)."""
        signatures = [(node.kind, node.name) for node in reversed(self.nodes())]
        if not signatures:
            return "", "", 0
        run = next((count for count, other in enumerate(signatures) if other != signatures[0]), len(signatures))
        return (*signatures[0], run)

    def _parents(self, records: list[Record]) -> dict[int, int]:
        parents: dict[int, int] = {}
        ended: dict[int, list[int]] = {}
        for number, frame, thread, *_ in records:
            parents[number] = frames.parent_on(self._chain, frame)
            if thread == OWN_FRAME:
                continue
            inner = ended.setdefault(thread, [])
            while inner and inner[-1] > number:
                parents[inner.pop()] = number
            inner.append(number)
        return parents
