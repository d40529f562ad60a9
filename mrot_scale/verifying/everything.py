"""Everything at a path read again and held against what was written: all that is wrong, by file.

Unlike `digest`, which stops at the first damage, this goes on to the last file, and it also names
what nobody listed. Nothing is written, so it may run beside anything else.
"""

from mrot_scale.digests import AnyPath, Kind, recognised
from mrot_scale.errors import MrotError
from mrot_scale.storing.location import Location
from mrot_scale.verifying.findings import Verified
from mrot_scale.verifying.folder import Folder
from mrot_scale.verifying.listed import check_listed
from mrot_scale.verifying.places import history_problems, other_generations, unrecognised
from mrot_scale.verifying.run_folders import check_run


def verify(path: AnyPath) -> Verified:
    """Read everything at a path and return all that is wrong with it.

    Raises only where there is nothing of ours to read, or where storage does not answer.
    """
    visible = Location(path)
    try:
        found = recognised(visible)
    except MrotError as error:
        problem = unrecognised(visible, error)
        return Verified(str(visible), None, 0, 0, 0, (problem,))
    folders = [found.folder, *other_generations(visible, found.folder)]
    read = [_checked(folder, found.kind) for folder in folders]
    return Verified(
        str(visible),
        found.kind,
        sum(folder.n_files for folder in read),
        sum(folder.n_bytes for folder in read),
        sum(folder.n_left_over for folder in read),
        (
            *(problem for folder in read for problem in folder.problems),
            *history_problems(visible, found.folder),
        ),
    )


def _checked(location: Location, kind: Kind) -> Folder:
    folder = Folder(location, kind)
    check = check_run if kind == "run" else check_listed
    check(folder)
    return folder
