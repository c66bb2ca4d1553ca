# SPDX-License-Identifier: Apache-2.0
"""What every command prints as JSON conforms to its schema in reports/schemas/, which is one itself."""

import copy
import json
import os
import pathlib
import unittest

from program import INFEASIBLE, SCENARIO, ProgramTest
from schema import FOLDER, Checker

OFF = ("--interval", "off")
ONE = (SCENARIO, "--series", "AdamS", *OFF)
GOLDEN = "tests/golden"

# One call or more for every schema; the exit code where it is not 0.
CALLS = [
    ("run", *ONE, "--set", "jitter.compute=5%"),
    ("run", *ONE),
    ("run", "scenarios/gpt3-175b-1024.toml", "--interval", "off"),
    ("run", SCENARIO, "--explain", "step_time", *OFF),
    ("run", INFEASIBLE, 3),
    ("scale", *ONE, "--gpus", "4,64", "--against", "calib/data/vista-llama-1.8b.csv"),
    ("scale", "scenarios/vista-llama-500m.toml", "--interval", "off", "--gpus", "64", "--weak"),
    ("compare", "scenarios/llama2-13b-fsdp.toml", *OFF, "--with", "cluster.gpus=32", "--with", "model.layers=1000"),
    ("sensitivity", SCENARIO, "--series", "AdamS"),
    ("sensitivity", "scenarios/vista-gpt-345m.toml"),
    ("plan", "scenarios/plan-llama2-13b.toml", "--tokens", "100B", "--deadline", "10d", "--max-gpus", "64"),
    ("plan", "scenarios/llama2-13b-fsdp.toml", "--tokens", "1T", *OFF, "--max-gpus", "4"),
    ("plan", "scenarios/plan-llama2-13b.toml", "--tokens", "1T", *OFF, "--search", "--gpus", "2,16", "--keep",
     "training.recompute"),
    ("search", "scenarios/vista-llama-500m.toml", "--series", "AdamS", "--gpus", "8", "--top", "1"),
    ("collective", "all-reduce", "--cluster", "dgx-h100", "--gpus", "16", "--size", "1MiB:1GiB:32"),
    ("collective", "all-to-all", "--cluster", "vista", "--gpus", "8", "--size", "8B", "--profile", "gh200-vista-ndr"),
    ("topology", "show", "dgx-h100", "--path", "0,9"),
    ("topology", "show", "vista"),
    ("topology", "import", f"{GOLDEN}/topologies/dgx-a100.topo.xml"),
    ("topology", "import", f"{GOLDEN}/topologies/pcie.smi.txt"),
    ("list", "keys"),
    ("list", "clusters"),
    ("calibrate", "--show", "gh200-vista-ndr"),
    ("validate", "vista"),
    ("validate", "scenarios/my-runs.csv"),
    ("explain", *ONE, "--log", f"{GOLDEN}/calib/megatron.log"),
    ("breakeven", "scenarios/vista-llama-1.8b.toml", "--against", "AdamS", "--interval", "off"),
]


class Schemas(ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.checker = Checker()

    def conforms(self, document):
        name = document["schema"].removeprefix("scapesim.").split("/")[0]
        self.assertIn(name + ".json", self.checker.documents, "a result without a schema")
        self.assertEqual(self.checker.problems(document, name), [])
        return name

    def test_what_the_commands_print_conforms_to_their_schemas(self):
        seen = set()
        for call in CALLS:
            code = call[-1] if isinstance(call[-1], int) else 0
            words = [word for word in call if not isinstance(word, int)]
            with self.subTest(" ".join(words)):
                seen.add(self.conforms(self.document(*words, code=code)))
        summary = self.document("sweep", SCENARIO, "--axis", "cluster.gpus=4,8", "--axis",
                                "training.micro_batch=8,3,64", "-o", self.path("sweep"))
        seen.add(self.conforms(summary))
        with open(os.path.join(self.path("sweep"), "results.jsonl"), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        self.assertEqual({line["status"] for line in lines}, {"done", "infeasible", "refused"})
        for line in lines:
            seen.add(self.conforms(line))
        for call in (("run", *ONE, "--result"), ("run", "scenarios/llama2-13b-fsdp.toml", *OFF, "--result"),
                     ("scale", *ONE, "--gpus", "4,64", "--result"),
                     ("collective", "all-reduce", "--cluster", "aws-p5", "--gpus", "16", "--size", "1MiB", "--profile", "h100-sxm-efa",
                      "--against", "scenarios/aws-p5-all-reduce.csv", "--result"),
                     ("calibrate", "scenarios/aws-p5-all-reduce.csv", "-o", self.path("mine.json"), "--base", "h100-sxm", "--cluster",
                      "aws-p5", "--residuals")):
            with self.subTest(" ".join(call)):
                self.done(*call, self.path("result.json"))
                with open(self.path("result.json"), encoding="utf-8") as file:
                    seen.add(self.conforms(json.load(file)))
        self.assertEqual(sorted(self.checker.documents.keys() - {name + ".json" for name in seen} - {"report.json"}), [])

    def test_every_profile_conforms(self):
        for path in pathlib.Path("calib/profiles").glob("*.json"):
            self.conforms(json.loads(path.read_text(encoding="utf-8")))

    def test_the_schemas_name_themselves_and_use_known_words_only(self):
        for path in FOLDER.glob("*.json"):
            schema = json.loads(path.read_text(encoding="utf-8"))
            self.assertEqual(schema["$schema"], "https://json-schema.org/draft/2020-12/schema")
            self.assertEqual(schema["$id"], path.name)
            self.assertTrue(schema["description"])

    def test_a_wrong_document_is_found(self):
        run = self.document("run", *ONE)
        self.conforms(run)
        for change in (lambda r: r.pop("gpus"), lambda r: r.update(mfu=1.5), lambda r: r.update(step_time_s="1 s"),
                       lambda r: r.update(step_time_s=-1), lambda r: r["scenario"].update(hash="x"),
                       lambda r: r["breakdown_s"].pop("bubble"), lambda r: r["communication"][0].update(count=1.5),
                       lambda r: r["calibration"].update(weakest_provenance="guessed")):
            wrong = copy.deepcopy(run)
            change(wrong)
            self.assertNotEqual(self.checker.problems(wrong, "run"), [])


if __name__ == "__main__":
    unittest.main()
