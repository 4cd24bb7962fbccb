"""Runs the emitting programs on one host of the soak. Each slot runs one program after another, in
C or Python, for a random time. Some programs are killed with SIGKILL.

    programs.py FOLDER SEED SLOT…

FOLDER gets the accounts of the programs (SLOT-GENERATION) and the list of their lives (lives-HOST,
one JSON object a line). After SIGTERM, it ends when its programs have ended.
"""

import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
LIVES_S = (0.3, 2, 10, 40)  # a program gets one of these as its maximum life
RATES = (20, 100, 500)  # points a second
KILLED, PYTHON = 0.3, 0.25  # shares of the programs
PAUSE_S = 0.05
NUMBERS_FROM = 20000  # the first process id of the slots; the host uses only smaller ones

stopping = False


def on_term(*_):
    global stopping
    stopping = True


def number_next(pid):
    """Gives the next process this id, if it is free. So a slot's programs share their series, which
    have the tag pid. Otherwise the number of series would grow, and hide a leak."""
    with open("/proc/sys/kernel/ns_last_pid", "w") as last:
        last.write(str(pid - 1))


class Slot:
    def __init__(self, folder, name, chance):
        self.folder, self.name, self.chance = folder, name, chance
        self.generation = -1
        self.process = None

    def start(self):
        self.generation += 1
        self.kind = "python" if self.chance.random() < PYTHON else "c"
        self.killed = self.chance.random() < KILLED
        command = ["python3", HERE / "emitter.py"] if self.kind == "python" else ["soak_emitter"]
        self.began = time.monotonic()
        self.ends = self.began + self.chance.uniform(0.1, self.chance.choice(LIVES_S))
        account = self.folder / f"{self.name}-{self.generation}"
        number_next(NUMBERS_FROM + 10 * int(self.name))
        self.process = subprocess.Popen(
            [*command, account, self.name, str(self.generation), str(self.chance.choice(RATES))],
            stdin=subprocess.DEVNULL,
        )

    def end(self, lives):
        self.process.send_signal(signal.SIGKILL if self.killed else signal.SIGTERM)
        signalled = time.monotonic()
        code = self.process.wait()
        self.process = None
        # If SIGTERM ends a program in Python before it handles signals, it has emitted nothing.
        life = {
            "slot": self.name,
            "generation": self.generation,
            "kind": self.kind,
            "killed": self.killed,
            "code": code,
            "began": self.began,
            "signalled": signalled,
            "ended": time.monotonic(),
        }
        lives.write(json.dumps(life) + "\n")
        lives.flush()


def main():
    signal.signal(signal.SIGTERM, on_term)
    folder, seed = pathlib.Path(sys.argv[1]), sys.argv[2]
    slots = [Slot(folder, name, random.Random(f"{seed} {name}")) for name in sys.argv[3:]]
    with open(folder / f"lives-{socket.gethostname()}", "w") as lives:
        while not stopping:
            for slot in slots:
                if slot.process is None:
                    slot.start()
                elif time.monotonic() >= slot.ends:
                    slot.end(lives)
            time.sleep(PAUSE_S)
        for slot in slots:
            if slot.process:
                slot.killed = False
                slot.end(lives)


main()
