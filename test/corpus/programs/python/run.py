"""Runs every cause once and writes one line of JSON for each exception, its traceback included."""
import json
import os
import random
import socket
import sys
import traceback
import uuid

from etl import calls, loads

# fmt: off
CAUSES = [
    ("python: customer without email", loads.read_customer, lambda d: ({"customer": {"id": d["id"]}},)),
    ("python: record without customer", loads.read_customer, lambda d: ({"id": d["uuid"]},)),
    ("python: record without address", loads.read_address, lambda d: ({"id": d["uuid"]},)),
    ("python: amount not a number", loads.parse_amount, lambda d: (d["amount"],)),
    ("python: total not a number", loads.parse_total, lambda d: (d["amount"],)),
    ("python: price not a number", loads.parse_price, lambda d: (d["word"],)),
    ("python: day in another form", loads.parse_day, lambda d: (d["day"],)),
    ("python: document is HTML", loads.parse_document, lambda d: (f"<p>{d['word']}</p>",)),
    ("python: event is HTML", loads.parse_event, lambda d: (f"<p>{d['word']}</p>",)),
    ("python: event cut off", loads.parse_event, lambda d: (f'{{"id": "{d["uuid"]}", "name": "{d["word"]}"',)),
    ("python: export missing", loads.open_export, lambda d: (d["folder"], d["word"] + str(d["id"]))),
    ("python: name not UTF-8", loads.decode_name, lambda d: (d["word"].encode() + b"\xff\xfe",)),
    ("python: row too short", loads.read_rows, lambda d: (f"{d['id']},{d['word']}\n",)),
    ("python: customer of row unknown", loads.check_row, lambda d: (d["id"], d["word"])),
    ("python: customer exists", loads.insert_customer, lambda d: (d["uuid"], d["word"])),
    ("python: customer without address", loads.insert_without_email, lambda d: (d["uuid"],)),
    ("python: table missing", loads.count_orders, lambda d: (d["id"],)),
    ("python: batch not JSON", loads.load_batch, lambda d: (d["id"], f"<p>{d['word']}</p>")),
    ("python: batch amount not a number", loads.load_amounts, lambda d: (d["id"], d["amount"])),
    ("python: defaults missing", loads.load_or_default, lambda d: ({"id": d["id"]}, None)),
    ("python: connection refused", calls.open_connection, lambda d: (d["port"],)),
    ("python: rates refuse connections", calls.fetch_rates, lambda d: (d["port"], d["word"])),
    ("python: average of nothing", calls.average, lambda d: ([],)),
    ("python: share of nothing", calls.share, lambda d: (d["id"], 0)),
    ("python: answer without items", calls.first_item, lambda d: (calls.Answer(d["id"], []),)),
    ("python: page past the end", calls.last_page, lambda d: ([d["word"]], d["id"])),
    ("python: answer without next page", calls.next_page, lambda d: (calls.Answer(d["id"], []),)),
    ("python: number joined to text", calls.label_of, lambda d: (d["id"],)),
    ("python: totals differ", calls.check_total, lambda d: (d["id"], d["amount"])),
    ("python: currency not supported", calls.check_currency, lambda d: (d["word"].upper()[:3],)),
    ("python: part too slow", calls.collect, lambda d: (d["uuid"],)),
    ("python: driver missing", calls.load_driver, lambda d: ("oracle",)),
    ("python: endless walk", calls.walk, lambda d: (0,)),
]
# fmt: on


def data_of(seed, folder, port):
    dice = random.Random(seed)
    word = dice.choice(["falcon", "winter", "copper", "meadow", "quartz", "harbor", "violet", "ember"])
    return {
        "id": dice.randrange(1000, 9_000_000),
        "uuid": str(uuid.UUID(int=dice.getrandbits(128), version=4)),
        "amount": f"{dice.randrange(1, 9999)}.{dice.randrange(10, 99)}",
        "day": f"{dice.randrange(1, 28)}/{dice.randrange(1, 12)}/20{dice.randrange(20, 26)}",
        "word": word + dice.choice("abcdefgh"),
        "folder": folder,
        "port": port,
    }


def closed_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def attempt(work, given, d):
    work(*given(d))


def main():
    seed = int(os.environ["CORPUS_SEED"])
    port = closed_port()
    for number, (label, work, given) in enumerate(CAUSES):
        d = data_of(seed * 7919 + number, os.environ["CORPUS_FOLDER"], port)
        line = {"cause": label, "missing": True}
        try:
            attempt(work, given, d)
        except BaseException as error:
            line = {"cause": label, "name": type(error).__name__, "message": str(error), "stack": traceback.format_exc()}
        sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.write(json.dumps({"prefix": sys.base_prefix}) + "\n")


main()
