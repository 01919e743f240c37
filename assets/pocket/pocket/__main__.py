"""Command line: python -m pocket STAGE ...; without arguments, or with -h, lists the stages."""

import argparse
import importlib
import sys

STAGES = {  # stage: module with options(parser) and run(arguments)
    "plan": "plan",
    "render": "sources.render",
    "frames": "sources.frames",
    "episodes": "sources.episodes",
    "visited": "visited",
    "pack": "pack",
    "joint": "joint",
    "pointer": "pointer_training",
    "publish": "publish",
    "golden": "golden",
}


def main(arguments):
    name = arguments[0] if arguments else "-h"
    if name not in STAGES:
        print("usage: python -m pocket STAGE ...   (STAGE -h shows its options)\n")
        for stage, module in STAGES.items():
            doc = importlib.import_module(f"pocket.{module}").__doc__
            print(f"  {stage:10} {doc.splitlines()[0]}")
        return 0 if name in ("-h", "--help") else 2
    module = importlib.import_module(f"pocket.{STAGES[name]}")
    parser = argparse.ArgumentParser(
        prog=f"python -m pocket {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.options(parser)
    return module.run(parser.parse_args(arguments[1:])) or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
