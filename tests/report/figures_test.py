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


def sensitivity():
    def parameter(name, less, more):
        return {"name": name, "kind": "network", "value": 1.0, "unit": "B/s", "step_time_less_s": less, "step_time_more_s": more,
                "elasticity": -0.5, "derivative": None}
    return {"schema": "scapesim.sensitivity/1", "scenario": "tiny", "series": None, "gpus": 64, "hash": "0", "calibration": "c",
            "step_time_s": 2.0, "change": 0.1,
            "parameters": [parameter("network.transport_cap_Bps", 2.4, 1.7), parameter("a parameter with a very long name, as told", 2.1,
                                                                                      1.95), parameter("gemm.scale", None, 1.99)],
            "without_effect": [], "resource_shares": {}, "parts": [
                {"name": "gradient all-reduce", "formula": "M21", "time_s": 1.2, "bound": "network", "shares": {"network": 1.0}},
                {"name": "forward", "formula": "M11", "time_s": 0.8, "bound": "compute", "shares": {"compute": 0.75, "memory": 0.25}}],
            "alternatives": [], "roofs": []}


def plan():
    def row(gpus, seconds, cost, meets, pareto):
        return {"scenario": "tiny", "hash": "0", "cluster": "c", "calibration": "c", "gpus": gpus, "meets": meets, "pareto": pareto,
                "split": {"tp": 1, "pp": 1, "dp": gpus, "micro_batch": 1}, "infeasible": None, "step_time_s": 1.0, "mfu": 0.4,
                "time_s": seconds, "gpu_hours": gpus * seconds / 3600, "cost_usd": cost, "energy_J": None}
    return {"schema": "scapesim.plan/1", "version": "0", "goal": {"tokens": 1e12, "deadline_s": 30 * 86400.0, "budget_usd": None,
                                                                  "max_gpus": None, "objective": "cost"},
            "met": True, "plans": [row(256, 50 * 86400.0, 1e6, False, True), row(512, 26 * 86400.0, 1.1e6, True, True),
                                   row(512, 29 * 86400.0, 1.3e6, True, False), row(1024, 14 * 86400.0, 1.6e6, True, True)]}


def break_even():
    def part(key, pairs, crossings):
        return {"verdict": "crosses", "samples": [{key: at, "ratio": ratio} for at, ratio in pairs],
                "crossings": [{key: at, "pays": "below"} for at in crossings]}
    row = {"series": "SCAPE d=0.01", "step_time_s": 1.0, "tokens_to_loss": 1.05, "time_to_loss_ratio": 0.8, "tokens_allowed": 1.3,
           "network": part("network_Bps", [(1e9, 0.4), (1e10, 0.8), (1e11, 1.2)], [4e10]),
           "gpus": part("gpus", [(8, 1.1), (64, 0.8), (512, 0.5)], [16])}
    base = {**row, "series": "AdamS", "network": part("network_Bps", [], []), "gpus": part("gpus", [], [])}
    return {"schema": "scapesim.breakeven/1", "scenario": "tiny", "baseline": "AdamS", "calibration": "c", "version": "0", "gpus": 64,
            "scaling": "strong", "network_Bps": 3.6e9, "rows": [base, row]}


def search():
    def found(tp, seconds):
        return {"set": {"parallelism.tp": tp, "parallelism.pp": 4, "training.micro_batch": 1, "training.recompute": "selective",
                        "strategy.sharding": "zero1"}, "stage_layers": [], "run": run(1024, seconds)}
    return {"schema": "scapesim.search/1", "objective": "time", "considered": 10, "legal": 8, "fitting": 5, "simulated": 2,
            "plans": [found(2, 10.0), found(8, 12.0)], "losers": []}


def compare():
    return {"schema": "scapesim.compare/1", "per": "step", "time_s": [3.0, 2.0],
            "columns": [{"label": "AdamS", "calibration": "c"}, {"label": "SCAPE d=0.01", "calibration": "c"}],
            "terms": [{"name": "forward", "kind": "compute", "time_s": [1.0, 1.0], "difference_s": [None, 0.0]},
                      {"name": "gradient all-reduce", "kind": "communication", "time_s": [2.0, None], "difference_s": [None, -2.0]}],
            "changed": []}


def sweep(axes):
    points = []
    for i, values in enumerate(axes):
        fits = i % 5 != 4
        points.append({"schema": "scapesim.sweep/1", "point": i, "axes": values, "status": "done" if fits else "infeasible",
                       "scenario": {"name": "tiny", "hash": "0"}, "gpus": 64, "step_time_s": 1.0 + i if fits else None,
                       "tokens_per_s": 1e6 / (1 + i) if fits else None, "memory_B": {"total": (1 + i) * 1e9} if fits else None,
                       "warnings": [], "calibration": "c", "weakest_provenance": "assumed", "version": "0"})
    return {"schema": "scapesim.sweep/1", "points": points}


def explained():
    return {"schema": "scapesim.explain/1", "scenario": "tiny", "calibration": "c", "file": "f", "format": "megatron", "gpus": 64,
            "predicted_s": 3.0, "measured_s": 3.5, "notes": [], "terms": [
                {"name": "forward and backward", "predicted_s": 2.0, "measured_s": 2.4, "cause": "slower clocks"},
                {"name": "optimizer", "predicted_s": 1.0, "measured_s": None, "cause": ""}]}


class Studies(unittest.TestCase):
    def bars(self, name, document, gid):
        figure = drawn(row(name), document)
        return [(round(bar.get_x(), 12), round(bar.get_width(), 12)) for bar in figure.axes[0].patches if bar.get_gid() == gid]

    def test_a_tornado_reaches_from_the_step_time_to_those_of_the_result(self):
        ends = [(x, x + width) for x, width in self.bars("tornado", sensitivity(), "step_time_less_s")]
        self.assertEqual([[round(v, 9) for v in end] for end in ends], [[2.0, 2.4], [2.0, 2.1]])
        ends = [(x, x + width) for x, width in self.bars("tornado", sensitivity(), "step_time_more_s")]
        self.assertEqual([[round(v, 9) for v in end] for end in ends], [[2.0, 1.7], [2.0, 1.95], [2.0, 1.99]])

    def test_bounds_share_the_time_of_each_part(self):
        self.assertEqual(self.bars("bounds", sensitivity(), "compute"), [(0, 0.6)])
        self.assertEqual(self.bars("bounds", sensitivity(), "memory"), [(0.6, 0.2)])

    def test_the_front_is_the_one_that_the_result_names(self):
        figure = drawn(row("pareto"), plan())
        self.assertEqual(points_of(figure, "front"), [(14, 1.6e6), (26, 1.1e6), (50, 1e6)])
        self.assertEqual(points_of(figure, "plans 1"), [(50, 1e6)])
        self.assertEqual(points_of(figure, "deadline"), [(30, 0), (30, 1)])

    def test_break_even_shows_samples_and_crossings(self):
        figure = drawn(row("break-even"), break_even())
        self.assertEqual(points_of(figure, "network 0"), [(1, 0.4), (10, 0.8), (100, 1.2)])
        self.assertEqual(points_of(figure, "network crossing 0"), [(40, 1)])
        self.assertEqual(points_of(figure, "gpus crossing 0", 1), [(16, 1)])

    def test_splits_show_the_breakdown_of_their_steps(self):
        self.assertEqual(self.bars("best-splits", search(), "part 0"), [(0, 7.5), (0, 9.0)])
        self.assertEqual(self.bars("best-splits", search(), "part 2"), [(7.5, 2.5), (9.0, 3.0)])

    def test_terms_are_side_by_side(self):
        self.assertEqual(self.bars("differences", compare(), "column 0"), [(0, 2.0), (0, 1.0)])
        self.assertEqual(self.bars("differences", compare(), "column 1"), [(0, 0), (0, 1.0)])

    def titles(self, figure):
        return " ".join(axes.get_title() for axes in figure.axes).replace("\n", " ")

    def test_many_series_are_all_drawn_and_beyond_the_limit_the_figure_says_how_many(self):
        for count, note in ((16, None), (24, None), (30, "24 of 30 columns shown")):
            with self.subTest(f"compare {count}"):
                document = {**compare(), "columns": [{"label": f"series {i}", "calibration": "c"} for i in range(count)],
                            "terms": [{"name": name, "kind": "compute", "time_s": [1.0 + i for i in range(count)]}
                                      for name in ("forward", "backward")]}
                figure = drawn(row("differences"), document)
                drawn_ones = {bar.get_gid() for bar in figure.axes[0].patches}
                self.assertEqual(len(drawn_ones), min(count, 24))
                self.assertEqual(self.titles(figure).strip(), note or "")
                self.assertEqual(faults(figure), [])
                self.assertLess(figure.get_figheight(), 14)

    def test_a_break_even_of_many_series_draws_all_with_looks_that_differ(self):
        for count, note in ((15, False), (30, True)):
            with self.subTest(count):
                base, one = break_even()["rows"]
                document = {**break_even(), "rows": [base, *[{**one, "series": f"series {i}"} for i in range(count)]]}
                figure = drawn(row("break-even"), document)
                lines = [line for line in figure.axes[0].lines if (line.get_gid() or "").startswith("network") and
                         "crossing" not in line.get_gid()]
                self.assertEqual(len(lines), min(count, 24))
                self.assertEqual(len({(line.get_color(), str(line._dash_pattern)) for line in lines}), len(lines))
                self.assertEqual("24 of 30 series shown" in self.titles(figure), note)
                self.assertEqual(faults(figure), [])

    def test_of_many_exchanges_the_longest_are_shown_and_the_figure_says_so(self):
        one = run(4, 16)["communication"][0]
        many = [run(4, 16, f"series {i}", communication=[{**one, "time_s": 1.0 + i, "exposed_s": 0.5}]) for i in range(40)]
        figure = drawn(row("communication"), {"schema": "scapesim.run-set/1", "runs": many})
        self.assertEqual([length for _, length in bars_of(figure.axes[0], "time")], [1.0 + i for i in range(16, 40)])
        self.assertIn("24 of 40 exchanges shown, the longest", self.titles(figure))
        self.assertEqual(faults(figure), [])

    def test_a_heat_map_has_a_cell_per_point_and_hatches_what_does_not_fit(self):
        document = sweep([{"parallelism.tp": tp, "parallelism.pp": pp} for pp in (1, 2, 4) for tp in (1, 2, 4, 8)])
        figure = drawn(row("heat-map"), document)
        cells = [patch.get_gid() for patch in figure.axes[0].patches]
        self.assertEqual((cells.count("done"), cells.count("infeasible")), (10, 2))
        texts = {text.get_position(): text.get_text() for text in figure.axes[0].texts}
        self.assertEqual(texts[1, 0], "2")  # tp 2, pp 1: the second point takes 2 s
        self.assertEqual(figure.axes[1].get_ylabel(), "step time (s)")

    def test_one_axis_is_a_line(self):
        figure = drawn(row("axis"), sweep([{"cluster.gpus": gpus} for gpus in (64, 8, 32, 16)]))
        self.assertEqual(points_of(figure, "series 0"), [(8, 2), (16, 4), (32, 3), (64, 1)])

    def test_parts_of_a_measured_step_stand_beside_the_predicted_ones(self):
        self.assertEqual(self.bars("parts", explained(), "predicted"), [(0, 2.0), (0, 1.0)])
        self.assertEqual(self.bars("parts", explained(), "measured"), [(0, 2.4)])

    def test_all_of_them_are_legible(self):
        axes = [{"parallelism.tp": tp, "cluster.preset": name} for name in ("dgx-h100", "gb200-nvl72") for tp in (1, 2, 4, 8)]
        for document in (sensitivity(), plan(), break_even(), search(), compare(), explained(), sweep(axes),
                         sweep([{"cluster.gpus": 2 ** i} for i in range(3, 15)]),
                         sweep([{"a.x": i, "b.y": j} for i in range(20) for j in range(40)])):
            for one in looking.catalogue.rows_of(document["schema"].rpartition("/")[0]):
                figure = drawn(one, document)
                if figure is not None:
                    with self.subTest(f"{document['schema']} {one.name}"):
                        self.assertEqual(faults(figure), [])

    def test_every_study_has_a_page(self):
        from figures import report
        for document in (sensitivity(), plan(), break_even(), search(), compare(), explained(),
                         sweep([{"cluster.gpus": n} for n in (8, 16, 32)])):
            with self.subTest(document["schema"]):
                section = report.section_of(looking.result(document), (), "2026-01-31")
                self.assertIn("2026-01-31", section.corner)
                html = report.page.page("t", [section], "")
                self.assertIn("<svg", html)
                self.assertIn("<table>", html)


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

    def test_a_number_written_as_text_is_told_with_its_place(self):
        wrong = compare()
        wrong["time_s"][1] = "2.0"
        self.assertEqual([line.split(" (")[0] for line in self.problems(json.dumps(wrong))],
                         ["0.json: time_s[1]: is text, not a number or null"])
        line = {**sweep([{"cluster.gpus": 8}])["points"][0], "step_time_s": [1]}
        self.assertEqual([one.split(" (")[0] for one in self.problems(json.dumps(line))], ["0.json: is a line of a sweep"])

    def test_what_an_older_scapesim_left_out_is_no_problem_but_what_a_figure_needs_is(self):
        sound, damaged = compare(), compare()
        del sound["changed"], damaged["terms"][0]["time_s"]
        self.assertIsNotNone(row("differences").draw(sound))
        try:
            row("differences").draw(damaged)
            self.fail("drawn")
        except KeyError as error:
            told = str(results.damaged(looking.result(damaged), error))
        self.assertIn("r.json: terms[0].time_s: is missing (", told)

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
