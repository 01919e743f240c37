#!/usr/bin/env python3
"""Writes rollouts as Parquet files, with the columns of verl's RLHFDataset and the sampled tokens.

    rollouts_parquet.py RESULTS TO [--rows N]

RESULTS: folder of `ray_fleet.py --samples K --export verl`. TO: a folder, or an address that fsspec knows,
for example s3://bucket/rollouts. A file has at most N rows; a row is an output (a conversation that was only
appended to). An image that occurs in several rows of a file is stored once. Files of an earlier call in TO
are replaced; a TO with other files is refused. Needs pyarrow and fsspec.
"""

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.dataset

import ray_store

Json = dict[str, Any]

DICTIONARY = 1 << 30  # bytes of different images that Parquet may store once in a file
ROWS = 512  # of a batch in memory
SCHEMA = pa.schema(
    {
        "data_source": pa.string(),
        "prompt": pa.list_(pa.struct({"role": pa.string(), "content": pa.string()})),
        "images": pa.list_(pa.struct({"bytes": pa.binary()})),
        "reward_model": pa.struct({"style": pa.string(), "ground_truth": pa.string()}),
        "extra_info": pa.struct(
            {"index": pa.int64(), "test": pa.string(), "sample": pa.int64(), "weights": pa.string()}
        ),
        "prompt_ids": pa.list_(pa.int32()),
        "response_ids": pa.list_(pa.int32()),
        "response_mask": pa.list_(pa.int8()),
        "response_logprobs": pa.list_(pa.float32()),
        "reward": pa.float32(),  # of the whole episode; null if undecided
    }
)


def rows_of(folder: str, task: str, source: str, test: str, sample: int, reward: float | None) -> list[Json]:
    """Returns the rows of an episode from its folder `export-verl`."""
    rows = []
    copied = ("prompt_ids", "response_ids", "response_mask", "response_logprobs")
    with open(os.path.join(folder, "outputs.jsonl")) as f:
        for index, line in enumerate(map(json.loads, f)):
            images = []
            for name in line["multi_modal_data"]["images"]:
                with open(os.path.join(folder, name), "rb") as picture:
                    images.append({"bytes": picture.read()})
            weights = line["extra_fields"]["sampler"]["weights"]
            rows.append(
                {key: line[key] for key in copied}
                | {
                    "data_source": source,
                    "prompt": [{"role": "user", "content": "<image>" * len(images) + task}],
                    "images": images,
                    "reward_model": {"style": "rule", "ground_truth": ""},
                    "extra_info": {"index": index, "test": test, "sample": sample, "weights": weights},
                    "reward": reward,
                }
            )
    return rows


def rows(results: str) -> Iterator[Json]:
    """Yields the rows of all episodes that have an export."""
    for e in ray_store.episodes(results):
        folder = os.path.join(results, e["folder"])
        if not os.path.isdir(os.path.join(folder, "export-verl")):
            continue
        with open(os.path.join(folder, "results.json")) as f:
            found = json.load(f)
        task = found["tests"][0]["task"]
        yield from rows_of(
            os.path.join(folder, "export-verl"), task, found["suite"], e["test"], e["sample"], e["reward"]
        )


def write(all_rows: Iterator[Json], to: str, most: int) -> None:
    """Writes files of at most `most` rows, in place of those of an earlier call."""

    def batches() -> Iterator[pa.RecordBatch]:
        some: list[Json] = []
        for row in all_rows:
            some.append(row)
            if len(some) == ROWS:
                yield pa.RecordBatch.from_pylist(some, SCHEMA)
                some = []
        if some:
            yield pa.RecordBatch.from_pylist(some, SCHEMA)

    filesystem, path = fsspec.core.url_to_fs(to)
    for found in filesystem.find(path):  # the folder's files are deleted: they must be of an earlier call
        if not re.fullmatch(r"part-\d+\.parquet", os.path.relpath(found, path)):
            sys.exit(f"rollouts_parquet.py: '{to}' has other files ('{found}'): name another folder")
    parquet = pa.dataset.ParquetFileFormat()
    pa.dataset.write_dataset(
        batches(),
        path,
        schema=SCHEMA,
        format=parquet,
        filesystem=filesystem,
        file_options=parquet.make_write_options(dictionary_pagesize_limit=DICTIONARY, compression="zstd"),
        max_rows_per_file=most,
        min_rows_per_group=most,  # images are stored once in a group
        max_rows_per_group=most,
        existing_data_behavior="delete_matching",
    )


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("results", metavar="RESULTS")
    p.add_argument("to", metavar="TO")
    p.add_argument("--rows", type=int, default=2000, metavar="N", help="of a file [2000]")
    o = p.parse_args()
    write(rows(o.results), o.to, o.rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
