"""`pytest -p sdc.plugin`: a test suite that is written for Triton, under sdc.install().

SDC_DEVICE is the device that install() is given.
"""

import os

from .install import install

install(os.environ.get("SDC_DEVICE"))
