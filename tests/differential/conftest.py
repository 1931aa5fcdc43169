# These tests need transformers and torch, so they run only when they are asked for: python -m pytest tests/differential
from pathlib import Path

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path, config):
    """Leave this folder alone unless the command line names it or something in it."""
    named = [(config.invocation_params.dir / arg.split("::")[0]).resolve() for arg in config.args]
    return None if any(path == HERE or HERE in path.parents for path in named) else collection_path.is_relative_to(HERE)
