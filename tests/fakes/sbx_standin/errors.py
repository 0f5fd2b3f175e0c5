"""How a command fails: one sentence, as the real program prints it, and an exit status."""


class CliError(Exception):
    """Printed as "ERROR: text" on stderr."""

    def __init__(self, text, code=1):
        super().__init__(text)
        self.text, self.code = text, code


class ClientGone(Exception):
    """The client was killed: nobody reads what a command would say."""


def request_failed(what, status, why):
    return CliError(f"{what}: request failed: {status}: {why}")


def not_found(name):
    return CliError(f"no sandbox named '{name}'\nCreate one with: sbx create --name {name} AGENT [PATH...]")
