from typing import Optional

class ClientError(RuntimeError):
    """A question that got no answer; `errno` says of which kind (errno.ECONNREFUSED, …)."""

    errno: int

class Connection:
    """A running job or a recording."""

    def __new__(cls, where: Optional[str] = None, token: Optional[str] = None) -> "Connection": ...
    def ask(self, path: str, body: Optional[bytes] = None, type: Optional[str] = None, timeout: float = 0.0) -> bytes:
        """The answer's bytes: of a GET, or with a body of a POST. Raises ClientError."""
    def close(self) -> None:
        """Questions that are under way are still answered."""
    @property
    def name(self) -> str:
        """the address, or the path"""
