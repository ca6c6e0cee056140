"""The steps of dataset-build.yaml: JSON in on stdin, JSON out on stdout.

A step may run again after a crash, so each gives the same files when it is repeated: names are
made from the job's id, and files are replaced as a whole.
"""

import csv
import hashlib
import json
import os
import random
import sys
import tempfile

SIZE = 16


def download(given):
    """Makes grey images in the PGM format. Every 6th is broken, every 4th a copy of the first."""
    if int(os.environ.get("ORCHESTRATOR_ATTEMPT", "1")) == 1:
        print("the source is busy", file=sys.stderr)
        sys.exit(75)  # try again
    path = given["dir"] or os.path.join(tempfile.gettempdir(), "dataset-" + given["job"])
    raw = os.path.join(path, "raw")
    os.makedirs(raw, exist_ok=True)
    images = []
    for n in range(given["images"]):
        dice = random.Random(0 if n % 4 == 3 else n)
        base = dice.choice([30, 128, 220])
        pixels = [max(0, min(255, base + dice.randint(-20, 20))) for _ in range(SIZE * SIZE)]
        if n % 6 == 5:
            pixels = pixels[: SIZE * SIZE // 3]
        name = os.path.join(raw, f"{n:04}.pgm")
        write(name, f"P2\n{SIZE} {SIZE}\n255\n" + "\n".join(map(str, pixels)) + "\n")
        images.append(name)
    return {"dir": path, "images": images}


def validate(given):
    sound = [name for name in given["images"] if pixels_of(name) is not None]
    return {"images": sound, "broken": len(given["images"]) - len(sound)}


def deduplicate(given):
    first = {}
    for name in given["images"]:
        with open(name, "rb") as file:
            first.setdefault(hashlib.sha256(file.read()).hexdigest(), name)
    return {"images": list(first.values()), "duplicates": len(given["images"]) - len(first)}


def label(given):
    pixels = pixels_of(given["image"])
    mean = sum(pixels) / len(pixels)
    word = "dark" if mean < 85 else "medium" if mean < 170 else "bright"
    return {"image": given["image"], "label": word, "mean": round(mean, 1)}


def store(given):
    path = os.path.join(given["dir"], "dataset.csv")
    with open(path + ".new", "w", newline="") as file:
        table = csv.DictWriter(file, ["image", "label", "mean"])
        table.writeheader()
        table.writerows(given["labels"])
    os.replace(path + ".new", path)
    counts = {}
    for entry in given["labels"]:
        counts[entry["label"]] = counts.get(entry["label"], 0) + 1
    return {"path": path, "labels": counts}


def pixels_of(name):
    with open(name) as file:
        words = file.read().split()
    if words[:4] != ["P2", str(SIZE), str(SIZE), "255"] or len(words) != 4 + SIZE * SIZE:
        return None
    return [int(word) for word in words[4:]]


def write(name, text):
    with open(name + ".new", "w") as file:
        file.write(text)
    os.replace(name + ".new", name)


if __name__ == "__main__":
    steps = {step.__name__: step for step in (download, validate, deduplicate, label, store)}
    print(json.dumps(steps[sys.argv[1]](json.load(sys.stdin)["input"])))
