"""The crowd of the tests of what crowd layers share."""

from tests.crowd.conftest import crowd

__all__ = ["crowd"]
