"""A passkey in software: what a browser and its authenticator answer, made with fido2's own classes."""

import json
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from fido2.cose import ES256
from fido2.utils import sha256, websafe_decode, websafe_encode
from fido2.webauthn import (
    Aaguid,
    AttestationObject,
    AttestedCredentialData,
    AuthenticatorData,
    CollectedClientData,
)

ORIGIN, HOST = "https://testserver", "testserver"
_FLAG = AuthenticatorData.FLAG


class Passkey:
    def __init__(self, origin: str = ORIGIN) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.credential_id = b"a credential of the test"
        self.user_handle = b""
        self.origin = origin
        self.count = 0

    def create(self, options: dict[str, Any], *, alone: bool = False) -> str:
        """The answer to creation options, as the page sends it."""
        public = options["publicKey"]
        self.user_handle = websafe_decode(public["user"]["id"])
        client = self._client(CollectedClientData.TYPE.CREATE, public["challenge"])
        data = AttestedCredentialData.create(
            Aaguid.NONE, self.credential_id, ES256.from_cryptography_key(self.key.public_key())
        )
        attestation = AttestationObject.create("none", self._data(_FLAG.AT, data), {})
        response = {
            "clientDataJSON": websafe_encode(client),
            "attestationObject": websafe_encode(attestation),
        }
        return self._answer(response, {"credProps": {"rk": alone}})

    def get(self, options: dict[str, Any]) -> str:
        """The answer to request options."""
        client = self._client(CollectedClientData.TYPE.GET, options["publicKey"]["challenge"])
        data = self._data(_FLAG(0))
        response = {
            "clientDataJSON": websafe_encode(client),
            "authenticatorData": websafe_encode(data),
            "signature": websafe_encode(
                self.key.sign(bytes(data) + sha256(client), ec.ECDSA(hashes.SHA256()))
            ),
            "userHandle": websafe_encode(self.user_handle),
        }
        return self._answer(response, {})

    def _client(self, kind: Any, challenge: str) -> CollectedClientData:
        return CollectedClientData.create(kind, challenge, self.origin)

    def _data(self, more: Any, credential: Any = b"") -> AuthenticatorData:
        self.count += 1
        return AuthenticatorData.create(
            sha256(HOST.encode()), _FLAG.UP | _FLAG.UV | more, self.count, credential
        )

    def _answer(self, response: dict[str, str], extensions: dict[str, Any]) -> str:
        name = websafe_encode(self.credential_id)
        document = {
            "id": name,
            "rawId": name,
            "type": "public-key",
            "response": response,
            "clientExtensionResults": extensions,
        }
        return json.dumps(document)
