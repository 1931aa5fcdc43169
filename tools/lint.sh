#!/usr/bin/env bash
# Every check of the code that needs no test: style, Cython, types, the packaging and the repository's habits.
set -euo pipefail
cd "$(dirname "$0")/.."
ruff check .
ruff format --check .
cython-lint src tests examples
mypy
validate-pyproject pyproject.toml
codespell
repo-review .
zizmor --offline --quiet .github
