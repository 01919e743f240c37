#!/usr/bin/env python3
"""Runs assets/fleet/learn.py on a Ray cluster of two nodes on this machine, and prints times and CPU time.

    learn_try.py OUT [options of learn.py]

Each node has room for one slot. Needs the packages that learn.py needs. Exit code: that of learn.py.
"""

import contextlib
import ctypes
import os
import resource
import subprocess
import sys
import time

import ray
from ray.cluster_utils import Cluster

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PR_SET_CHILD_SUBREAPER = 36  # of <linux/prctl.h>: count the CPU time of processes whose parent has ended
STORE = 80 << 20


def main():
    os.environ.setdefault("RAY_worker_niceness", "0")  # Ray's 15 starves tests on a machine with other work
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": STORE, "include_dashboard": False})
    for _ in range(2):
        cluster.add_node(num_cpus=1, object_store_memory=STORE)
    begun = time.monotonic()
    code = subprocess.run([sys.executable, os.path.join(ROOT, "assets", "fleet", "learn.py"), "--address", cluster.address, "--slots", "2",
                           "--listen", ray.util.get_node_ip_address() + ":0", "--out", *sys.argv[1:], "--", "--insecure"]).returncode
    seconds = time.monotonic() - begun
    cluster.shutdown()
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{seconds / 60:.1f} minutes, {(used.ru_utime + used.ru_stime) / 60:.1f} CPU minutes with Ray; exit code {code}")
    return code


if __name__ == "__main__":
    sys.exit(main())
