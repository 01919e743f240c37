"""Loads the output of `holorun export --format verl` as verl's AgentLoopOutput.

    outputs = [o for run in glob("results/tests/*/*/export-verl") for o in load(run)]

The outputs of a run are in order and only the last has the reward: verl's agent loop returns them as the list
of one session. Images are opened as verl's processors need them. Needs the packages verl and pillow.
"""

import json
import os

from PIL import Image
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput


def load(folder: str) -> list[AgentLoopOutput]:
    with open(os.path.join(folder, "outputs.jsonl")) as f:
        lines = [json.loads(line) for line in f]
    for line in lines:
        line["multi_modal_data"]["images"] = [
            Image.open(os.path.join(folder, name)).convert("RGB")
            for name in line["multi_modal_data"]["images"]
        ]
        line["metrics"] = AgentLoopMetrics(**line["metrics"])
    return [AgentLoopOutput(**line) for line in lines]
