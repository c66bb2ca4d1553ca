# SPDX-License-Identifier: Apache-2.0
"""Loads a page in headless Chromium and asks it questions: a script is put into a copy, its answer read from the DOM."""

import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
WATCH = "<script>window.faults = []; addEventListener('error', e => window.faults.push(e.message));</script>"


def browser():
    """The program. Skips the test where there is none, unless tools/test installed it (SCAPESIM_BROWSER=required)."""
    for name in NAMES:
        if shutil.which(name):
            return shutil.which(name)
    if os.environ.get("SCAPESIM_BROWSER") == "required":
        raise AssertionError("no Chromium found; tools/test installs chromium-headless-shell")
    raise unittest.SkipTest("no Chromium (Debian: apt-get install chromium-headless-shell): the page is not loaded")


def asked(page, script, *options, width=1280, height=2000):
    """What the expression or function body `script` returns, evaluated in the loaded page."""
    ask = f"""<script>addEventListener("load", function () {{
      const answer = (function () {{ {script} }})();
      const node = document.createElement("output"); node.id = "answer";
      node.textContent = JSON.stringify({{ answer: answer, faults: window.faults }}); document.body.appendChild(node); }});</script>"""
    text = pathlib.Path(page).read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "page.html"
        copy.write_text(text.replace("<head>", "<head>" + WATCH, 1).replace("</body>", ask + "</body>"), encoding="utf-8")
        done = subprocess.run(
            [browser(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             f"--user-data-dir={folder}/profile", f"--window-size={width},{height}", *options, "--dump-dom", copy.as_uri()],
            capture_output=True, text=True, timeout=60)
    found = re.search(r'<output id="answer">(.*?)</output>', done.stdout, re.S)
    if not found:
        raise AssertionError(f"the page gave no answer: {done.stderr[-2000:]}")
    told = json.loads(html.unescape(found[1]))
    if told["faults"]:
        raise AssertionError(f"errors in the page: {told['faults']}")
    return told["answer"]
