"""`python -m mrot_scale` is `mrot-scale`."""

from mrot_scale.cli import main

if __name__ == "__main__":
    main()
