"""Lists the contents of an archive: the bill of materials (SPDX 2.3) and the licences."""

import datetime
import hashlib
import json
import pathlib
import shutil

from . import PROJECT
from .sources import Source
from .toolchain import ZIG

FOLDER = pathlib.PurePosixPath("share/doc/sonde")


def _package(name: str, version: str, licence: str, **more: object) -> dict[str, object]:
    return {
        "SPDXID": f"SPDXRef-{name}",
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
        **more,
    }


def bill(version: str, architecture: str, sources: list[Source], epoch: int) -> str:
    packages = [_package("sonde", version, "Apache-2.0")]
    for source in sources:
        packages.append(
            _package(
                source.name,
                source.version,
                source.licence,
                checksums=[{"algorithm": "SHA256", "checksumValue": source.checksum}],
                externalRefs=[
                    {
                        "referenceCategory": "PACKAGE-MANAGER",
                        "referenceType": "purl",
                        "referenceLocator": f"pkg:deb/debian/{source.name}@{source.version}?arch=source",
                    }
                ],
            )
        )
    packages.append(_package("ziglang", ZIG, "MIT", comment="the compiler; its runtime functions"))
    relations = [
        {
            "spdxElementId": "SPDXRef-DOCUMENT",
            "relationshipType": "DESCRIBES",
            "relatedSpdxElement": "SPDXRef-sonde",
        }
    ]
    for source in sources:
        relations.append(
            {
                "spdxElementId": "SPDXRef-sonde",
                "relationshipType": "STATIC_LINK",
                "relatedSpdxElement": f"SPDXRef-{source.name}",
            }
        )
    relations.append(
        {
            "spdxElementId": "SPDXRef-ziglang",
            "relationshipType": "BUILD_TOOL_OF",
            "relatedSpdxElement": "SPDXRef-sonde",
        }
    )
    content = json.dumps([packages, architecture], sort_keys=True)
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"sonde-{version}-linux-{architecture}",
        "documentNamespace": f"https://spdx.org/spdxdocs/sonde-{version}-{hashlib.sha256(content.encode()).hexdigest()}",
        "creationInfo": {
            "created": datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime(
                "%Y-%m-%dT%H:%M:%SZ"
            ),
            "creators": ["Tool: sonde-tools-dist"],
        },
        "packages": packages,
        "relationships": relations,
    }
    return json.dumps(document, indent=1) + "\n"


def add_documents(
    files: pathlib.Path, version: str, architecture: str, sources: list[Source], epoch: int
) -> None:
    """Writes the bill and the licences into the installed files."""
    folder = files / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "licenses").mkdir(parents=True)
    (folder / "sonde.spdx.json").write_text(bill(version, architecture, sources, epoch))
    shutil.copy(PROJECT / "LICENSE", folder / "licenses/sonde")
    for source in sources:
        text = "\n\n".join(path.read_text(errors="replace") for path in source.licence_files())
        (folder / f"licenses/{source.name}").write_text(text)
