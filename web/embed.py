"""Bundles the page and writes it as C: embed.py OUT.c DEPFILE PACKAGES.

This needs node, and esbuild in PACKAGES (tools/web fetches it). Without them, the files of
web/prebuilt replace the bundle if they were made from these sources; otherwise the array of files
is empty. The dependency file also names PACKAGES, so the next build after their installation makes
the page.

embed.py --dist PACKAGES puts the bundle into web/prebuilt of the release archive of `meson dist`.
"""

import gzip
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TYPES = {
    "/": "text/html; charset=UTF-8",
    "/page.css": "text/css; charset=UTF-8",
    "/page.js": "text/javascript; charset=UTF-8",
}


PREBUILT = {"/": "index.html", "/page.css": "page.css", "/page.js": "page.js"}


def sources():
    kinds = (".ts", ".css", ".html", ".py")
    return [
        path
        for path in sorted(HERE.rglob("*"))
        if path.suffix in kinds and path.is_file() and path.parent.name != "prebuilt"
    ]


def digest_of_sources():
    return digest(b"".join(path.read_bytes() for path in sources()))


def read_prebuilt():
    """Returns path → contents of web/prebuilt; empty without it, or if a source has changed."""
    folder = HERE / "prebuilt"
    made_of = folder / "sources"
    if not made_of.exists():
        return {}
    if made_of.read_text() != digest_of_sources():
        print("web/prebuilt was made from other sources than web/src: the page is left out")
        return {}
    return {path: (folder / name).read_bytes() for path, name in PREBUILT.items()}


def write_prebuilt(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for path, contents in files.items():
        (folder / PREBUILT[path]).write_bytes(contents)
    (folder / "sources").write_text(digest_of_sources())


def bundle(packages):
    """Bundles the page, and returns path → contents; empty if the tools are missing."""
    esbuild = packages / "node_modules/esbuild/bin/esbuild"
    if not esbuild.exists() or not shutil.which("node"):
        return {}
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        for entry, name in ((HERE / "src/main.ts", "page.js"), (HERE / "style.css", "page.css")):
            subprocess.run(
                [
                    esbuild,
                    entry,
                    "--bundle",
                    "--minify",
                    "--charset=utf8",
                    "--target=chrome100,firefox100,safari15",
                    "--format=iife",
                    "--legal-comments=none",
                    "--log-level=warning",
                    f"--outfile={out / name}",
                ],
                check=True,
            )
        files = {f"/{name}": (out / name).read_bytes() for name in ("page.css", "page.js")}
    html = (HERE / "index.html").read_text()
    for path, contents in files.items():
        html = html.replace(f"{path[1:]}?v=", f"{path[1:]}?v={digest(contents)}")
    return {"/": html.encode(), **files}


def digest(contents):
    return hashlib.sha256(contents).hexdigest()[:16]


def as_c(files):
    lines = ['// Made by web/embed.py.', '#include "faces/web/page.h"', ""]
    rows = []
    for number, (path, contents) in enumerate(files.items()):
        packed = gzip.compress(contents, 9, mtime=0)
        lines.append(f"static const char file_{number}[] = {{")
        for at in range(0, len(packed), 24):
            # The bytes are signed, as char is on most machines. With -funsigned-char they are
            # equal.
            lines.append("    " + "".join(f"(char){byte}," for byte in packed[at : at + 24]))
        lines.append("};")
        rows.append(
            f'    {{{{"{path}", {len(path)}}}, "{TYPES[path]}", {{"{digest(contents)}", 16}}, '
            f"{{file_{number}, sizeof file_{number}}}, {len(contents)}}},"
        )
    lines.append("const struct page_file page_files[] = {")
    lines += rows or ["    {{0}, 0, {0}, {0}, 0},"]
    lines += ["};", f"const size_t page_file_count = {len(files)};", ""]
    return "\n".join(lines)


def main(out, depfile, packages):
    packages = pathlib.Path(packages)
    needed = [*sources(), HERE / "src", packages / "package-lock.json"]
    text = as_c(bundle(packages) or read_prebuilt())
    pathlib.Path(depfile).write_text(
        f"{escape(out)}: " + " ".join(escape(path) for path in needed) + "\n"
    )
    if not pathlib.Path(out).exists() or pathlib.Path(out).read_text() != text:
        pathlib.Path(out).write_text(text)


def dist(packages):
    files = bundle(pathlib.Path(packages))
    if not files:
        sys.exit("a release archive needs the page: install node and npm, and run make again")
    write_prebuilt(pathlib.Path(os.environ["MESON_DIST_ROOT"]) / "web/prebuilt", files)


def escape(path):
    return str(path).replace(" ", "\\ ")


if __name__ == "__main__":
    dist(sys.argv[2]) if sys.argv[1] == "--dist" else main(*sys.argv[1:])
