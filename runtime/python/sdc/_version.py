"""The package's version: that of the library which it was made for."""

__version__ = "0.1.0"
