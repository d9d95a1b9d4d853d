"""`python -m ipujax <word>`."""

import sys

from ipujax.cli.main import main

sys.exit(main())
