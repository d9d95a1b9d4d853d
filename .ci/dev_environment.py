"""Sets up a development environment from pyproject.toml; called by the Makefile.

`requirements EXTRA...` prints the requirements for pip. `link` makes the running Python import
ipujax from this source tree: it writes a .pth file, the metadata with the entry point by which JAX
finds the plugin, and the command `ipujax`. An editable install with pip would do the same, but
build the extension a second time.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def requirements(extras: list[str]) -> str:
    """Run-time and build requirements, and those of `extras`, one per line."""
    config = project()
    wanted = config["project"]["dependencies"] + config["build-system"]["requires"]
    for extra in extras:
        wanted += config["project"]["optional-dependencies"][extra]
    return "\n".join(dict.fromkeys(wanted))


def link(site_packages: Path, scripts: Path) -> None:
    """Writes a .pth file and a .dist-info folder into `site_packages`, and the command."""
    config = project()["project"]
    info = site_packages / f"{config['name']}-{config['version']}.dist-info"
    for old in site_packages.glob(f"{config['name']}-*.dist-info/*"):
        old.unlink()
    info.mkdir(exist_ok=True)
    metadata = [
        "Metadata-Version: 2.1",
        f"Name: {config['name']}",
        f"Version: {config['version']}",
        f"Requires-Python: {config['requires-python']}",
        *(f"Requires-Dist: {requirement}" for requirement in config["dependencies"]),
    ]
    groups = {"jax_plugins": config["entry-points"]["jax_plugins"]}
    groups["console_scripts"] = config["scripts"]
    entry_points = [
        line
        for group, entries in groups.items()
        for line in (f"[{group}]", *(f"{name} = {target}" for name, target in entries.items()), "")
    ]
    pth = site_packages / f"{config['name']}.pth"
    written = {
        pth: f"{ROOT}\n",
        info / "METADATA": "\n".join(metadata) + "\n",
        info / "entry_points.txt": "\n".join(entry_points),
        info / "INSTALLER": "ipujax-make\n",
        info / "WHEEL": "Wheel-Version: 1.0\nGenerator: ipujax\nRoot-Is-Purelib: false\n",
    }
    for name, target in config["scripts"].items():
        module, function = target.split(":")
        written[scripts / name] = (
            f"#!{sys.executable}\nimport sys\n\nfrom {module} import {function}\n\n"
            f"sys.exit({function}())\n"
        )
    for path, text in written.items():
        path.write_text(text)
    for name in config["scripts"]:
        (scripts / name).chmod(0o755)
    record = "".join(f"{os.path.relpath(path, site_packages)},,\n" for path in written)
    (info / "RECORD").write_text(f"{record}{info.name}/RECORD,,\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["requirements"]:
        print(requirements(sys.argv[2:]))
    elif sys.argv[1:] == ["link"]:
        paths = sysconfig.get_paths()
        link(Path(paths["platlib"]), Path(paths["scripts"]))
    else:
        sys.exit("usage: dev_environment.py requirements EXTRA... | link")
