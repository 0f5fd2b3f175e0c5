"""Calls of tools: checked, run here or by the guest, tagged and masked."""
import hashlib
import json
import sys
import time

from . import bash, schema
from .masking import mask, mask_result
from .paths import PathError, ToolError

NOT_SERVED = ("codexpro", "codexpro_self_test", "open_workspace")
# With tool cards, the long texts of these tools' structured content are cut.
CARD_TOOLS = ("open_current_workspace", "open_workspace", "inspect_workspace", "show_changes", "handoff_to_agent", "bash")
CARD_TEXT = 30000


def workspace_id(root):
    return "ws_" + hashlib.sha256(root.encode()).hexdigest()[:24]


def failure(text, **structured):
    result = {"content": [{"type": "text", "text": text}], "isError": True}
    if structured:
        result["structuredContent"] = structured
    return result


def cut_for_card(value):
    if isinstance(value, str) and len(value) > CARD_TEXT:
        return f"{value[:CARD_TEXT]}\n...[structured field truncated to {CARD_TEXT} chars]"
    if isinstance(value, list):
        return [cut_for_card(item) for item in value]
    return {key: cut_for_card(item) for key, item in value.items()} if isinstance(value, dict) else value


class Tools:
    """The tools of one server."""

    def __init__(self, settings):
        self.settings = settings
        self.tools = schema.load(settings)
        self.id = workspace_id(settings.root)
        self.guest_names = None

    def list(self):
        return {"tools": [schema.listed(tool) for tool in self.tools.values()]}

    def call(self, name, given, guest):
        """The result of one call; never fails."""
        tool = self.tools.get(name)
        if not tool:
            return failure(f"MCP error -32602: Tool {name} not found")
        arguments, problem = schema.check(tool, given)
        if problem:
            return failure(problem)
        start = time.monotonic()
        try:
            result = self._run(tool, arguments, guest)
        except ToolError as why:
            text = mask(str(why))
            result = failure(text, codexpro_tool=name, codexpro_title=tool["title"], error=text)
        if self.settings.logs_calls:
            status = "error" if result.get("isError") else "ok"
            print(f"[CodexProTool] {name} {status} {int((time.monotonic() - start) * 1000)}ms", file=sys.stderr, flush=True)
        return result

    def _run(self, tool, arguments, guest):
        name = tool["name"]
        self._check_workspace(arguments.pop("workspace_id", None))
        if name == "bash":
            text, fields = bash.run(self.settings, arguments)
            result = self._success(tool, text, {"workspace_id": self.id, "root": self.settings.root, **fields})
        elif name == "server_config":
            result = self._success(tool, *self._server_config())
        elif name in NOT_SERVED:
            raise PathError(f"{name} is not served by this stand-in")
        else:
            result = self._forward(tool, arguments, guest)
        result = mask_result(result)
        if self.settings.tool_cards and name in CARD_TOOLS and "structuredContent" in result:
            result["structuredContent"] = cut_for_card(result["structuredContent"])
        return result

    def _check_workspace(self, given):
        if given and given != self.id:
            raise PathError(f"Unknown workspace_id: {given}. Call open_workspace first.")

    def _success(self, tool, text, fields):
        return {"_meta": {}, "content": [{"type": "text", "text": text}],
                "structuredContent": {"codexpro_tool": tool["name"], "codexpro_title": tool["title"], **fields}}

    def _forward(self, tool, arguments, guest):
        name = tool["name"]
        self.guest_names = self.guest_names or guest.tool_names()
        if name not in self.guest_names:
            raise PathError(f"{name} is not served by this stand-in: its guest program does not have the tool")
        result = guest.call(name, arguments)
        structured = result.get("structuredContent")
        if isinstance(structured, dict):
            structured = result["structuredContent"] = self._known_fields(tool, structured)
            for key in ("workspace_id", "selected_workspace_id"):
                if key in structured:
                    structured[key] = self.id
        return result if result.get("isError") else {"_meta": {}, **result}

    @staticmethod
    def _known_fields(tool, structured):
        """What the guest program tells beyond the contract stays here."""
        kept = {key: value for key, value in structured.items() if key in tool["fields"] or key == "error"}
        return {"codexpro_tool": tool["name"], "codexpro_title": tool["title"], **kept}

    def _server_config(self):
        s = self.settings
        health = s.health()
        names = list(self.tools)
        fields = {
            "defaultRoot": s.root, "allowedRoots": s.allowed_roots, "host": s.host, "port": s.port, "widgetDomain": health["widgetDomain"],
            "authEnabled": bool(s.token), "bashMode": s.bash_mode, "bashTranscript": s.bash_transcript, "bashSessionId": s.bash_session_id,
            "requireBashSession": s.require_bash_session, "codexSessions": "off", "codexDir": "~/.codex", "writeMode": s.write_mode,
            "toolMode": s.tool_mode, "toolCards": s.tool_cards, "connectionTest": False, "analysisEnabled": True,
            "analysisLimits": {"maxInventoryFiles": 20000, "maxAnalyzedFiles": 5000, "maxScannedBytes": 67108864, "maxSymbols": 100000,
                               "maxRelationships": 250000},
            "inheritEnv": s.inherit_env, "contextDir": s.context_dir, "maxReadBytes": s.max_read_bytes, "maxWriteBytes": s.max_write_bytes,
            "maxImportBytes": s.max_import_bytes, "maxOutputBytes": s.max_output_bytes, "maxSearchResults": s.max_search_results,
            "blockedGlobs": s.blocked_globs, "registeredTools": names, "registeredToolCount": len(names),
        }
        return "# Server configuration\n\n" + json.dumps(fields, indent=2), fields
