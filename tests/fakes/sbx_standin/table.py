"""Text tables as the real program prints them: upper-case headers, columns padded with blanks."""


def render(headers, rows):
    rows = [list(map(str, row)) for row in rows]
    widths = [max(len(line[i]) for line in [headers] + rows) for i in range(len(headers))]
    return "\n".join("   ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in [headers] + rows)
