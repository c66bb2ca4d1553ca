# SPDX-License-Identifier: Apache-2.0
"""Which figures a result has: a row per figure."""

from collections import namedtuple

from figures import calibration, network, scaling, scores, step, study, timeline

# draw(document) gives a matplotlib figure, or None where the document holds nothing of the kind. A row that is not
# `on_page` is a file only: the page shows its parts.
Row = namedtuple("Row", "name kinds draw caption on_page", defaults=[True])

STEPS = ("scapesim.run", "scapesim.run-set")
SCALE = ("scapesim.scale",)
SCORES = ("scapesim.validation", "scapesim.scores")
EXPLAIN = ("scapesim.explain",)
PROFILE = ("scapesim.profile",)
COLLECTIVE = ("scapesim.collective",)
FIT = ("scapesim.calibration",)
SWEEP = ("scapesim.sweep",)
SENSITIVITY = ("scapesim.sensitivity", "scapesim.sensitivity-set")
COMPARE = ("scapesim.compare",)
PLAN = ("scapesim.plan",)
BREAKEVEN = ("scapesim.breakeven",)
SEARCH = ("scapesim.search",)

ROWS = [
    Row("scaling", SCALE, scaling.scaling, "Step time and efficiency over GPUs.", on_page=False),
    Row("step-time", SCALE, scaling.step_time, "Step time over GPUs."),
    Row("efficiency", SCALE, scaling.efficiency, "Efficiency against the smallest count of each series."),
    Row("breakdown", STEPS + SCALE, step.breakdown, "Where the step goes: the slowest rank's critical path."),
    Row("hidden", SCALE, scaling.hidden, "Communication that runs beside other work."),
    Row("communication", STEPS + SCALE, step.communication, "Exchanges of one step on the largest number of GPUs."),
    Row("memory", STEPS + SCALE, step.memory, "What fills the memory of the fullest GPU."),
    Row("timeline", STEPS, timeline.gantt, "One steady step: what every stream runs when."),
    Row("activations", STEPS, timeline.activations, "Activations held between forward and backward passes."),
    Row("links", STEPS, timeline.links, "Mean use of links and copy engines over the step."),
    Row("roofline", STEPS, timeline.roofline, "Kernels of the layers under the roofs of arithmetic and memory."),
    Row("bandwidth", COLLECTIVE, network.bandwidth, "Bus bandwidth over size, as nccl-tests counts both."),
    Row("bandwidth-fit", FIT, network.bandwidth_fit, "Timed collectives, the fit through them, and its residuals."),
    Row("training-fit", FIT, network.training_fit, "Calibration runs, the fit through them, and its residuals."),
    Row("kernel-fit", FIT, network.kernel_fit, "Residuals of timed kernels."),
    Row("parity", SCORES, scores.parity, "Predicted against measured values."),
    Row("errors", SCORES, scores.errors, "Signed error of every row."),
    Row("parts", EXPLAIN, scores.explained, "Parts of the measured step beside the predicted ones."),
    Row("heat-map", SWEEP, study.heat_map, "Step time over the two widest axes of the sweep."),
    Row("axis", SWEEP, study.one_axis, "Step time over the axis of the sweep."),
    Row("trade-off", SWEEP, study.trade_off, "Tokens per second over the memory that they take."),
    Row("tornado", SENSITIVITY, study.tornado, "Step time with each parameter lowered and raised."),
    Row("bounds", SENSITIVITY, study.bounds, "What each part of the step is bound by."),
    Row("differences", COMPARE, study.differences, "Terms of the steps side by side."),
    Row("pareto", PLAN, study.pareto, "Plans by calendar time and cost."),
    Row("break-even", BREAKEVEN, study.break_even, "Where a series pays against the baseline."),
    Row("best-splits", SEARCH, study.best_splits, "The best splits and where their steps go."),
    Row("coverage", PROFILE, calibration.coverage, "Where the numbers of the calibration come from."),
    Row("ranges", PROFILE, calibration.ranges, "Numbers with their 90 % range, the least certain first."),
    Row("curves", PROFILE, calibration.curves, "Curves of the calibration with their 90 % range."),
]
TITLES = {**dict.fromkeys(STEPS, step.title_of), **dict.fromkeys(SCALE, scaling.title_of),
          **dict.fromkeys(SCORES + EXPLAIN, scores.title_of), **dict.fromkeys(PROFILE, calibration.title_of),
          **dict.fromkeys(COLLECTIVE + FIT, network.title_of),
          **dict.fromkeys(SWEEP + SENSITIVITY + COMPARE + PLAN + BREAKEVEN + SEARCH, study.title_of)}


def rows_of(kind):
    return [row for row in ROWS if kind in row.kinds]


def title_of(result):
    return TITLES[result.kind](result.document)
