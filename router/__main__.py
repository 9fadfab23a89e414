import sys

from hookbus.router.cli import main

sys.exit(main())
