#!/usr/bin/env python3
"""Checks the recipes for schedulers in assets/fleet/recipes.

    recipes.py [PROGRAM]           default: ./holorun
    recipes.py --run [PROGRAM]     also runs the elements of array jobs, and one of them again

Each file is parsed (shell: bash -n; JSON; YAML by yamllint, workflows by actionlint, if they are installed).
The command of each recipe is run for every element, with the variables that the scheduler sets, on a suite that it
only lists: each test must belong to exactly one element. Exit code 1 if a recipe is wrong.

--run: the results of one element are removed; the merged report must name it. The element is repeated in the way
that the recipe describes, and the report must be green.
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
        if shutil.which("yamllint"):
            subprocess.run(["yamllint", "-d", "{extends: relaxed, rules: {line-length: disable}}", path], check=True)
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


# ---- one element again ----------------------------------------------------------------------------------------

AGAIN = 2  # the element that is repeated, from 0
# Of each array job: the elements that its scheduler starts to repeat one, and their variables.
REPEATED = {
    "kubernetes.yaml": (range(16), ELEMENTS["kubernetes.yaml"][1]),
    "aws-batch.json": (range(16), ELEMENTS["aws-batch.json"][1]),
    "slurm.sh": ([AGAIN], lambda i: {"SLURM_ARRAY_TASK_ID": i + 1, "SLURM_ARRAY_TASK_COUNT": 1, "SLURM_ARRAY_TASK_MIN": i + 1}),
}
QUICK = '''suite:
  name: quick
  display: xvfb:640x480
  wm: ""
  elements: no
  start: exec "%s" "dialog.html?seed=5000001&kind=buttons&labels=Left%%7CRight"
  window: ^DIALOG pressed=
  start_timeout_s: 120
  checks: [{ kind: window, title: "^DIALOG pressed=$", when: always }]
tests:
  - { id: "t{n}", task: Press it, matrix: { n: [%s] } }
'''


def element(program, place, script, variables):
    """Runs an element in a shared folder; returns its exit code and the number of tests that ran."""
    script = script.replace("/shared/", place + "/").replace("--jobs 4", f"--jobs 4 --fake {place}/replies --dialect pyautogui")
    env = {**os.environ, "PATH": place + "/bin:" + os.environ["PATH"], **{k: str(v) for k, v in variables.items()}}
    done = subprocess.run(["bash", "-c", script], env=env, cwd=place, capture_output=True, text=True)
    return done.returncode, len(re.findall(r"^\[\d+/\d+\] passed", done.stderr, re.M))


def merged(program, place):
    done = subprocess.run([program, "qa", "merge", "--out", place + "/merged", place + "/results"], capture_output=True, text=True)
    return done.returncode, done.stderr


def repeat(program, name, script, n, variables):
    form = os.path.join(ROOT, "build", "release", "helpers", "form")
    with tempfile.TemporaryDirectory() as place:
        os.mkdir(place + "/bin")
        os.symlink(os.path.abspath(program), place + "/bin/holorun")
        with open(place + "/suite.yaml", "w") as f:
            f.write(QUICK % (form, ", ".join(map(str, range(32)))))
        with open(place + "/replies", "w") as f:
            f.write("pyautogui.click(5, 5)\nDONE('It is pressed.')\n")
        first = [element(program, place, script, variables(i)) for i in range(n)]
        assert all(code == 0 for code, _ in first) and sum(k for _, k in first) == 32, (name, first)
        assert merged(program, place)[0] == 0, name
        (folder,) = [x for x in os.listdir(place + "/results") if int(x) == int(list(variables(AGAIN).values())[0])]
        shutil.rmtree(os.path.join(place, "results", folder))
        code, said = merged(program, place)
        assert code == 5 and f"shard {AGAIN + 1} of {n} is missing" in said, (name, said)
        started, lone = REPEATED[name]
        ran = [element(program, place, script, lone(i)) for i in started]
        assert all(code == 0 for code, _ in ran) and sum(k for _, k in ran) == first[AGAIN][1] > 0, (name, ran)
        assert merged(program, place)[0] == 0, name
        print(f"{name}: element {AGAIN + 1} of {n} again: {len(ran)} started, {first[AGAIN][1]} of 32 tests ran, the report is green")


def main():
    run = "--run" in sys.argv
    words = [x for x in sys.argv[1:] if x != "--run"]
    program = words[0] if words else os.path.join(ROOT, "holorun")
    whole = sorted(listed(program, "holorun qa suite.yaml --jobs 4", {}))
    assert sorted(os.listdir(RECIPES)) == sorted(ELEMENTS), "a recipe is not checked"
    for name, (n, variables) in ELEMENTS.items():
        script = command(parse(os.path.join(RECIPES, name)))
        shares = [listed(program, script, variables(i)) for i in range(n)]
        assert sorted(t for share in shares for t in share) == whole, f"{name}: a test is lost or twice"
        if run and name in REPEATED:
            repeat(program, name, script, n, variables)
        print(f"{name}: {n} elements with {min(map(len, shares))} to {max(map(len, shares))} of {len(whole)} tests")


if __name__ == "__main__":
    main()
