from tests.sources.conftest import hub

__all__ = ["hub"]
