"""Bundles the page and writes it as C: embed.py OUT.c DEPFILE PACKAGES.

Without node, or without esbuild in PACKAGES (tools/web fetches it), the array of files is empty.
The dependency file names PACKAGES, too: when the packages come, the next build makes the page.
"""

import gzip
import hashlib
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


def bundle(packages):
    """Path → contents; empty if the tools are missing."""
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
            # Signed, as char is on most machines; -funsigned-char reads the same bytes.
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
    sources = [
        path
        for path in sorted(HERE.rglob("*"))
        if path.suffix in (".ts", ".css", ".html", ".py") and path.is_file()
    ]
    needed = [*sources, HERE / "src", packages / "package-lock.json"]
    text = as_c(bundle(packages))
    pathlib.Path(depfile).write_text(
        f"{escape(out)}: " + " ".join(escape(path) for path in needed) + "\n"
    )
    if not pathlib.Path(out).exists() or pathlib.Path(out).read_text() != text:
        pathlib.Path(out).write_text(text)


def escape(path):
    return str(path).replace(" ", "\\ ")


if __name__ == "__main__":
    main(*sys.argv[1:])
