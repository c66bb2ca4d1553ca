# SPDX-License-Identifier: Apache-2.0
"""scapesim search: the document, what is refused, the answer as options of run."""

import shlex
import unittest

from program import INFEASIBLE, RUN_KEYS, ProgramTest, call

FILE = "scenarios/llama2-13b-fsdp.toml"


class Search(ProgramTest):
    def test_plans_are_runs_that_their_keys_repeat(self):
        document = self.document("search", FILE, "--gpus", "16", "--top", "2", "--keep", "strategy.sharding")
        self.assertEqual(list(document)[:3], ["schema", "objective", "considered"])
        self.assertEqual(document["schema"], "scapesim.search/1")
        self.assertEqual(len(document["plans"]), 2)
        best = document["plans"][0]
        self.assertEqual([key for key in best["run"] if key not in ("series", "fleet")], RUN_KEYS)
        options = [part for key, value in best["set"].items() for part in ("--set", f"{key}={value}")]
        self.assertEqual(self.document("run", FILE, *options)["step_time_s"], best["run"]["step_time_s"])
        lost = sum(row["splits"] for row in document["losers"])
        self.assertEqual(lost + len(document["plans"]), document["considered"])

    def test_the_command_that_it_prints_runs_the_best(self):
        options = ("--gpus", "16", "--top", "1", "--keep", "parallelism.pp", "--keep", "strategy.sharding")
        for pp in ("1", "3"):  # 40 layers in 3 stages are unequal
            fixed = ("--set", f"parallelism.pp={pp}", "--set", "strategy.sharding=zero1", "--interval", "off")
            gpus = str(16 * int(pp)) if pp == "3" else "16"
            text = call("search", FILE, *fixed, *options[:1], gpus, *options[2:]).stdout
            command = next(line for line in text.splitlines() if line.startswith("scapesim run"))
            words = shlex.split(command)[1:]
            self.assertEqual("parallelism.stage_layers" in command, pp == "3")
            step = self.document(*words, *fixed)["step_time_s"]
            document = self.document("search", FILE, *fixed, *options[:1], gpus, *options[2:])
            self.assertEqual(step, document["plans"][0]["run"]["step_time_s"])

    def test_the_result_does_not_depend_on_jobs(self):
        fixed = ("search", FILE, "--gpus", "16", "--keep", "strategy.sharding", "--interval", "off")
        self.assertEqual(self.document(*fixed, "--jobs", "1"), self.document(*fixed, "--jobs", "3"))

    def test_what_cannot_be_searched_is_refused(self):
        self.assertIn("did you mean", self.refused("search", FILE, "--keep", "parallelism.tpp"))
        self.assertIn("did you mean", self.refused("search", FILE, "--objective", "tim"))
        self.assertIn("gpu_price", self.refused("search", FILE, "--objective", "cost"))
        self.refused("search", FILE, "--gpus", "4097")
        self.assertIn("not a count", self.refused("search", FILE, "--gpus", ""))
        self.assertIn("8 is named twice", self.refused("search", FILE, "--gpus", "8,16,8"))
        self.assertIn("jitter.compute", self.refused("search", FILE, "--set", "jitter.compute=0.1"))

    def test_no_split_that_fits_is_infeasible(self):
        process = call("search", INFEASIBLE, "--gpus", "1")
        self.assertEqual(process.returncode, 3)
        self.assertIn("no split fits", process.stdout)


if __name__ == "__main__":
    unittest.main()
