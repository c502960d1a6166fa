"""The Java that Spark runs on, and an archive of the classes that Spark has loaded once it has run.

The JVM maps the archive instead of reading some 20,000 classes from their jars, which is a third of what a short run
takes. It checks by itself that an archive is of its own kind and of the same jars, and goes without where it is not.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pyspark

from dbt.adapters.ducklake.spark.errors import JavaMissing

OPTIONS = "spark.driver.extraJavaOptions"


def check_java() -> str:
    """The Java that Spark will run on. JavaMissing where there is none."""
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not java.exists():
            raise JavaMissing(f"JAVA_HOME is {home}, where there is no bin/java")
        return str(java)
    found = shutil.which("java")
    if found is None:
        raise JavaMissing("there is none on the PATH")
    return found


def class_archive() -> Path:
    """Where the archive for this Spark and this Java lies, or would."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = os.environ.get("SPARK_HOME") or str(Path(pyspark.__file__).parent)
    mark = hashlib.sha256(f"{home} {Path(check_java()).resolve()}".encode()).hexdigest()[:12]
    return caches / "dbt-ducklake" / f"spark-{pyspark.__version__}-{mark}.jsa"


def options_with(archive: Path) -> str:
    """What makes the JVM use an archive, without a word of it on stdout, where it would stand between dbt's lines."""
    return f"-XX:SharedArchiveFile={archive} -Xlog:disable -Xlog:all=error:stderr"


def options_making(archive: str) -> str:
    """What makes the JVM write an archive when it ends."""
    return f"-XX:ArchiveClassesAtExit={archive} -Xlog:disable -Xlog:all=error:stderr"
