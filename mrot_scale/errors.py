"""Every error the package raises on purpose, each with the exit code the command line gives it.

Each error also derives from the built-in that fits, so callers may catch either.
"""


class MrotError(Exception):
    """Base of all errors raised by mrot_scale."""

    exit_code = 1


class ConfigError(MrotError, ValueError):
    """A setting is outside its range, or two settings contradict each other."""

    exit_code = 78


class GateError(MrotError, ValueError):
    """A quality gate failed: nothing was published; the message says which gate and why."""

    exit_code = 3


class DataError(MrotError, ValueError):
    """The rows given cannot be used as they are."""

    exit_code = 65


class InputTypeError(MrotError, TypeError):
    """The object given is not a table of numbers."""

    exit_code = 65


class SolverError(MrotError, ArithmeticError):
    """A transport problem has no trustworthy solution; the message names the batch."""


class ModelMismatchError(MrotError, ValueError):
    """A saved model is sound, but not one this version or this call can use."""

    exit_code = 78


class DamagedDataError(MrotError, ValueError):
    """Stored data are not what was written: damaged, incomplete, swapped or foreign."""

    exit_code = 74


class DamagedModelError(DamagedDataError):
    """A model directory is not what was written: edited, truncated, incomplete or foreign."""

    exit_code = 74


class MissingInputError(MrotError, FileNotFoundError):
    """Nothing exists at the path given."""

    exit_code = 66


class OutputError(MrotError, OSError):
    """An output cannot be written, or exists already."""

    exit_code = 73


class StorageError(MrotError, OSError):
    """Storage did not answer as it should; the same command may succeed later."""

    exit_code = 75


class TemporaryError(MrotError, RuntimeError):
    """Workers, scheduler or storage were lost; the same command again continues."""

    exit_code = 75


class LockedError(MrotError, RuntimeError):
    """Another run is at work on the same output; the message says who."""

    exit_code = 77


class BudgetError(MrotError, MemoryError):
    """A task would not fit a worker's memory; the message shows the sum and the setting."""

    exit_code = 78


class MissingLibraryError(MrotError, ImportError):
    """A system library the package needs is not installed."""

    exit_code = 78


class UnwrittenReportWarning(UserWarning):
    """The report of a run could not be written; the run itself is as it would be with one."""


class LeftOutWarning(UserWarning):
    """A column of the source is not used."""


class NoContrastWarning(UserWarning):
    """All rows look alike, so their scores say nothing."""
