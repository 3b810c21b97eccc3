import os

import gymnasium

key = os.environ["KEY"]
