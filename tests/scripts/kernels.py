#!/usr/bin/env python3
"""Reports the compiled form of each kernel without a GPU: registers, shared memory, spills, and the order of loads and
products in its main loop.

    kernels.py CARD [DIR]            writes tests/results/kernels-smCARD.tsv from the objects in DIR (build/cuda)
    kernels.py --check CARD [DIR]    compares with that table; exit code 1 if a kernel is worse or missing from it

The objects are those of an ordinary build for that GPU (make CARDS=90), or of some of its files: rows of other files
are kept, and files without rows are only checked for spills. cuobjdump and nvdisasm come from CUDA or from the
packages nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm. With another nvcc than the table's, --check reports that and
checks only spills.

The main loop is the one with the most letters: W loads 16 bytes of a weight, x is another load from memory, A an
asynchronous copy into shared memory, | the end of a group of copies or the wait for one, s a load from shared memory,
M one of a whole matrix, H a product of the tensor cores, B a barrier, ! a spilled register.
"""
import os
import re
import subprocess
import sys
import tempfile
from glob import glob

# Kernels that may use local memory, and why.
SPILLS = {"flash_attention": "255 registers at a head of 128", "select_digit": "a thread's bins are an array",
          "delta_chunk": "12 words a chunk with 64 columns, of 255 registers"}
# Instructions that spill in other kernels, by GPU. The launch bounds are chosen for sm_90.
SPILLS_OF = {"80": {"attend_one_split<kv8,64,1>": 2, "delta_decode<float,false>": 8},
             "86": {"expert_rows<4,2>": 2},
             "89": {"expert_rows<4,2>": 2},
             "100": {"attend_one_split<kv8,256,1>": 2},
             "120": {"expert_rows<0,2>": 4, "expert_rows<2,2>": 2, "scalar_gemv<bf16,false>": 143}}


def tool(name):
    for folder in os.environ["PATH"].split(":") + ["/usr/local/cuda/bin"]:
        if os.access(f"{folder}/{name}", os.X_OK):
            return f"{folder}/{name}"
    for folder in sys.path:
        found = glob(f"{folder}/nvidia/*/bin/{name}")
        if found:
            return found[0]
    sys.exit(f"kernels.py: there is no {name} here: install CUDA, or the package nvidia-cuda-{name}")


def output(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"kernels.py: {' '.join(command)}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def letter(instruction):
    op = re.sub(r"^@!?U?P\w+ ", "", instruction).split()[0]
    for begin, what in (("LDGSTS", "A"), ("LDGDEPBAR", "|"), ("DEPBAR", "|"), ("LDSM", "M"), ("LDS", "s"), ("HMMA", "H"),
                        ("IMMA", "H"), ("BAR", "B"), ("STL", "!"), ("LDL", "!")):
        if op.startswith(begin):
            return what
    if op.startswith("LDG") or op.startswith("LD."):
        return "W" if ".NA" in op else "x"
    return ""


def main_loops(cubin):
    """Returns for each function its main loop in letters and its spilling instructions."""
    code, name = {}, None
    for line in output(tool("nvdisasm"), "-c", cubin).splitlines():
        if m := re.match(r"\.text\.(\S+):", line):
            name = m[1]
            code[name] = []
        elif name and (m := re.match(r"(\.L_\S+):", line)):
            code[name].append((m[1], ""))
        elif name and (m := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*?);", line)):
            code[name].append(("", m[1].strip()))
    loops = {}
    for name, lines in code.items():
        labels = {label: i for i, (label, _) in enumerate(lines) if label}
        best = ""
        for i, (_, text) in enumerate(lines):
            m = re.search(r"BRA.*`\((\.L_\S+?)\)", text)
            if m and labels.get(m[1], i) < i:
                body = "".join(letter(t) for _, t in lines[labels[m[1]]:i] if t)
                best = max(best, body, key=len)
        loops[name] = best, sum(letter(t) == "!" for _, t in lines if t)
    return loops


def shortened(loop):
    """Writes HHHH as 4H and truncates long loops."""
    short = re.sub(r"(.)\1{2,}", lambda m: f"{len(m[0])}{m[1]}", loop)
    return short if len(short) <= 60 else short[:57] + "..."


def resources(object_file, card):
    """Returns registers and static shared memory of each function, as compiled for the card."""
    found, name = {}, None
    for line in output(tool("cuobjdump"), "-res-usage", "-arch", f"sm_{card}", object_file).splitlines():
        if m := re.match(r"\s*Function (\S+?):", line):
            name = m[1]
        elif m := re.search(r"REG:(\d+) STACK:\d+ SHARED:(\d+)", line):
            found[name] = (int(m[1]), int(m[2]))
    return found


def rows_of(object_file, card):
    names, loops = resources(object_file, card), {}
    with tempfile.TemporaryDirectory() as room:
        subprocess.run([tool("cuobjdump"), "-xelf", f"sm_{card}", os.path.abspath(object_file)], cwd=room,
                       stdout=subprocess.DEVNULL, check=True)
        for cubin in glob(f"{room}/*.cubin"):
            loops.update(main_loops(cubin))
    plain = output("c++filt", *names).splitlines() if names else []
    rows = []
    for (name, (registers, shared)), text in zip(names.items(), plain):
        loop, spills = loops.get(name, ("", 0))
        text = text.replace("(anonymous namespace)::", "")
        text = re.sub(r"\(.*", "", re.sub(r"^void ", "", re.sub(r"\(\w+\)", "", text))).replace(", ", ",")
        rows.append((os.path.basename(object_file)[:-2] + ".cu", text, registers, spills, shared, shortened(loop)))
    return sorted(rows)


def read_table(path):
    if not os.path.exists(path):
        return "", []
    lines = open(path).read().splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")][1:]
    return lines[0], [(r[0], r[1], int(r[2]), int(r[3]), int(r[4]), r[5] if len(r) > 5 else "") for r in rows]


def worse(now, before, same_compiler, allowed):
    """Yields a line for each kernel that spills more than it may or differs from the table."""
    was, files = {row[:2]: row for row in before}, {row[0] for row in before}
    for row in now:
        name = re.sub(r"<.*", "", row[1])
        if row[3] > allowed.get(row[1], 0) and name not in SPILLS:
            yield f"{row[0]} {row[1]}: {row[3]} instructions that spill"
        if not same_compiler or row[0] not in files:
            continue
        if row[:2] not in was:
            yield f"{row[0]} {row[1]}: not in the table"
        elif row[2:] != was[row[:2]][2:]:
            yield f"{row[0]} {row[1]}: {row[2:]}, in the table {was[row[:2]][2:]}"


def main():
    words = sys.argv[1:]
    check = words[:1] == ["--check"]
    words = words[check:]
    if not words or not words[0].isdigit():
        sys.exit(__doc__)
    card, folder = words[0], (words + ["build/cuda"])[1]
    path = f"tests/results/kernels-sm{card}.tsv"
    sources = sorted(glob(f"{folder}/*.o"))
    version = re.search(r"release .*", output(tool("nvcc"), "--version"))[0]
    head = f"# sm_{card}, nvcc {version}; tests/scripts/kernels.py {card}"
    now = [row for source in sources for row in rows_of(source, card)]
    old_head, old = read_table(path)
    if check:
        bad = list(worse(now, old, old_head == head, SPILLS_OF.get(card, {})))
        print("\n".join(bad) if bad else f"{len(now)} kernels: as in {path}" if old_head == head else
              f"{len(now)} kernels: no unlisted spills; {path}: {old_head or 'no such table'}")
        sys.exit(bool(bad))
    touched = {os.path.basename(s)[:-2] + ".cu" for s in sources}
    rows = sorted([row for row in old if row[0] not in touched and os.path.exists(f"cuda/{row[0]}")] + now)
    with open(path, "w") as f:
        f.write(head + "\nfile\tkernel\tregisters\tspilled\tshared\tmain loop\n")
        for row in rows:
            f.write("\t".join(map(str, row)) + "\n")
    print(f"{path}: {len(rows)} kernels")


main()
