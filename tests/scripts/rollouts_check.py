#!/usr/bin/env python3
"""Checks episodes that `ray_fleet.py --samples K --export verl --export atif` wrote, with the classes of their
consumers.

    rollouts_check.py verl|atif|all RESULTS        needs the packages verl and harbor for both

verl: each output becomes an AgentLoopOutput and its tensors, and verl's own function computes the GRPO advantage over
the samples of a test. ATIF: Harbor's validator, with images. Prints a line for each; exit code 1 if one does not fit.
"""

import collections
import glob
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "assets", "fleet"))


def episodes(results):
    with open(os.path.join(results, "fleet.jsonl")) as f:
        return [x for x in map(json.loads, f) if x.get("outcome")]


def check_verl(results):
    import numpy as np
    import torch
    from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage
    from verl_outputs import load

    outputs = chosen = images = 0
    final, groups = [], []
    for e in episodes(results):
        got = load(os.path.join(results, e["folder"], "export-verl"))
        for i, o in enumerate(got):
            d = o.as_dict()
            n = d["responses"].shape[0]
            assert d["response_mask"].shape[0] == d["rollout_log_probs"].shape[0] == n > 0, (e["test"], i)
            assert torch.all(d["rollout_log_probs"] <= 0) and torch.all(d["rollout_log_probs"][d["response_mask"] == 0] == 0)
            assert ("rm_scores" in d) == (i + 1 == len(got) and e["reward"] is not None)
            assert o.multi_modal_data["images"] and all(im.size == (640, 480) for im in o.multi_modal_data["images"])
            outputs, chosen, images = outputs + 1, chosen + int(d["response_mask"].sum()), images + len(o.multi_modal_data["images"])
        if e["reward"] is not None:
            final.append(d)
            groups.append(e["test"])
    width = max(d["responses"].shape[0] for d in final)
    rewards, mask = torch.zeros(len(final), width), torch.zeros(len(final), width)
    for i, d in enumerate(final):
        rewards[i, :len(d["rm_scores"])] = d["rm_scores"]
        mask[i, :len(d["response_mask"])] = d["response_mask"]
    advantages, _ = compute_grpo_outcome_advantage(rewards, mask, np.array(groups, dtype=object))
    moved = int((advantages.abs().sum(-1) > 0).sum())
    print(f"verl: {len(groups)} episodes of {len(set(groups))} tests with {outputs} outputs, {chosen} tokens of the model, {images} images; "
          f"mean reward {rewards.sum() / len(final):.3f}; GRPO advantages that are not 0: {moved} episodes")


def check_atif(results):
    from harbor.utils.trajectory_validator import TrajectoryValidator

    v, all_of = TrajectoryValidator(), episodes(results)
    wrong = [(e["test"], v.errors[:2]) for e in all_of
             if not v.validate(os.path.join(results, e["folder"], "export-atif", "trajectory.json"))]
    print(f"atif: {len(all_of) - len(wrong)} of {len(all_of)} trajectories pass Harbor's validator", *wrong[:3])
    if wrong:
        sys.exit(1)


if __name__ == "__main__":
    what, results = sys.argv[1], sys.argv[2]
    found = collections.Counter(e["outcome"] for e in episodes(results))
    errors = [e for e in episodes(results) if e.get("export_errors")]
    print(f"{sum(found.values())} episodes: {dict(found)}; exports that failed: {len(errors)}", *[e["export_errors"] for e in errors[:2]])
    folders = glob.glob(os.path.join(results, "tests", "*", "*", "results.json"))
    assert len(folders) == sum(found.values()), "folders and lines differ"
    if what in ("verl", "all"):
        check_verl(results)
    if what in ("atif", "all"):
        check_atif(results)
