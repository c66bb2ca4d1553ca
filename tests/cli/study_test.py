# SPDX-License-Identifier: Apache-2.0
"""scapesim compare and sensitivity: columns, sums, formats, exit codes, determinism."""

import csv
import io
import os
import unittest

from program import INFEASIBLE, SCENARIO, ProgramTest, call, on_terminal

NETWORK = "scenarios/what-if-network.toml"


class Compare(ProgramTest):
    def test_terms_sum_to_the_difference(self):
        document = self.document("compare", SCENARIO, "scenarios/vista-llama-1.8b-ndr.toml")
        self.assertEqual(document["schema"], "scapesim.compare/1")
        columns = len(document["columns"])
        self.assertEqual(columns, 9)
        for whole, terms, key in (("difference_s", "terms", "difference_s"),
                                  ("memory_difference_B", "memory", "difference_B")):
            for i in range(columns):
                total = sum(term[key][i] for term in document[terms])
                scale = max(abs(document[whole][i]), 1e-3)
                self.assertLessEqual(abs(total - document[whole][i]), 1e-9 * scale, document["columns"][i])
        for low, high, value in zip(document["difference_low_s"], document["difference_high_s"],
                                    document["difference_s"]):
            self.assertTrue(low <= value <= high)

    def test_with_adds_a_column_per_series(self):
        document = self.document("compare", "scenarios/llama2-13b-fsdp.toml", "--with", "cluster.nic_bandwidth=200Gbps",
                                 "--with", "training.recompute=none", "--interval", "off")
        self.assertEqual([c["label"] for c in document["columns"]],
                         ["llama2-13b-fsdp", "cluster.nic_bandwidth=200Gbps", "training.recompute=none"])
        self.assertEqual([d["key"] for d in document["changed"]],
                         ["training.recompute", "cluster.nic_bandwidth"])
        self.assertEqual(document["difference_low_s"][1], None)

    def test_csv_has_a_row_per_term_and_two_wholes(self):
        rows = list(csv.DictReader(io.StringIO(self.done("compare", NETWORK, "--csv"))))
        wholes = [row for row in rows if row["term"] == "whole"]
        self.assertEqual([row["part"] for row in wholes], ["time_s", "memory_B"])
        total = sum(float(row["difference of 200G"]) for row in rows
                    if row["part"] == "time_s" and row["term"] != "whole")
        self.assertAlmostEqual(total, float(wholes[0]["difference of 200G"]), delta=1e-9)

    def test_one_column_is_bad_input_and_nothing_that_fits_is_infeasible(self):
        process = call("compare", "scenarios/llama2-13b-fsdp.toml")
        self.assertEqual((process.returncode, process.stdout), (2, ""))
        self.assertIn("--with KEY=VALUE", process.stderr)
        self.done("compare", INFEASIBLE, INFEASIBLE, "--json", code=3)
        self.done("compare", INFEASIBLE, SCENARIO, code=0)

    def test_all_that_is_wrong_with_any_change_is_told_at_its_place(self):
        told = self.refused("compare", "scenarios/llama2-13b-fsdp.toml", "--set", "training.micro_batch=1",
                            "--with", "training.micro_batch=0", "--with", "training.micro_batchh=2",
                            "--with", "cluster.gpus=63")
        for line in ("--with:1:22: training.micro_batch: ", "--with:2:1: training.micro_batchh: unknown key",
                     "--with:3:14: "):
            self.assertIn(line, told)
        self.assertNotIn("--set:", told)

    def test_detail_divides_into_the_terms_of_explain(self):
        document = self.document("compare", NETWORK, "--detail", "--interval", "off")
        self.assertIn("M", document["terms"][0]["kind"])
        self.assertAlmostEqual(sum(term["time_s"][0] for term in document["terms"]), document["time_s"][0], delta=1e-9)

    def test_the_same_call_gives_the_same_bytes(self):
        for form in ([], ["--json"], ["--csv"]):
            self.assertEqual(self.done("compare", NETWORK, *form), self.done("compare", NETWORK, *form))


class Sensitivity(ProgramTest):
    CALL = ("sensitivity", "scenarios/vista-llama-1.8b-ndr.toml", "--series", "AdamS")

    def test_elasticities_agree_with_run_set(self):
        document = self.document(*self.CALL)
        self.assertEqual(document["schema"], "scapesim.sensitivity/1")
        row = next(p for p in document["parameters"] if p["name"] == "cluster.nic_bandwidth")
        self.assertEqual((row["value"], row["unit"], row["kind"]), (5e10, "B/s", "scenario"))

        def step(bandwidth):
            return self.document("run", *self.CALL[1:], "--interval", "off",
                                 "--set", f"cluster.nic_bandwidth={bandwidth!r}B/s")["step_time_s"]
        slope = (step(5.001e10) - step(4.999e10)) / 2e7
        self.assertAlmostEqual(row["derivative"] / slope, 1, delta=1e-4)
        self.assertAlmostEqual(row["step_time_more_s"], step(5.5e10), delta=1e-9)
        self.assertAlmostEqual(row["step_time_less_s"], step(4.5e10), delta=1e-9)

    def test_shares_sum_to_one_and_roofs_are_below(self):
        document = self.document(*self.CALL)
        self.assertAlmostEqual(sum(document["resource_shares"].values()), 1, delta=2e-3)
        self.assertAlmostEqual(sum(part["time_s"] for part in document["parts"]), document["step_time_s"], delta=1e-9)
        for roof in document["roofs"]:
            self.assertLessEqual(roof["step_time_s"], document["step_time_s"] * (1 + 1e-9))

    def test_csv_is_sorted_and_change_is_a_share(self):
        rows = list(csv.DictReader(io.StringIO(self.done(*self.CALL, "--change", "20 %", "--csv"))))
        self.assertEqual(float(rows[0]["change"]), 0.2)
        process = call(*self.CALL, "--change", "0")
        self.assertEqual((process.returncode, process.stdout), (2, ""))

    def test_what_does_not_fit_says_so(self):
        document = self.document("sensitivity", INFEASIBLE, code=3)
        self.assertIn("does not fit", document["infeasible"])
        self.assertNotIn("parameters", document)


class StudyFiles(ProgramTest):
    def test_a_kind_that_is_none_gets_the_nearest(self):
        file = self.write("s.toml", '[study]\nkind = "sweap"\nscenario = "x.toml"\naxes = ["cluster.gpus=4"]\n')
        self.assertIn('(did you mean "sweep"?)', self.refused("sweep", file, "-o", self.path("o")))
        file = self.write("s.toml", '[study]\nkind = "plan"\nscenario = "x.toml"\n')
        self.assertIn("(try scapesim plan)", self.refused("sweep", file, "-o", self.path("o")))


class Plan(ProgramTest):
    CALL = ("plan", "scenarios/plan-llama2-13b.toml", "--tokens", "100B", "--interval", "off")

    def test_the_best_is_the_cheapest_that_meets_the_deadline(self):
        document = self.document(*self.CALL, "--deadline", "10d", "--clusters", "aws-p5,aws-p4d", "--max-gpus", "512")
        self.assertEqual(document["schema"], "scapesim.plan/1")
        self.assertEqual({p["cluster"] for p in document["plans"]}, {"aws-p5", "aws-p4d"})
        self.assertEqual({p["calibration"] for p in document["plans"]}, {"h100-sxm-efa", "a100-sxm-40gb"})
        meets = [p for p in document["plans"] if p["meets"]]
        self.assertEqual(document["plans"][0]["cost_usd"], min(p["cost_usd"] for p in meets))
        for plan in document["plans"]:
            if plan["infeasible"] is None:
                self.assertEqual(plan["meets"], plan["time_s"] <= 10 * 86400)
                self.assertAlmostEqual(plan["gpu_hours"], plan["gpus"] * plan["busy_s"] / 3600, delta=1e-6)
                # The file states failures of its own cluster only; another's are not known.
                if plan["cluster"] == "aws-p5":
                    self.assertAlmostEqual(plan["goodput"], 0.9)  # the default of --effective-time; failures take less
                else:
                    self.assertIsNone(plan["goodput"])
        self.assertLess(document["plans"][document["next_better"]]["cost_usd"], document["plans"][0]["cost_usd"])

    def test_exit_codes(self):
        text = self.done(*self.CALL, "--deadline", "1h", "--max-gpus", "64", code=1)
        self.assertIn("no plan meets the goal; the nearest:", text)
        self.done(*self.CALL, "--max-gpus", "8", "--set", "cluster.gpu_memory=10GiB", "--json", code=3)
        for wrong in (("--deadline", "30"), ("--budget", "-1"), ("--objective", "speed"),
                      ("--clusters", "workstation-25gbe"), ("--vary", "parallelism.tp"), ("--vary", "parallelism.tq=1"),
                      ("--max-gpus", "0"), ("--utilisation", "120%")):
            process = call(*self.CALL, *wrong)
            self.assertEqual((process.returncode, process.stdout), (2, ""), wrong)

    def test_every_objective_ranks_by_its_own_number(self):
        for word, key in (("time", "time_s"), ("cost", "cost_usd"), ("energy", "energy_J"), ("gpu-hours", "gpu_hours")):
            document = self.document(*self.CALL, "--max-gpus", "64", "--objective", word)
            self.assertEqual(document["goal"]["objective"], word)
            numbers = [p[key] for p in document["plans"] if p["meets"]]
            self.assertGreater(len(numbers), 2)
            self.assertEqual(numbers, sorted(numbers), word)

    SEARCH = ("plan", "scenarios/plan-llama2-13b.toml", "--tokens", "100B", "--interval", "off", "--search",
              "--gpus", "32,64", "--keep", "parallelism.tp", "--keep", "training.recompute")

    def test_a_search_takes_the_fastest_split_at_each_number_of_gpus(self):
        document = self.document(*self.SEARCH)
        self.assertEqual(sorted(p["gpus"] for p in document["plans"]), [32, 64])
        self.assertGreater(document["splits"]["considered"], 1000)
        for plan in document["plans"]:
            kept = ("--keep", "parallelism.tp", "--keep", "training.recompute")
            best = self.document("search", self.SEARCH[1], "--gpus", str(plan["gpus"]), "--top", "1", "--interval", "off", *kept)
            self.assertEqual(plan["step_time_s"], best["plans"][0]["run"]["step_time_s"])
            self.assertEqual((plan["split"]["tp"], plan["split"]["recompute"]), (1, "full"))
        text = self.done(*self.SEARCH)
        self.assertIn("  its split: --set cluster.gpus=", text)
        self.assertIn("the fastest split at each number of GPUs: of ", text)

    def test_a_search_where_nothing_fits_and_where_no_split_is_legal(self):
        small = self.document(*self.SEARCH, "--set", "cluster.gpu_memory=2GiB", code=3)
        self.assertEqual([p["split"] for p in small["plans"]], [None, None])
        self.assertIn("legal splits fits in memory", small["plans"][0]["infeasible"])
        self.assertIn("any", self.done(*self.SEARCH, "--set", "cluster.gpu_memory=2GiB", code=3))
        self.assertIn("--search: no split is legal", self.refused(*self.SEARCH, "--keep", "training.micro_batch", "--set", "training.micro_batch=7"))
        self.assertIn("--gpus: goes with --search", self.refused(*self.CALL, "--gpus", "8"))
        self.assertIn("--keep", self.refused(*self.SEARCH, "--keep", "parallelism.tq"))
        self.assertIn("--gpus: no number of GPUs", self.refused(*self.SEARCH, "--max-gpus", "16"))

    def test_a_search_shows_its_progress_on_a_terminal(self):
        shown = on_terminal(*self.SEARCH)
        if shown is None:
            self.skipTest("no pseudo-terminal here")
        self.assertRegex(shown, r"\d of 2 searches, ")

    def test_tokens_are_needed_and_counted(self):
        for tokens in ((), ("--tokens", "many"), ("--tokens", "-1B"), ("--tokens", "1e30")):
            process = call("plan", "scenarios/plan-llama2-13b.toml", *tokens)
            self.assertEqual((process.returncode, process.stdout), (2, ""), tokens)
            self.assertIn("--tokens", process.stderr)

    def test_what_is_not_known_is_null(self):
        document = self.document("plan", "scenarios/llama2-13b-fsdp.toml", "--tokens", "1T", "--max-gpus", "64")
        for plan in document["plans"]:
            for key in ("cost_usd", "carbon_kg", "goodput", "failures"):
                self.assertIsNone(plan[key])
        process = call("plan", "scenarios/llama2-13b-fsdp.toml", "--tokens", "1T", "--budget", "1M")
        self.assertEqual(process.returncode, 2)
        self.assertIn("gpu_price", process.stderr)

    def test_csv_has_a_row_per_plan_and_bytes_repeat(self):
        rows = list(csv.DictReader(io.StringIO(self.done(*self.CALL, "--csv", "--max-gpus", "64"))))
        self.assertEqual([int(row["rank"]) for row in rows], list(range(1, len(rows) + 1)))
        for form in ([], ["--json"], ["--csv"]):
            self.assertEqual(self.done(*self.CALL, *form), self.done(*self.CALL, *form))


class Files(ProgramTest):
    """Every study as a file, in the words of its options."""

    def study(self, text):
        return self.write("study.toml", "[study]\n" + text)

    def test_a_study_file_prints_what_the_call_prints(self):
        scenario = os.path.abspath("scenarios/plan-llama2-13b.toml")
        file = self.study(f'kind = "plan"\nscenario = "{scenario}"\ntokens = "100B"\ndeadline = "10d"\n'
                          'clusters = "aws-p5,aws-p4d"\nmax_gpus = "256"\nvary = ["training.micro_batch=1,2"]\n'
                          'interval = "off"\n')
        self.assertEqual(self.done("plan", file),
                         self.done("plan", scenario, "--tokens", "100B", "--deadline", "10d", "--clusters",
                                   "aws-p5,aws-p4d", "--max-gpus", "256", "--vary", "training.micro_batch=1,2",
                                   "--interval", "off"))
        ndr = os.path.abspath("scenarios/vista-llama-1.8b-ndr.toml")
        file = self.study(f'kind = "sensitivity"\nscenario = "{ndr}"\nseries = "AdamS"\nchange = "5%"\n')
        self.assertEqual(self.done("sensitivity", file, "--json"),
                         self.done("sensitivity", ndr, "--series", "AdamS", "--change", "5%", "--json"))
        file = self.study(f'kind = "compare"\nscenarios = ["{ndr}"]\nwith = ["cluster.taper=2"]\n')
        self.assertEqual(self.done("compare", file, "--csv"), self.done("compare", ndr, "--with", "cluster.taper=2",
                                                                        "--csv"))

    def test_a_study_says_all_itself_and_its_mistakes_have_places(self):
        file = self.study('kind = "plan"\nscenario = "a.toml"\ntokens = "1T"\n')
        for more in (("--tokens", "2T"), ("--set", "cluster.gpus=8"), ("--vary", "parallelism.tp=1,2")):
            process = call("plan", file, *more)
            self.assertEqual((process.returncode, process.stdout), (2, ""), more)
            self.assertIn("is a study", process.stderr)
        process = call("plan", self.study('kind = "plan"\ntoken = "1T"\n'))
        self.assertEqual(process.returncode, 2)
        self.assertIn('study.toml:3:1: study.token', process.stderr)
        process = call("compare", self.study('kind = "plan"\n'))
        self.assertIn("try scapesim plan", process.stderr)


if __name__ == "__main__":
    unittest.main()
