"""What turns a notebook into a page: sync, run, claims, figures.

Only what a notebook itself calls is imported here: a run's key covers the modules that its
notebook imports, so that a change to the runner re-runs no page.
"""

from tokenspace.press.page import Page

__all__ = ["Page"]
