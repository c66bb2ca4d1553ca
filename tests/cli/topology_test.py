# SPDX-License-Identifier: Apache-2.0
"""scapesim topology show: counts, bisection, routes, pictures."""

import re
import unittest
from xml.etree import ElementTree

from program import ProgramTest


class Topology(ProgramTest):
    def show(self, *arguments):
        return self.document("topology", "show", *arguments)

    def test_a_fat_tree_in_numbers(self):
        vista = self.show("vista", "--gpus", "64")
        self.assertEqual(list(vista), ["schema", "version", "cluster", "fabric", "nodes", "gpus", "nics", "switches", "links",
                                       "latency_s", "diameter_hops", "bisection_Bps", "bisection_per_gpu_Bps",
                                       "oversubscription", "prices", "path"])
        self.assertEqual(vista["schema"], "scapesim.topology/1")
        self.assertEqual((vista["nodes"], vista["gpus"], vista["nics"]), (64, 64, 64))
        self.assertEqual(vista["switches"], {"leaf switch": 2, "spine switch": 1})
        self.assertEqual(vista["diameter_hops"], 4)
        self.assertEqual(vista["bisection_Bps"], 32 * 50e9)
        self.assertEqual(vista["bisection_per_gpu_Bps"], 25e9)
        self.assertEqual([(row["link"], row["count"], row["capacity_Bps"]) for row in vista["links"]],
                         [("GPU-NIC lane", 64, None), ("NIC", 64, 50e9), ("rack trunk", 2, 32 * 50e9)])

    def test_a_taper_shows_as_oversubscription_and_in_the_bisection(self):
        tapered = self.show("vista", "--gpus", "64", "--set", "cluster.taper=4")
        self.assertEqual(tapered["oversubscription"],
                         [{"level": "rack", "down_Bps": 1.6e12, "up_Bps": 0.4e12, "taper": 4.0}])
        self.assertEqual(tapered["bisection_Bps"], 0.4e12)

    def test_without_gpus_the_whole_cluster_is_shown(self):
        self.assertEqual(self.show("vista")["gpus"], 600)

    def test_a_path_is_a_walk_from_one_gpu_to_the_other(self):
        path = self.show("vista", "--path", "3,40")["path"]
        self.assertEqual((path["from_gpu"], path["to_gpu"], path["latency_s"]), (3, 40, 3e-6))
        links = path["links"]
        self.assertEqual((links[0]["from"], links[-1]["to"]), ("GPU 3", "GPU 40"))
        for link, following in zip(links, links[1:]):
            self.assertEqual(link["to"], following["from"])
        self.assertEqual([link["link"] for link in links],
                         ["GPU-NIC lane", "NIC", "rack trunk", "rack trunk", "NIC", "GPU-NIC lane"])

    def test_every_listed_cluster_can_be_shown(self):
        for row in self.document("list", "clusters")["rows"]:
            with self.subTest(row["name"]):
                shown = self.show(row["name"])
                self.assertGreater(shown["nodes"], 0)
                self.assertIn("bisection", self.done("topology", "show", row["name"]))

    def test_pods_are_a_third_level(self):
        pods = self.show("vista", "--gpus", "512", "--set", "cluster.racks_per_pod=4", "--set", "cluster.pod_taper=2")
        self.assertEqual(pods["switches"], {"leaf switch": 16, "spine switch": 4, "core switch": 1})
        self.assertEqual([(row["level"], row["taper"]) for row in pods["oversubscription"]], [("rack", 1.0), ("pod", 2.0)])
        self.assertEqual(pods["bisection_Bps"], 128 * 50e9)
        self.assertEqual(pods["diameter_hops"], 6)

    def test_a_dragonfly_has_routers_and_global_links(self):
        jupiter = self.show("jupiter-booster", "--path", "0,1000")
        self.assertEqual(jupiter["switches"], {"router": 25 * (15 + 1)})
        self.assertIn({"link": "global link", "count": 300, "capacity_Bps": 8e11, "total_Bps": 2.4e14}, jupiter["links"])
        self.assertEqual([link["link"] for link in jupiter["path"]["links"]],
                         ["GPU-NIC lane", "NIC", "local link", "global link", "local link", "NIC", "GPU-NIC lane"])
        self.assertEqual([row["level"] for row in jupiter["oversubscription"]], ["leaf router", "group"])

    def test_any_cluster_takes_another_fabric_by_set(self):
        torus = self.show("vista", "--set", "cluster.fabric=torus", "--set", "cluster.dimensions=10x10x6",
                          "--set", "cluster.cable_bandwidth=25GB/s")
        self.assertEqual((torus["switches"], torus["diameter_hops"]), ({"router": 600}, 2 + 5 + 5 + 3))
        self.assertEqual(torus["bisection_Bps"], 2 * 60 * 25e9)
        self.assertIn("cluster.dimensions", self.refused(
            "topology", "show", "vista", "--set", "cluster.fabric=torus", "--set", "cluster.dimensions=10x10x5",
            "--set", "cluster.cable_bandwidth=25GB/s"))

    def test_text_says_what_json_says(self):
        text = self.done("topology", "show", "vista", "--path", "0,40")
        for expected in (r"nodes +600", r"diameter +4 hops", r"bisection +15 TB/s", r"rack +1.6 TB/s +1.6 TB/s +1.00 : 1",
                         r"path from GPU 0 to GPU 40, latency 3 us", r"NIC 40 +GPU 40"):
            self.assertRegex(text, expected)
        self.assertFalse([line for line in text.splitlines() if line != line.rstrip()])

    def test_the_picture_holds_every_part_and_every_cable_once(self):
        file = self.path("fabric.dot")
        self.done("topology", "show", "jupiter-booster", "--gpus", "4", "--dot", file)
        with open(file, encoding="utf-8") as picture:
            text = picture.read()
        self.assertTrue(text.startswith("graph ") and text.endswith("}\n"))
        # 4 GPUs, 4 adapters and a lower switch; a lane and an adapter's cable per GPU, and a link per pair of GPUs;
        # a group's other lower switches and its upper one, 15 in all, joined by as many cables.
        self.assertEqual(len(re.findall(r'^  v\d+ \[label="', text, re.M)), 9 + 15)
        self.assertEqual(len(re.findall(r"^  v\d+ -- v\d+ ", text, re.M)), 4 + 4 + 6 + 15)

    def test_a_price_list_counts_at_the_rate_of_an_adapter(self):
        prices = ["--set", "cluster.port_price=100USD", "--set", "cluster.nic_price=1000USD"]
        vista = ["vista", "--gpus", "64", "--set", "cluster.taper=2", *prices]
        # 64 cables of adapters, 2 trunks of 16; the former end at one switch port, the latter at two.
        self.assertEqual(self.show(*vista)["prices"],
                         [{"part": "adapters", "count": 64.0, "price_usd": 1000.0, "total_usd": 64000.0},
                          {"part": "switch ports", "count": 128.0, "price_usd": 100.0, "total_usd": 12800.0}])
        self.assertRegex(self.done("topology", "show", *vista), r"all +76800")

    def test_other_jobs_take_their_share_of_the_links_between_switches(self):
        path = self.show("vista", "--set", "cluster.background_load=0.25", "--path", "0,40")["path"]["links"]
        self.assertEqual([link["capacity_Bps"] for link in path[1:5]], [50e9, 1.2e12, 1.2e12, 50e9])

    def test_the_drawing_is_xml_and_holds_every_part_and_cable(self):
        file = self.path("fabric.svg")
        self.done("topology", "show", "jupiter-booster", "--gpus", "8", "--svg", file)
        root = ElementTree.parse(file).getroot()
        names = [element.text for element in root.iter("{http://www.w3.org/2000/svg}title")]
        self.assertEqual(names.count("GPU 7"), 1)
        self.assertIn("vertices", self.refused("topology", "show", "vista", "--gpus", "6000", "--set", "cluster.gpus_per_node=8",
                                               "--set", "cluster.node_link_bandwidth=1GB/s", "--set", "cluster.nodes=6000",
                                               "--svg", self.path("huge.svg")))

    def test_a_network_from_a_file_and_a_cable_that_failed(self):
        file = self.path("ring.csv")
        with open(file, "w", encoding="utf-8") as network:
            network.write("from,to,bandwidth,count\n")
            for i in range(4):
                network.write(f"node {i},switch {i},,\nswitch {i},switch {(i + 1) % 4},100Gbps,2\n")
        ring = ["vista", "--set", "cluster.nodes=4", "--set", "cluster.fabric=graph", "--set", f"cluster.graph={file}"]
        shown = self.show(*ring, "--path", "0,1")
        self.assertEqual((shown["switches"], shown["diameter_hops"]), ({"router": 4}, 4))
        self.assertEqual(shown["bisection_Bps"], 2 * 25e9)
        broken = self.show(*ring, "--path", "0,1", "--set", 'cluster.degraded=["router 0 - router 1 = failed"]')
        self.assertEqual(len(broken["path"]["links"]), len(shown["path"]["links"]) + 2)
        self.assertIn("router 0", self.refused("topology", "show", *ring, "--set", 'cluster.degraded=["router 0 - router 2 = 0.5"]'))
        with open(file, "a", encoding="utf-8") as network:
            network.write("node 4,switch 9,12,\n")
        self.assertIn("ring.csv:10", self.refused("topology", "show", *ring))

    def test_a_node_is_imported_as_keys_that_a_cluster_takes(self):
        file = self.path("topo.txt")
        with open(file, "w", encoding="utf-8") as matrix:
            matrix.write("GPU0 GPU1 NIC0\nGPU0 X NV18 PXB\nGPU1 NV18 X SYS\nNIC0 PXB SYS X\n")
        text = self.done("topology", "import", file)
        self.assertIn("node_link_bandwidth", text)
        node = self.document("topology", "import", file)
        self.assertEqual((node["schema"], node["gpus_per_node"], node["nic_affinity"]), ("scapesim.node/1", 2, [0, 0]))
        keys = [line for line in text.splitlines() if " = " in line and not line.startswith("#")]
        sets = [word for line in keys for word in ("--set", "cluster." + line.replace(" = ", "=", 1))]
        self.assertEqual(self.show("vista", *sets)["gpus"], 1200)
        self.assertIn("nvidia-smi topo -m", self.refused("topology", "import", __file__))
        self.assertIn("no-such-file", self.refused("topology", "import", "no-such-file"))

    def test_wrong_arguments_are_refused_with_a_way_out(self):
        for arguments, expected in (
                (("shwo", "vista"), "show"),
                (("show", "vsta"), "vista"),
                (("show", "vista", "--gpus", "601"), "600"),
                (("show", "vista", "--gpus", "0"), "--gpus"),
                (("show", "vista", "--gpus", "4,8"), "one count"),
                (("show", "vista", "--path", "0"), "0,7"),
                (("show", "vista", "--path", "0,x"), "\"x\""),
                (("show", "vista", "--path", "0,600"), "0 to 599"),
                (("show", "vista", "--set", "cluster.tapr=2"), "taper"),
                (("show", "vista", "--set", "training.sequence=2"), "no key of a cluster"),
                (("show", "flat-50GBps", "--set", "cluster.nodes=1000000", "--set", "cluster.gpus_per_node=8",
                  "--set", "cluster.node_link_bandwidth=300GB/s"), "--gpus"),
                (("show", "flat-50GBps", "--gpus", "1000001", "--set", "cluster.nodes=1000000", "--set",
                  "cluster.gpus_per_node=2", "--set", "cluster.node_link_bandwidth=300GB/s"), "1000000"),
                (("show", "flat-50GBps", "--dot", self.path("huge.dot")), "--gpus")):
            with self.subTest(arguments):
                self.assertIn(expected, self.refused("topology", *arguments))

    def test_the_same_call_gives_the_same_bytes(self):
        for form in ([], ["--json"]):
            call = ("topology", "show", "vista", "--path", "0,599", *form)
            self.assertEqual(self.done(*call), self.done(*call))

    def test_help_shows_an_example_that_works(self):
        example = re.search(r"Example: scapesim (.+)", self.done("topology", "--help"))[1]
        self.done(*example.split())


if __name__ == "__main__":
    unittest.main()
