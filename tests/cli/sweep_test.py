# SPDX-License-Identifier: Apache-2.0
"""scapesim sweep and merge: result files that do not depend on workers, shards, kills and resumes; clear errors that
lose nothing."""

import csv
import json
import os
import random
import re
import signal
import subprocess
import time
import unittest

from program import SCAPESIM, SCENARIO, ProgramTest, call, on_terminal

# 120 cheap points: some done, some refused (3 does not divide), some that do not fit.
AXES = ("--axis", "cluster.gpus=4:64:*2", "--axis", "training.micro_batch=1,2,3,8,32,64",
        "--axis", "training.recompute=none,full", "--axis", "strategy.sharding=none,zero1")
SWEEP = (SCENARIO, "--series", "AdamS", *AXES)
RESULTS = ("results.jsonl", "results.csv")


class SweepTest(ProgramTest):
    def bytes(self, folder):
        found = {}
        for name in RESULTS:
            with open(os.path.join(self.path(folder), name), "rb") as file:
                found[name] = file.read()
        return found

    def lines(self, folder):
        with open(os.path.join(self.path(folder), "results.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def journal(self, folder):
        with open(os.path.join(self.path(folder), "journal"), encoding="utf-8") as file:
            return file.read().splitlines()

    def sweep(self, folder, *options, sweep=SWEEP, code=0):
        process = call("sweep", *sweep, "-o", self.path(folder), *options)
        self.assertEqual(process.returncode, code, process.stderr)
        return process

    def start(self, folder, *options, sweep=SWEEP):
        return subprocess.Popen([SCAPESIM, "sweep", *sweep, "-o", self.path(folder), *options],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Results(SweepTest):
    def test_every_point_is_a_line_in_order_with_its_reason_when_it_has_no_number(self):
        process = self.sweep("a")
        lines = self.lines("a")
        self.assertEqual([line["point"] for line in lines], list(range(120)))
        self.assertEqual(lines[1]["axes"], {"cluster.gpus": 4, "training.micro_batch": 1, "training.recompute": "none",
                                            "strategy.sharding": "zero1"})
        by_status = {}
        for line in lines:
            by_status.setdefault(line["status"], []).append(line)
        self.assertEqual(sorted(by_status), ["done", "infeasible", "refused"])
        for line in by_status["done"]:
            self.assertIsNone(line["reason"])
            self.assertAlmostEqual(sum(line["breakdown_s"].values()), line["step_time_s"], delta=1e-9)
        for line in by_status["infeasible"]:
            self.assertIn("does not fit in GPU memory", line["reason"])
            self.assertGreater(line["memory_B"]["total"], line["memory_B"]["capacity"])
            self.assertIsNone(line["step_time_s"])
        for line in by_status["refused"]:
            self.assertNotEqual(1024 % (line["gpus"] * line["axes"]["training.micro_batch"]), 0)
            self.assertIn("training.global_batch: 1024 is no multiple of", line["reason"])
        counts = {status: len(of) for status, of in by_status.items()}
        self.assertIn(f"120 points: {counts['done']} done, {counts['infeasible']} infeasible, {counts['refused']} "
                      "refused", process.stdout)

    def test_a_point_is_what_run_says_of_it(self):
        self.sweep("a")
        for number in (0, 17, 101):
            line = self.lines("a")[number]
            sets = [word for key, value in line["axes"].items() for word in ("--set", f"{key}={value}")]
            process = call("run", SCENARIO, "--series", "AdamS", "--interval", "off", "--json", *sets)
            run = json.loads(process.stdout) if process.stdout else {}
            if line["status"] == "done":
                for key in ("gpus", "step_time_s", "tokens_per_s", "mfu", "breakdown_s", "overlap_fraction"):
                    self.assertEqual(line[key], run[key])
                self.assertEqual(line["scenario"], run["scenario"])
                self.assertEqual(line["memory_B"]["total"], run["memory_B"]["total"])
            elif line["status"] == "infeasible":
                self.assertEqual(line["reason"], run["infeasible"]["reason"])
            else:
                self.assertEqual(process.returncode, 2)

    def test_the_table_says_what_the_lines_say(self):
        self.sweep("a")
        with open(os.path.join(self.path("a"), "results.csv"), encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        for row, line in zip(rows, self.lines("a"), strict=True):
            self.assertEqual(int(row["point"]), line["point"])
            for key, value in line["axes"].items():
                self.assertEqual(row[key], str(value))
            self.assertEqual(row["status"], line["status"])
            self.assertEqual(row["reason"], line["reason"] or "")
            if line["status"] == "done":
                self.assertEqual(float(row["step_time_s"]), line["step_time_s"])
                self.assertEqual(float(row["compute_s"]), line["breakdown_s"]["compute"])

    def test_workers_and_shards_leave_no_trace_in_the_results(self):
        self.sweep("one", "--jobs", "1")
        self.sweep("two", "--jobs", "2")
        self.sweep("four", "--jobs", "4")
        self.sweep("first", "--shard", "1/2", "--jobs", "2")
        self.sweep("second", "--shard", "2/2")
        self.done("merge", self.path("second"), self.path("first"), "-o", self.path("merged"))
        for other in ("two", "four", "merged"):
            self.assertEqual(self.bytes("one"), self.bytes(other), other)
        self.assertEqual(len(self.lines("first")), 60)

    def test_a_filter_leaves_points_out_and_keeps_their_numbers(self):
        self.sweep("all")
        self.sweep("few", "--filter", "global_batch % (dp * micro_batch) == 0 and gpus >= 16 and recompute == 'none'")
        few = self.lines("few")
        kept = [line for line in self.lines("all") if line["axes"]["training.micro_batch"] != 3
                and line["gpus"] >= 16 and line["axes"]["training.recompute"] == "none"
                and 1024 % (line["gpus"] * line["axes"]["training.micro_batch"]) == 0]
        self.assertEqual(few, kept)

    def test_all_series_are_swept_and_named(self):
        self.sweep("a", sweep=(SCENARIO, "--axis", "cluster.gpus=4,8"))
        self.assertEqual([(line["series"], line["gpus"]) for line in self.lines("a")],
                         [(series, gpus) for series in ("AdamS", "AdamS + DO", "SCAPE d=0.1", "SCAPE d=0.01")
                          for gpus in (4, 8)])

    def test_zipped_axes_go_side_by_side(self):
        self.sweep("a", "--zip", sweep=(SCENARIO, "--series", "AdamS", "--axis", "cluster.gpus=4,8,16",
                                        "--axis", "training.global_batch=256:1024:*2"))
        self.assertEqual([line["axes"]["training.global_batch"] for line in self.lines("a")], [256, 512, 1024])

    def test_nothing_feasible_is_exit_code_3_and_nothing_left_is_2(self):
        self.sweep("a", sweep=("scenarios/llama-70b-does-not-fit.toml", "--axis", "cluster.gpus=4,8"), code=3)
        told = self.sweep("b", "--filter", "gpus > 1000", code=2).stderr
        self.assertIn("--filter: the filter left 0 of 120 points", told)
        self.assertFalse(os.path.exists(self.path("b")))

    def test_a_part_without_a_point_or_with_refused_ones_only_is_done(self):
        self.sweep("a", "--filter", "gpus == 4 and micro_batch == 1", "--shard", "120/120")
        self.assertEqual(self.lines("a"), [])
        micro_batches = (SCENARIO, "--series", "AdamS", "--axis", "training.micro_batch=1,3")
        self.sweep("b", "--shard", "2/2", sweep=micro_batches)
        self.assertEqual([line["status"] for line in self.lines("b")], ["refused"])

    def test_a_number_of_processes_is_1_to_1024(self):
        for jobs in ("0", "-1", "1025", "100000000"):
            self.assertRegex(self.refused("sweep", *SWEEP, "-o", self.path("x"), "--jobs", jobs), "--jobs.*1.*1024")
        self.assertFalse(os.path.exists(self.path("x")))

    def test_a_range_of_too_many_values_is_refused_at_once(self):
        told = self.refused("sweep", SCENARIO, "-o", self.path("x"), "--axis", "strategy.density=0:1:1e-300")
        self.assertIn("strategy.density: more than 1000000 values", told)

    def test_json_is_a_summary(self):
        document = json.loads(self.sweep("a", "--json").stdout)
        self.assertEqual(document["schema"], "scapesim.sweep-summary/1")
        self.assertEqual(document["done"] + document["infeasible"] + document["refused"], 120)
        best = min((line for line in self.lines("a") if line["status"] == "done"), key=lambda line: line["step_time_s"])
        self.assertEqual(document["shortest_step_s"]["point"], best["point"])

    def test_intervals_are_there_when_asked_for(self):
        self.sweep("a", "--interval", "on", sweep=(SCENARIO, "--axis", "cluster.gpus=4,8"))
        for line in self.lines("a"):
            self.assertLess(line["step_time_low_s"], line["step_time_s"])


class Studies(SweepTest):
    def test_the_study_file_of_a_folder_repeats_it(self):
        options = ("--filter", "method == \"dense\"", "--set", "strategy.sharding=zero1")
        self.sweep("a", *options)
        self.done("sweep", os.path.join(self.path("a"), "study.toml"), "-o", self.path("b"))
        self.assertEqual(self.bytes("a"), self.bytes("b"))
        self.done("sweep", os.path.join(self.path("b"), "study.toml"), "-o", self.path("b"), "--resume")
        self.done("sweep", *SWEEP, *options, "-o", self.path("b"), "--resume")

    def test_a_study_of_another_kind_or_with_unknown_keys_is_refused(self):
        study = self.write("s.toml", '[study]\nkind = "plan"\n')
        self.assertIn('"sweep" is needed here (try scapesim plan)', self.refused("sweep", study, "-o", self.path("x")))
        study = self.write("s.toml", f'[study]\nkind = "sweep"\nscenario = "{os.path.abspath(SCENARIO)}"\nzipped = 1\n'
                           'axes = ["cluster.gpus=4:8:0"]\n')
        self.assertIn("s.toml:4:1: study.zipped: no key of a sweep", self.refused("sweep", study, "-o", self.path("x")))
        study = self.write("s.toml", f'[study]\nkind = "sweep"\nscenario = "{os.path.abspath(SCENARIO)}"\n'
                           'axes = ["cluster.gpus=4,8", "training.micro_batch=1,0"]\n')
        self.assertIn("study.axes:2:24: training.micro_batch: 0 is out of range",
                      self.refused("sweep", study, "-o", self.path("x")))
        self.assertIn("is a study", self.refused("sweep", study, "-o", self.path("x"), "--axis", "cluster.gpus=4"))


class Interruptions(SweepTest):
    def test_killed_at_20_moments_and_resumed_the_results_are_the_same_bytes(self):
        self.sweep("whole")
        begin = time.perf_counter()
        self.sweep("timed", "--jobs", "2")
        whole_s = time.perf_counter() - begin
        moments = random.Random(20)
        kills = 0
        for attempt in range(20):
            folder = f"killed-{attempt}"
            resume = []
            for _ in range(2):
                process = self.start(folder, "--jobs", "2", *resume)
                time.sleep(moments.uniform(0, whole_s * 1.1))
                process.kill()
                kills += process.wait() == -signal.SIGKILL
                process.communicate()
                if os.path.exists(os.path.join(self.path(folder), "journal")) and \
                        os.path.getsize(os.path.join(self.path(folder), "journal")) > 0:
                    resume = ["--resume"]
            self.sweep(folder, *resume)
            self.assertEqual(self.bytes("whole"), self.bytes(folder))
            points = [line.split(" ")[1] for line in self.journal(folder)[1:]]
            self.assertEqual(len(points), 120)  # nothing lost, nothing repeated
            self.assertEqual(len(set(points)), 120)
        self.assertGreater(kills, 10)

    def test_killed_before_the_first_line_it_may_begin_again(self):
        os.mkdir(self.path("empty"))
        open(os.path.join(self.path("empty"), "journal"), "w", encoding="utf-8").close()
        self.assertIn("holds no sweep to resume",
                      self.refused("sweep", *SWEEP, "-o", self.path("empty"), "--resume"))
        self.sweep("empty")
        self.assertIn("holds a sweep already", self.refused("sweep", *SWEEP, "-o", self.path("empty")))

    def test_interrupted_it_keeps_its_journal_and_says_how_to_go_on(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            for attempt in range(5):
                folder = f"stopped-{code}-{attempt}"
                process = self.start(folder, "--interval", "on", "--jobs", "2")
                journal = os.path.join(self.path(folder), "journal")
                while not (os.path.exists(journal) and os.path.getsize(journal) > 3000):
                    time.sleep(0.002)
                process.send_signal(number)
                output, errors = process.communicate()
                if process.returncode != 0:  # else it was done before the signal came
                    break
            self.assertEqual(process.returncode, code, errors)
            self.assertEqual(output, "")
            kept = int(re.search(r"stopped; (\d+) of 120 points are kept", errors)[1])
            self.assertEqual(len(self.journal(folder)), kept + 1)
            self.assertEqual(sorted(os.listdir(self.path(folder))), ["journal", "study.toml"])
            told = call(*re.search(r"go on with: scapesim (.*)", errors)[1].split(" "))
            self.assertEqual(told.returncode, 0, told.stderr)
            self.assertEqual(len(self.lines(folder)), 120)

    def test_a_cut_off_last_record_is_normal_and_damage_before_it_is_told(self):
        self.sweep("a")
        path = os.path.join(self.path("a"), "journal")
        with open(path, "rb") as file:
            whole = file.read()
        with open(path, "wb") as file:
            file.write(whole[:-100])
        before = self.bytes("a")
        self.sweep("a", "--resume")
        self.assertEqual(self.bytes("a"), before)
        lines = whole.splitlines(keepends=True)
        lines[40] = lines[40].replace(b'"gpus":', b'"gpuz":')
        with open(path, "wb") as file:
            file.writelines(lines)
        process = self.sweep("a", "--resume", code=2)
        self.assertIn("journal:41:1: damaged", process.stderr)
        subprocess.run(["sed", "-i", "41d", path], check=True)  # as the message says
        self.sweep("a", "--resume")
        self.assertEqual(self.bytes("a"), before)


class Refusals(SweepTest):
    def test_a_folder_that_holds_a_sweep_is_left_alone(self):
        self.sweep("a")
        before = self.bytes("a")
        self.assertIn("holds a sweep already (go on with it by --resume", self.sweep("a", code=2).stderr)
        self.assertEqual(self.bytes("a"), before)
        self.assertIn("holds no sweep to resume", self.sweep("b", "--resume", code=2).stderr)

    def test_another_scenario_axis_filter_or_shard_is_not_resumed(self):
        self.sweep("a")
        for changed, name in (((*SWEEP, "--filter", "gpus > 4"), "filter"),
                              ((*SWEEP, "--set", "training.global_batch=2048"), "scenario"),
                              ((*SWEEP, "--shard", "1/2"), "shard"),
                              ((*SWEEP, "--interval", "on"), "interval"),
                              ((*SWEEP, "--set", "calibration.profile=gh200-datasheet"), "calibration"),
                              ((SCENARIO, "--series", "AdamS", "--axis", "cluster.gpus=4,8"), "axes")):
            process = self.sweep("a", "--resume", sweep=changed, code=2)
            self.assertRegex(process.stderr, rf"journal: {name}: now .* in the journal")

    def test_two_sweeps_in_one_folder(self):
        first = self.start("a", "--interval", "on", "--jobs", "1")
        while not os.path.exists(os.path.join(self.path("a"), "study.toml")):
            time.sleep(0.002)
        first.send_signal(signal.SIGSTOP)  # it holds the folder until it goes on
        process = self.sweep("a", "--interval", "on", "--resume", code=2)
        first.send_signal(signal.SIGCONT)
        self.assertIn("another process works in this folder", process.stderr)
        self.assertEqual(first.communicate()[1], "")
        self.assertEqual(first.returncode, 0)

    def test_a_full_disk_loses_nothing(self):
        self.sweep("whole")
        limit = 40_000  # bytes a file may have: some 30 points of the journal
        command = f"ulimit -f {limit // 1024}; exec {SCAPESIM} sweep " + \
            " ".join(f"'{word}'" for word in (*SWEEP, "-o", self.path("a")))
        process = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
        self.assertEqual(process.returncode, 2, process.stderr)
        self.assertIn("journal: cannot write: File too large (what is finished is kept; make room, then go on with "
                      "--resume)", process.stderr)
        kept = len(self.journal("a")) - 1
        self.assertGreater(kept, 10)
        self.sweep("a", "--resume")
        self.assertEqual(self.bytes("a"), self.bytes("whole"))
        self.assertEqual(len(self.journal("a")), 121)

    def test_a_folder_that_cannot_be_made_or_written(self):
        self.write("file", "")
        self.assertIn("cannot make the folder", self.sweep("file/a", code=2).stderr)
        self.assertIn("file", self.sweep("file", code=2).stderr)
        self.assertIn("cannot", call("sweep", *SWEEP, "-o", "/proc/scapesim").stderr)
        if os.geteuid() != 0:
            os.makedirs(self.path("closed"), mode=0o500)
            self.assertIn("Permission denied", self.sweep("closed", code=2).stderr)

    def test_bad_axes_and_filters_are_told_together_before_anything_is_written(self):
        told = self.refused("sweep", SCENARIO, "-o", self.path("x"), "--axis", "cluster.gpu=1,2",
                            "--axis", "training.micro_batch=0,1,zwei", "--axis", "model.preset=llama-1.8",
                            "--axis", "calibration.profile=gh200")
        self.assertIn("--axis:2:22: training.micro_batch: 0 is out of range", told)
        self.assertIn("--axis:2:26: training.micro_batch: an integer is needed", told)
        self.assertIn('--axis:3:14: model.preset: no model preset "llama-1.8" (did you mean "llama-1.8b"?)', told)
        self.assertIn('--axis:4:21: calibration.profile: no shipped profile is called "gh200"', told)
        self.assertIn("unknown key", self.refused("sweep", SCENARIO, "-o", self.path("x"), "--axis", "cluster.gpuz=1"))
        self.assertIn("no axis", self.refused("sweep", SCENARIO, "-o", self.path("x")))
        self.assertIn("--filter:1:1:", self.refused("sweep", *SWEEP, "-o", self.path("x"), "--filter", "gpuz"))
        for shard in ("0/2", "3/2", "1", "a/b", "1/0"):
            self.assertIn("--shard", self.refused("sweep", *SWEEP, "-o", self.path("x"), "--shard", shard))

    def test_a_range_without_a_step_says_what_is_missing(self):
        told = self.refused("sweep", SCENARIO, "--axis", "parallelism.tp=2:8", "-o", self.path("x"))
        self.assertIn("--axis:1:16: parallelism.tp: the range 2:8 has no step (2:8:STEP or 2:8:*FACTOR", told)

    def test_a_filter_of_wrong_types_is_refused_before_the_first_point(self):
        for condition, words in (("tp / 0 == 1", "a division by 0"), ("gpu_memory > 80", "needs bytes, such as 80GiB"),
                                 ("method == 'scap'", 'did you mean "scape"?'), ("series == 'Adam'", "is never series")):
            told = self.refused("sweep", *SWEEP, "-o", self.path("x"), "--filter", condition)
            self.assertIn(words, told)
            self.assertFalse(os.path.exists(self.path("x")))

    def test_a_merged_sweep_can_be_run_again(self):
        self.sweep("a1", "--shard", "1/2")
        self.sweep("a2", "--shard", "2/2")
        self.done("merge", self.path("a1"), self.path("a2"), "-o", self.path("whole"))
        self.done("sweep", self.path("whole/study.toml"), "-o", self.path("again"))
        for name in ("results.jsonl", "results.csv"):
            with open(self.path(f"whole/{name}"), encoding="utf-8") as one, \
                    open(self.path(f"again/{name}"), encoding="utf-8") as other:
                self.assertEqual(one.read(), other.read())

    def test_merge_wants_all_parts_of_one_sweep(self):
        self.sweep("first", "--shard", "1/3")
        self.sweep("second", "--shard", "2/3")
        self.sweep("other", sweep=(*SWEEP, "--filter", "gpus > 4"))
        told = call("merge", self.path("first"), self.path("second"), "-o", self.path("m"))
        self.assertEqual(told.returncode, 2)
        self.assertIn("40 of 120 points are missing, the first is point 2", told.stderr)
        told = call("merge", self.path("first"), self.path("other"), "-o", self.path("m"))
        self.assertIn("filter: now", told.stderr)
        self.assertIn("holds no sweep", call("merge", self.path("x"), "-o", self.path("m")).stderr)
        self.assertFalse(os.path.exists(self.path("m")))


class Terminal(SweepTest):
    def test_progress_shows_on_a_terminal_only(self):
        shown = on_terminal("sweep", *SWEEP, "--interval", "on", "-o", self.path("a"), "--jobs", "1")
        if shown is None:
            self.skipTest("no pseudo-terminal here")
        self.assertRegex(shown, r"\d+ of 120 points, \d+/s, \d+:\d\d left")
        self.assertEqual(self.sweep("b").stderr, "")


if __name__ == "__main__":
    unittest.main()
