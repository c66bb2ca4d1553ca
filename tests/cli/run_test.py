# SPDX-License-Identifier: Apache-2.0
"""scapesim run: keys, overrides, formats, explanation, exit codes, determinism."""

import csv
import io
import json
import os
import shutil
import subprocess
import unittest

from program import INFEASIBLE, RUN_KEYS, SCAPESIM, SCENARIO, ProgramTest, call

ONE = (SCENARIO, "--series", "AdamS")


class Run(ProgramTest):
    def test_one_series_is_an_object_with_the_documented_keys(self):
        run = self.document("run", *ONE)
        keys = list(run)
        self.assertEqual(keys.pop(2), "series")
        self.assertEqual(keys, RUN_KEYS)
        self.assertEqual(run["schema"], "scapesim.run/1")
        self.assertEqual(list(run["breakdown_s"]),
                         ["compute", "optimizer", "exposed_communication", "copy", "host", "bubble"])
        self.assertEqual(list(run["memory_B"]), ["parameters", "gradients", "optimizer", "strategy", "activations",
                                                 "temporary", "total", "context", "capacity"])
        self.assertEqual(list(run["communication"][0]), ["name", "collective", "group_size", "count", "bytes_B",
                                                         "busbw_Bps", "time_s", "exposed_s", "algorithm", "protocol"])

    def test_a_scenario_without_variants_names_no_series(self):
        self.assertEqual(list(self.document("run", "scenarios/vista-llama-1.8b-scape.toml")), RUN_KEYS)

    def test_the_breakdown_sums_to_the_step_and_the_interval_holds_it(self):
        for run in self.document("run", SCENARIO)["runs"]:
            # Sums of at most some hundred doubles.
            self.assertAlmostEqual(sum(run["breakdown_s"].values()), run["step_time_s"], delta=1e-9)
            self.assertLessEqual(run["step_time_low_s"], run["step_time_s"])
            self.assertGreaterEqual(run["step_time_high_s"], run["step_time_s"])
            for row in run["communication"]:
                self.assertLessEqual(row["exposed_s"], row["time_s"] + 1e-9)

    def test_variants_are_a_run_set(self):
        document = self.document("run", SCENARIO)
        self.assertEqual(document["schema"], "scapesim.run-set/1")
        self.assertEqual([run["series"] for run in document["runs"]],
                         ["AdamS", "AdamS + DO", "SCAPE d=0.1", "SCAPE d=0.01"])

    def test_the_same_call_gives_the_same_bytes(self):
        for form in ([], ["--json"], ["--csv"]):
            self.assertEqual(self.done("run", SCENARIO, *form), self.done("run", SCENARIO, *form))

    def test_set_changes_the_result_and_the_hash_and_the_last_one_wins(self):
        before = self.document("run", *ONE)
        after = self.document("run", *ONE, "--set", "cluster.gpus=16", "--set", "cluster.gpus=32")
        self.assertEqual((before["gpus"], after["gpus"]), (64, 32))
        self.assertGreater(after["step_time_s"], before["step_time_s"])
        self.assertNotEqual(before["scenario"]["hash"], after["scenario"]["hash"])

    def test_set_takes_toml_values_and_what_follows_is_no_part_of_it(self):
        run = self.document("run", "--set", 'strategy.offload=["residual"]', SCENARIO, "--series", "SCAPE d=0.01")
        self.assertGreater(run["breakdown_s"]["copy"], 0)

    def test_interval_off_leaves_the_bounds_unknown_and_the_rest_alone(self):
        on, off = self.document("run", *ONE), self.document("run", *ONE, "--interval", "off")
        self.assertIsNone(off["step_time_low_s"])
        self.assertIsNone(off["step_time_high_s"])
        self.assertEqual(on["step_time_s"], off["step_time_s"])

    def test_csv_has_one_row_per_series_that_agrees_with_the_json(self):
        rows = list(csv.DictReader(io.StringIO(self.done("run", SCENARIO, "--csv"))))
        runs = self.document("run", SCENARIO)["runs"]
        self.assertEqual([row["series"] for row in rows], [run["series"] for run in runs])
        self.assertEqual(float(rows[0]["step_time_s"]), runs[0]["step_time_s"])
        self.assertEqual(rows[0]["energy_J"], "")

    def test_explained_terms_sum_to_the_step_and_name_calibration_rows(self):
        run = self.document("run", *ONE, "--explain", "step_time")
        terms = run["explain"]["terms"]
        self.assertAlmostEqual(sum(term["time_s"] for term in terms), run["step_time_s"], delta=1e-9)
        self.assertTrue(all(term["formula"] for term in terms))
        rows = {row["key"] for row in run["explain"]["calibration"]}
        self.assertIn("network.hop_latency_s", rows)
        self.assertIn("gemm.scale", rows)
        text = self.done("run", *ONE, "--explain", "step_time")
        for term in terms:
            self.assertIn(term["name"], text)

    def test_a_dry_run_names_what_would_run_and_writes_nothing(self):
        text = self.done("run", SCENARIO, "--dry-run", "--trace", self.path("t.json"))
        self.assertIn("SCAPE d=0.01", text)
        self.assertNotIn("step time", text)
        self.refused("run", SCENARIO, "--dry-run", "--set", "cluster.gpus=3")

    def test_infeasible_is_a_result_with_exit_code_3(self):
        document = self.document("run", INFEASIBLE, code=3)
        self.assertEqual(list(document), ["schema", "infeasible"])
        self.assertEqual(list(document["infeasible"]), ["reason", "need", "have", "hint"])
        self.assertGreater(document["infeasible"]["need"], document["infeasible"]["have"])
        self.assertIn("does not fit", self.done("run", INFEASIBLE, code=3))
        self.assertIn("does not fit", self.done("run", INFEASIBLE, "--csv", code=3))

    def test_infeasible_leaves_no_trace_file(self):
        file = self.path("t.json")
        self.done("run", INFEASIBLE, "--trace", file, code=3)
        self.assertFalse(os.path.exists(file))
        self.refused("run", "no-such-file.toml", "--trace", file)

    def test_one_infeasible_series_does_not_hide_the_others(self):
        with open(SCENARIO, encoding="utf-8") as shipped:
            text = shipped.read()
        file = self.write("two.toml", text + '\n[[variant]]\nname = "huge"\nset = { "model.preset" = "llama-70b", '
                          '"training.micro_batch" = 1, "training.sequence" = 2048 }\n')
        runs = self.document("run", file)["runs"]
        self.assertEqual([("infeasible" in run) for run in runs], [False] * 4 + [True])
        self.assertIn("huge, 64 GPUs: infeasible", self.done("run", file))

    def test_a_reader_that_has_enough_is_no_error(self):
        # About 0.7 MB, more than a pipe holds; with SIGPIPE as it is and ignored.
        words = f"'{SCAPESIM}' collective all-reduce --cluster vista --gpus 2 --size 8B:8GiB:1.005 --json | head -c 1"
        for shell in (words, "trap '' PIPE; " + words):
            process = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=60)
            self.assertEqual((process.stdout, process.stderr), ("{", ""))

    def test_a_full_disk_is_told(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            process = subprocess.run([SCAPESIM, "run", SCENARIO], stdout=full, stderr=subprocess.PIPE, text=True,
                                     timeout=60)
        self.assertEqual(process.returncode, 2)
        self.assertIn("cannot write standard output", process.stderr)

    def test_warnings_are_part_of_the_document_and_beside_the_text(self):
        run = self.document("run", *ONE)
        self.assertIn("slow-transport", [warning["code"] for warning in run["warnings"]])
        self.assertIn("warning: slow-transport: ", self.warnings("run", *ONE))
        self.assertNotIn("slow-transport", self.done("run", *ONE))
        self.assertIn("warning: slow-transport: ", self.warnings("run", *ONE, "--explain", "step_time"))


class Trace(ProgramTest):
    def events(self, *arguments):
        self.done("run", SCENARIO, "--trace", self.path("t.json"), *arguments)
        with open(self.path("t.json"), encoding="utf-8") as file:
            return json.load(file)["traceEvents"]

    def test_threads_are_named_and_their_events_follow_one_another(self):
        events = self.events()
        names = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
        ends = {}
        for event in events:
            if event["ph"] != "X":
                continue
            thread = (event["pid"], event["tid"])
            self.assertIn(thread, names)
            # Microseconds with three decimals: rounding of a sum of two doubles below 1e9.
            self.assertGreaterEqual(event["ts"], ends.get(thread, 0) - 1e-6)
            self.assertGreaterEqual(event["dur"], 0)
            ends[thread] = event["ts"] + event["dur"]
        self.assertEqual({e["args"]["name"].split(":")[0] for e in events if e["name"] == "process_name"},
                         {"AdamS", "AdamS + DO", "SCAPE d=0.1", "SCAPE d=0.01"})

    def test_several_steps_and_the_bytes_of_collectives(self):
        events = [e for e in self.events("--series", "AdamS") if e["ph"] == "X"]
        self.assertGreater(len({e["args"]["step"] for e in events}), 1)
        collectives = [e for e in events if "collective" in e["args"]]
        self.assertTrue(collectives)
        # fp32 gradients of Llama-1.8B
        self.assertIn(4 * 1831201280, [e["args"]["bytes_B"] for e in collectives])
        self.assertTrue(all(e["args"]["busbw_Bps"] > 0 for e in collectives))

    def test_a_trace_replaces_the_file_as_a_whole_and_is_the_same_again(self):
        self.events("--series", "AdamS")
        with open(self.path("t.json"), "rb") as file:
            first = file.read()
        self.events("--series", "AdamS")
        with open(self.path("t.json"), "rb") as file:
            self.assertEqual(first, file.read())


class Errors(ProgramTest):
    def test_mistakes_of_the_call_are_refused_with_a_way_out(self):
        for arguments, expected in [
                ((), "no command"),
                (("rum", SCENARIO), 'did you mean "run"?'),
                (("run",), "SCENARIO is required"),
                (("run", SCENARIO, "--jsn"), 'did you mean "--json"?'),
                (("run", SCENARIO, SCENARIO), "unexpected argument"),
                (("run", SCENARIO, "--json", "--csv"), "excludes"),
                (("run", SCENARIO, "--series", "Adam"), 'did you mean "AdamS"?'),
                (("run", SCENARIO, "--explain", "mfu"), "known: step_time"),
                (("run", SCENARIO, "--explain", "step_time", "--csv"), "take --json or the text"),
                (("run", SCENARIO, "--interval", "maybe"), "neither on nor off"),
                (("run", SCENARIO, "--set", "strategy.densty=0.1"), 'did you mean "density"?'),
                (("run", SCENARIO, "--set", "calibration.profile=gh200-vista-socket"), "gh200-vista-sockets"),
                (("list", "modls"), 'did you mean "models"?'),
                (("validate", "vist"), "did you mean \"vista\"")]:
            with self.subTest(arguments):
                self.assertIn(expected, self.refused(*arguments))

    def test_a_faulty_scenario_writes_no_trace(self):
        self.refused("run", SCENARIO, "--set", "cluster.gpus=601", "--trace", self.path("t.json"))

    def test_a_trace_that_cannot_be_written_leaves_standard_output_empty(self):
        self.assertIn("there is no folder", self.refused("run", SCENARIO, "--trace", self.path("no/t.json")))

    def test_an_output_never_replaces_an_input(self):
        scenario = self.path("s.toml")
        shutil.copy(SCENARIO, scenario)
        points = self.write("m.csv", "series,gpus,metric,value\nAdamS,4,step_time_s,14\n")
        os.symlink(points, self.path("m.png"))
        for arguments in (("run", scenario, "--trace", os.path.join(self.folder, ".", "s.toml")),
                          ("scale", scenario, "--gpus", "4", "--against", points, "--plot", self.path("m.png")),
                          ("calibrate", points, "-o", self.path("m.json"))):
            with self.subTest(arguments):
                if arguments[0] == "calibrate":
                    os.symlink(points, self.path("m.json"))
                self.assertIn("is an input of this call", self.refused(*arguments))
        self.assertIn("folder", self.refused("calibrate", "none.log", "-o", self.path("no/p.json")))
        self.assertIn("is a folder", self.refused("run", scenario, "--trace", self.folder))

    def test_an_empty_file_name_is_refused(self):
        for arguments in (("run", SCENARIO, "--trace", ""), ("scale", SCENARIO, "--gpus", "4", "--plot", ""),
                          ("scale", SCENARIO, "--gpus", "4", "--against", ""), ("calibrate", SCENARIO, "-o", "")):
            with self.subTest(arguments):
                self.assertIn("the name of the file is empty", self.refused(*arguments))

    def test_several_problems_are_told_at_once(self):
        text = self.refused("run", SCENARIO, "--set", "training.micro_batch=0", "--set", "strategy.densty=1")
        self.assertIn("micro_batch", text)
        self.assertIn("densty", text)

    def test_help_and_version_go_to_standard_output(self):
        self.assertRegex(self.done("--version"), r"^scapesim \d+\.\d+\.\d+\n$")
        for command in ([], ["run"], ["scale"], ["collective"], ["list"], ["validate"]):
            self.assertIn("Example: scapesim", self.done(*command, "--help"))


class Lists(ProgramTest):
    def test_every_table_lists_something_in_both_formats(self):
        for what in ("topologies", "strategies", "schedules", "collectives", "models", "clusters", "calibrations", "scenarios", "keys"):
            with self.subTest(what):
                document = self.document("list", what)
                self.assertEqual(document["schema"], "scapesim.list/1")
                self.assertTrue(document["rows"])
                text = self.done("list", what)
                self.assertEqual(len(text.splitlines()), 1 + len(document["rows"]))

    def test_words_of_a_key_that_are_refused_are_marked(self):
        ranges = {row["key"]: row["range"] for row in self.document("list", "keys")["rows"]}
        self.assertEqual(ranges["training.optimizer"], "adams, adamw, sgd; not in this version: lamb")
        self.assertNotIn("not in this version", ranges["strategy.method"])

    def test_what_is_listed_can_be_used(self):
        for row in self.document("list", "scenarios")["rows"]:
            self.done("run", f"scenarios/{row['name']}.toml", "--dry-run")
        for row in self.document("list", "clusters")["rows"]:
            self.done("collective", "all-reduce", "--cluster", row["name"], "--gpus", "4", "--size", "1MiB")
        for row in self.document("list", "calibrations")["rows"]:
            self.done("run", SCENARIO, "--dry-run", "--set", f"calibration.profile={row['name']}")


class Validate(ProgramTest):
    def test_the_shipped_suite_passes_and_counts_every_row(self):
        document = self.document("validate")
        self.assertEqual(document["schema"], "scapesim.validation/1")
        self.assertTrue(document["passed"])
        self.assertEqual(len(document["rows"]), 81)
        self.assertIn("within the budget", self.done("validate", "vista", "--summary"))

    def test_above_the_budget_is_exit_code_1(self):
        data = self.path("data")
        for folder in ("calib", "scenarios", "topologies"):
            shutil.copytree(folder, os.path.join(data, folder))
        budget = os.path.join(data, "calib/data/vista-budget.csv")
        with open(budget, encoding="utf-8") as file:
            text = file.read()
        with open(budget, "w", encoding="utf-8") as file:
            file.write(text.replace("dense_step_mean,0.015", "dense_step_mean,0.0001"))
        process = call("validate", "--summary", environment={"SCAPESIM_DATA": data})
        self.assertEqual(process.returncode, 1, process.stderr)
        self.assertIn("ABOVE", process.stdout)
        with open(budget, "w", encoding="utf-8") as file:
            file.write(text.replace("dense_step_mean", "dense_step_men"))
        process = call("validate", environment={"SCAPESIM_DATA": data})
        self.assertEqual((process.returncode, process.stdout), (2, ""))
        self.assertIn('did you mean "dense_step_mean"?', process.stderr)


if __name__ == "__main__":
    unittest.main()
