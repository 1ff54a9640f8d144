"""What each package of a release is made of, as SPDX 2.3 in JSON (https://spdx.github.io/spdx-spec/v2.3)."""

import datetime
import hashlib
import json
import pathlib

import archives
import components
from release import epoch, version


def make(packages: list[pathlib.Path], builds: pathlib.Path, to: pathlib.Path) -> pathlib.Path:
    """Of files that are there, made of these builds. The same files, at the same time, give the same text."""
    sums = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in packages}
    described = [described_file(name, digest) for name, digest in sorted(sums.items())]
    linked = {name: components_of(name, builds) for name in sorted(sums)}
    parts = {part.name: part for found in linked.values() for part in found}
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"reheap-{version()}",
        "documentNamespace": f"https://spdx.org/spdxdocs/reheap-{version()}-{digest_of(sums)}",
        "creationInfo": {
            "created": datetime.datetime.fromtimestamp(epoch(), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": ["Organization: The reheap authors", f"Tool: reheap-package-{version()}"],
        },
        "packages": described + [described_part(part) for _, part in sorted(parts.items())],
        "relationships": [relationship("SPDXRef-DOCUMENT", "DESCRIBES", reference(name)) for name in sorted(sums)]
                         + [relationship(reference(name), "STATIC_LINK", reference(part.name))
                            for name, found in linked.items() for part in found],
    }
    to.write_text(json.dumps(document, indent=2) + "\n")
    return to


def components_of(name: str, builds: pathlib.Path) -> tuple[components.Component, ...]:
    """By the name of the file: what has no command in it holds reheap alone."""
    if name.startswith("libreheap") or "dbgsym" in name or name.endswith((".crate", f"reheap-{version()}.tgz")):
        return ()
    if "win" in name:
        return components.windows()
    if name.endswith(".deb"):
        return components.linux(builds / "release/bin/reheap")
    return components.linux(archives.linux_build(builds) / "bin/reheap")


def described_file(name: str, digest: str) -> dict:
    return described_package(name, version(), "MIT", "2026 The reheap authors") | {
        "packageFileName": name,
        "checksums": [{"algorithm": "SHA256", "checksumValue": digest}],
    }


def described_part(part: components.Component) -> dict:
    return described_package(part.name, part.version(), part.licence, "NOASSERTION")


def described_package(name: str, of_version: str, licence: str, copyright_text: str) -> dict:
    return {
        "SPDXID": reference(name),
        "name": name,
        "versionInfo": of_version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": copyright_text,
    }


def relationship(one: str, kind: str, other: str) -> dict:
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}


def reference(name: str) -> str:
    """Of letters, digits, dots and dashes."""
    return "SPDXRef-" + "".join(letter if letter.isascii() and letter.isalnum() or letter == "." else "-"
                                for letter in name)


def digest_of(sums: dict[str, str]) -> str:
    return hashlib.sha256(json.dumps(sums, sort_keys=True).encode()).hexdigest()[:16]
