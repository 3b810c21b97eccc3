"""An MCP server with two tools, on standard input and output."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("desk")


@server.tool()
def refund(amount: int) -> str:
    return f"refunded {amount}"


@server.tool()
def delete_user(user: int) -> str:
    return f"deleted {user}"


@server.resource("desk://rules")
def rules() -> str:
    return "Be kind."


if __name__ == "__main__":
    server.run()
