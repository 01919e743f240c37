#!/usr/bin/env python3
"""Checks the recipes for schedulers in assets/fleet/recipes.

    recipes.py [PROGRAM]      default: ./holorun

Each file is parsed (shell: bash -n; JSON; YAML if PyYAML is installed; workflows by actionlint if it is installed).
The command of each recipe is run for every element, with the variables that the scheduler sets, on a suite that it
only lists: each test must belong to exactly one element. Exit code 1 if a recipe is wrong.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RECIPES = os.path.join(ROOT, "assets", "fleet", "recipes")
SUITE = os.path.join(ROOT, "tests", "suites", "waits.yaml")

# Of each recipe: the number of elements, and the variables of element i, from 0.
ELEMENTS = {
    "github.yml": (4, lambda i: {"SHARD": i + 1, "SHARDS": 4}),
    "gitlab.yml": (4, lambda i: {"CI_NODE_INDEX": i + 1, "CI_NODE_TOTAL": 4}),
    "Jenkinsfile": (4, lambda i: {"shard": i + 1, "shards": 4}),
    "kubernetes.yaml": (16, lambda i: {"JOB_COMPLETION_INDEX": i}),
    "aws-batch.json": (16, lambda i: {"AWS_BATCH_JOB_ARRAY_INDEX": i, "AWS_BATCH_JOB_ARRAY_SIZE": 16}),
    "slurm.sh": (16, lambda i: {"SLURM_ARRAY_TASK_ID": i + 1, "SLURM_ARRAY_TASK_COUNT": 16, "SLURM_ARRAY_TASK_MIN": 1}),
}


def parse(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    if path.endswith(".json"):
        json.loads(text)
    elif path.endswith(".sh"):
        subprocess.run(["bash", "-n", path], check=True)
    elif not path.endswith("Jenkinsfile"):
        try:
            import yaml
        except ImportError:
            return text
        assert isinstance(yaml.safe_load(text), dict), path
    if path.endswith("github.yml") and shutil.which("actionlint"):
        subprocess.run(["actionlint", path], check=True)
    return text


def command(text):
    """Returns the command of a recipe, which ends with --jobs 4; a shell file is one as a whole."""
    if text.startswith("#!"):
        return text
    found = re.search(r"holorun qa [^\n]*--jobs 4", text)[0]
    return found.replace('\\"', '"')


def listed(program, script, variables):
    """Runs a command with --list; returns the ids of its tests."""
    with tempfile.TemporaryDirectory() as place:
        script = re.sub(r"(/shared/)?suite\.yaml", SUITE, script).replace("--jobs 4", "--jobs 4 --list --json")
        script = script.replace("--resume-shard", "").replace("/shared/", place + "/")
        os.symlink(os.path.abspath(program), os.path.join(place, "holorun"))
        env = {"PATH": place + ":" + os.environ["PATH"], "HOME": place, **{k: str(v) for k, v in variables.items()}}
        done = subprocess.run(["bash", "-c", script], env=env, cwd=place, check=True, capture_output=True, text=True)
        return [t["id"] for t in json.loads(done.stdout)["tests"]]


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "holorun")
    whole = sorted(listed(program, "holorun qa suite.yaml --jobs 4", {}))
    assert sorted(os.listdir(RECIPES)) == sorted(ELEMENTS), "a recipe is not checked"
    for name, (n, variables) in ELEMENTS.items():
        script = command(parse(os.path.join(RECIPES, name)))
        shares = [listed(program, script, variables(i)) for i in range(n)]
        assert sorted(t for share in shares for t in share) == whole, f"{name}: a test is lost or twice"
        print(f"{name}: {n} elements with {min(map(len, shares))} to {max(map(len, shares))} of {len(whole)} tests")


if __name__ == "__main__":
    main()
