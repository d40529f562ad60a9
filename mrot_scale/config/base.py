"""What all settings have in common."""

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """Settings that are checked, fixed, and explained by the string below each."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True
    )
