"""A switch that loses, repeats and delays frames: PORTS LOST TWICE DELAY_MS FILE.

Each figure is of a hundred frames; DELAY_MS is the longest delay. FILE gets the number of lost
frames. The numbers come from a fixed seed: a run can be repeated.
"""

import heapq
import random
import select
import socket
import sys
import time

PORTS, LOST, TWICE, DELAY = (int(word) for word in sys.argv[1:5])
FILE = sys.argv[5]
ALL_PROTOCOLS = 3
OUTGOING = 4

rolls = random.Random(77)
ports = []
for number in range(1, PORTS + 1):
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
    port.bind((f"port{number}", 0))
    ports.append(port)

late = []
turn = lost = 0


def say():
    with open(FILE, "w") as file:
        file.write(str(lost))


def send(frame, out):
    try:
        out.send(frame)
    except OSError:
        pass  # a cable that was pulled


say()
while True:
    now = time.monotonic()
    while late and late[0][0] <= now:
        _, _, frame, out = heapq.heappop(late)
        send(frame, out)
    wait = max(0.0, late[0][0] - now) if late else None
    for port in select.select(ports, [], [], wait)[0]:
        try:
            frame, origin = port.recvfrom(65536)
        except OSError:
            continue
        if origin[2] == OUTGOING:
            continue
        for out in ports:
            if out is port:
                continue
            if rolls.randrange(100) < LOST:
                lost += 1
                say()
                continue
            copies = 2 if rolls.randrange(100) < TWICE else 1
            for _ in range(copies):
                turn += 1
                due = time.monotonic() + rolls.random() * DELAY / 1000
                heapq.heappush(late, (due, turn, frame, out))
