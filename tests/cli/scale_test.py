# SPDX-License-Identifier: Apache-2.0
"""scapesim scale and collective: curves, measured points, figures, closed forms."""

import os
import unittest

from program import INFEASIBLE, RUN_KEYS, SCENARIO, ProgramTest, call

MEASURED = "calib/data/vista-llama-1.8b.csv"


class Scale(ProgramTest):
    def test_points_are_run_objects_with_efficiency_against_the_smallest_count(self):
        document = self.document("scale", SCENARIO, "--gpus", "64,4,16")
        self.assertEqual(list(document), ["schema", "points"])
        series = [point for point in document["points"] if point["series"] == "AdamS"]
        self.assertEqual([point["gpus"] for point in series], [4, 16, 64])
        self.assertEqual([key for key in series[0] if key != "series"], RUN_KEYS)
        for point in series:
            expected = series[0]["step_time_s"] * 4 / (point["step_time_s"] * point["gpus"])
            self.assertAlmostEqual(point["efficiency"], expected, delta=1e-12)

    def test_weak_scaling_grows_the_batch(self):
        strong = self.document("scale", SCENARIO, "--gpus", "64,128", "--series", "AdamS")["points"]
        document = self.document("scale", SCENARIO, "--gpus", "64,128", "--series", "AdamS", "--weak")
        weak = document["points"]
        self.assertEqual(document["scaling"], "weak")
        self.assertEqual(weak[0]["step_time_s"], strong[0]["step_time_s"])
        self.assertGreater(weak[1]["step_time_s"], strong[1]["step_time_s"])
        self.assertAlmostEqual(weak[1]["efficiency"], weak[0]["step_time_s"] / weak[1]["step_time_s"], delta=1e-12)

    def test_one_point_is_what_run_says(self):
        point = self.document("scale", SCENARIO, "--gpus", "32", "--series", "AdamS")["points"][0]
        run = self.document("run", SCENARIO, "--series", "AdamS", "--set", "cluster.gpus=32")
        self.assertEqual({**point, "efficiency": None}, run)

    def test_measured_points_stand_beside_the_predicted(self):
        document = self.document("scale", SCENARIO, "--gpus", "4,64", "--against", MEASURED)
        rows = [row for row in document["against"] if row["predicted"] is not None]
        self.assertEqual(len(rows), 8)
        for row in rows:
            self.assertAlmostEqual(row["error"], row["predicted"] / row["measured"] - 1, delta=1e-12)
        text = self.done("scale", SCENARIO, "--gpus", "4,64", "--against", MEASURED)
        self.assertIn("14.0270", text)
        self.assertIn("measured values without a predicted point: 12", text)

    def test_a_faulty_measured_file_is_refused_with_places(self):
        file = self.write("m.csv", "series,gpus,metric,value\nAdamS,four,step_time_s,1\n")
        self.assertIn(":2:7: gpus", self.refused("scale", SCENARIO, "--gpus", "4", "--against", file))
        self.refused("scale", SCENARIO, "--gpus", "4", "--against", self.path("none.csv"))

    def test_counts_are_checked_all_at_once(self):
        text = self.refused("scale", SCENARIO, "--gpus", "3,4,601")
        self.assertIn("3 GPUs", text)
        self.assertIn("601 GPUs", text)
        for bad in ("4,,8", "4,x", "0", "-4", "1e3", ""):
            self.refused("scale", SCENARIO, "--gpus", bad)

    def test_strong_scaling_asks_nothing_of_the_files_own_count(self):
        batch = ("--series", "AdamS", "--set", "training.global_batch=1000")
        points = self.document("scale", SCENARIO, "--gpus", "5,25,125", *batch)["points"]
        self.assertEqual([point["gpus"] for point in points], [5, 25, 125])
        self.assertIn("--gpus: 64 GPUs: ", self.refused("scale", SCENARIO, "--gpus", "5,64", *batch))
        self.refused("scale", SCENARIO, "--gpus", "5", "--weak", *batch)
        self.refused("run", SCENARIO, *batch)

    def test_an_infeasible_point_appears_with_its_reason_and_only_all_of_them_end_with_3(self):
        changes = ("--set", "model.preset=llama-7b", "--set", "strategy.sharding=zero1", "--set",
                   "training.micro_batch=1", "--set", "training.sequence=2048", "--series", "AdamS + DO")
        self.assertEqual(call("scale", INFEASIBLE, "--gpus", "8,16").returncode, 3)
        points = self.document("scale", SCENARIO, "--gpus", "1,64", *changes)["points"]
        self.assertEqual([("infeasible" in point) for point in points], [True, False])
        self.assertEqual(points[1]["efficiency"], 1)
        self.assertIn("infeasible", self.done("scale", SCENARIO, "--gpus", "1,64", *changes))

    def test_the_same_call_gives_the_same_bytes(self):
        arguments = ("scale", SCENARIO, "--gpus", "4,8", "--json", "--against", MEASURED)
        self.assertEqual(self.done(*arguments), self.done(*arguments))


class Plot(ProgramTest):
    def test_two_figures_are_drawn_and_the_same_again(self):
        python = {"SCAPESIM_PYTHON": os.environ["PYTHON"]}
        figures = []
        for name in ("a", "b"):
            process = call("scale", SCENARIO, "--gpus", "4,8", "--against", MEASURED, "--plot",
                           self.path(f"{name}.png"), environment=python)
            self.assertEqual(process.returncode, 0, process.stderr)
            for suffix in ("", "-breakdown"):
                with open(self.path(f"{name}{suffix}.png"), "rb") as file:
                    figures.append(file.read())
        self.assertTrue(all(figure.startswith(b"\x89PNG") for figure in figures))
        self.assertEqual(figures[:2], figures[2:])

    def plotted(self, *arguments, python=os.environ["PYTHON"], **options):
        return call("scale", "--gpus", "4,8", *arguments, environment={"SCAPESIM_PYTHON": python}, **options)

    def test_a_name_may_begin_with_a_dash(self):
        process = self.plotted(os.path.abspath(SCENARIO), "--series", "AdamS", "--plot", "-x.png", cwd=self.folder)
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), ["-x-breakdown.png", "-x.png"])

    def test_any_name_of_a_series_is_drawn_and_what_the_font_lacks_is_one_line(self):
        with open(SCENARIO, encoding="utf-8") as shipped:
            text = shipped.read()
        names = ("$x^$ and $\\\\frac$", "_hidden", "\u6a21\u578b")
        variants = "".join(f'\n[[variant]]\nname = "{name}"\n' for name in names)
        file = self.write("s.toml", text + variants)
        process = self.plotted(file, "--plot", self.path("a.png"))
        self.assertEqual(process.returncode, 0, process.stderr)
        lines = [line for line in process.stderr.splitlines() if "of profile" not in line and "in profile" not in line]
        self.assertEqual([line.split()[0] for line in lines[-2:]], ["warning:", "drawn:"], process.stderr)
        self.assertNotIn("Warning", process.stderr)

    def test_a_python_that_fails_is_one_line_and_code_1(self):
        fake = self.write("python", '#!/bin/sh\n[ "$1" = -c ] && exit 0\necho Traceback >&2\necho "Error: broken" >&2\nexit 1\n')
        os.chmod(fake, 0o755)
        process = self.plotted(SCENARIO, "--series", "AdamS", "--csv", "--plot", self.path("a.png"), python=fake)
        self.assertEqual((process.returncode, process.stderr), (1, "warning: no figure drawn: Error: broken\n"))
        self.assertTrue(process.stdout)

    def test_without_a_python_that_plots_the_table_is_printed_and_the_code_is_1(self):
        process = call("scale", SCENARIO, "--gpus", "4", "--plot", self.path("a.png"),
                       environment={"SCAPESIM_PYTHON": "/bin/false"})
        self.assertEqual(process.returncode, 1)
        self.assertIn("AdamS", process.stdout)
        self.assertIn("no figure drawn", process.stderr)
        self.assertFalse(os.listdir(self.folder))

    def test_a_name_that_cannot_be_drawn_is_refused_before_work(self):
        self.refused("scale", SCENARIO, "--gpus", "4", "--plot", self.path("a.txt"))
        self.refused("scale", SCENARIO, "--gpus", "4", "--plot", self.path("none/a.png"))


class Collective(ProgramTest):
    def rows(self, kind, *arguments):
        document = self.document("collective", kind, "--cluster", "flat-50GBps", *arguments)
        self.assertEqual(list(document), ["schema", "rows", "warnings"])
        return document["rows"]

    def test_rings_on_raw_links_follow_their_closed_forms(self):
        size, n, latency, rate = 2.0**30, 64, 5e-6, 50e9
        for kind, passes in (("all-reduce", 2), ("reduce-scatter", 1), ("all-gather", 1)):
            (row,) = self.rows(kind, "--gpus", "64", "--size", "1GiB")
            time = passes * (n - 1) * (latency + size / n / rate)
            self.assertAlmostEqual(row["time_s"] / time, 1, delta=1e-6)
            self.assertAlmostEqual(row["algbw_Bps"] / (size / time), 1, delta=1e-6)
            self.assertAlmostEqual(row["busbw_Bps"] / (passes * (n - 1) / n * size / time), 1, delta=1e-6)

    def test_sizes_run_from_first_to_last_by_the_factor(self):
        rows = self.rows("all-reduce", "--gpus", "8", "--size", "1KiB:1MiB:4")
        self.assertEqual([row["size_B"] for row in rows], [1024 * 4**i for i in range(6)])
        self.assertEqual(len(self.rows("all-reduce", "--gpus", "8")), 31)

    def test_sizes_are_whole_bytes(self):
        sizes = [row["size_B"] for row in self.rows("all-reduce", "--gpus", "8", "--size", "8B:100B:1.1")]
        self.assertEqual(sizes, sorted(set(sizes)))
        self.assertTrue(all(size == int(size) for size in sizes))
        self.assertEqual(sizes[:4], [8, 9, 10, 11])
        (row,) = self.rows("all-reduce", "--gpus", "8", "--size", "1.1GB")
        self.assertEqual(row["size_B"], 1100000000)

    def test_the_table_is_in_microseconds_and_gigabytes_per_second(self):
        text = self.done("collective", "all-reduce", "--cluster", "flat-50GBps", "--gpus", "64", "--size", "1GiB")
        self.assertIn("1073741824   42908.58         25.02         49.27  ring", text)

    def test_every_listed_collective_runs_with_every_algorithm_that_is_listed_for_it(self):
        cluster = ("--cluster", "dgx-h100", "--gpus", "32", "--size", "64MiB")
        alone = {"nvls": ("--gpus", "8"), "pat": ("--cluster", "flat-50GBps")}
        for row in self.document("list", "collectives")["rows"]:
            for algorithm in row["algorithms"].split(", "):
                with self.subTest(row["name"], algorithm=algorithm):
                    arguments = cluster
                    for option, value in zip(*[iter(alone.get(algorithm, ()))] * 2):
                        at = arguments.index(option)
                        arguments = (*arguments[:at + 1], value, *arguments[at + 2:])
                    (result,) = self.document("collective", row["name"], *arguments, "--algorithm", algorithm)["rows"]
                    self.assertEqual(result["algorithm"], algorithm)
                    self.assertGreater(result["busbw_Bps"], 0)

    def test_levels_of_detail_agree_on_one_ring(self):
        times = [self.rows("all-reduce", "--gpus", "8", "--size", "64MB", "--fidelity", level)[0]["time_s"]
                 for level in ("fluid", "flow", "chunk")]
        for time in times:
            self.assertAlmostEqual(time / times[0], 1, delta=1e-5)  # SimGrid counts nanoseconds

    def test_no_profile_can_be_said_in_words(self):
        self.assertEqual(self.rows("all-reduce", "--gpus", "8", "--size", "1GiB", "--profile", "none"),
                         self.rows("all-reduce", "--gpus", "8", "--size", "1GiB"))

    def test_sizes_below_the_fit_of_a_profile_are_warned_of(self):
        arguments = ("collective", "all-reduce", "--cluster", "vista", "--gpus", "64", "--profile", "gh200-vista-sockets")
        self.assertEqual(self.document(*arguments, "--size", "2GiB")["warnings"], [])
        warnings = self.document(*arguments, "--size", "1MiB:2GiB:2")["warnings"]
        self.assertEqual([warning["code"] for warning in warnings], ["extrapolation"])
        self.assertIn("warning: extrapolation: ", self.warnings(*arguments, "--size", "1MiB"))
        self.assertNotIn("extrapolation", self.done(*arguments, "--size", "1MiB"))

    def test_mistakes_are_refused(self):
        cluster = ("--cluster", "flat-50GBps")
        for arguments in (("all-reduce", *cluster), ("all-reduce", "--gpus", "4"),
                          ("all-reduce", *cluster, "--gpus", "65537"), ("all-reduce", *cluster, "--gpus", "4,8"),
                          ("all-reduce", *cluster, "--gpus", "4", "--size", "8"),
                          ("all-reduce", *cluster, "--gpus", "4", "--size", "1.5B"),
                          ("all-reduce", *cluster, "--gpus", "4", "--size", "0.3KiB"),
                          ("all-reduce", *cluster, "--gpus", "4", "--size", "2000000TiB"),
                          ("all-reduce", *cluster, "--gpus", "4", "--size", "8B:4B:2"),
                          ("all-reduce", *cluster, "--gpus", "4", "--size", "8B:8GiB:1"),
                          ("all-reduce", *cluster, "--gpus", "4", "--size", "0B"),
                          ("all-reduce", *cluster, "--gpus", "4", "--algorithm", "treee"),
                          ("all-reduce", *cluster, "--gpus", "4", "--algorithm", "nvls"),
                          ("all-to-all", *cluster, "--gpus", "4", "--algorithm", "ring"),
                          ("all-reduce", *cluster, "--gpus", "4", "--protocol", "LL"),
                          ("all-reduce", *cluster, "--gpus", "4", "--fidelity", "packet"),
                          ("all-reduce", *cluster, "--gpus", "512", "--fidelity", "chunk"),
                          ("broadcast", *cluster, "--gpus", "4", "--fidelity", "chunk"),
                          ("all-to-all", *cluster, "--gpus", "128", "--fidelity", "flow"),
                          ("all-reduce", *cluster, "--gpus", "4", "--profile", "nobody"),
                          ("all-redoce", *cluster, "--gpus", "4"), ("all-reduce", "--cluster", "none", "--gpus", "4")):
            with self.subTest(arguments):
                self.refused("collective", *arguments)


if __name__ == "__main__":
    unittest.main()
