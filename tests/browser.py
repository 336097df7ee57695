"""A headless Chromium for tests of pages."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from selenium import webdriver

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
MARKS = [
    pytest.mark.slow,
    pytest.mark.skipif(not BROWSER or not DRIVER, reason="needs chromium and chromium-driver"),
]


@contextmanager
def started() -> Iterator[Any]:
    """The browser, with a log of its messages and requests."""
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def soon(found: Callable[[], Any]) -> Any:
    """What is found once it is true."""
    until = time.monotonic() + 10
    while not (value := found()):
        assert time.monotonic() < until, "nothing happened"
        time.sleep(0.02)
    return value
