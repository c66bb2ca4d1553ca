# SPDX-License-Identifier: Apache-2.0
"""reports/plot.py: what is on the axes, for documents made by hand. Needs the Python with matplotlib of $PYTHON."""

import importlib.util
import json
import os
import tempfile
import unittest


def plot_module():
    spec = importlib.util.spec_from_file_location("plot", "reports/plot.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(gpus, seconds, series="AdamS"):
    return {"scenario": {"name": "tiny"}, "series": series, "gpus": gpus, "step_time_s": seconds, "step_time_low_s": None,
            "step_time_high_s": None, "version": "0", "calibration": {"id": "c", "weakest_provenance": "assumed"},
            "breakdown_s": {"compute": seconds, "optimizer": 0, "exposed_communication": 0, "copy": 0, "host": 0,
                            "bubble": 0}}


class Plot(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plot = plot_module()

    def document(self, points, measured=(), **more):
        rows = [{"series": series, "gpus": gpus, "metric": "step_time_s", "measured": seconds}
                for series, gpus, seconds in measured]
        return {"schema": "scapesim.scale/1", "points": points, "against": rows, **more}

    def figure(self, draw, document):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "result.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(document, file)
            loaded, series = self.plot.load(path)
        figure, _ = draw(loaded, series)
        self.addCleanup(self.plot.plt.close, figure)
        return figure

    def measured_efficiencies(self, document):
        """{GPUs: percent} of the hollow markers beside the predicted curve."""
        lines = self.figure(self.plot.draw_scaling, document).axes[1].lines
        return {line.get_xdata()[0]: line.get_ydata()[0] for line in lines if line.get_linestyle() == "None"}

    def test_measured_efficiency_is_against_the_measured_value_at_the_smallest_count(self):
        points = [run(4, 16), run(64, 2)]
        both = self.document(points, [("AdamS", 64, 2.5), ("AdamS", 4, 20)])
        self.assertEqual(self.measured_efficiencies(both), {4: 100, 64: 50})
        weak = self.document(points, [("AdamS", 64, 25), ("AdamS", 4, 20)], scaling="weak")
        self.assertEqual(self.measured_efficiencies(weak), {4: 100, 64: 80})

    def test_without_it_no_measured_efficiency_is_drawn(self):
        alone = self.document([run(4, 16), run(64, 2)], [("AdamS", 64, 2.5)])
        self.assertEqual(self.measured_efficiencies(alone), {})
        smaller = self.document([run(4, 16), run(64, 2)], [("AdamS", 2, 30), ("AdamS", 64, 2.5)])
        self.assertEqual(self.measured_efficiencies(smaller), {})

    def test_names_are_shown_as_they_are_written(self):
        names = ["_hidden", "a $x$ b", "$\\frac$"]
        document = self.document([run(gpus, 2, name) for name in names for gpus in (4, 8)])
        figure = self.figure(self.plot.draw_scaling, document)
        texts = [text.get_text() for text in figure.legends[0].get_texts()]
        self.assertEqual([text.replace("\\$", "$") for text in texts], names)
        for text in texts:
            self.assertFalse(self.plot.matplotlib.cbook.is_math_text(text), text)
        figure = self.figure(self.plot.draw_breakdown, document)
        titles = [axes.get_title() for axes in figure.axes if axes.get_visible()]
        self.assertEqual([title.replace("\\$", "$") for title in titles], names)


if __name__ == "__main__":
    unittest.main()
