"""What a chain had to show when it was stopped."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

from failstop.runtime.stops import ConfigurationError


class PartialResultBuffer:
    """Chunks of an unfinished result, the oldest dropped beyond `max_chunks`; safe to write from any thread."""

    def __init__(self, max_chunks: int = 10_000) -> None:
        if isinstance(max_chunks, bool) or not isinstance(max_chunks, int) or max_chunks < 1:
            raise ConfigurationError("max_chunks", max_chunks, "a whole number, 1 or more")
        self._lock = threading.Lock()
        self._chunks: deque[Any] = deque(maxlen=max_chunks)
        self._dropped = 0

    @property
    def dropped(self) -> int:
        """How many of the oldest chunks are gone."""
        return self._dropped

    def append(self, chunk: Any) -> None:
        """Keep one more chunk."""
        with self._lock:
            self._dropped += len(self._chunks) == self._chunks.maxlen
            self._chunks.append(chunk)

    def clear(self) -> None:
        """Forget everything, as when the result is complete."""
        with self._lock:
            self._chunks.clear()
            self._dropped = 0

    def chunks(self) -> tuple[Any, ...]:
        """Give what is kept, oldest first."""
        with self._lock:
            return tuple(self._chunks)

    def value(self) -> Any:
        """Give the chunks joined if all are text or all bytes, else as a tuple; None if there are none."""
        chunks = self.chunks()
        if not chunks:
            return None
        if all(isinstance(chunk, str) for chunk in chunks):
            return "".join(chunks)
        if all(isinstance(chunk, bytes) for chunk in chunks):
            return b"".join(chunks)
        return chunks
