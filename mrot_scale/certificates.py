"""A certificate authority for one cluster, and a certificate it signed. The only importer of
cryptography.

Scheduler, workers and driver share the one certificate. Dask asks of the other side that its
certificate is signed by the same authority, compares no names and knows no roles: certificates of
their own would keep nobody from anything, and be more keys to look after.
"""

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from uuid import uuid4

from mrot_scale.errors import ConfigError, MissingLibraryError, OutputError
from mrot_scale.storing.location import sync_folder

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError:
    raise MissingLibraryError(
        "Making certificates needs the library cryptography: pip install 'mrot-scale[tls]'."
    ) from None

_NAME = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_]([\w-]*\w)?(\.\w([\w-]*\w)?)*", re.ASCII)
_CLOCKS_DIFFER = timedelta(hours=1)
"""How far behind another machine's clock may be and still find the certificate valid."""


@dataclass(frozen=True)
class Certificates:
    """Where the files of a cluster's certificates are."""

    folder: Path
    hosts: tuple[str, ...]
    until: datetime

    @property
    def ca_file(self) -> Path:
        """Whose certificates are trusted; public."""
        return self.folder / "ca.pem"

    @property
    def cert(self) -> Path:
        """What scheduler, workers and driver show; public."""
        return self.folder / "node.pem"

    @property
    def key(self) -> Path:
        """The key to it: whoever has it is one of them."""
        return self.folder / "node-key.pem"

    @property
    def ca_key(self) -> Path:
        """What signs further certificates; no process of the cluster needs it."""
        return self.folder / "ca-key.pem"


def make_certificates(
    folder: str | os.PathLike[str],
    hosts: Sequence[str],
    *,
    days: int = 365,
    start: datetime | None = None,
) -> Certificates:
    """Write an authority, a certificate for these hosts and both keys into a new folder.

    They are valid for so many days from `start`, now when omitted.
    """
    names = [_general_name(host) for host in hosts]
    start = (start or datetime.now(UTC)).replace(microsecond=0)
    made = Certificates(Path(folder).absolute(), tuple(hosts), start + timedelta(days=days))
    ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = _authority(ca_key, start, made.until)
    certificate = _certificate(key, names, authority, ca_key)
    _write_folder(
        made.folder,
        {
            made.ca_file.name: _pem(authority),
            made.ca_key.name: _key_pem(ca_key),
            made.cert.name: _pem(certificate),
            made.key.name: _key_pem(key),
        },
    )
    return made


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        pass
    if not _NAME.fullmatch(host):
        raise ConfigError(
            f"--host {host!r} is neither a host name nor an IP address. Give the name alone, such "
            "as scheduler.example or 10.0.0.5."
        )
    return x509.DNSName(host)


def _authority(
    key: ec.EllipticCurvePrivateKey, start: datetime, until: datetime
) -> x509.Certificate:
    # The number tells apart authorities of different days, which all have the same purpose.
    name = _name(f"mrot-scale cluster {uuid4().hex[:8]}")
    return (
        _builder(name, key)
        .issuer_name(name)
        .not_valid_before(start - _CLOCKS_DIFFER)
        .not_valid_after(until)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def _certificate(
    key: ec.EllipticCurvePrivateKey,
    names: Sequence[x509.GeneralName],
    authority: x509.Certificate,
    ca_key: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    # Workers also connect to each other, so each of them is both.
    roles = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    return (
        _builder(_name("mrot-scale node"), key)
        .issuer_name(authority.subject)
        .not_valid_before(authority.not_valid_before_utc)
        .not_valid_after(authority.not_valid_after_utc)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(roles), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(signer, critical=False)
        .sign(ca_key, hashes.SHA256())
    )


def _builder(name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),  # a scheduler that starts at night has nobody to ask
    )


def _write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Let a new folder appear with all its files, readable by its owner alone."""
    _refuse_existing(folder)
    staging = folder.with_name(f".{folder.name}.{uuid4().hex}.tmp")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging.mkdir(mode=0o700)
        for name, content in files.items():
            _write_private(staging / name, content)
        sync_folder(staging)
        _refuse_existing(folder)  # a rename would replace an empty folder
        staging.rename(folder)
        sync_folder(folder.parent)
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"Cannot write {folder}: {error.strerror}.") from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _refuse_existing(folder: Path) -> None:
    if os.path.lexists(folder):
        raise OutputError(
            f"{folder} exists already, and keys are never overwritten. Choose another folder."
        )


def _write_private(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)
