# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tasks whose coroutines Cython made, in part.

    compiled_awaits.py FOLDER rest     all wait
    compiled_awaits.py FOLDER first    one computes for ever in a coroutine of Python's: in the first step,
    compiled_awaits.py FOLDER later    in a later one,
    compiled_awaits.py FOLDER deep     or below another one of Python's

FOLDER has the module that compiled.pyx becomes. Truth: {task: the names of its calls}.
"""
import asyncio
import json
import sys

sys.path.insert(0, sys.argv[1])
import compiled  # noqa: E402


async def rests():
    await asyncio.sleep(3600)


async def calls(coroutine):
    await coroutine


async def numbers():
    yield 1
    await rests()


def spin():
    tell()
    while True:
        pass


async def spins():
    spin()


async def later():
    await asyncio.sleep(0)
    spin()


def rest():
    return {"compiled": (compiled.rests(3600), ["rests", "sleep"]),
            "called": (calls(compiled.rests(3600)), ["calls", "rests", "sleep"]),
            "of Python": (compiled.Thing().method(rests()), ["method", "rests", "sleep"]),
            "numbers": (compiled.over(numbers()), ["over", "numbers", "rests", "sleep"]),
            "all compiled": (compiled.over(compiled.numbers()), ["over", "numbers", "rests", "sleep"])}


TASKS = {"rest": rest,
         "first": lambda: {"spins": (compiled.Thing().method(spins()), ["method", "spins", "spin"])},
         "later": lambda: {"spins": (compiled.Thing().method(later()), ["method", "later", "spin"])},
         "deep": lambda: {"spins": (calls(compiled.Thing().method(spins())), ["calls", "spins", "spin"])}}
chosen = TASKS[sys.argv[2]]()


def tell():
    print(json.dumps({name: chain for name, (_, chain) in chosen.items()}), flush=True)


async def main():
    asyncio.get_running_loop().slow_callback_duration = 3600
    tasks = [asyncio.ensure_future(coroutine) for coroutine, _ in chosen.values()]
    for task, name in zip(tasks, chosen):
        task.set_name(name)
    if sys.argv[2] == "rest":
        asyncio.get_running_loop().call_later(0.1, tell)
    await asyncio.gather(*tasks)


print("READY", flush=True)
sys.stdin.readline()
asyncio.run(main())
