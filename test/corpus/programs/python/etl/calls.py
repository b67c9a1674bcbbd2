"""Calls of services and sums over answers: sockets, HTTP, divisions, missing attributes."""
import asyncio
import socket
import urllib.request


class Answer:
    def __init__(self, status, items):
        self.status = status
        self.items = items


def open_connection(port):
    socket.create_connection(("127.0.0.1", port), timeout=1)


def fetch_rates(port, currency):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/rates/{currency}", timeout=1) as answer:
        return answer.read()


def average(values):
    return sum(values) / len(values)


def share(part, whole):
    return part / whole


def first_item(answer):
    return answer.items[0]


def last_page(pages, number):
    return pages[number]


def next_page(answer):
    return answer.next_page


def label_of(number):
    return "Order " + number


def check_total(expected, got):
    if expected != got:
        raise ValueError(f"total {got} differs from {expected}")


def check_currency(currency):
    if currency != "EUR":
        raise ValueError(f"currency {currency} is not supported")


async def gather_part(part):
    await asyncio.sleep(0)
    raise TimeoutError(f"part {part} took longer than 30 s")


async def gather_parts(part):
    return await asyncio.gather(gather_part(part))


def collect(part):
    return asyncio.run(gather_parts(part))


def load_driver(name):
    return __import__(f"drivers_{name}")


def walk(depth):
    return walk(depth + 1)
