"""The devices of ../linear."""

from tests.linear.conftest import device

__all__ = ["device"]
