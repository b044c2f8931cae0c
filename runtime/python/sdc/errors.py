"""The library's statuses as exceptions; the text is the library's message."""

from __future__ import annotations

import ast
import linecache
import re
from typing import Callable, NoReturn, Optional


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


def raise_at(error: Error) -> NoReturn:
    """Raises it from the place that its text names, so that the last line of a traceback
    is the kernel's."""
    error.__suppress_context__ = True
    m = re.match(r"(.+?):(\d+):(\d+): error: .*(?:\n.*\n( *\^~*))?", str(error))
    text = linecache.getline(m[1], int(m[2])) if m else ""
    if m and text.strip():
        line, first = int(m[2]), int(m[3]) - 1
        width = len(m[4].strip()) if m[4] else 1
        where = {"lineno": line, "end_lineno": line, "col_offset": first,
                 "end_col_offset": min(first + width, len(text.rstrip()))}
        tree = ast.Module([ast.Raise(ast.Name("error", ast.Load(), **where), None,
                                     **where)], [])
        code = compile(tree, m[1], "exec").replace(co_name=_function(m[1], line))
        exec(code, {"error": error})
    raise error


def _function(path: str, line: int) -> str:
    """The name of the def above a line."""
    for i in range(line, 0, -1):
        m = re.match(r"\s*def\s+(\w+)", linecache.getline(path, i))
        if m:
            return m[1]
    return "<kernel>"
