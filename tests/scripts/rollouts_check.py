#!/usr/bin/env python3
"""Checks exported episodes with the classes of their consumers.

    rollouts_check.py verl|parquet|atif|torch RESULTS

RESULTS: a folder of `ray_fleet.py --samples K --export verl --export atif`, or for atif and torch one that qa_far.sh
kept (PLACE/here.exports, PLACE/there.exports).

verl: each output becomes an AgentLoopOutput and its tensors, and verl's own function computes the GRPO advantage over
the samples of a test. parquet: verl's RLHFDataset loads the files of rollouts_parquet.py; each row has the tokens of
its export. atif: Harbor's validator, with images; each step has as many log-probabilities as tokens. torch: the
log-probabilities of all sampled tokens, computed again. Needs the packages verl, harbor, or torch. Prints a line;
exit code 1 if something does not fit.

In bf16 no bound holds for a single token, because the states of the layers are rounded as well. With F32=1, for
exports of runs in f32 (F32=1 qa_far.sh), torch computes in f32, and each log-probability must be equal to 0.001.
"""

import collections
import glob
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[0] = os.path.join(ROOT, "assets", "fleet")  # not this folder: transformers would import its kernels.py
from ray_store import episodes

F32, F32_MOST = bool(os.environ.get("F32")), 0.001


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


def exports(results, form):
    """Returns (name, folder) of each export."""
    if os.path.exists(os.path.join(results, "fleet.jsonl")):
        return [(e["test"], os.path.join(results, e["folder"], "export-" + form)) for e in episodes(results)]
    return [(os.path.basename(x), x) for x in sorted(glob.glob(os.path.join(results, form, "*")))]


def check_parquet(results):
    import tempfile

    import rollouts_parquet
    from omegaconf import OmegaConf
    from verl.utils.dataset.rl_dataset import RLHFDataset

    with tempfile.TemporaryDirectory() as folder:
        rollouts_parquet.write(rollouts_parquet.rows(results), folder, 200)
        files = sorted(glob.glob(folder + "/*.parquet"))
        settings = OmegaConf.create({"filter_overlong_prompts": False, "cache_dir": folder + "/cache"})
        data = RLHFDataset(files, tokenizer=None, config=settings, processor=object())
        wanted = collections.Counter()
        for _, place in exports(results, "verl"):
            with open(os.path.join(place, "outputs.jsonl")) as f:
                wanted.update(json.dumps([x["prompt_ids"], x["response_ids"], x["response_mask"]]) for x in map(json.loads, f))
        got, images = collections.Counter(), 0
        for i in range(len(data)):
            row = data[i]
            got[json.dumps([row[k] for k in ("prompt_ids", "response_ids", "response_mask")])] += 1
            images += sum(part["type"] == "image" for part in row["raw_prompt"][0]["content"])
        size = sum(map(os.path.getsize, files))
    assert got == wanted, "rows and exports differ"
    print(f"parquet: RLHFDataset loads {len(data)} rows with {images} images from {len(files)} files of {size >> 10} KB")


def check_atif(results):
    from harbor.utils.trajectory_validator import TrajectoryValidator

    v, all_of, wrong, steps = TrajectoryValidator(), exports(results, "atif"), [], 0
    for name, folder in all_of:
        path = os.path.join(folder, "trajectory.json")
        if not v.validate(path):
            wrong.append((name, v.errors[:2]))
        with open(path) as f:
            told = [s["metrics"] for s in json.load(f)["steps"] if "completion_token_ids" in s.get("metrics", {})]
        steps += len(told)
        wrong += [(name, "not aligned") for m in told
                  if not len(m["completion_token_ids"]) == len(m["logprobs"]) == len(m["extra"]["completion_mask"])]
    print(f"atif: {len(all_of) - len({n for n, _ in wrong})} of {len(all_of)} trajectories pass Harbor's validator; {steps} steps are aligned",
          *wrong[:3])
    if wrong or not steps:
        sys.exit(1)


def check_torch(results):
    import numpy as np
    import policy_gradient
    import torch
    from PIL import Image

    model, off, rows = policy_gradient.Trainee(policy_gradient.MODEL), [], {}
    model.dt = torch.float32 if F32 else model.dt
    for _, folder in exports(results, "verl"):
        with open(os.path.join(folder, "outputs.jsonl")) as f:
            for x in map(json.loads, f):
                (name,) = x["multi_modal_data"]["images"]
                with Image.open(os.path.join(folder, name)) as im:
                    pixels = np.array(im.convert("RGB"))
                key = hash(pixels.tobytes())
                if key not in rows:
                    rows[key] = model.look(pixels)[0]
                part = {"prompt": x["prompt_ids"], "response": x["response_ids"], "mask": x["response_mask"], "old": x["response_logprobs"],
                        "rows": rows[key]}
                with torch.no_grad():
                    logits, said, mask, old = policy_gradient.logits_of(model, [part])
                one = (logits.log_softmax(-1).gather(-1, said[..., None])[..., 0] - old).abs()
                off += one[mask > 0].tolist()
    print(f"torch: {len(off)} sampled tokens; log-probabilities differ by {np.mean(off):.6f} on average, {max(off):.6f} at most")
    if F32 and max(off) > F32_MOST:
        sys.exit(1)


CHECKS = {"verl": check_verl, "parquet": check_parquet, "atif": check_atif, "torch": check_torch}

if __name__ == "__main__":
    what, results = sys.argv[1], sys.argv[2]
    if os.path.exists(os.path.join(results, "fleet.jsonl")):
        found = collections.Counter(e["outcome"] for e in episodes(results))
        errors = [e for e in episodes(results) if e.get("export_errors")]
        print(f"{sum(found.values())} episodes: {dict(found)}; exports that failed: {len(errors)}",
              *[e["export_errors"] for e in errors[:2]])
        outcomes = []
        for path in glob.glob(os.path.join(results, "tests", "*", "*", "results.json")):
            with open(path) as f:
                outcomes.append(json.load(f)["tests"][0]["outcome"])
        assert len(outcomes) - outcomes.count("error") == sum(found.values()), "folders and lines differ"
    CHECKS[what](results)
