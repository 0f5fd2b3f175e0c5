"""Port mappings: the grammar of their words, and what is opened for them on the host."""
import errno
import ipaddress
import socket

from .errors import CliError

PROTOCOLS = ("tcp", "tcp4", "tcp6", "udp", "udp4", "udp6")
GIT_PORT = 9418


def port_number(text, spec, what):
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise CliError(f"invalid port spec \"{spec}\": invalid {what} port \"{text}\"")
    return int(text)


def split(spec):
    """(host address or None, host port text or None, sandbox port text, protocol or None)."""
    body, slash, protocol = spec.partition("/")
    if slash and protocol not in PROTOCOLS:
        raise CliError(f"invalid port spec \"{spec}\": unsupported protocol \"{protocol}\"")
    address = None
    if body.startswith("["):
        address, bracket, body = body[1:].partition("]:")
        if not bracket:
            raise CliError(f"invalid port spec \"{spec}\": missing ] in address")
    parts = body.split(":")
    if len(parts) == 3 and address is None:
        address, parts = parts[0], parts[1:]
    if len(parts) > 2 or (address is not None and len(parts) != 2):
        raise CliError(f"invalid port spec \"{spec}\": expected [[HOST_IP:]HOST_PORT:]SANDBOX_PORT[/PROTOCOL]")
    if address is not None:
        try:
            ipaddress.ip_address(address)
        except ValueError:
            raise CliError(f"invalid port spec \"{spec}\": invalid host IP \"{address}\"") from None
    return address, parts[0] if len(parts) == 2 else None, parts[-1], protocol or None


def rows_of(spec, tcp4_default):
    """The mappings that a --publish makes: one, or two where both families are meant."""
    address, host_text, sandbox_text, protocol = split(spec)
    sandbox_port = port_number(sandbox_text, spec, "sandbox")
    host_port = port_number(host_text, spec, "host") if host_text is not None else None
    is_six = address is not None and ":" in address
    if protocol is None:
        protocol = ("tcp6" if is_six else "tcp4") if tcp4_default else "tcp"
    if (protocol.endswith("4") and is_six) or (protocol.endswith("6") and address is not None and not is_six):
        raise CliError(f"invalid port spec \"{spec}\": host IP {address} does not fit protocol {protocol}")
    if address is not None:
        addresses = [address]
    else:
        addresses = {"4": ["127.0.0.1"], "6": ["::1"]}.get(protocol[-1], ["127.0.0.1", "::1"])
    return [{"host_ip": ip, "host_port": host_port, "sandbox_port": sandbox_port, "protocol": protocol} for ip in addresses]


def unpublish_match(spec):
    """A test on live rows. A bare sandbox port means all that are mapped to it; without protocol the default or a dual one."""
    address, host_text, sandbox_text, protocol = split(spec)
    sandbox_port = port_number(sandbox_text, spec, "sandbox")
    host_port = port_number(host_text, spec, "host") if host_text is not None else None

    def fits(row):
        if row["sandbox_port"] != sandbox_port or (host_port is not None and row["host_port"] != host_port):
            return False
        if address is not None and row["host_ip"] != address:
            return False
        if host_port is None:
            return protocol in (None, row["protocol"])
        return row["protocol"] == protocol if protocol else row["protocol"] in ("tcp", "tcp4", "tcp6" if address and ":" in address else "tcp4")
    return fits


def family_of(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def listen(row, port):
    """A listening (or, for UDP, bound) host socket; CliError when the address cannot be had."""
    kind = socket.SOCK_DGRAM if row["protocol"].startswith("udp") else socket.SOCK_STREAM
    made = socket.socket(family_of(row["host_ip"]), kind)
    try:
        if kind == socket.SOCK_STREAM:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if made.family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((row["host_ip"], port or 0))
        if kind == socket.SOCK_STREAM:
            made.listen(128)
        return made
    except OSError as why:
        made.close()
        text = "address already in use" if why.errno == errno.EADDRINUSE else (why.strerror or str(why)).lower()
        raise CliError(f"publish port: listen {row['protocol']} {show_address(row['host_ip'], port or 0)}: bind: {text}") from None


def show_address(ip, port):
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def show(row):
    return f"{show_address(row['host_ip'], row['host_port'])}->{row['sandbox_port']}/{row['protocol']}"


def public(row):
    return {key: row[key] for key in ("host_ip", "host_port", "sandbox_port", "protocol")}
