"""Ways in which a request ends early."""


class Refused(Exception):
    """An answer that ends the request: (status, JSON-RPC code, sentence)."""


class Rejected(Refused):
    """The same, from the layer below, which writes its head another way."""


class Answered(Exception):
    """The request has had its answer."""
