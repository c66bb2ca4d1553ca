# SPDX-License-Identifier: Apache-2.0
"""scapesim sweep under mpirun with two ranks: the results of one process, also after a kill. Skipped, with the reason,
where the program is built without MPI or there is no mpirun."""

import contextlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest

from program import SCAPESIM, SCENARIO, ProgramTest, call

SWEEP = (SCENARIO, "--series", "AdamS", "--axis", "cluster.gpus=4:64:*2", "--axis", "training.micro_batch=1,2,3,8,32,64",
         "--axis", "training.recompute=none,full", "--axis", "strategy.sharding=none,zero1")
POINTS = 120
MPIRUN = shutil.which("mpirun") or shutil.which("mpirun.openmpi")
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def with_ranks(ranks, *arguments):
    return [MPIRUN, "--oversubscribe", "-n", str(ranks), SCAPESIM, "sweep", *arguments]


def reason_to_skip():
    if MPIRUN is None:
        return "there is no mpirun (tools/packages libopenmpi-dev openmpi-bin)"
    told = subprocess.run(with_ranks(1, SCENARIO, "-o", "x"), capture_output=True, text=True, env=ENVIRONMENT)
    return "scapesim is built without MPI" if "built without MPI" in told.stderr else None


class MpiTest(ProgramTest):
    def results(self, folder):
        found = []
        for name in ("results.jsonl", "results.csv"):
            with open(os.path.join(self.path(folder), name), "rb") as file:
                found.append(file.read())
        return found

    def points(self, folder):
        points = []
        for name in sorted(os.listdir(self.path(folder))):
            if name.startswith("journal"):
                with open(os.path.join(self.path(folder), name), encoding="utf-8") as file:
                    points += [line.split(" ")[1] for line in file.read().splitlines()[1:]]
        return points

    def lines_of(self, folder):
        """Points in the journals so far, the last perhaps half written."""
        with contextlib.suppress(FileNotFoundError):
            return sum(max(0, file.read_bytes().count(b"\n") - 1)
                       for file in pathlib.Path(self.path(folder)).glob("journal*"))
        return 0

    def run_ranks(self, folder, *options, ranks=2, sweep=SWEEP, code=0):
        process = subprocess.run(with_ranks(ranks, *sweep, "-o", self.path(folder), *options), capture_output=True,
                                 text=True, env=ENVIRONMENT, timeout=120)
        self.assertEqual(process.returncode, code, process.stderr)
        return process

    def setUp(self):
        super().setUp()
        self.assertEqual(call("sweep", *SWEEP, "-o", self.path("whole")).returncode, 0)

    def test_two_ranks_share_the_points_and_leave_the_results_of_one_process(self):
        process = self.run_ranks("mpi")
        self.assertIn(f"{POINTS} points", process.stdout)
        self.assertEqual(process.stdout.count("points"), 1)  # one rank speaks
        self.assertEqual(self.results("mpi"), self.results("whole"))
        self.assertEqual(len(set(self.points("mpi"))), POINTS)
        self.assertEqual(len(self.points("mpi")), POINTS)

    def test_killed_and_resumed_nothing_is_lost_or_repeated(self):
        moments = random.Random(2)
        kept = []
        for attempt in range(4):
            folder = f"killed-{attempt}"
            with subprocess.Popen(with_ranks(2, *SWEEP, "-o", self.path(folder), "--interval", "on"), env=ENVIRONMENT,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  start_new_session=True) as process:
                enough = moments.randrange(1, POINTS // 2)
                while process.poll() is None and self.lines_of(folder) < enough:
                    time.sleep(0.001)
                for pid in self.ranks_of(process.pid):
                    with contextlib.suppress(ProcessLookupError):  # mpirun may be faster
                        os.kill(pid, signal.SIGKILL)
                process.kill()
            kept.append(len(self.points(folder)))
            if attempt % 2 == 0:
                self.run_ranks(folder, "--interval", "on", "--resume")
            else:  # by one process, without mpirun
                self.assertEqual(call("sweep", *SWEEP, "-o", self.path(folder), "--interval", "on",
                                      "--resume").returncode, 0)
            points = self.points(folder)
            self.assertEqual(len(points), POINTS)
            self.assertEqual(len(set(points)), POINTS)
        self.assertTrue(any(0 < count < POINTS for count in kept), kept)
        results = [self.results(f"killed-{attempt}") for attempt in range(4)]
        self.assertTrue(all(result == results[0] for result in results))

    @staticmethod
    def ranks_of(parent):
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True)
        return [int(word) for word in children.stdout.split()]

    def test_interrupted_all_ranks_stop_and_the_journals_stay(self):
        with subprocess.Popen(with_ranks(2, *SWEEP, "-o", self.path("stopped"), "--interval", "on"), env=ENVIRONMENT,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              start_new_session=True) as process:
            journal = os.path.join(self.path("stopped"), "journal")
            while process.poll() is None and not (os.path.exists(journal) and os.path.getsize(journal) > 3000):
                time.sleep(0.002)
            process.send_signal(signal.SIGTERM)
            process.communicate()
        self.assertNotEqual(process.returncode, 0)
        self.assertGreater(len(self.points("stopped")), 0)
        self.run_ranks("stopped", "--interval", "on", "--resume")
        self.assertEqual(sorted(map(int, self.points("stopped"))), list(range(POINTS)))

    def test_bad_input_is_told_once(self):
        process = self.run_ranks("bad", sweep=(SCENARIO, "--axis", "training.micro_batch=0"), code=2)
        self.assertEqual(process.stderr.count("0 is out of range"), 1)
        process = self.run_ranks("whole", code=2)
        self.assertEqual(process.stderr.count("holds a sweep already"), 1)


if __name__ == "__main__":
    if (reason := reason_to_skip()) is not None:
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
