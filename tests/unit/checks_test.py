# SPDX-License-Identifier: Apache-2.0
"""The checks in tools/ find the faults they are there for: each is planted in a small tree that
passes without it."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent.parent.parent / "tools"
LICENCE = "SPDX-License-Identifier: Apache-2.0"
CLANG_FORMAT = "BasedOnStyle: Google\nColumnLimit: 100\n"


def formula(number):
    """An id as code cites it, spelt so that this file cites none."""
    return f"[M{number}]"


class PlantedTree(unittest.TestCase):
    """A temporary source tree and a check that runs on it."""

    check = ""
    healthy = {}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name, text in self.healthy.items():
            self.write(name, text)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)

    def run_check(self):
        run = subprocess.run([sys.executable, str(TOOLS / self.check), "--root", str(self.root)],
                             capture_output=True, text=True)
        return run.returncode, run.stdout + run.stderr

    def assert_passes(self):
        code, output = self.run_check()
        self.assertEqual(code, 0, output)

    def assert_finds(self, expected):
        code, output = self.run_check()
        self.assertEqual(code, 1, output)
        self.assertIn(expected, output)
        self.assertNotIn("Traceback", output)


class Layers(PlantedTree):
    check = "check-layers"
    healthy = {
        "sim/base/units.hpp": "#pragma once\n#include <vector>\n",
        "sim/spec/spec.hpp": '#include "sim/base/units.hpp"\n',
        "sim/engine/replay.cpp": '#include <simgrid/s4u.hpp>\n#include "sim/spec/spec.hpp"\n',
        "sim/scenario/load.cpp": "#include <toml++/toml.h>\n",
        "sim/cli/main.cpp": '#include <CLI/CLI.hpp>\nvoid f() { fmt::print("x"); }\n',
        "topologies/fabric.hpp": "#include <boost/graph/adjacency_list.hpp>\n",
        "calib/fit.cpp": "#include <Eigen/Dense>\n",
        "kernels/pack.cu": '#include "sim/base/units.hpp"\nvoid f() { printf("x"); }\n',
    }

    def test_obedient_tree_passes(self):
        self.assert_passes()

    def test_an_include_of_a_higher_layer(self):
        self.write("sim/base/a.hpp", '\n#include "sim/spec/spec.hpp"\n')
        self.assert_finds('sim/base/a.hpp:2: "sim/spec/spec.hpp" is of sim/spec')

    def test_an_include_with_blanks_around_the_hash(self):
        self.write("sim/base/a.hpp", '  #  include "sim/spec/spec.hpp"\n')
        self.assert_finds("sim/base/a.hpp:1:")

    def test_a_relative_include(self):
        self.write("sim/spec/a.hpp", '#include "spec.hpp"\n')
        self.assert_finds("sim/spec/a.hpp:1:")

    def test_an_include_of_the_tests(self):
        self.write("tests/x.hpp", "")
        self.write("sim/cli/a.hpp", '#include "tests/x.hpp"\n')
        self.assert_finds('"tests/x.hpp" is in no layer')

    def test_a_folder_outside_the_layers(self):
        self.write("sim/misc/a.hpp", "")
        self.assert_finds("sim/misc/a.hpp:1: in no layer")

    def test_the_kernels_see_the_base_only_and_nobody_sees_them(self):
        self.write("kernels/a.hpp", '#include "sim/spec/spec.hpp"\n')
        self.write("sim/cli/b.hpp", '#include "kernels/a.hpp"\n')
        self.assert_finds("kernels/a.hpp:1:")
        self.assert_finds("sim/cli/b.hpp:1:")

    def test_each_library_outside_its_places(self):
        for header in ("simgrid/s4u.hpp", "xbt/log.h", "toml++/toml.h", "Eigen/Dense",
                       "eigen3/Eigen/Core", "boost/graph/graph_traits.hpp", "nlohmann/json.hpp",
                       "CLI/CLI.hpp", "zlib.h", "sqlite3.h", "catch2/catch.hpp"):
            with self.subTest(header=header):
                self.write("sim/plan/a.cpp", f"#include <{header}>\n")
                self.assert_finds(f"sim/plan/a.cpp:1: <{header}>")

    def test_two_types_of_one_name(self):
        self.write("sim/study/a.hpp", "namespace scapesim::study {\nstruct Goal;\nenum class Aim { x };\n}  // namespace scapesim::study\n")
        self.write("sim/cost/a.hpp", "namespace scapesim::cost {\nstruct Aim {};\n}  // namespace scapesim::cost\n")
        self.assert_passes()
        self.write("sim/study/b.hpp", "namespace scapesim::study {\nstruct Goal {};\nstruct Aim {\n};\n}  // namespace scapesim::study\n")
        self.assert_finds("sim/study/b.hpp:3: scapesim::study::Aim is another type in sim/study/a.hpp")

    def test_output_in_the_core(self):
        for line in ('std::cout << "x";', 'fmt::print("x");', 'printf("x");',
                     'fprintf(stderr, "x");', 'std::cerr << "x";'):
            with self.subTest(line=line):
                self.write("sim/plan/a.cpp", f"void f() {{ {line} }}\n")
                self.assert_finds("sim/plan/a.cpp:1: output in sim/plan")

    def test_every_violation_is_listed(self):
        self.write("sim/base/a.hpp", '#include "sim/spec/spec.hpp"\n#include <CLI/CLI.hpp>\n')
        self.assert_finds("layers: 2 violations")

    def test_a_tree_without_sources_does_not_pass(self):
        self.root = self.root / "calib"
        self.assert_finds("has no folder sim")


class Formulas(PlantedTree):
    check = "check-formulas"
    healthy = {
        "MODEL.md": f"# Model\n\n### {formula(1)} FLOPs\nas in {formula(20)}\n\n"
                    f"### {formula(20)} Ring\n",
        "sim/cost/ring.cpp": f"// {formula(20)} ring\n",
        "topologies/a.cpp": f"// {formula(1)}\n",
        "tests/unit/cost/ring_test.cpp": "// [M%d, M%d]\n" % (1, 20),
    }

    def test_tied_ids_pass(self):
        self.assert_passes()

    def test_an_id_in_code_without_heading(self):
        self.write("calib/fit.cpp", f"\n// {formula(80)}\n")
        self.assert_finds(f"calib/fit.cpp:2: {formula(80)} has no heading")

    def test_an_id_in_a_kernel_without_heading(self):
        self.write("kernels/pack.cu", f"// {formula(41)}\n")
        self.assert_finds(f"kernels/pack.cu:1: {formula(41)} has no heading")

    def test_an_id_in_a_list_without_heading(self):
        self.write("sim/cost/b.hpp", "// [M1, M%d]\n" % 21)
        self.assert_finds(f"{formula(21)} has no heading")

    def test_an_id_in_a_test_or_document_without_heading(self):
        self.write("tests/oracle/engine/a.cpp", f"// {formula(7)}\n")
        self.write("README.md", f"see {formula(8)}\n")
        self.assert_finds(f"{formula(7)} has no heading")
        self.assert_finds(f"README.md:1: {formula(8)} has no heading")

    def test_a_heading_that_no_code_uses(self):
        self.write("topologies/a.cpp", "\n")
        self.assert_finds(f"MODEL.md:3: {formula(1)} is used in no code")

    def test_a_heading_that_no_test_names(self):
        self.write("tests/unit/cost/ring_test.cpp", f"// {formula(1)}\n")
        self.assert_finds(f"MODEL.md:6: {formula(20)} is named in no test")

    def test_a_number_that_begins_with_another_is_not_it(self):
        self.write("tests/unit/cost/ring_test.cpp", f"// {formula(1)} {formula(200)}\n")
        self.assert_finds(f"{formula(20)} is named in no test")

    def test_a_heading_given_twice(self):
        self.write("MODEL.md", self.healthy["MODEL.md"] + f"### {formula(1)} Again\n")
        self.assert_finds(f"MODEL.md:7: {formula(1)} has a heading at line 3 already")

    def test_a_missing_or_empty_model(self):
        self.write("MODEL.md", "# Model\n")
        self.assert_finds("no heading of the form")
        (self.root / "MODEL.md").unlink()
        self.assert_finds("there is no MODEL.md")


class Format(PlantedTree):
    check = "check-format"
    healthy = {
        ".clang-format": CLANG_FORMAT,
        ".gitignore": "build/\n",
        "a.cpp": f"// {LICENCE}\nint f();\n",
        "tools/x": f"#!/usr/bin/env bash\n# {LICENCE}\ntrue\n",
        "a.py": f"# {LICENCE}\n",
        "README.md": "# Title\n",
        "build/generated.cpp": "int   f( );  \n",
        "tests/cli/faulty/blank.toml": "a = 1  \n",
    }

    def setUp(self):
        super().setUp()
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)

    def test_tidy_tree_passes(self):
        self.assert_passes()

    def test_an_unformatted_file(self):
        self.write("b.hpp", f"// {LICENCE}\nint   f( );\n")
        self.assert_finds("b.hpp:2:")

    def test_an_unformatted_tracked_file(self):
        self.write("b.cu", f"// {LICENCE}\nint   f( );\n")
        subprocess.run(["git", "-C", str(self.root), "add", "b.cu"], check=True)
        self.assert_finds("b.cu:2:")

    def test_a_source_file_without_licence(self):
        for name, text in (("b.cpp", "int f();\n"), ("b.py", "x = 1\n"), ("b.sh", "true\n"),
                           ("tools/y", "#!/bin/sh\ntrue\n"), ("CMakeLists.txt", "project(x)\n"),
                           ("empty.cpp", "")):
            with self.subTest(name=name):
                self.write(name, text)
                self.assert_finds(f"{name}:1: the first line is not {LICENCE}")
                (self.root / name).unlink()

    def test_blanks_at_the_end_of_a_line(self):
        for name, text in (("b.py", f"# {LICENCE}\nx = 1 \n"), ("b.md", "text\t\n"),
                           ("b.toml", "a = 1\r\n")):
            with self.subTest(name=name):
                self.write(name, text)
                self.assert_finds("blanks at the end of the line")
                (self.root / name).unlink()

    def test_a_file_without_its_last_newline_or_with_two(self):
        for text in ("text", "text\n\n"):
            with self.subTest(text=text):
                self.write("b.md", text)
                self.assert_finds("does not end with one newline")


if __name__ == "__main__":
    unittest.main()
