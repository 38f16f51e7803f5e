"""Pages in Chromium, where there is one."""

import re
import shutil
import subprocess
from html import unescape

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine to look at the page with")


def browse(*options):
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def told(page, folder, script, width=1280, height=900):
    """What a script makes of a page's title, in a window of this size."""
    file = folder / "page.html"
    file.write_text(page.replace("</body>", f"<script>{script}</script></body>"))
    dom = browse(f"--window-size={width},{height}", "--dump-dom", file.as_uri()).stdout
    return unescape(re.search(r"<title>(.*?)</title>", dom)[1])
