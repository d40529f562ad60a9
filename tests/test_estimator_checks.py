"""scikit-learn's own checks of the estimator, none skipped."""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mrot_scale import MROT


@pytest.mark.filterwarnings("ignore::mrot_scale.errors.NoContrastWarning")
@parametrize_with_checks([MROT(), MROT(method="effort", views=("robust",), distrust=0.0)])
def test_estimator_follows_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)
