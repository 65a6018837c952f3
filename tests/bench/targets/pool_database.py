# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A pool of threads with a database (SQLite) behind one lock, until it is killed."""
import concurrent.futures
import json
import os
import sqlite3
import tempfile
import threading
import time

WORKERS = 6
ROWS = 20000


def make_database(path):
    with sqlite3.connect(path) as database:
        database.execute("create table orders (id integer primary key, customer integer, paid real)")
        database.executemany("insert into orders (customer, paid) values (?, ?)",
                             ((i % 97, i * 0.5) for i in range(ROWS)))


class Shop:
    def __init__(self, path):
        self.database = sqlite3.connect(path, check_same_thread=False)
        self.lock = threading.Lock()

    def orders_of(self, customer):
        with self.lock:
            return self.database.execute("select id, paid from orders where customer = ?",
                                         (customer,)).fetchall()

    def answer(self, customer):
        return json.dumps([{"id": i, "paid": paid} for i, paid in self.orders_of(customer)])

    def call_payment(self):
        time.sleep(0.003)

    def handle(self, customer):
        self.answer(customer)
        self.call_payment()


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "shop.db")
        make_database(path)
        shop = Shop(path)
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            for customer in range(1 << 30):
                pool.submit(shop.handle, customer % 97)
                time.sleep(0.002)


if __name__ == "__main__":
    main()
