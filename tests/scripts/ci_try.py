#!/usr/bin/env python3
"""Runs the steps of assets/ci in bare Debian systems, as root, without GitHub, GitLab or a container engine.

    ci_try.py [action] [container]      default: both

action: the run steps of action.yml, with the inputs of SUITE below, in trixie and a checkout of the committed tree.
container: the stages of Containerfile (FROM, COPY, WORKDIR, RUN), then the script of gitlab.yml in the last one.
Both must pass the suite and write junit.xml. check-jsonschema (pip) checks the three YAML files first and actionlint
the workflow with its action, each if it is installed.
"""
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
CI = os.path.join(TREE, "assets/ci")
BARE = os.path.abspath(os.environ.get("ROOT", os.path.join(TREE, "build/bare")))
# yad, because zenity of Debian 13 has GTK 4, which does not report where a combo box is.
SUITE = """\
suite: {name: order, display: "xvfb:800x600"}
tests:
  - id: shirt
    start: yad --form --title=Order --field=Name --field=Size:CB "" "Small!Large" >"$HOME/order"
    window: ^Order$
    task: [{fill: {Name: Ana Lima}}, {choose: {Size: Large}}, {press: OK}]
    checks: [{kind: file, path: order, match: '^Ana Lima\\|Large\\|$'}]
"""
INPUTS = {"suite": "tests/desktop.yaml", "packages": "yad", "options": "--jobs 1"}


def bare(function, *words):
    """Calls a function of bare.sh."""
    line = f". {shlex.quote(HERE)}/bare.sh; {function} {shlex.join(words)}"
    subprocess.run(["bash", "-ec", line], check=True, cwd=TREE, env={**os.environ, "ROOT": BARE})


def run(system, folder, env, script):
    """Runs a script in a folder of the system, as both services do: bash -e, stopped at the first error.

    A login shell, which finds the ccache of bare.sh.
    """
    assigned = " ".join(f"export {k}={shlex.quote(v)};" for k, v in env.items())
    print(f"== {system}: {script.strip()}", flush=True)
    bare("bare_inside", system, "bash", "-leo", "pipefail", "-c", f"{assigned} cd {folder}\n{script}")


def clone(path):
    subprocess.run(["git", "clone", "-q", "--depth", "1", "file://" + TREE, path], check=True)


def workspace(system, folder):
    path = os.path.join(BARE, system, folder.lstrip("/"), "tests")
    os.makedirs(path)
    with open(os.path.join(path, "desktop.yaml"), "w", encoding="utf-8") as f:
        f.write(SUITE)


def passed(system, folder):
    with open(os.path.join(BARE, system, folder.lstrip("/"), "holorun-results/junit.xml"), encoding="utf-8") as f:
        head = f.read(2000)
    if not re.search(r'tests="1" failures="0" errors="0"', head):
        sys.exit(f"{system}: junit.xml does not report one passed test:\n{head}")
    print(f"== {system}: the suite passed", flush=True)


SCHEMAS = {"github.yml": "github-workflows", "action.yml": "github-actions", "gitlab.yml": "gitlab-ci"}


def schemas():
    """Validates the files against the schemas of GitHub and GitLab, which the package contains."""
    if not shutil.which("check-jsonschema"):
        print("check-jsonschema is not installed")
        return
    for name, schema in SCHEMAS.items():
        subprocess.run(["check-jsonschema", "--builtin-schema", "vendor." + schema, os.path.join(CI, name)], check=True)


def actionlint():
    """Checks the workflow with the action as a local one, so that its metadata and inputs are checked, too."""
    if not shutil.which("actionlint"):
        print("actionlint is not installed")
        return
    with tempfile.TemporaryDirectory() as room:
        os.makedirs(room + "/.github/workflows")
        os.makedirs(room + "/.git")
        shutil.copytree(CI, room + "/assets/ci")
        with open(CI + "/github.yml", encoding="utf-8") as f, open(room + "/.github/workflows/a.yml", "w", encoding="utf-8") as to:
            to.write(re.sub(r"OWNER/holorun/(\S+)@\S+", r"./\1", f.read()))
        subprocess.run(["actionlint"], cwd=room, check=True)
    print("actionlint: no errors")


def action():
    with open(CI + "/action.yml", encoding="utf-8") as f:
        data = yaml.safe_load(f)
    inputs = {k: INPUTS.get(k, v.get("default", "")) for k, v in data["inputs"].items()}
    bare("bare_fresh", "trixie", "ci-action")
    clone(os.path.join(BARE, "ci-action/action"))
    workspace("ci-action", "/workspace")
    for step in data["runs"]["steps"]:
        if "run" not in step:
            continue
        env = {k: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda m: inputs[m[1]], v) for k, v in step.get("env", {}).items()}
        run("ci-action", "/workspace", {"GITHUB_ACTION_PATH": "/action/assets/ci", **env}, step["run"])
    passed("ci-action", "/workspace")


def copy(system, words, stages):
    """COPY of the tree, or of files of an earlier stage."""
    if words[0].startswith("--from="):
        for path in glob.glob(os.path.join(glob.escape(BARE), stages[words[0][7:]], words[1].lstrip("/"))):
            shutil.copy(path, os.path.join(BARE, system, words[2].lstrip("/")))
    else:
        clone(os.path.join(BARE, system, words[1].lstrip("/")))


def container():
    with open(CI + "/Containerfile", encoding="utf-8") as f:
        lines = re.sub(r"\\\n", " ", f.read()).splitlines()
    stages, system, folder = {}, None, "/"
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "FROM":
            name = rest.split(" AS ")[1] if " AS " in rest else "image"
            system, folder = f"ci-{name}", "/"
            stages[name] = system
            bare("bare_fresh", re.match(r"debian:(\w+)", rest)[1], system)
        elif word == "COPY":
            copy(system, shlex.split(rest), stages)
        elif word == "WORKDIR":
            folder = rest
            os.makedirs(os.path.join(BARE, system, folder.lstrip("/")), exist_ok=True)
        elif word == "RUN":
            run(system, folder, {}, rest)
    with open(CI + "/gitlab.yml", encoding="utf-8") as f:
        job = yaml.safe_load(f)[".holorun"]
    workspace(system, "/builds")
    env = {**job["variables"], "SUITE": INPUTS["suite"], "PACKAGES": INPUTS["packages"]}
    run(system, "/builds", env, "\n".join(job["script"]))
    passed(system, "/builds")


if __name__ == "__main__":
    schemas()
    actionlint()
    for wanted in sys.argv[1:] or ["action", "container"]:
        {"action": action, "container": container}[wanted]()
