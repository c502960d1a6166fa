"""A dbt project over a lake, run by dbt as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.java import QUICK
from tests.places import Place

DBT = Path(sys.executable).with_name("dbt")


class Project:
    def __init__(self, folder: Path, place: Place, **target: Any) -> None:
        self.folder = folder
        (folder / "models").mkdir(parents=True)
        self.write("dbt_project.yml", json.dumps({"name": "p", "version": "1.0.0", "profile": "p"}))
        output = {
            "type": "ducklake",
            "threads": 4,
            **place.target,
            "spark": {"master": "local[2]", "config": QUICK},
            **target,
        }
        self.write("profiles.yml", json.dumps({"p": {"target": "dev", "outputs": {"dev": output}}}))

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [str(DBT), "--no-use-colors", *arguments, "--profiles-dir", "."]
        return subprocess.Popen(
            command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ}
        )

    def run(self, *arguments: str, passes: bool = True) -> str:
        process = self.start(*arguments)
        output, _ = process.communicate()
        assert (process.returncode == 0) is passes, output
        return output

    def files(self, place: Place) -> set[str]:
        return {path.name for path in Path(place.data_path).rglob("*.parquet")}
