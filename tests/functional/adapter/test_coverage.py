"""Every base class of dbt's adapter suites is run here, or it is said why not. The table of both is in the docs."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import dbt.tests.adapter

HERE = Path(__file__).parent
TABLE = HERE.parents[2] / "docs" / "adapter-suites.md"

NOT_APPLICABLE = {
    "BaseCachingTest": "an abstract part of the caching suites, without models of its own",
    "BaseCloneTest": "an abstract part of the clone suites",
    "BaseClone": "an abstract part of the clone suites",
    "BaseClonePossible": "tables of a lake are not cloned: two tables that share files could not be cleaned up",
    "BaseColumnTypes": "an abstract part of the suite for PostgreSQL's types",
    "BasePostgresColumnTypes": "tests PostgreSQL's types by their names",
    "BaseConstraintsColumnsEqual": "an abstract part of the suites for tables and views",
    "BaseContractSqlHeader": "an abstract part of the suite for tables",
    "BaseCatalogIntegrationValidation": "dbt's catalog integrations describe catalogs that a lake does not have",
    "BaseCurrentTimestamp": "an abstract part of the suites with and without a zone",
    "BaseCurrentTimestampNaive": "Spark's current_timestamp has a zone; BaseCurrentTimestampAware is run",
    "BaseDataTypeMacro": "an abstract part of the suites for each type",
    "BaseArrayUtils": "an abstract part of the suites for arrays",
    "BaseUtils": "an abstract part of the suites for each function",
    "BaseDebugPostgres": "tests the fields of a PostgreSQL profile",
    "BaseDebugInvalidProjectPostgres": "tests a PostgreSQL profile; what dbt says of a wrong project is dbt's own",
    "BaseDefaultQueryComments": "an abstract part of the suites for query comments",
    "BaseEscapeSingleQuotesQuote": "Spark escapes quotes with a backslash; BaseEscapeSingleQuotesBackslash is run",
    "BaseGenerateProject": "an abstract part of the docs suites",
    "BaseGetCatalogForSingleRelation": "needs the capability of dbt to ask for one relation, which nothing in dbt uses",
    "BaseGrants": "an abstract part of the grants suites",
    "BaseInvalidGrants": "a lake has no users; `grants` is refused with that reason",
    "BaseModelGrants": "a lake has no users; `grants` is refused with that reason",
    "BaseSeedGrants": "a lake has no users; `grants` is refused with that reason",
    "BasePersistDocsBase": "an abstract part of the suites for descriptions",
    "BasePersistDocsQuotedColumnCaseSensitive": "a lake compares names without case, quoted or not",
    "BasePersistDocsQuotedDescriptionNotAppliedOnMismatch": "a lake compares names without case, quoted or not",
    "BaseSimpleCopyUppercase": "tests a PostgreSQL profile with names in upper case",
    "BaseTestPrePost": "an abstract part of the suites for hooks",
    "BaseIncrementalGrants": "a lake has no users; `grants` is refused with that reason",
    "BaseSnapshotGrants": "a lake has no users; `grants` is refused with that reason",
    "BaseIncrementalOnSchemaChangeSetup": "an abstract part of the suite for changed columns",
    "BaseSimpleSnapshotBase": "an abstract part of the snapshot suites",
}


def base_classes() -> Iterator[tuple[str, str]]:
    """(module, class) of every base class of the package."""
    root = Path(dbt.tests.adapter.__path__[0])
    for path in sorted(root.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and node.name.startswith("Base"):
                yield path.relative_to(root).with_suffix("").as_posix(), node.name


def classes_run() -> dict[str, str]:
    """The base classes that a class of these modules derives from, with the module."""
    found: dict[str, str] = {}
    for path in sorted(HERE.glob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
                found |= {base.id: path.name for base in node.bases if isinstance(base, ast.Name)}
    return found


def lines() -> Iterator[str]:
    run = classes_run()
    for module, name in base_classes():
        if name in run:
            yield f"| `{name}` | {module} | passed |"
        elif name in NOT_APPLICABLE:
            yield f"| `{name}` | {module} | not applicable: {NOT_APPLICABLE[name]} |"
        else:
            yield f"| `{name}` | {module} | **missing** |"


def test_every_base_class_is_run_or_has_a_reason() -> None:
    assert not [line for line in lines() if "**missing**" in line]


def test_no_reason_is_given_for_a_class_that_is_run() -> None:
    assert not set(NOT_APPLICABLE) & set(classes_run())


def test_the_table_in_the_docs_is_this_one() -> None:
    assert TABLE.read_text().splitlines()[-len(list(lines())) :] == list(lines())


if __name__ == "__main__":
    head = inspect.cleandoc(
        """
        # dbt's adapter suites

        Every base class of `dbt-tests-adapter`, and what became of it here. Written by
        `python -m tests.functional.adapter.test_coverage`; a test compares the two.

        | class | module | |
        |---|---|---|
        """
    )
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text("\n".join([head, *lines()]) + "\n")
