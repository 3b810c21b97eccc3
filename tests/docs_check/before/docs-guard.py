import os

url, key = os.environ["URL"], os.environ["KEY"]
