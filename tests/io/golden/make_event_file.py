"""Makes scalars.tfevents with TensorBoard's own messages and record writer (tensorboard 2.21.0 made the one committed)."""

import pathlib

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

TIME = 1700000000.25

EVENTS = [
    Event(wall_time=TIME, file_version="brain.Event:2"),
    Event(wall_time=TIME, step=300, session_log=SessionLog(status=SessionLog.START)),
    Event(wall_time=TIME + 1, step=0, summary=Summary(value=[Summary.Value(tag="train/loss", simple_value=2.5)])),
    Event(
        wall_time=TIME + 2,
        step=2**40,
        summary=Summary(
            value=[
                Summary.Value(tag="train/loss", simple_value=0.0),
                Summary.Value(tag="genauigkeit é " + "x" * 200, simple_value=float("nan")),
            ]
        ),
    ),
]

with open(pathlib.Path(__file__).parent / "scalars.tfevents", "wb") as file:
    writer = RecordWriter(file)
    for event in EVENTS:
        writer.write(event.SerializeToString())
    writer.flush()
