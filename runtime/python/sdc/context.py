"""Contexts of the library, one for each place that kernels run at, with their modules.

A context is made when the first kernel needs it and lives as long as the process.
"""

from __future__ import annotations

import ctypes as C
import os
import re
import sys
import threading
from typing import Optional

from . import _lib as L


def _print_line(_user: Optional[int], line: bytes) -> None:
    print(line.decode(errors="replace"), file=sys.stdout)


class Context:
    """A context of the library: where launches run, and what was compiled for there."""

    def __init__(self, target: str = "cpu", device: int = 0, debug: bool = False,
                 check: int = 0) -> None:
        self.target, self.device, self.checks = target, device, check
        self.handle = C.c_void_p()
        self._print = L.PRINT(_print_line)
        self._modules: dict[tuple[str, str], C.c_void_p] = {}
        self._functions: dict[tuple[int, str, tuple[str, ...]], int] = {}
        self._lock = threading.Lock()
        self._told = threading.local()
        options = L.Options(target=target.encode(), device=device, debug=int(debug),
                            check=check, print=self._print)
        L.check(L.lib.sdc_context_create(C.byref(options), C.byref(self.handle)), None)

    @property
    def threads(self) -> int:
        """Threads that a launch on the CPU uses."""
        return L.lib.sdc_context_threads(self.handle)

    def describe(self) -> L.Device:
        """The GPU of the context."""
        out = L.Device()
        self.check(L.lib.sdc_context_device(self.handle, C.byref(out)))
        return out

    def check(self, status: int) -> None:
        """Raises the exception for `status`, with the library's message."""
        if status:
            L.check(status, self.handle)

    def warned(self, compiled: bool) -> list[str]:
        """Warnings of this thread's last call; unless it compiled, those that are new."""
        text = L.lib.sdc_warnings(self.handle).decode(errors="replace")
        before = "" if compiled else getattr(self._told, "text", "")
        self._told.text = text
        text = "" if text == before else text.removeprefix(before)
        parts = re.split(r"(?m)^(?=.+:\d+:\d+: warning: )", text)
        return [part for part in parts if part]

    def function(self, name: str, text: str, kernel: str, bind: tuple[str, ...]) -> int:
        """The handle of a kernel of the source `text` with its constexprs bound."""
        with self._lock:
            module = self._modules.get((name, text))
            if module is None:
                module, raw = C.c_void_p(), text.encode()
                self.check(L.lib.sdc_module_load_text(self.handle, name.encode(), raw,
                                                      len(raw), 1, C.byref(module)))
                self._modules[name, text] = module
            key = (module.value or 0, kernel, bind)
            found = self._functions.get(key)
            if found is None:
                out = C.c_void_p()
                self.check(L.lib.sdc_function_get(module, kernel.encode(),
                                                  L.texts(list(bind)), len(bind),
                                                  C.byref(out)))
                found = self._functions[key] = out.value or 0
            return found


def _checks() -> int:
    """$SDC_CHECK: launches on the CPU are checked, "nan" with NaN."""
    asked = os.environ.get("SDC_CHECK", "0")
    if asked in ("", "0", "off"):
        return 0
    return L.CHECK_ACCESS | (L.CHECK_NAN if asked == "nan" else 0)


_contexts: dict[tuple[str, int, bool, int], Context] = {}
_contexts_lock = threading.Lock()
checking = _checks()


def get(target: str = "cpu", device: int = 0, debug: bool = False) -> Context:
    """The context for launches on the CPU, or on the GPU `device`."""
    checks = checking if target == "cpu" else 0
    key = (target, device, debug, checks)
    found = _contexts.get(key)
    if found is None:
        with _contexts_lock:
            found = _contexts.get(key)
            if found is None:
                found = _contexts[key] = Context(target, device, debug, checks)
    return found


def forget() -> None:
    """In the child of a fork: new contexts; the parent's are left as they are."""
    global _contexts_lock
    _contexts_lock = threading.Lock()  # a thread of the parent may hold the old one
    _contexts.clear()
