# SPDX-License-Identifier: Apache-2.0
"""reports/figures: what is on the axes equals the document, names are shown as they are written, nothing is cut."""

import json
import os
import tempfile
import unittest

import looking
from looking import bars_of, drawn, faults, points_of, results, row, style


def run(gpus, seconds, series="AdamS", **more):
    return {"schema": "scapesim.run/1", "scenario": {"name": "tiny", "hash": "0"}, "series": series, "gpus": gpus,
            "step_time_s": seconds, "step_time_low_s": 0.9 * seconds, "step_time_high_s": 1.2 * seconds,
            "interval_level": 0.9, "version": "0", "calibration": {"id": "c", "weakest_provenance": "assumed"},
            "efficiency": 0.5, "overlap_fraction": 0.25, "mfu": 0.4, "tokens_per_s": 1.0,
            "breakdown_s": {"compute": 0.75 * seconds, "optimizer": 0, "exposed_communication": 0.25 * seconds, "copy": 0,
                            "host": 0, "bubble": 0},
            "communication": [{"name": "gradient all-reduce", "collective": "all-reduce", "group_size": gpus, "count": 2,
                               "bytes_B": 8, "busbw_Bps": 1.0, "time_s": 0.5 * seconds, "exposed_s": 0.25 * seconds}],
            "memory_B": {"parameters": 2 ** 30, "gradients": 2 ** 31, "optimizer": 0, "strategy": 0, "activations": 0,
                         "temporary": 0, "total": 3 * 2 ** 30, "context": 2 ** 30, "capacity": 2 ** 33},
            "warnings": [], **more}


def measured(series, gpus, seconds, efficiency=None):
    known = {} if efficiency is None else {"measured_efficiency": efficiency}
    return {"series": series, "gpus": gpus, "metric": "step_time_s", "measured": seconds, "predicted": None, "error": None,
            **known}


def scale(points, against=(), **more):
    return {"schema": "scapesim.scale/1", "points": points, "against": list(against), **more}


class Scaling(unittest.TestCase):
    document = scale([run(4, 16, efficiency=1), run(64, 2, efficiency=0.5), run(4, 8, "B")],
                     [measured("AdamS", 4, 15, 1), measured("AdamS", 64, 2.5, 0.375), measured("other", 4, 1, 1)])

    def test_predicted_and_measured_step_times_are_those_of_the_file(self):
        figure = drawn(row("step-time"), self.document)
        self.assertEqual(points_of(figure, "predicted 0"), [(4, 16), (64, 2)])
        self.assertEqual(points_of(figure, "predicted 1"), [(4, 8)])
        self.assertEqual(points_of(figure, "measured 0"), [(4, 15), (64, 2.5)])
        self.assertEqual(points_of(figure, "measured 1"), [])
        band = figure.axes[0].collections[0].get_paths()[0].vertices
        self.assertEqual({tuple(v) for v in band.round(9)}, {(4, 14.4), (4, 19.2), (64, 1.8), (64, 2.4)})

    def test_efficiencies_are_those_of_the_file_and_never_computed(self):
        figure = drawn(row("efficiency"), self.document)
        self.assertEqual(points_of(figure, "predicted 0"), [(4, 100), (64, 50)])
        self.assertEqual(points_of(figure, "measured 0"), [(4, 100), (64, 37.5)])
        without = scale([run(4, 16)], [measured("AdamS", 4, 15)])
        self.assertEqual(points_of(drawn(row("efficiency"), without), "measured 0"), [])

    def test_axes_say_what_and_in_which_unit(self):
        both = drawn(row("scaling"), self.document)
        self.assertEqual([axes.get_ylabel() for axes in both.axes], ["step time (s)", "strong-scaling efficiency (%)"])
        self.assertEqual([axes.get_xlabel() for axes in both.axes], ["GPUs", "GPUs"])
        weak = drawn(row("efficiency"), {**self.document, "scaling": "weak"})
        self.assertEqual(weak.axes[0].get_ylabel(), "weak-scaling efficiency (%)")

    def test_measured_differs_from_predicted_without_colour(self):
        figure = drawn(row("step-time"), self.document)
        for line in figure.axes[0].lines:
            measured_one = line.get_gid().startswith("measured")
            self.assertEqual(line.get_linestyle() == "None", measured_one)
            self.assertEqual(line.get_markerfacecolor() == style.PAPER, measured_one)

    def test_the_corner_names_calibration_provenance_date_and_version(self):
        figure = drawn(row("step-time"), self.document)
        corner = [text.get_text() for text in figure.texts if text.get_gid() == "corner"]
        self.assertEqual(corner, ["c (weakest: assumed), 2026-01-31, scapesim 0"])


class Steps(unittest.TestCase):
    def test_shares_sum_to_the_step_and_are_those_of_the_file(self):
        figure = drawn(row("breakdown"), scale([run(4, 16), run(8, 4)]))
        self.assertEqual(bars_of(figure.axes[0], "part 0"), [(0, 75), (1, 75)])
        self.assertEqual(bars_of(figure.axes[0], "part 2"), [(0, 25), (1, 25)])
        self.assertEqual(bars_of(figure.axes[0], "part 1"), [])

    def test_memory_is_in_gib_under_the_capacity(self):
        figure = drawn(row("memory"), run(4, 16))
        self.assertEqual(bars_of(figure.axes[0], "part 1"), [(0, 2)])
        self.assertEqual([line.get_xdata()[0] for line in figure.axes[0].lines if line.get_gid() == "capacity"], [8])

    def test_exchanges_show_all_time_and_the_exposed_part(self):
        figure = drawn(row("communication"), run(4, 16))
        self.assertEqual(bars_of(figure.axes[0], "time"), [(0, 8)])
        self.assertEqual(bars_of(figure.axes[0], "exposed"), [(0, 4)])

    def test_a_step_without_exchanges_has_no_such_figure(self):
        self.assertIsNone(row("communication").draw(run(1, 16, communication=[])))


class Looks(unittest.TestCase):
    def check(self, document):
        for one in looking.catalogue.rows_of(document["schema"].rpartition("/")[0]):
            figure = drawn(one, document)
            if figure is not None:
                with self.subTest(one.name):
                    self.assertEqual(faults(figure), [])

    def test_nothing_is_cut_or_overlaps_from_one_point_to_many(self):
        counts = [2 ** i for i in range(6, 15)]
        names = ["dense", "SCAPE d=0.01, fused kernels and overlapped mask, residual offloaded", "x", "y", "z"]
        self.check(scale([run(4, 16)]))
        self.check(scale([run(n, 1000 / n, name) for name in names for n in counts]))
        self.check(scale([run(n, 1e-4 * n, name) for name in names[:2] for n in (16383, 16384)]))
        self.check({"schema": "scapesim.run-set/1", "runs": [run(8, 2, name) for name in names]})

    def test_a_fault_is_seen(self):
        figure, cells = style.new_figure()
        self.assertTrue(any("blank" in fault for fault in faults(figure)) or cells is not None)
        cells[0][0].text(0.5, 0.5, "one text")
        cells[0][0].text(0.52, 0.5, "another")
        figure.text(0.9, 0.5, "far out of the picture")
        kinds = {fault.split(":")[0] for fault in faults(figure)}
        self.assertLessEqual({"overlap", "cut"}, kinds)

    def test_names_are_shown_as_they_are_written(self):
        names = ["_hidden", "a $x$ b", "$\\frac$"]
        document = scale([run(gpus, 2, name) for name in names for gpus in (4, 8)])
        texts = [text.get_text() for text in drawn(row("scaling"), document).legends[0].get_texts()]
        self.assertEqual([text.replace("\\$", "$") for text in texts], names)
        for text in texts:
            self.assertFalse(style.matplotlib.cbook.is_math_text(text), text)
        titles = [axes.get_title() for axes in drawn(row("breakdown"), document).axes if axes.get_visible()]
        self.assertEqual([title.replace("\\$", "$") for title in titles], names)


class Files(unittest.TestCase):
    def problems(self, *texts):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for i, text in enumerate(texts):
                paths.append(os.path.join(folder, f"{i}.json"))
                with open(paths[-1], "w", encoding="utf-8") as file:
                    file.write(text)
            try:
                results.load(paths)
            except results.BadResult as error:
                return str(error).replace(folder + os.sep, "").splitlines()
        return []

    def test_every_problem_of_every_file_is_told_at_once(self):
        found = self.problems('{"schema": "scapesim.scale/2"}', "{\n  x", "[]", '{"schema": "scapesim.scales/1"}',
                              json.dumps(scale([run(4, 1)])))
        self.assertEqual(len(found), 4)
        self.assertIn('0.json: schema: "scapesim.scale/2" is another version than "scapesim.scale/1"', found[0])
        self.assertIn("1.json:2:3: not JSON", found[1])
        self.assertIn("2.json: \"schema\" is missing", found[2])
        self.assertIn('did you mean "scapesim.scale/1"?', found[3])

    def test_names_of_figures_differ(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for name in ("a", "b"):
                os.mkdir(os.path.join(folder, name))
                paths.append(os.path.join(folder, name, "result.json"))
                with open(paths[-1], "w", encoding="utf-8") as file:
                    json.dump(scale([run(4, 1)]), file)
            self.assertEqual([result.name for result in results.load(paths)], ["result", "result-2"])


if __name__ == "__main__":
    unittest.main()
