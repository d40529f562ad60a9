"""Settings shared by all tests.

- `MROT_REQUIRE_ALL=1` turns every skip into a failure: CI installs what tests need.
- Hypothesis profiles: `default` is quick, `thorough` (HYPOTHESIS_PROFILE) looks harder.
"""

import os

# scikit-learn's array-API check of the estimator runs only where SciPy has this switched on, and
# SciPy reads it once, when it is first imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "default", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=1_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    skipped_for_good = report.skipped and not hasattr(report, "wasxfail")
    if skipped_for_good and os.environ.get("MROT_REQUIRE_ALL") == "1":
        report.outcome = "failed"
        report.longrepr = f"skipped, though MROT_REQUIRE_ALL is set: {report.longrepr}"
    return report
