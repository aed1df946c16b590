"""A Chromium to print with: Debian's, the one that `$CHROMIUM` names, or Playwright's own."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Error, sync_playwright

from tokenspace.errors import RunError

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser and close it in the end; raises `RunError` when there is none."""
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        except Error as error:
            raise RunError(
                f"no Chromium to print with ({str(error).splitlines()[0]}): `apt-get install "
                "chromium`, or `python -m playwright install chromium`, or name one in $CHROMIUM"
            ) from error
        try:
            yield browser
        finally:
            browser.close()
