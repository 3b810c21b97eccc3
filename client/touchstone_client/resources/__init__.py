"""The calls of the JSON API, a file for each kind of object: what is answered, and the methods."""
