"""The library's statuses as exceptions; the text is the library's message."""

from __future__ import annotations

from typing import Callable, Optional


class Error(RuntimeError):
    """What sdc could not do; `status` is the SdcStatus."""

    status = 0
    reproducer = ""


class SourceError(Error):
    """The kernel's source is at fault, or asks for more than a limit."""

    status = 1


class ArgumentError(Error, ValueError):
    """An argument of the call is at fault."""

    status = 2


class UnsupportedError(Error, NotImplementedError):
    """Right, but not supported yet."""

    status = 3


class EnvironmentError(Error, OSError):
    """No such device, a driver that is too old, a file that cannot be read."""

    status = 5

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class OutOfMemoryError(Error, MemoryError):
    """Out of memory."""

    status = 6


class CheckError(Error, AssertionError):
    """The kernel is at fault as it ran: an assertion, or a checked launch's finding."""

    status = 7


class InternalError(Error):
    """A bug of sdc; `reproducer` is a text that shows it."""

    status = 70


_BY_STATUS = {1: SourceError, 2: ArgumentError, 3: UnsupportedError, 4: EnvironmentError,
              5: EnvironmentError, 6: OutOfMemoryError, 7: CheckError, 70: InternalError}


# while install() lasts: a function of status and text that knows more classes
choose: list[Callable[[int, str], Optional[type]]] = []


def of_status(status: int, text: str, reproducer: str = "") -> Error:
    """The exception for a status of the library."""
    chosen = choose[-1](status, text) if choose else None
    error = (chosen or _BY_STATUS.get(status, Error))(text)
    error.status, error.reproducer = status, reproducer
    return error
