"""Names the wheel: any Python 3, the platform that $SDC_PLATFORM says."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Hook(BuildHookInterface):
    """The library is no extension of CPython: one wheel is for all versions."""

    def initialize(self, version, build_data):
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ.get('SDC_PLATFORM', 'linux_x86_64')}"
