import time

import sonde

loss = sonde.gauge("loss")
for epoch in range(1, 4):
    with sonde.span("epoch", number=epoch):
        for step in range(1, 11):
            loss(1 / (epoch * step))
            time.sleep(0.1)
