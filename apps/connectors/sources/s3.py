"""A prefix of a bucket: Amazon S3, what speaks its API (MinIO, R2, Ceph), and Google Cloud Storage by HMAC keys.

Requests are signed by botocore (Signature Version 4) and sent by our client for outgoing calls; botocore's own client
would follow redirects and take credentials of the machine. Files come in parts of the version that was listed.
"""

from typing import Any
from urllib.parse import quote

from django.conf import settings

from apps.connectors.sources.file_store import FORMAT, FileList, FileStore, StoredFile
from apps.connectors.sources.peer_client import PeerClient, PeerRefused, path_part
from apps.connectors.sources.source import DocumentProblem, SourceContext, SourceKind, SourceOption
from apps.core.errors import DomainError
from apps.core.storage.temporary_files import TemporaryFile

_PAGE = 1000
_PART = 8 * 2**20


class S3Store(FileStore):
    def __init__(self, context: SourceContext) -> None:
        super().__init__(context)
        self.client = PeerClient(context.connector.address, {"Accept": "*/*"}, context.pause)
        self._bucket = path_part(context.option("bucket"))
        self._region = context.option("region") or "us-east-1"
        self._suffix = context.option("suffix")

    def close(self) -> None:
        self.client.close()

    def list_files(self, page: str | None) -> FileList:
        query = {
            "list-type": "2",
            "prefix": self.context.option("prefix"),
            "max-keys": str(_PAGE),
            "continuation-token": page,
        }
        found = self._listing(self._get("", query, {}).body)
        files = [
            StoredFile(
                entry["Key"], str(entry.get("ETag") or entry["Size"]), entry["Size"], entry["LastModified"]
            )
            for entry in found.get("Contents", [])
            if entry["Size"] and not entry["Key"].endswith("/") and entry["Key"].endswith(self._suffix)
        ]
        return FileList(files, found.get("NextContinuationToken") if found.get("IsTruncated") else None)

    def download(self, file: StoredFile, out: TemporaryFile) -> None:
        if any(part in (".", "..") for part in file.name.split("/")):
            raise DocumentProblem(
                "Its key has a part “.” or “..”, which is not kept in a URL. Rename the object."
            )
        part = min(_PART, settings.MAX_RECORD_BYTES)
        for start in range(0, file.size, part):
            end = min(start + part, file.size) - 1
            headers = {"Range": f"bytes={start}-{end}", "If-Match": file.version}
            try:
                reply = self._get(f"/{quote(file.name, safe='/-_.~')}", {}, headers)
            except PeerRefused as error:
                raise DocumentProblem(
                    f"The object could not be read: {error.message} Objects in an archive class have to "
                    "be restored first."
                ) from None
            if reply.status != 206 and not (start == 0 and len(reply.body) == file.size):
                raise DocumentProblem("The server does not send objects in parts (Range).")
            out.write(reply.body)

    def _get(self, path: str, query: dict[str, Any], headers: dict[str, str]) -> Any:
        path = f"/{self._bucket}{path}"
        return self.client.call("GET", path, query=query, headers=self._signed(path, query, headers))

    def _signed(self, path: str, query: dict[str, Any], headers: dict[str, str]) -> dict[str, str]:
        """The headers with a signature; as they are, where the bucket is read without a key."""
        if not self.context.secret:
            return headers
        _, auth, awsrequest, credentials = _botocore()
        request = awsrequest.AWSRequest("GET", self.client.url(path, query), headers=headers)
        request.context["payload_signing_enabled"] = False
        keys = credentials.Credentials(self.context.connector.username, self.context.secret)
        auth.S3SigV4Auth(keys, "s3", self._region).add_auth(request)
        return dict(request.headers.items())

    def _listing(self, body: bytes) -> dict[str, Any]:
        session, *_ = _botocore()
        from botocore.parsers import ResponseParserError, create_parser

        shape = session.get_session().get_service_model("s3").operation_model("ListObjectsV2").output_shape
        try:
            found: dict[str, Any] = create_parser("rest-xml").parse(
                {"body": body, "headers": {}, "status_code": 200}, shape
            )
        except ResponseParserError:
            raise DomainError(
                f"{self.client.host} answered with something else than a list of objects. Check that the address is "
                "that of an S3 API.",
                status=502,
            ) from None
        return found


def _botocore() -> tuple[Any, Any, Any, Any]:
    try:
        from botocore import auth, awsrequest, credentials, session
    except ImportError:
        raise DomainError(
            "Buckets need botocore on the worker. Install the extra “s3” of touchstone-rewards."
        ) from None
    return session, auth, awsrequest, credentials


KIND = SourceKind(
    name="s3",
    title="S3 or Google Cloud Storage",
    lead="Files below a prefix of a bucket: Amazon S3, Google Cloud Storage, MinIO, R2 and others with S3's API.",
    open=S3Store,
    default_address="https://s3.us-east-1.amazonaws.com",
    address_help="https://s3.REGION.amazonaws.com, https://storage.googleapis.com, or the address of another S3 API.",
    username_label="Access key ID",
    key_label="Secret access key",
    key_help="Of Google Cloud Storage an HMAC key. Leave both empty for a public bucket.",
    options=(
        SourceOption("bucket", "Bucket", required=True),
        SourceOption("prefix", "Prefix", "Only objects whose key begins with it, such as logs/2026/."),
        SourceOption("suffix", "Suffix", "Only objects whose key ends with it, such as .jsonl."),
        SourceOption("region", "Region", "auto for Google Cloud Storage.", default="us-east-1"),
        FORMAT,
    ),
    has_traces=False,
    environment={
        "address": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
        "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    },
)
