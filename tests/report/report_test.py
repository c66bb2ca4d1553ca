# SPDX-License-Identifier: Apache-2.0
"""scapesim report: files that are written, the page in a browser, what is refused."""

import json
import os
import pathlib
import re
import resource
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.abspath("tests/cli"))

import browser  # noqa: E402
from program import SCENARIO, ProgramTest, call  # noqa: E402

PYTHON = {"SCAPESIM_PYTHON": os.environ["PYTHON"]}
MEASURED = "calib/data/vista-llama-1.8b.csv"
DARK = "--blink-settings=preferredColorScheme=0"


class ReportTest(ProgramTest):
    def scaled(self, name="scale.json", *more):
        return self.write(name, self.done("scale", SCENARIO, "--gpus", "4,8,16,32,64", "--against", MEASURED, "--json", *more))

    def report(self, *arguments, folder="out", code=0):
        process = call("report", *arguments, "-o", self.path(folder), "--date", "2026-01-31", environment=PYTHON)
        self.assertEqual(process.returncode, code, process.stdout + process.stderr)
        return process

    def content(self, name, folder="out"):
        with open(os.path.join(self.path(folder), name), "rb") as file:
            return file.read()


class Files(ReportTest):
    def test_figures_of_three_kinds_and_a_page(self):
        result = self.scaled()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = self.report(result)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"a report of seven figures: {after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime:.1f} s of the processor")
        self.assertIn("index.html", process.stdout)
        files = sorted(os.listdir(self.path("out")))
        figures = ["breakdown", "communication", "efficiency", "hidden", "memory", "scaling", "step-time"]
        self.assertEqual(files, sorted(["index.html", *[f"scale-{name}.{kind}" for name in figures
                                                        for kind in ("pdf", "png", "svg")]]))
        for kind, begins in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")):
            self.assertTrue(self.content(f"scale-memory.{kind}").startswith(begins))

    def test_the_same_result_gives_the_same_bytes(self):
        result = self.scaled()
        for folder in ("a", "b"):
            self.report(result, folder=folder)
        for name in os.listdir(self.path("a")):
            self.assertEqual(self.content(name, "a"), self.content(name, "b"), name)

    def test_only_the_formats_asked_for_and_other_files_stay(self):
        os.mkdir(self.path("out"))
        kept = self.write("out/notes.txt", "mine")
        self.report(self.scaled(), "--formats", "svg")
        self.assertTrue(os.path.exists(kept))
        self.assertEqual({name.rpartition(".")[2] for name in os.listdir(self.path("out"))}, {"txt", "svg", "html"})

    def test_text_in_a_vector_figure_is_text(self):
        self.report(self.scaled(), "--formats", "svg")
        svg = self.content("scale-step-time.svg").decode()
        for word in ("step time (s)", "GPUs", "SCAPE d=0.01", "gh200-vista-sockets (weakest: assumed)", "2026-01-31"):
            self.assertIn(f">{word}", svg.replace("gh200", ">gh200").replace("2026", ">2026"))

    def test_points_of_the_vector_figure_lie_where_the_result_says(self):
        """Markers of the measured AdamS points, read back through the ticks of the axes."""
        self.report(self.scaled(), "--formats", "svg")
        svg = self.content("scale-efficiency.svg").decode()
        group = re.search(r'<g id="predicted 0">(.*?)</g>\s*</g>', svg, re.S)[1]
        heights = [float(y) for y in re.findall(r'<use [^>]*y="([\d.]+)"', group)]
        ticks = [float(y) for y in re.findall(r'<g id="ytick_\d+">.*?<use [^>]*y="([\d.]+)"', svg, re.S)]
        labels = [float(t) for t in re.findall(r'<g id="ytick_\d+">.*?<text[^>]*>([\d.]+)</text>', svg, re.S)]
        slope = (labels[-1] - labels[0]) / (ticks[-1] - ticks[0])
        shown = [labels[0] + slope * (y - ticks[0]) for y in heights]
        document = self.document("scale", SCENARIO, "--series", "AdamS", "--gpus", "4,8,16,32,64")
        for got, point in zip(shown, document["points"], strict=True):
            self.assertAlmostEqual(got, 100 * point["efficiency"], delta=0.05)  # a hundredth of a point in the file


class Logs(ReportTest):
    """Training logs made up from the measured rows: two timers and ten steps each."""

    def log(self, gpus, step_s, communication_s):
        lines = [f"using world size: {gpus}, data-parallel size: {gpus}"]
        for i in range(1, 13):
            lines += [f" iteration {i:8d}/      12 | elapsed time per iteration (ms): {1000 * step_s:.1f} | global batch size:  1024 |",
                      "(min, max) time across ranks (ms):",
                      f"    all-grads-sync .................................: (1.00, {1000 * communication_s:.2f})"]
        return self.write(f"run{gpus}.log", "\n".join(lines) + "\n")

    def logs(self):
        return [self.log(4, 14.12, 3.04), self.log(8, 9.14, 3.56), self.log(16, 6.66, 3.82)]

    def test_logs_lie_on_the_curve_that_goes_on_beyond_them_with_its_interval(self):
        arguments = [word for log in self.logs() for word in ("--against", log)]
        self.done("scale", SCENARIO, "--series", "AdamS", "--gpus", "4,8,16,64", *arguments, "--result", self.path("r.json"))
        with open(self.path("r.json"), encoding="utf-8") as file:
            document = json.load(file)
        steps = {row["gpus"]: round(row["measured"], 9) for row in document["against"] if row["metric"] == "step_time_s"}
        self.assertEqual(steps, {4: 14.12, 8: 9.14, 16: 6.66})
        waits = {row["gpus"]: round(row["measured"], 9) for row in document["against"] if row["metric"] == "communication_s"}
        self.assertEqual(waits, {4: 3.04, 8: 3.56, 16: 3.82})
        self.assertEqual([point["gpus"] for point in document["points"]], [4, 8, 16, 64])
        self.assertLess(document["points"][3]["step_time_low_s"], document["points"][3]["step_time_high_s"])
        self.report(self.path("r.json"), "--formats", "svg")
        self.assertIn('id="measured 0"', self.content("r-step-time.svg").decode())

    def test_a_log_needs_one_series_and_its_gpus(self):
        log = self.logs()[0]
        self.assertIn("--series", self.refused("scale", SCENARIO, "--gpus", "4", "--against", log))
        bare = self.write("bare.log", pathlib.Path(log).read_text(encoding="utf-8").split("\n", 1)[1])
        call_ = ("scale", SCENARIO, "--series", "AdamS", "--gpus", "4", "--against")
        self.assertIn("bare.log@64", self.refused(*call_, bare))
        self.assertIn("14.1200", self.done(*call_, bare + "@4"))

    def test_residuals_of_logs_are_drawn(self):
        self.done("calibrate", *self.logs(), "-o", self.path("mine.json"), "--scenario", SCENARIO, "--series", "AdamS",
                  "--base", "gh200-vista-sockets", "--residuals", self.path("fit.json"))
        with open(self.path("fit.json"), encoding="utf-8") as file:
            fits = {fit["name"]: fit["rows"] for fit in json.load(file)["fits"]}
        self.assertEqual([round(row["measured_s"], 9) for row in fits["communication"]], [3.04, 3.56, 3.82])
        self.assertEqual([round(row["measured_s"], 9) for row in fits["computation"]], [11.08, 5.58, 2.84])
        self.report(self.path("fit.json"), "--formats", "svg")
        self.assertIn("fit-training-fit.svg", os.listdir(self.path("out")))


class Sweeps(ReportTest):
    def test_a_page_of_ten_thousand_points_on_16384_gpus_stays_below_five_megabytes_and_opens(self):
        lines = []
        for i in range(10000):
            time = 1 + (i * 7919 % 10007) / 1000
            lines.append(json.dumps({
                "schema": "scapesim.sweep/1", "point": i, "axes": {"parallelism.tp": 2 ** (i % 10), "parallelism.pp": i // 10},
                "status": "done", "reason": None, "hint": None, "scenario": {"name": "s", "hash": "0"}, "gpus": 16384,
                "step_time_s": time, "tokens_per_s": 1e9 / time, "mfu": 0.4 / time, "overlap_fraction": 0.5,
                "memory_B": {"total": 1e10 + 1e6 * i, "context": 1, "capacity": 1e11}, "warnings": ["extrapolation"],
                "calibration": "h100-sxm", "weakest_provenance": "assumed", "version": "0.1.0"}))
        result = self.write("results.jsonl", "\n".join(lines) + "\n")
        self.report(result, "--formats", "svg")
        self.assertLess(len(self.content("index.html")), 5e6)
        self.assertIn("9000 further rows are in the result file", self.content("index.html").decode())
        page = os.path.join(self.path("out"), "index.html")
        script = "const t = performance.timing; return t.domContentLoadedEventEnd - t.navigationStart;"
        loading = browser.asked(page, script)
        self.assertGreater(loading, 0)
        print(f"a page of ten thousand points: loaded in {loading} ms")

    def test_a_line_that_was_cut_off_does_not_count_and_a_broken_one_is_named(self):
        good = '{"schema": "scapesim.sweep/1", "point": 0}\n'
        self.assertIn("results.jsonl:2: not JSON", self.refused("report", self.write("results.jsonl", good + "{\n" + good),
                                                              "-o", self.path("o")))


class Refused(ReportTest):
    def test_problems_of_all_files_and_nothing_is_written(self):
        newer = self.write("newer.json", '{"schema": "scapesim.scale/2", "points": []}')
        broken = self.write("broken.json", "{")
        text = self.refused("report", newer, broken, self.path("none.json"), "-o", self.path("out"))
        self.assertEqual(len(text.splitlines()), 3, text)
        for expected in ("newer.json: schema:", "broken.json:1:2: not JSON", "none.json: cannot be read"):
            self.assertIn(expected, text)

    def test_a_damaged_result_is_told_key_by_key_and_nothing_is_written(self):
        for kind, key in (("compare", "columns"), ("search", "plans"), ("breakeven", "scenario")):
            with self.subTest(kind):
                damaged = self.write(f"{kind}.json", f'{{"schema": "scapesim.{kind}/1"}}')
                text = self.refused("report", damaged, "-o", self.path("out"))
                self.assertIn(f"{kind}.json: {key}: is missing (", text)
                self.assertTrue(all(f"{kind}.json: " in line for line in text.splitlines()), text)
                self.assertFalse(os.path.exists(self.path("out")))

    def test_a_folder_that_cannot_be_made_and_a_day_that_is_none(self):
        result = self.scaled()
        self.assertIn("/proc/zz", self.refused("report", result, "-o", "/proc/zz", "--formats", "svg"))
        self.assertIn("no day of the calendar", self.refused("report", result, "-o", self.path("o"), "--date", "2026-13-45"))

    def test_options_that_mean_nothing(self):
        result = self.write("r.json", "{}")
        self.assertIn('did you mean "png"?', self.refused("report", result, "-o", self.path("o"), "--formats", "png,pgn"))
        self.assertIn("not a date", self.refused("report", result, "-o", self.path("o"), "--date", "31.1.2026"))
        self.assertIn("is not a folder", self.refused("report", result, "-o", result))

    def test_without_matplotlib_the_code_is_1_and_the_way_out_is_told(self):
        process = call("report", self.write("r.json", "{}"), "-o", self.path("o"), environment={"SCAPESIM_PYTHON": "/nonexistent"})
        self.assertEqual((process.returncode, process.stdout), (1, ""))
        self.assertIn("python3-matplotlib", process.stderr)


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        browser.browser()
        folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.page = os.path.join(folder, "index.html")
        result = os.path.join(folder, "scale.json")
        with open(result, "w", encoding="utf-8") as file:
            file.write(call("scale", SCENARIO, "--gpus", "4,8,16,32,64", "--against", MEASURED, "--json").stdout)
        done = call("report", result, "-o", folder, "--formats", "svg", environment=PYTHON)
        assert done.returncode == 0, done.stderr

    def ask(self, script, *options, **size):
        return browser.asked(self.page, script, *options, **size)

    def test_it_loads_alone(self):
        script = """const t = performance.timing;
          return { load: t.domContentLoadedEventEnd - t.navigationStart, loaded: performance.getEntriesByType("resource").length,
                   figures: document.querySelectorAll("figure svg").length, title: document.title };"""
        answer = self.ask(script)
        print(f"a page of six figures: loaded in {answer['load']} ms")
        self.assertEqual((answer["loaded"], answer["figures"]), (0, 6))
        self.assertEqual(answer["title"], "vista-llama-1.8b: strong scaling")
        with open(self.page, encoding="utf-8") as file:
            self.assertNotRegex(file.read(), r'(src|href)="(https?:)?//')

    def test_no_text_of_a_figure_leaves_its_picture_nor_the_page_its_window(self):
        script = """const out = [];
          for (const svg of document.querySelectorAll("figure svg")) {
            const box = svg.getBoundingClientRect();
            if (box.width < 200 || box.right > innerWidth + 1) out.push("picture " + box.left + " " + box.right);
            for (const text of svg.querySelectorAll("text")) {
              const b = text.getBoundingClientRect();
              if (b.left < box.left - 1 || b.right > box.right + 1 || b.top < box.top - 1 || b.bottom > box.bottom + 1)
                out.push(text.textContent);
            } }
          return { out: out, wide: document.documentElement.scrollWidth - innerWidth };"""
        for width in (1280, 390):
            with self.subTest(width):
                answer = self.ask(script, width=width)
                self.assertEqual(answer["out"], [])
                self.assertLessEqual(answer["wide"], 0)

    def test_it_follows_light_and_dark_and_the_button_turns_it(self):
        script = """const paper = () => parseInt(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]);
          const ink = () => parseInt(getComputedStyle(document.querySelector("figure text")).fill.match(/\\d+/)[0]);
          const before = [paper(), ink()]; document.getElementById("theme").click(); return [before, [paper(), ink()]];"""
        for options, first in (((), "light"), ((DARK,), "dark")):
            before, after = self.ask(script, *options)
            with self.subTest(first):
                light, dark = (before, after) if first == "light" else (after, before)
                self.assertGreater(light[0] - light[1], 150)
                self.assertGreater(dark[1] - dark[0], 150)

    def test_a_click_on_a_heading_sorts_by_number_and_again_the_other_way(self):
        first, again = self.ask("""const table = document.querySelector("table");
          const column = Array.from(table.tHead.rows[0].cells).findIndex(c => c.textContent.startsWith("step s"));
          const values = () => Array.from(table.tBodies[0].rows, r => parseFloat(r.cells[column].textContent));
          const button = table.tHead.rows[0].cells[column].querySelector("button");
          button.click(); const first = values(); button.click(); return [first, values()];""")
        self.assertEqual(len(first), 20)
        self.assertEqual(first, sorted(first))
        self.assertEqual(again, sorted(first, reverse=True))


if __name__ == "__main__":
    unittest.main()
