"""A program for smoke.sh, like those of users; it also prints the page of its job."""

import os
import pathlib
import urllib.request

import sonde

loss = sonde.gauge("loss")
for epoch in range(1, 4):
    with sonde.span("epoch", number=epoch):
        for step in range(1, 11):
            loss(1 / (epoch * step))
token = pathlib.Path(os.environ["SONDE_TOKEN_FILE"]).read_text().strip()
request = urllib.request.Request(
    os.environ["SONDE_URL"] + "/", headers={"Authorization": f"Bearer {token}"}
)
with urllib.request.urlopen(request) as page:
    print(page.read().decode())
