# SPDX-License-Identifier: Apache-2.0
"""Which figures a result has: a row per figure."""

from collections import namedtuple

from figures import scaling, step

# draw(document) gives a matplotlib figure, or None where the document holds nothing of the kind. A row that is not
# `on_page` is a file only: the page shows its parts.
Row = namedtuple("Row", "name kinds draw caption on_page", defaults=[True])

STEPS = ("scapesim.run", "scapesim.run-set")
SCALE = ("scapesim.scale",)

ROWS = [
    Row("scaling", SCALE, scaling.scaling, "Step time and efficiency over GPUs.", on_page=False),
    Row("step-time", SCALE, scaling.step_time, "Step time over GPUs."),
    Row("efficiency", SCALE, scaling.efficiency, "Efficiency against the smallest count of each series."),
    Row("breakdown", STEPS + SCALE, step.breakdown, "Where the step goes: the slowest rank's critical path."),
    Row("hidden", SCALE, scaling.hidden, "Communication that runs beside other work."),
    Row("communication", STEPS + SCALE, step.communication, "Exchanges of one step on the largest number of GPUs."),
    Row("memory", STEPS + SCALE, step.memory, "What fills the memory of the fullest GPU."),
]
TITLES = {**dict.fromkeys(STEPS, step.title_of), **dict.fromkeys(SCALE, scaling.title_of)}


def rows_of(kind):
    return [row for row in ROWS if kind in row.kinds]


def title_of(result):
    return TITLES[result.kind](result.document)
