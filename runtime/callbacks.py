"""Callbacks of other people, run where nobody is left to hear what they raise."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def run_reported(callback: Callable[[], object]) -> None:
    """Run a callback; whatever it raises is reported through `threading.excepthook` and goes no further."""
    try:
        callback()
    except BaseException as error:  # noqa: BLE001 - a Stop too: one bad callback must not keep the others from running
        told = threading.ExceptHookArgs((type(error), error, error.__traceback__, threading.current_thread()))
        # A hook that raises has had its chance.
        with contextlib.suppress(BaseException):
            threading.excepthook(told)
