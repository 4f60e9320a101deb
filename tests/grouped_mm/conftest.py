"""The devices of ../linear."""

from tests.linear.conftest import device, pytest_collection_modifyitems

__all__ = ["device", "pytest_collection_modifyitems"]
