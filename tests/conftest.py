"""What all tests share."""

from hypothesis import settings

# A deadline measures the machine: a slow one, or a first call that imports, would fail.
settings.register_profile("tokenspace", deadline=None)
settings.load_profile("tokenspace")
