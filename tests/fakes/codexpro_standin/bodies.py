"""Bodies of requests: with a length or in chunks, packed or not, in one of Unicode's encodings, and how large."""
import json
import zlib

from .refusals import Answered, Refused
from .wire import ClientGone

MAX_BODY = 20 * 1024 * 1024


class BodyReader:
    """What a handler needs to read bodies; it brings headers, rfile, send_page and close_connection."""

    is_body_read = False

    def drop_body(self):
        """What of the body is not wanted: a little is read, so that the answer arrives; else the connection ends."""
        self.is_body_read = True
        length = int(self.headers.get("Content-Length") or 0)
        if "Transfer-Encoding" in self.headers or length > 1024 * 1024:
            self.close_connection = True
        else:
            self.rfile.read(length)

    def read_chunks(self):
        data = b""
        while True:
            size = int(self.rfile.readline(1000).split(b";")[0], 16)
            if size == 0:
                while self.rfile.readline(65537) not in (b"\r\n", b"\n", b""):
                    pass
                return data
            if len(data) <= MAX_BODY:
                data += self.rfile.read(size)
            else:
                self.skip(size)
            self.rfile.readline(1000)

    def read_body(self):
        """The bytes, or None if there is no body at all."""
        self.is_body_read = True
        if "chunked" in (self.headers.get("Transfer-Encoding") or ""):
            data = self.read_chunks()
        elif self.headers.get("Content-Length") is None:
            return None
        else:
            length = int(self.headers["Content-Length"])
            if length > MAX_BODY:
                self.skip(length)
                raise Refused(413, -32000, "Payload too large.")
            data = self.rfile.read(length)
            if len(data) < length:
                raise ClientGone
        if len(data) > MAX_BODY:
            raise Refused(413, -32000, "Payload too large.")
        return self.decompress(data)

    def skip(self, length):
        """A body that is too large is read to its end before it is refused."""
        while length > 0:
            piece = self.rfile.read(min(length, 65536))
            if not piece:
                raise ClientGone
            length -= len(piece)

    def decompress(self, data):
        encoding = (self.headers.get("Content-Encoding") or "identity").lower()
        if encoding == "identity":
            return data
        if encoding not in ("gzip", "deflate"):
            raise self.page(415, f"unsupported content encoding {encoding}")
        stream = zlib.decompressobj(zlib.MAX_WBITS | 32)
        try:
            data = stream.decompress(data, MAX_BODY + 1)
        except zlib.error as why:
            raise self.page(400, str(why)) from why
        if len(data) > MAX_BODY:
            raise Refused(413, -32000, "Payload too large.")
        return data

    def page(self, status, text):
        self.send_page(text, status=status)
        return Answered()

    def decode(self, data):
        charset = (self.headers.get_content_charset() or "utf-8").lower()
        if not charset.startswith("utf-"):
            raise self.page(415, f"unsupported charset {charset}")
        try:
            return data.decode(charset, "replace").removeprefix("\ufeff")
        except LookupError as why:
            raise self.page(415, f"unsupported charset {charset}") from why

    def is_json(self):
        kind = (self.headers.get("Content-Type") or "").split(";")[0].strip().lower()
        return kind == "application/json"

    def parse_body(self):
        """The JSON value; {} for an empty body; None where there is no JSON body."""
        data = self.read_body()
        if data is None or not self.is_json():
            return None
        if not data:
            return {}
        try:
            value = json.loads(self.decode(data), parse_constant=self.refuse_constant)
        except (ValueError, RecursionError) as why:
            raise Refused(400, -32700, "Parse error.") from why
        if not isinstance(value, (dict, list)):
            raise Refused(400, -32700, "Parse error.")
        return value

    @staticmethod
    def refuse_constant(name):
        raise ValueError(name)
