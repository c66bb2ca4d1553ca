#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""README.md shows the true output of its commands.

readme_test.py            runs every `$ build/release/scapesim ...` line of a console block and compares
                          what follows with what it prints
readme_test.py --update   writes the output into README.md
What a command writes under out/ goes into a temporary folder. Run in the repository; SCAPESIM is the program (build/release/scapesim). Scenario blocks (toml) must run.
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"```console\n\$ (?P<command>[^\n]+)\n(?P<output>.*?)```\n", re.S)
SCENARIO = re.compile(r"```toml\n(?P<text>.*?)```\n", re.S)
PROGRAM = "build/release/scapesim"


def output_of(root, program, command):
    words = shlex.split(command)
    if words[0] != PROGRAM:
        sys.exit(f"README.md: console blocks run {PROGRAM}, not {words[0]}")
    with tempfile.TemporaryDirectory() as folder:
        moved = [f"{folder}/{word[4:]}" if word.startswith("out/") else word for word in words[1:]]
        done = subprocess.run([program] + moved, cwd=root, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"README.md: {command}\nexit code {done.returncode}\n{done.stderr}")
        return done.stdout.replace(folder, "out")


def check_scenarios(readme, root, program):
    count = 0
    for match in SCENARIO.finditer(readme):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "readme.toml"
            file.write_text(match["text"])
            command = [program, "run", str(file)]
            done = subprocess.run(command, cwd=root, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"README.md: its scenario fails:\n{done.stdout}{done.stderr}")
        count += 1
    return count


def main():
    root = pathlib.Path.cwd()
    program = str(root / os.environ.get("SCAPESIM", PROGRAM))
    update = "--update" in sys.argv[1:]
    file = root / "README.md"
    readme = file.read_text()
    stale = []

    def replaced(match):
        printed = output_of(root, program, match["command"])
        if printed != match["output"]:
            stale.append(match["command"])
        return f"```console\n$ {match['command']}\n{printed}```\n"

    renewed = BLOCK.sub(replaced, readme)
    commands = len(BLOCK.findall(readme))
    scenarios = check_scenarios(readme, root, program)
    if commands == 0 or scenarios == 0:
        sys.exit("README.md shows no command or no scenario")
    if update:
        file.write_text(renewed)
    elif stale:
        sys.exit("README.md shows old output of:\n  " + "\n  ".join(stale) + "\nrun with --update")
    print(f"{commands} commands and {scenarios} scenarios of README.md are true")


main()
