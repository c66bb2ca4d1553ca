# SPDX-License-Identifier: Apache-2.0
"""Runs the program under test ($SCAPESIM) and checks what holds for every call."""

import json
import os
import pty
import subprocess
import tempfile
import unittest

SCAPESIM = os.environ["SCAPESIM"]
SCENARIO = "scenarios/vista-llama-1.8b.toml"
INFEASIBLE = "scenarios/llama-70b-does-not-fit.toml"

# What `run --json` holds, in this order.
RUN_KEYS = ["schema", "scenario", "calibration", "version", "gpus", "step_time_s", "step_time_low_s", "step_time_high_s",
            "interval_level", "tokens_per_s", "mfu", "efficiency", "breakdown_s", "communication", "overlap_fraction",
            "memory_B", "energy_J", "cost_usd", "warnings"]


def call(*arguments, environment=None, **options):
    """The finished process; output as text."""
    return subprocess.run([SCAPESIM, *arguments], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **(environment or {})}, **options)


def on_terminal(*arguments):
    """What a call shows on a terminal as its standard error; None where there are no terminals."""
    try:
        leader, terminal = pty.openpty()
    except OSError:
        return None
    with subprocess.Popen([SCAPESIM, *arguments], stderr=terminal, stdout=subprocess.DEVNULL) as process:
        os.close(terminal)
        shown = b""
        try:
            while block := os.read(leader, 4096):
                shown += block
        except OSError:  # the other side is closed
            pass
    os.close(leader)
    return shown.decode() if process.returncode == 0 else f"exit code {process.returncode}"


class ProgramTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def done(self, *arguments, code=0, **options):
        """Standard output of a call that ends as expected; beside text, standard error holds warnings only."""
        process = call(*arguments, **options)
        self.assertEqual(process.returncode, code, process.stderr)
        if "--json" in arguments or "--csv" in arguments:
            self.assertEqual(process.stderr, "")
        for line in process.stderr.splitlines():
            self.assertTrue(line.startswith("warning: "), line)
        return process.stdout

    def warnings(self, *arguments):
        """Standard error of a call that succeeds."""
        process = call(*arguments)
        self.assertEqual(process.returncode, 0, process.stderr)
        return process.stderr

    def document(self, *arguments, code=0):
        return json.loads(self.done(*arguments, "--json", code=code))

    def refused(self, *arguments):
        """Standard error of a call that is refused: exit code 2, nothing on standard output, nothing written."""
        before = sorted(os.listdir(self.folder))
        process = call(*arguments)
        self.assertEqual(process.returncode, 2, process.stdout + process.stderr)
        self.assertEqual(process.stdout, "")
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        return process.stderr
