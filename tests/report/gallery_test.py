# SPDX-License-Identifier: Apache-2.0
"""README's gallery from a clean clone: its commands run as written, every figure that it names is drawn, whole and legible,
and shows the numbers of its result file."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.abspath("tests/report"))

import browser  # noqa: E402
import looking  # noqa: E402
from looking import bars_of, points_of, results  # noqa: E402

SCAPESIM = os.path.abspath(os.environ["SCAPESIM"])
MEGABYTE = 1e6


def gallery():
    """(shell commands, names of figures) of the README's section on pictures."""
    readme = pathlib.Path("README.md").read_text(encoding="utf-8")
    section = readme[readme.index("\n## Pictures"):]
    section = section[:section.index("\n## ", 5)]
    commands = re.search(r"```sh\n(.*?)```", section, re.S)[1]
    table = [line for line in section.splitlines() if line.startswith("| `")]
    names = [name for line in table for name in re.findall(r"`([a-z-]+)`", line.split("|")[1])]
    return commands, names


class Gallery(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        commands, cls.names = gallery()
        out = str(cls.folder / "out")
        script = commands.replace("build/release/scapesim", SCAPESIM)
        script = re.sub(r"(?<![\w/.-])out(?=[/\s])", out, script)
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], capture_output=True, text=True, timeout=500,
                              env={**os.environ, "SCAPESIM_PYTHON": os.environ["PYTHON"], "SOURCE_DATE_EPOCH": "1769817600"})
        if done.returncode != 0:
            raise AssertionError(f"the gallery fails ({done.returncode}):\n{done.stderr[-3000:]}")
        cls.out = cls.folder / "out"
        cls.files = {path.name for path in (cls.out / "report").iterdir()}
        cls.inputs = re.search(r"scapesim report (.*?) -o", commands.replace("\\\n", " "), re.S)[1].split()
        cls.results = results.load([cls.folder / name for name in cls.inputs])

    def result(self, name):
        return next(result for result in self.results if result.name == name)

    def test_every_figure_named_is_drawn_in_three_formats_and_every_kind_has_its_row(self):
        for name in self.names:
            for kind in ("png", "svg", "pdf"):
                self.assertTrue(any(file.endswith(f"-{name}.{kind}") for file in self.files), f"{name}.{kind}")
        drawn = {row.name for result in self.results for row in looking.catalogue.rows_of(result.kind)
                 if row.draw(result.document) is not None}
        self.assertEqual(drawn - set(self.names), set(), "the README's table lacks these")

    def test_nothing_is_blank_cut_small_or_overlapping(self):
        for result in self.results:
            for row in looking.catalogue.rows_of(result.kind):
                figure = looking.drawn(row, result.document)
                if figure is not None:
                    with self.subTest(f"{result.name}-{row.name}"):
                        self.assertEqual(looking.faults(figure), [])

    def test_the_corner_of_every_figure_names_date_and_calibration(self):
        for file in sorted(self.files):
            if file.endswith(".svg"):
                with self.subTest(file):
                    corner = re.search(r'<g id="corner">.*?</g>', (self.out / "report" / file).read_text(), re.S)[0]
                    self.assertIn("2026-01-31", corner)

    def test_every_axis_says_what_it_shows(self):
        for result in self.results:
            for row in looking.catalogue.rows_of(result.kind):
                figure = looking.drawn(row, result.document)
                for axes in figure.axes if figure else []:
                    if axes.get_visible() and not figure.axes[0].get_title().startswith("AdamS"):
                        with self.subTest(f"{result.name}-{row.name}"):
                            named = {axes.get_xlabel(), axes.get_ylabel()} - {""}
                            self.assertTrue(named or axes.get_shared_x_axes().get_siblings(axes) != [axes])

    def test_blocks_of_the_timeline_are_those_of_the_result(self):
        step = self.result("step")
        run = results.runs_of(step.document)[0]
        figure = looking.drawn(looking.row("timeline"), step.document)
        scale = {"s": 1, "ms": 1e3, "us": 1e6}[re.search(r"\((\w+)\)", figure.axes[0].get_xlabel())[1]]
        for place, stream in enumerate(run["timeline"]["classes"][0]["streams"]):
            expected = sorted((round(begin * scale, 9), round(end * scale, 9)) for begin, end, *_ in stream["blocks"])
            shown = sorted((round(path.vertices[:, 0].min(), 9), round(path.vertices[:, 0].max(), 9))
                           for collection in figure.axes[0].collections
                           if (collection.get_gid() or "").startswith(f"lane {place} ") for path in collection.get_paths())
            self.assertEqual(shown, expected)

    def test_lanes_cover_the_step_and_do_not_overlap(self):
        for name in ("step", "pipeline"):
            for run in results.runs_of(self.result(name).document):
                for one in run["timeline"]["classes"]:
                    for stream in one["streams"]:
                        ends = 0
                        for begin, end, *_ in stream["blocks"]:
                            self.assertGreaterEqual(begin, ends - 1e-12)
                            self.assertLessEqual(end, run["timeline"]["step_s"] * (1 + 1e-12))
                            ends = end

    def test_kernels_of_the_roofline_are_those_of_the_result_and_lie_below_the_roof_of_arithmetic(self):
        step = self.result("step")
        run = results.runs_of(step.document)[0]
        figure = looking.drawn(looking.row("roofline"), step.document)
        for kind in ("gemm", "attention"):
            expected = [(row["flops_per_byte"], row["flops_per_s"] / 1e12) for row in run["kernels"] if row["kind"] == kind]
            self.assertEqual(points_of(figure, kind), expected)
        self.assertTrue(all(row["flops_per_s"] <= run["roofs"]["flops_per_s"] for row in run["kernels"]))

    def test_collectives_show_prediction_measurement_and_error_of_the_result(self):
        document = self.result("collective").document
        figure = looking.drawn(looking.row("bandwidth"), document)
        self.assertEqual(points_of(figure, "predicted 0"), [(r["size_B"], r["busbw_Bps"] / 1e9) for r in document["rows"]])
        self.assertEqual(points_of(figure, "measured 0"), [(r["size_B"], r["busbw_Bps"] / 1e9) for r in document["measured"]])
        self.assertEqual(points_of(figure, "residuals 1", 1), [(r["size_B"], 100 * r["error"]) for r in document["measured"]])
        for row in document["measured"]:
            self.assertAlmostEqual(row["error"], row["predicted_s"] / row["time_s"] - 1, places=12)

    def test_residuals_of_a_calibration_are_fitted_against_measured(self):
        document = self.result("fit").document
        fit = next(fit for fit in document["fits"] if fit["family"] == "collective")
        figure = looking.drawn(looking.row("bandwidth-fit"), document)
        self.assertEqual(points_of(figure, "measured 0"), [(r["size_B"], r["measured_busbw_Bps"] / 1e9) for r in fit["rows"]])
        self.assertEqual(points_of(figure, "fitted 0"), [(r["size_B"], r["fitted_busbw_Bps"] / 1e9) for r in fit["rows"]])
        for row in fit["rows"]:
            self.assertAlmostEqual(row["residual"], row["fitted_s"] / row["measured_s"] - 1, places=12)

    def test_links_are_never_used_beyond_their_capacity(self):
        for name in ("step", "pipeline"):
            for run in results.runs_of(self.result(name).document):
                for row in run["resources"]:
                    self.assertLessEqual(row["use"], 1 + 1e-9, row)
        figure = looking.drawn(looking.row("links"), self.result("pipeline").document)
        expected = [100 * row["use"] for row in results.runs_of(self.result("pipeline").document)[0]["resources"]]
        self.assertEqual([length for _, length in bars_of(figure.axes[0], "use")], expected)

    def test_the_page_holds_scenario_provenance_and_warnings_within_its_size(self):
        page = (self.out / "report" / "index.html").read_text(encoding="utf-8")
        self.assertLess(len(page), 5 * MEGABYTE)
        for words in ("Scenario scenarios/vista-llama-1.8b.toml", "Provenance of the numbers used", "memory.context_B", "Warnings",
                      "hbm.bandwidth_Bps"):
            self.assertIn(words, page)

    def test_no_figure_of_the_page_is_cut_in_a_browser(self):
        found = browser.asked(self.out / "report" / "index.html", """const out = [];
          for (const svg of document.querySelectorAll("figure svg")) {
            const box = svg.getBoundingClientRect();
            for (const text of svg.querySelectorAll("text")) {
              const b = text.getBoundingClientRect();
              if (b.left < box.left - 1 || b.right > box.right + 1 || b.top < box.top - 1 || b.bottom > box.bottom + 1)
                out.push(svg.closest("figure").id + ": " + text.textContent);
            } }
          return out;""")
        self.assertEqual(found, [])


class Trace(unittest.TestCase):
    def test_arrows_join_collectives_and_what_waits_for_them(self):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "t.json")
            subprocess.run([SCAPESIM, "run", "scenarios/jupiter-llama3-8b-fsdp.toml", "--interval", "off", "--trace", file], check=True,
                           capture_output=True)
            with open(file, encoding="utf-8") as text:
                events = json.load(text)["traceEvents"]
        starts = {e["id"]: e for e in events if e["ph"] == "s"}
        ends = {e["id"]: e for e in events if e["ph"] == "f"}
        self.assertTrue(starts)
        self.assertEqual(starts.keys(), ends.keys())
        threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
        for key, start in starts.items():
            self.assertLessEqual(start["ts"], ends[key]["ts"] + 1e-3)
            self.assertIn("communication", threads[start["pid"], start["tid"]])
        counters = {e["name"] for e in events if e["ph"] == "C"}
        self.assertTrue(any(name.startswith("use of ") for name in counters))


if __name__ == "__main__":
    unittest.main()
