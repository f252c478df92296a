"""A made-up agent for trying `itembank session run`: what it answers and costs is settled by ids, and nothing is asked.

    python toy_agent.py --model my-model task/3            one item: the answer as JSON, with its costs
    python toy_agent.py --model my-model --items 200       every item, as a table that itembank import reads
    python toy_agent.py --models 30 --items 200            the same of thirty models, to calibrate a bank on

Items are called task/0, task/1, ... A model's ability and an item's difficulty come from their names, and so does the
answer: the same question to the same model has the same answer at any time, but for one in ten in another `--run`.
Hard items cost more. Now and then the agent breaks down (`--breaks 0.1`: one time in ten), or is slow (`--seconds 2`).
"""

import argparse
import csv
import hashlib
import json
import math
import random
import statistics
import sys
import time

NORMAL = statistics.NormalDist()


def uniform(*names):
    """Return a number between 0 and 1 that follows from names alone."""
    digest = hashlib.sha256("\0".join(map(str, names)).encode()).digest()
    return (int.from_bytes(digest[:8], "big") + 0.5) / 2**64


def answer(model, item, run):
    """Return the answer of a model to an item, and what it costs."""
    ability = NORMAL.inv_cdf(uniform("ability", model))
    difficulty = NORMAL.inv_cdf(uniform("difficulty", item))
    luck = ["answer", model, item]
    if run and uniform("luck", model, item) < 0.1:
        luck.append(run)
    is_right = uniform(*luck) < 1.0 / (1.0 + math.exp(-1.7 * (ability - difficulty)))
    tokens = round(400 * math.exp(0.7 * difficulty + 0.3 * NORMAL.inv_cdf(uniform("tokens", model, item))))
    return int(is_right), {"output_tokens": tokens, "cost_usd": round(tokens * 15e-6, 6)}


def main():
    """Answer one item, or write a table of all answers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("item", nargs="?")
    parser.add_argument("--model", default="my-model")
    parser.add_argument("--models", type=int)
    parser.add_argument("--items", type=int)
    parser.add_argument("--run", type=int, default=0)
    parser.add_argument("--breaks", type=float, default=0.0)
    parser.add_argument("--seconds", type=float, default=0.0)
    given = parser.parse_args()
    if given.item is None:
        write_table(given)
        return
    time.sleep(given.seconds)
    if random.random() < given.breaks:  # noqa: S311 (chance, not secrecy)
        raise ConnectionError("the provider did not answer")
    response, costs = answer(given.model, given.item, given.run)
    sys.stdout.write(json.dumps({"response": response, "costs": costs}) + "\n")


def write_table(given):
    """Write the answers of one model or of many to all items as CSV."""
    if given.items is None:
        sys.exit("Give an item, or say with --items N how many there are.")
    models = [given.model] if given.models is None else [f"past-{number}" for number in range(given.models)]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["model_id", "item_id", "scenario", "response", "output_tokens", "cost_usd"])
    for model in models:
        for number in range(given.items):
            item = f"task/{number}"
            response, costs = answer(model, item, given.run)
            writer.writerow([model, item, f"part {number % 3}", response, *costs.values()])


if __name__ == "__main__":
    main()
