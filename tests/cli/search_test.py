# SPDX-License-Identifier: Apache-2.0
"""scapesim search: the document, what is refused, the answer as options of run."""

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
        self.assertEqual([key for key in best["run"] if key != "series"], RUN_KEYS)
        options = [part for key, value in best["set"].items() for part in ("--set", f"{key}={value}")]
        self.assertEqual(self.document("run", FILE, *options)["step_time_s"], best["run"]["step_time_s"])
        lost = sum(row["splits"] for row in document["losers"])
        self.assertEqual(lost + len(document["plans"]), document["considered"])

    def test_the_result_does_not_depend_on_jobs(self):
        fixed = ("search", FILE, "--gpus", "16", "--keep", "strategy.sharding", "--interval", "off")
        self.assertEqual(self.document(*fixed, "--jobs", "1"), self.document(*fixed, "--jobs", "3"))

    def test_what_cannot_be_searched_is_refused(self):
        self.assertIn("did you mean", self.refused("search", FILE, "--keep", "parallelism.tpp"))
        self.assertIn("did you mean", self.refused("search", FILE, "--objective", "tim"))
        self.assertIn("gpu_price", self.refused("search", FILE, "--objective", "cost"))
        self.refused("search", FILE, "--gpus", "4097")

    def test_no_split_that_fits_is_infeasible(self):
        process = call("search", INFEASIBLE, "--gpus", "1")
        self.assertEqual(process.returncode, 3)
        self.assertIn("no split fits", process.stdout)


if __name__ == "__main__":
    unittest.main()
