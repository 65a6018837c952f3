# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A Celery application, whose broker is a folder: python -m celery -A celeryapp worker. A worker that is ready
has its pool spin in spins_in_celery(), again and again."""
import os
import time

from celery import Celery
from celery.signals import worker_ready

FOLDER = os.environ["CELERY_FOLDER"]
app = Celery("celeryapp", broker="filesystem://")
app.conf.update(broker_transport_options={"data_folder_in": FOLDER, "data_folder_out": FOLDER, "control_folder": FOLDER},
                task_ignore_result=True)


@app.task
def spins_in_celery():
    end = time.process_time() + 0.1
    while time.process_time() < end:
        sum(range(1000))
    spins_in_celery.delay()


@worker_ready.connect
def begins(**_):
    spins_in_celery.delay()
