"""What of a classifier can be changed."""

from pydantic import Field

from venn_admit.api.models.classifiers import StandingSetting
from venn_admit.api.models.common import Given, Model, Name


class SettingsAnswer(Model):
    """A classifier's name, and its settings."""

    classifier: str = Field(examples=["reviews"])
    settings: list[StandingSetting] = Field(description="Retired ones too, the one in use first.")


class NewName(Given):
    """Another name for a classifier."""

    classifier: Name = Field(description="The new name.", examples=["reviews of 2026"])
