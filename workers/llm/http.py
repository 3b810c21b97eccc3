"""What openai's client speaks HTTP by: httpx2 since its third version, httpx before."""

try:
    import httpx2 as http
except ImportError:
    import httpx as http  # type: ignore[no-redef]

__all__ = ["http"]
