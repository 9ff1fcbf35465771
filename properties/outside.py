"""What decides how a run goes on and is not in this process's memory, such as a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable


class Outside(ABC):
    """An object that stands for it: two are alike if what is there is equal, whatever they themselves hold."""

    @abstractmethod
    def content(self) -> Hashable:
        """Give what is there now."""
