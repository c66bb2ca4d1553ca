# SPDX-License-Identifier: Apache-2.0
"""Every shipped scenario and study runs as shipped, and says in a comment what it shows and how to run it."""

import json
import os
import pathlib
import re
import shlex
import tomllib
import unittest

from program import ProgramTest, call

SCENARIOS = sorted(pathlib.Path("scenarios").glob("*.toml"))
STUDIES = sorted(pathlib.Path("scenarios/studies").glob("*.toml"))


class Shipped(ProgramTest):
    def comment_of(self, path):
        lines = []
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line.startswith("#"):
                break
            lines.append(line.lstrip("# "))
        return lines

    def test_there_are_enough_of_them(self):
        self.assertGreaterEqual(len(SCENARIOS), 12)
        self.assertGreaterEqual(len(STUDIES), 6)

    def test_each_says_what_it_shows_and_the_command_it_names_is_its_own(self):
        for path in SCENARIOS + STUDIES:
            with self.subTest(path.name):
                comment = self.comment_of(path)
                self.assertGreaterEqual(len(comment), 3, "no comment")
                self.assertGreater(len(comment[1]), 20)
                commands = [line for line in comment if line.startswith("scapesim ")]
                self.assertTrue(any(path.as_posix() in shlex.split(line) for line in commands), commands)

    def test_every_scenario_runs(self):
        for path in SCENARIOS:
            with self.subTest(path.name):
                process = call("run", str(path), "--interval", "off", "--json")
                # One is there to show what does not fit.
                self.assertEqual(process.returncode, 3 if "does-not-fit" in path.name else 0, process.stderr)
                json.loads(process.stdout)

    def test_every_study_runs(self):
        for path in STUDIES:
            with self.subTest(path.name):
                kind = tomllib.loads(path.read_text(encoding="utf-8"))["study"]["kind"]
                options = ("-o", self.path(path.stem)) if kind == "sweep" else ()
                process = call(kind, str(path), *options, "--json")
                self.assertEqual(process.returncode, 0, process.stderr)
                if kind == "sweep":
                    self.assertGreater(json.loads(process.stdout)["done"], 0)
                    self.assertTrue(os.path.exists(os.path.join(self.path(path.stem), "results.csv")))
                self.assertTrue(re.search(rf"scapesim {kind} ", path.read_text(encoding="utf-8")))


if __name__ == "__main__":
    unittest.main()
