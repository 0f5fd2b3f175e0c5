"""Framed messages with descriptors over a Unix stream socket: eight bytes of length that carry the descriptors, then marshalled data."""
import array
import marshal
import os
import socket

LIMIT = 16 << 20  # bytes of one message


def send(sock, message, descriptors=()):
    data = marshal.dumps(message)
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    sock.sendmsg([len(data).to_bytes(8, "little")], rights)
    sock.sendall(data)


def receive(sock, most_descriptors=8):
    """(message, descriptors), or (None, []) at the end."""
    head, ancillary, _, _ = sock.recvmsg(8, socket.CMSG_SPACE(4 * most_descriptors), socket.MSG_CMSG_CLOEXEC)
    descriptors = array.array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    try:
        head += exactly(sock, 8 - len(head)) if head else b""
        size = int.from_bytes(head, "little")
        if not head or size > LIMIT:
            raise EOFError
        return marshal.loads(exactly(sock, size)), list(descriptors)
    except EOFError:
        for number in descriptors:
            os.close(number)
        return None, []


def exactly(sock, size):
    parts = []
    while size:
        part = sock.recv(min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
