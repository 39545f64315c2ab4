"""unpack_wheels.py TARGET FOLDER: unpacks every wheel in FOLDER into TARGET, keeping file modes."""

import pathlib
import sys
import zipfile


def unpack(wheel: pathlib.Path, target: pathlib.Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            path = pathlib.Path(archive.extract(entry, target))  # extract() refuses paths that leave the target
            mode = entry.external_attr >> 16
            if path.is_file() and mode & 0o111:
                path.chmod(0o755)


if __name__ == "__main__":
    for file in sorted(pathlib.Path(sys.argv[2]).glob("*.whl")):
        unpack(file, pathlib.Path(sys.argv[1]))
