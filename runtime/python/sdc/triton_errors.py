"""Errors that host code of Triton catches: sdc's are Triton's, too, under install()."""

from __future__ import annotations

import re
from typing import Any, Optional

from . import errors


def classes() -> Any:
    """A function that gives the class for a status and text; None: the usual one."""
    from triton.compiler.errors import CompilationError, CompileTimeAssertionFailure
    from triton.runtime.errors import OutOfResources

    class Source(errors.SourceError, CompilationError):
        """A source that is at fault."""

        def __init__(self, text: str) -> None:
            RuntimeError.__init__(self, text)
            self.src = self.node = None
            self.error_message = self.message = text

        def __str__(self) -> str:
            return self.message

        def __reduce__(self) -> Any:
            return errors.SourceError, (self.message,)

    class Assertion(Source, CompileTimeAssertionFailure):
        """A static_assert that fails."""

    class Resources(errors.SourceError, OutOfResources):
        """More shared memory than there is; autotuners go on with another one."""

        def __init__(self, text: str) -> None:
            RuntimeError.__init__(self, text)
            numbers = [int(n) for n in re.findall(r"\d{4,}", text)]
            self.required, self.limit = (numbers + [0, 0])[:2]
            self.name = "shared memory"

        def __str__(self) -> str:
            return str(self.args[0])

        def __reduce__(self) -> Any:
            return errors.SourceError, self.args

    for made, name in ((Source, "SourceError"), (Resources, "OutOfResources"),
                       (Assertion, "CompileTimeAssertionFailure")):
        made.__name__ = made.__qualname__ = name
        made.__module__ = "sdc"

    def choose(status: int, text: str) -> Optional[type]:
        if "bytes of shared memory" in text:
            return Resources
        if status != errors.SourceError.status:
            return None
        return Assertion if "static_assert" in text else Source

    return choose
