"""Reads TensorBoard's event files, by the formats' descriptions alone: records with a length and masked CRC-32C each
(TensorFlow's record format), which hold protobuf messages (Event, with a Summary of Values)."""
import struct


def crc32c(content):
    """Castagnoli's polynomial, reflected, a bit at a time."""
    value = 0xFFFFFFFF
    for byte in content:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def masked(content):
    value = crc32c(content)
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(content):
    """The records of a file; a wrong checksum or a cut record is a ValueError."""
    begin = 0
    while begin < len(content):
        length, length_check = struct.unpack_from("<QI", content, begin)
        record = content[begin + 12:begin + 12 + length]
        (check,) = struct.unpack_from("<I", content, begin + 12 + length)
        if masked(content[begin:begin + 8]) != length_check or masked(record) != check:
            raise ValueError(f"the record at byte {begin} has a wrong checksum")
        yield record
        begin += 16 + length


def varint(content, begin):
    value = shift = 0
    while True:
        byte = content[begin]
        begin += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, begin


def fields(message):
    """The numbers and values of a protobuf message's fields."""
    begin = 0
    while begin < len(message):
        key, begin = varint(message, begin)
        kind = key & 7
        if kind == 0:
            value, begin = varint(message, begin)
        elif kind == 2:
            length, begin = varint(message, begin)
            value, begin = message[begin:begin + length], begin + length
        else:
            form, size = {1: ("<d", 8), 5: ("<f", 4)}[kind]
            (value,), begin = struct.unpack_from(form, message, begin), begin + size
        yield key >> 3, value


def scalars(path):
    """(step, tag, value) of all scalars of a file, in its order. Event: 2 the step, 3 the file's version, 5 the summary;
    Summary: 1 its values; Value: 1 the tag, 2 the number."""
    found = []
    for number, record in enumerate(records(path.read_bytes())):
        event = dict(fields(record))
        if number == 0 and event[3] != b"brain.Event:2":
            raise ValueError("the first record has no version")
        for kind, message in fields(event.get(5, b"")):
            value = dict(fields(message))
            if kind == 1:
                found.append((event.get(2, 0), value[1].decode(), value[2]))
    return found
