"""The client's side of a WebSocket (RFC 6455), with nothing but Python's standard library.

Only what the agent protocol needs: text frames, whole or in pieces, pings, pongs and closes; no extensions, no subprotocols.
"""

import base64
import hashlib
import os
import socket
import ssl
import struct
import time
import urllib.parse

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
LARGEST = 1 << 20  # bytes of a message: the protocol's limit
LOST = 1006  # the code of a connection that ended without a close


class Closed(Exception):
    """The connection has ended: with the peer's close code and reason, or with LOST."""

    def __init__(self, code, reason=""):
        super().__init__(f"closed with {code} {reason}".strip())
        self.code, self.reason = code, reason


class WebSocket:
    """One connection. Only one thread may use it."""

    def __init__(self, url, ca_file=None, timeout=10):
        """Dial url, http:// or https://. Raises OSError when that fails."""
        at = urllib.parse.urlsplit(url)
        tls = at.scheme == "https"
        self.received, self.message = b"", None  # bytes that are no frame yet, and the pieces of a message
        self.heard = time.monotonic()  # when the peer last showed life
        self.socket = socket.create_connection((at.hostname, at.port or (443 if tls else 80)), timeout)
        try:
            if tls:
                context = ssl.create_default_context(cafile=ca_file)
                self.socket = context.wrap_socket(self.socket, server_hostname=at.hostname)
            self._upgrade(at)
        except BaseException:
            self.socket.close()
            raise

    def _upgrade(self, at):
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET {at.path} HTTP/1.1\r\nHost: {at.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        while b"\r\n\r\n" not in self.received:
            piece = self.socket.recv(4096)
            if not piece or len(self.received) > 64 << 10:
                raise OSError("the office's answer to the upgrade has no end")
            self.received += piece
        head, self.received = self.received.split(b"\r\n\r\n", 1)
        status, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        wanted = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
        if " 101 " not in status + " " or headers.get("sec-websocket-accept") != wanted:
            raise OSError(f"the office refused the upgrade: {status}")

    def send(self, text):
        """Send one text message. Raises Closed when nobody takes it."""
        self._send(TEXT, text.encode())

    def receive(self, timeout):
        """Give the next text message, or None when there is none within timeout seconds. Pings are answered on the way."""
        while True:
            frame = self._parse()
            if frame is None:
                if not self._fill(timeout):
                    return None
                continue
            final, kind, payload = frame
            if kind == PING:
                self._send(PONG, payload)
                continue
            if kind == PONG:
                continue
            if kind == CLOSE:
                code = struct.unpack(">H", payload[:2])[0] if len(payload) >= 2 else 1005
                self.close(code if code != 1005 else 1000)
                raise Closed(code, payload[2:].decode(errors="replace"))
            if kind in (TEXT, BINARY):
                self.message = b""
            if self.message is None or kind == BINARY or len(self.message) + len(payload) > LARGEST:
                self.close(1002)
                raise Closed(LOST, "the office sent what is no text of the protocol")
            self.message += payload
            if final:
                text, self.message = self.message.decode(), None
                return text

    def close(self, code=1000):
        """Say that this is the end, and end."""
        try:
            self._send(CLOSE, struct.pack(">H", code))
        except Closed:
            pass
        self.socket.close()

    def _fill(self, timeout):
        """Wait for bytes; False when none came."""
        try:
            self.socket.settimeout(timeout)
            piece = self.socket.recv(64 << 10)
        except TimeoutError:
            return False
        except OSError as error:
            raise Closed(LOST, str(error)) from error
        if not piece:
            raise Closed(LOST, "the network ended the connection")
        self.received += piece
        self.heard = time.monotonic()
        return True

    def _parse(self):
        """Take one frame off the bytes that came: whether it is the last of its message, its kind and its payload."""
        data = self.received
        if len(data) < 2:
            return None
        size, at = data[1] & 0x7F, 2
        if size >= 126:
            form, at = (">H", 4) if size == 126 else (">Q", 10)
            if len(data) < at:
                return None
            size = struct.unpack(form, data[2:at])[0]
        if data[0] & 0x70 or data[1] & 0x80 or size > LARGEST:
            self.close(1002)
            raise Closed(LOST, "the office sent a frame that was not agreed on")
        if len(data) < at + size:
            return None
        self.received = data[at + size :]
        return bool(data[0] & 0x80), data[0] & 0x0F, data[at : at + size]

    def _send(self, kind, payload):
        """Send one frame, masked as a client's are."""
        size = len(payload)
        if size < 126:
            head = struct.pack(">BB", 0x80 | kind, 0x80 | size)
        elif size < 1 << 16:
            head = struct.pack(">BBH", 0x80 | kind, 0x80 | 126, size)
        else:
            head = struct.pack(">BBQ", 0x80 | kind, 0x80 | 127, size)
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[n % 4] for n, byte in enumerate(payload))
        try:
            self.socket.settimeout(10)
            self.socket.sendall(head + mask + masked)
        except OSError as error:
            raise Closed(LOST, str(error)) from error
