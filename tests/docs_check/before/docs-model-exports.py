import os

from touchstone_client import Client

client = Client(os.environ["URL"], "sample", key=os.environ["KEY"])
